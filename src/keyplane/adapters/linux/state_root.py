"""Where things stand under a machine's state root.

`root/` declared paths of a local machine · `run/ENTRY/UNIT/DIGEST/` one per start, with lock and
status · `log/ENTRY/UNIT.log` · `artifacts/DIGEST/` unpacked archives · `agent/` the agent's own.
An entry's `:` becomes `+` in file names, as lists of paths are separated by colons.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keyplane.model.names import Digest, EntryId, UnitName


@dataclass(frozen=True, slots=True, order=True)
class RunId:
    """What a run directory is named by; the same one never runs twice at once."""

    entry: EntryId
    unit: UnitName
    digest: Digest


def entry_folder(entry: EntryId) -> str:
    return entry.replace(":", "+")


def entry_of(folder: str) -> EntryId:
    return EntryId(folder.replace("+", ":"))


@dataclass(frozen=True, slots=True)
class StateRoot:
    path: Path
    """Absolute; all others derive from it."""

    @property
    def root(self) -> Path:
        return self.path / "root"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def artifacts(self) -> Path:
        return self.path / "artifacts"

    @property
    def agent(self) -> Path:
        return self.path / "agent"

    def make(self) -> None:
        """The folders. Accounts of units pass through, and read what is not the agent's own.

        What holds the machines' state roots is made too, and nothing above that: a whole fleet that
        was removed, or moved, is not put back by an agent that has not ended yet.
        """
        self.path.parent.mkdir(mode=0o711, exist_ok=True)
        for folder, mode in (
            (self.path, 0o755),
            (self.root, 0o755),
            (self.artifacts, 0o755),
            (self.run, 0o755),
            (self.path / "log", 0o750),
            (self.agent, 0o700),
        ):
            if not folder.is_dir():
                folder.mkdir(mode=mode, exist_ok=True)
                folder.chmod(mode)

    def run_directory(self, run: RunId) -> Path:
        # One join in place of three: ten are asked for in each restart.
        return self.run / f"{entry_folder(run.entry)}/{run.unit}/{run.digest}"

    def run_of(self, directory: Path) -> RunId | None:
        """Which run a directory is of; None if it is no run's of this machine."""
        if not directory.is_relative_to(self.run):
            return None
        match directory.relative_to(self.run).parts:
            case (entry, unit, digest):
                return RunId(entry_of(entry), UnitName(unit), Digest(digest))
            case _:
                return None

    def log(self, entry: EntryId, unit: UnitName) -> Path:
        return self.path / "log" / entry_folder(entry) / f"{unit}.log"

    def life(self, entry: EntryId, unit: UnitName) -> Path:
        """Where the log of the present run of a unit begins."""
        return self.log(entry, unit).with_suffix(".life")

    def runs(self) -> Iterator[RunId]:
        """Every run directory there is, in order of names."""
        for entry in _names(self.run):
            for unit in _names(self.run / entry):
                for digest in _names(self.run / entry / unit):
                    yield RunId(entry_of(entry), UnitName(unit), Digest(digest))


def _names(folder: Path) -> list[str]:
    try:
        return sorted(place.name for place in folder.iterdir() if not place.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
