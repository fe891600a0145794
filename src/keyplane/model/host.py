"""What a machine's processes and paths are: what an agent asks for, and what it then sees.

Values alone: `converge` decides over them, and the ports of the host give and take them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.model.names import Digest, EntryId, UnitName


class PathKind(StrEnum):
    """What can stand at a path."""

    ABSENT = "absent"
    FILE = "file"
    DIRECTORY = "directory"
    ARCHIVE = "archive"
    """A tree that the agent unpacked, where that can be told from another directory."""
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPath:
    """What stands at a path. No link is followed."""

    kind: PathKind
    digest: Digest | None = None
    """Of a regular file's bytes; of the archive, where its unpacked tree can tell."""
    mode: str | None = None
    """As declarations have it: `0644`."""
    owner: str | None = None
    """None, as `group`, where the agent cannot set it: nothing to compare."""
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """All that a shim needs to run one unit."""

    entry: EntryId
    unit: UnitName
    digest: Digest
    command: tuple[str, ...]
    env: Mapping[str, str]
    archive: Digest | None = None
    working_directory: str | None = None
    user: str | None = None
    paths: tuple[str, ...] = ()
    """Declared paths (files, directories, volumes, archives) that the process sees in place."""
    limits: Mapping[str, object] = field(default_factory=dict[str, object])
    ports: tuple[int, ...] = ()
    """Of TCP, on which its entry listens: nobody else may when it is started, nor answer for it."""
    udp_ports: tuple[int, ...] = ()
    """The same of UDP."""
    address: str | None = None
    """Of its machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedProcess:
    """What a shim, or its remains, say of one unit under one digest."""

    entry: EntryId
    unit: UnitName
    digest: Digest
    running: bool
    pid: int | None = None
    start_ticks: int | None = None
    exit_code: int | None = None
    """Of a process that ended by itself."""
    exit_signal: int | None = None
    cause: str | None = None
    """Why it could not be started, in words."""
    lost: bool = False
    """Nobody saw it end: the machine went down, or its shim was killed, and it with it."""
    rebooted: bool = False
    """The machine went down since it ran."""
    asked: bool = False
    """Its shim was asked to end it, by whomever."""
    notes: tuple[str, ...] = ()
    """What it runs without, such as a private view of the file system or its account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a unit's log."""

    at: str
    """When its shim read it: RFC 3339 in UTC, to the millisecond."""
    text: str
