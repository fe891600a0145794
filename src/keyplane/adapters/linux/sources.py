"""Sources of dynamic exports on this machine (`ports.sources.Sources`)."""

import asyncio
import contextlib
import os
import socket
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.linux import host_errors, leftovers, run_once, short_http, walk
from keyplane.adapters.linux.shim_command import Placement
from keyplane.adapters.linux.state_root import entry_folder
from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.ports.errors import PortError
from keyplane.ports.sources import SourceError, UnsettledError

SIZE_MAX = 32 * 1024
"""Of a value: half of what the bus carries."""
MAKE_S = 0.5
"""The folder of a socket is made by the agent's next pass."""
_ADDRESS_MAX = 100

Say = Callable[[str, str | None], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was found at a path."""

    content: bytes
    stamp: tuple[int, int, int]
    """Inode, size and time of its last change."""
    is_whole: bool
    """Nobody wrote while it was read."""


_NEVER = _Look(content=b"", stamp=(-1, -1, -1), is_whole=False)


class LinuxSources:
    """Belongs to one event loop."""

    def __init__(self, placement: Placement, root: Path) -> None:
        """Declared paths stand below `root`."""
        self._placement = placement
        self._root = root
        self._looks: dict[str, _Look | None] = {}
        """What the last look at each path found; None for nothing."""

    def read(self, path: str) -> bytes | None:
        look = self._look(path)
        former = self._looks.get(path, _NEVER)
        self._looks[path] = look
        if look != former or (look is not None and not look.is_whole):
            raise UnsettledError(f"{path} is being written")
        return None if look is None else look.content

    def _look(self, path: str) -> "_Look | None":
        look: _Look | None = None
        seen: os.stat_result | None = None
        try:
            with host_errors.about(path), walk.parent_of(self._root, path, make=False) as place:
                seen = None if place is None else place.stat()
                if place is not None and seen is not None and stat.S_ISREG(seen.st_mode):
                    look = _content(place)
        except FileNotFoundError:
            return None
        except PortError as error:
            raise SourceError(str(error)) from error
        if seen is not None and look is None:
            raise SourceError(f"{path} is no regular file")
        if look is not None and len(look.content) > SIZE_MAX:
            raise SourceError(f"{path} is larger than {SIZE_MAX} bytes")
        return look

    async def run(
        self, spec: ProcessSpec, command: tuple[str, ...], *, timeout_ms: int
    ) -> bytes | None:
        try:
            ran = await run_once.output_of(self._placement, spec, command, timeout_ms)
        except (PortError, OSError) as error:
            raise SourceError(f"{command[0]}: {error}") from error
        if ran.status is None:
            raise SourceError(f"{command[0]}: no end within {timeout_ms} ms")
        if ran.status < 0 or ran.status >= run_once.NOT_RUN:
            raise SourceError(f"{command[0]}: it was not run, or killed (status {ran.status})")
        return ran.output if ran.status == 0 else None

    async def serve(self, entry: EntryId, path: str, say: Say) -> None:
        place = Path(f"{self._root}{path}")
        while True:
            if _inode(place.parent) is not None:
                with contextlib.suppress(OSError):
                    await self._serve(entry, place, say)
            await asyncio.sleep(MAKE_S)

    async def _serve(self, entry: EntryId, place: Path, say: Say) -> None:
        """Until what stands at the path is no longer this socket."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer: socket.socket = writer.get_extra_info("socket")
            who = None if self._is_of(entry, peer) else f"only units of {entry} publish here"
            await short_http.answer(reader, writer, say, refused=who, size_max=SIZE_MAX)

        listener = _listen(place)
        server = await asyncio.start_unix_server(answer, sock=listener)
        made = _inode(place)
        try:
            while _inode(place) == made:  # noqa: ASYNC110  # a removal does not call
                await asyncio.sleep(MAKE_S)
        finally:
            server.close()
            if _inode(place) == made:
                _unlink(place)

    def _is_of(self, entry: EntryId, peer: socket.socket) -> bool:
        """Whether who speaks was started by a unit of the entry: it bears its mark."""
        raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", raw)
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        folder = self._placement.state.run / entry_folder(entry)
        mark = f"{leftovers.RUN_MARK}={folder}/".encode()
        return any(each.startswith(mark) for each in environment.split(b"\0"))


def _content(place: walk.Place) -> _Look:
    file = place.open(os.O_RDONLY | os.O_NONBLOCK)
    try:
        before = _stamp(os.fstat(file))
        content = os.read(file, SIZE_MAX + 1)
        after = _stamp(os.fstat(file))
    finally:
        os.close(file)
    return _Look(content=content, stamp=after, is_whole=before == after)


def _stamp(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _inode(place: Path) -> int | None:
    try:
        return place.stat().st_ino
    except OSError:
        return None


def _unlink(place: Path) -> None:
    with contextlib.suppress(OSError):
        place.unlink()


def _listen(place: Path) -> socket.socket:
    """Anybody may connect; who may speak is looked at then."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    directory = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        place.unlink(missing_ok=True)
        long = len(os.fsencode(place)) > _ADDRESS_MAX
        listener.bind(f"/proc/self/fd/{directory}/{place.name}" if long else str(place))
        place.chmod(0o666)
        listener.listen(16)
        listener.settimeout(0)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener
