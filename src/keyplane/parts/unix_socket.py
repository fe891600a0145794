"""Unix sockets at paths of any length.

A socket's address holds 107 bytes; a fleet may lie deeper. The directory is opened instead, and
the address goes through its descriptor.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

_ADDRESS_MAX = 100
_LOOK_S = 1.0
"""How long a socket that somebody removed stays so; a look is one call."""


@contextlib.contextmanager
def address(path: Path) -> Generator[str]:
    """Yield an address of the socket that is short enough while the context is open."""
    if len(os.fsencode(path)) <= _ADDRESS_MAX:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def listen(path: Path) -> socket.socket:
    """Return a listening socket that only this account may connect to; an old one is replaced.

    The caller holds a lock that says that nobody else listens there.
    """
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with address(path) as name:
        server.bind(name)
    path.chmod(0o600)
    server.listen(128)
    server.settimeout(0)
    return server


async def until_removed(*paths: Path) -> None:
    """Return once what stands at one of the paths now does so no more: nobody finds us there."""
    names = [os.fspath(path) for path in paths]
    places = [_place(name) for name in names]
    while None not in places and [_place(name) for name in names] == places:  # noqa: ASYNC110  # a removal does not call
        await asyncio.sleep(_LOOK_S)


def _place(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)  # noqa: PTH116  # each second
    except OSError:
        return None
    return found.st_dev, found.st_ino


def listener_pid(client: socket.socket) -> int:
    """The process that listens where this socket is connected."""
    size = struct.calcsize("3i")
    pid, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid


def connect(path: Path) -> socket.socket:
    """Raise OSError if nobody listens."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with address(path) as name:
            client.connect(name)
    except BaseException:
        client.close()
        raise
    return client


def asked(line: bytes) -> dict[str, Any]:
    """What one line asks for. Raises ValueError for all that is no JSON object."""
    try:
        request = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if isinstance(request, dict):
        return cast("dict[str, Any]", request)
    raise ValueError("it is no JSON object")
