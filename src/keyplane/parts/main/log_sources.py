"""Where the logs of units and of parts stand on this machine, and how they are read."""

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.linux import log_following, part_logs, unit_logs
from keyplane.adapters.linux.state_root import entry_of
from keyplane.model.host import LogLine
from keyplane.model.names import EntryId
from keyplane.parts.state_dir import StateDir

ALL = 1 << 40
"""More lines than there are."""
LOOK_S = unit_logs.LOOK_S
LOST = "keyplane: lines may be missing here: the log was rotated faster than it was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The log of one unit or one part."""

    name: str
    """`ENTRY/UNIT`, or the part's name."""
    path: Path
    is_part: bool

    @property
    def parse(self) -> Callable[[bytes], LogLine]:
        return part_logs.parse if self.is_part else unit_logs.parse

    def last(self, count: int, since: str, end: int | None = None) -> list[LogLine]:
        """The last lines that are not older, oldest first."""
        found: list[LogLine] = []
        for text in unit_logs.backwards(self.path, end):
            line = self.parse(text)
            if len(found) == count or (line.at and line.at < since):
                break
            found.append(line)
        return list(part_logs.timed(found[::-1]))

    def following(self) -> "Follower":
        return Follower(self, log_following.Following(self.path))


@dataclass(slots=True)
class Follower:
    """What comes to a log from here on."""

    source: Source
    _following: log_following.Following
    _at: str = ""

    def last(self, count: int, since: str) -> list[LogLine]:
        """What stands before it."""
        return self.source.last(count, since, self._following.begin)

    def read(self) -> list[LogLine]:
        """What came since the last call."""
        lines = [self.source.parse(text) for text in self._following.read()]
        if self._following.lost:
            lines.insert(0, LogLine(at=self._at, text=LOST))
        timed = list(part_logs.timed(lines, self._at))
        self._at = timed[-1].at if timed else self._at
        return timed

    def close(self) -> None:
        self._following.close()


def keys(source: Source, line: LogLine) -> dict[str, str]:
    """What a part's line says by name; nothing for one that is no journal's."""
    return part_logs.keys(line.text) if source.is_part else {}


def units(state: StateDir, named: str) -> list[Source]:
    """The logs of `ENTRY` or `ENTRY/UNIT`, where `*` stands for anything."""
    return [source for source in _all_units(state) if _is_named(source, named)]


def units_below(machine: Path, named: str) -> list[Source]:
    """The same of one machine alone, by its state root."""
    return [source for source in _units_of(machine) if _is_named(source, named)]


def _is_named(source: Source, named: str) -> bool:
    entry, _, unit = named.partition("/")
    return fnmatch.fnmatchcase(source.name, f"{entry}/{unit or '*'}")


def entries(state: StateDir) -> list[EntryId]:
    """Every entry that ever wrote a log on a local machine."""
    return sorted({EntryId(source.name.partition("/")[0]) for source in _all_units(state)})


def parts(state: StateDir) -> list[Source]:
    """Those that ever wrote a log: `bus`, `controller`, `supervisor`, `agent:MACHINE`."""
    paths = {_part(path.stem): path for path in state.logs.glob("*.log")}
    if "bus" in paths:
        # It writes a log itself; what it prints besides is the end of one that could not start.
        printed = paths.pop("bus")
        paths |= {"bus": state.bus_log} | ({"bus:output": printed} if _size(printed) else {})
    return [Source(name=name, path=paths[name], is_part=True) for name in sorted(paths)]


def _part(stem: str) -> str:
    return stem.replace("agent-", "agent:", 1) if stem.startswith("agent-") else stem


def _size(path: Path) -> int:
    return path.stat().st_size


def _all_units(state: StateDir) -> Iterator[Source]:
    if not state.machines.is_dir():
        return
    for machine in sorted(state.machines.iterdir()):
        yield from _units_of(machine)


def _units_of(machine: Path) -> Iterator[Source]:
    for path in sorted((machine / "log").glob("*/*.log")):
        name = f"{entry_of(path.parent.name)}/{path.stem}"
        yield Source(name=name, path=path, is_part=False)
