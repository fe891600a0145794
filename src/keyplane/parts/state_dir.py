"""Where the parts of an embedded control plane keep what they know: `DIR/.keyplane/`.

Decides names only; makes nothing but the directories themselves.
"""

from dataclasses import dataclass
from pathlib import Path

NAME = ".keyplane"


@dataclass(frozen=True, slots=True)
class StateDir:
    """The state of one fleet on this machine."""

    root: Path

    @property
    def fleet(self) -> Path:
        """The fleet directory that it belongs to."""
        return self.root.parent

    @property
    def control_socket(self) -> Path:
        return self.root / "run" / "control.sock"

    @property
    def supervisor_socket(self) -> Path:
        return self.root / "run" / "supervisor.sock"

    @property
    def supervisor_lock(self) -> Path:
        """Not beside the sockets: who removes those does not let a second supervisor start."""
        return self.root / "supervisor.lock"

    @property
    def controller(self) -> Path:
        return self.root / "controller"

    @property
    def inventory(self) -> Path:
        return self.controller / "inventory.db"

    @property
    def store_url(self) -> Path:
        """Holds the address at which the artifact store is read now."""
        return self.root / "run" / "store.url"

    @property
    def bus(self) -> Path:
        return self.root / "bus"

    @property
    def bus_log(self) -> Path:
        """The bus writes and rotates it itself."""
        return self.bus / "nats.log"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def metrics(self) -> Path:
        """Holds the socket of each part that tells its metrics."""
        return self.root / "run" / "metrics"

    def metrics_socket(self, part: str) -> Path:
        return self.metrics / f"{part}.sock"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def machines(self) -> Path:
        return self.root / "machines"

    def machine(self, name: str) -> Path:
        return self.machines / name

    def make(self) -> None:
        """Everything but the machines' own; private to this account, except for looking through.

        Units run under other accounts: they may pass through, and list nothing.
        """
        for directory in (self.root, self.machines):
            directory.mkdir(exist_ok=True, mode=0o711)
            directory.chmod(0o711)
        for directory in (
            self.root / "run",
            self.controller,
            self.bus,
            self.store,
            self.logs,
        ):
            directory.mkdir(exist_ok=True, mode=0o700)
        (self.root / ".gitignore").write_text("*\n", encoding="utf-8")


def of_fleet(directory: Path) -> StateDir:
    return StateDir(directory.resolve() / NAME)


def find(start: Path) -> StateDir | None:
    """The state of the fleet that a directory lies in, or None if no fleet was ever up there."""
    for directory in (start.resolve(), *start.resolve().parents):
        if (directory / NAME / "controller").is_dir():
            return StateDir(directory / NAME)
    return None
