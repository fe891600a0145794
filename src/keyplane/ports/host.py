"""What an agent does to its machine: files, archives and processes under shims.

Paths are absolute as the declaration says them. On a machine of its own they are the machine's;
on a `local` machine they stand under the machine's state root, and each process sees them at
their declared place (where the kernel allows; else under `$KEYPLANE_ROOT`).
"""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from keyplane.model.declaration import Health, Reload
from keyplane.model.host import LogLine, ObservedPath, ObservedProcess, PathKind, ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.volumes import Saved
from keyplane.ports.errors import PermanentError, TransientError

__all__ = [
    "Artifacts",
    "Files",
    "HostBusyError",
    "HostError",
    "LogLine",
    "ObservedPath",
    "ObservedProcess",
    "PathKind",
    "PortHeldError",
    "ProcessSpec",
    "Processes",
    "Volumes",
]


class HostError(PermanentError):
    """The machine refused: a foreign file at the path, an account that is not there."""


class PortHeldError(HostError):
    """Somebody else listens on a port of the unit; the message says who."""


class HostBusyError(TransientError):
    """The machine could not do it now: no space, a process that does not end."""


class Files(Protocol):
    """Files, directories and unpacked archives. No call follows a link out of the root."""

    def observe(self, path: str) -> ObservedPath: ...

    def write(
        self, path: str, content: bytes, *, mode: str, owner: str | None, group: str | None
    ) -> None:
        """Whole and atomically; parents are made. Readers see the old bytes or the new."""
        ...

    def make_directory(
        self, path: str, *, mode: str, owner: str | None, group: str | None
    ) -> None: ...

    def unpack(self, digest: Digest, path: str) -> None:
        """A fetched archive to a path, replacing whole what an archive put there before."""
        ...

    def remove(self, path: str) -> None:
        """A file, an empty directory or an unpacked archive; nothing there is no error.

        A directory that is not empty, and was not unpacked, is a HostError.
        """
        ...

    def read_state(self, name: str) -> bytes | None:
        """The agent's own saved state of that name; None if there is none or it is torn."""
        ...

    def write_state(self, contents: Mapping[str, bytes]) -> None:
        """Each by its name atomically, and all durably, before it returns.

        If it fails, or the machine ends amid it, each of them may be the former or the new one.
        """
        ...


class Volumes(Protocol):
    """Directories that must not be lost: saved into the store whole, and put in place whole.

    Nothing uses them meanwhile. Owners and modes go along, as far as the machine has those
    accounts and lets the agent set them.
    """

    async def save(self, entry: EntryId, path: str, number: int) -> Saved:
        """Put what stands there into the store; nothing there is an empty directory.

        `number` is that of the order by which the store takes it in.
        """
        ...

    async def take(
        self, path: str, digest: Digest | None, number: int, *, mode: str | None, owner: str | None
    ) -> str | None:
        """Have it hold what the store has under a digest, or nothing; done once for a number.

        What was there before is moved, never removed; gives where it stands now, None if nothing
        was there. A call that was cut off leaves what was, or what was asked.
        """
        ...


class Artifacts(Protocol):
    """Archives, by the digest of their uncompressed tar, verified and kept on the machine."""

    def present(self) -> frozenset[Digest]: ...

    async def fetch(self, digest: Digest) -> None:
        """From the artifact store; verified and unpacked safely into the machine's cache."""
        ...

    def remove(self, digest: Digest) -> None: ...


class Processes(Protocol):
    """Processes that outlive the agent. What runs is asked of the machine, never remembered."""

    def observe(self) -> tuple[ObservedProcess, ...]:
        """Every unit that runs or ended and was not forgotten, whoever started it."""
        ...

    async def start(self, spec: ProcessSpec) -> ObservedProcess:
        """Start it; the same (entry, unit, digest) that runs already is answered as it is.

        Nothing is started while somebody outside its entry holds one of its ports (PortHeldError).
        """
        ...

    async def stop(
        self, entry: EntryId, unit: UnitName, digest: Digest, *, timeout_ms: int
    ) -> bool:
        """TERM to its group, KILL after the timeout; returns when nothing of it is left.

        True if it had to be killed.
        """
        ...

    def forget(self, entry: EntryId, unit: UnitName, digest: Digest) -> None:
        """Drop the remains of one that ended, its log not among them."""
        ...

    async def reload(
        self, entry: EntryId, unit: UnitName, digest: Digest, how: Reload, spec: ProcessSpec
    ) -> None: ...

    async def exited(self) -> ObservedProcess:
        """Wait for the next process to end; those that ended unseen come first.

        What `stop` ended, or `start` could not start, is told by their return alone.
        """
        ...

    async def probe(self, health: Health, spec: ProcessSpec) -> str | None:
        """None if healthy, else what was wrong. Never raises; keeps to the timeout.

        An answer on a port of its entry counts only from the entry's own processes, where it can
        be known whose it is.
        """
        ...

    def tail(self, entry: EntryId, unit: UnitName, lines: int) -> tuple[str, ...]:
        """The last lines that the unit's last run wrote, without their times."""
        ...

    def read(
        self, entry: EntryId, unit: UnitName, *, since_ms: int, lines: int
    ) -> tuple[LogLine, ...]:
        """The last lines since then (milliseconds of the Unix epoch), oldest first."""
        ...

    def follow(self, entry: EntryId, unit: UnitName, *, lines: int) -> AsyncIterator[LogLine]:
        """The last lines, then each as it comes, across rotations and restarts, for ever."""
        ...
