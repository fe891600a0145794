"""HTTP on a Unix socket, where a client has no address but an account."""

import asyncio
import pwd
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class PeerProtocol(H11Protocol):
    """Gives each request its peer in place of an address: the account's name, and its number."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.client = _account(transport.get_extra_info("socket"))


def _account(connection: Any) -> tuple[str, int]:
    """Of whoever connected, as the kernel has it: nobody can say another."""
    size = struct.calcsize("3i")
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, uid, _ = struct.unpack("3i", said)
    try:
        return pwd.getpwuid(uid).pw_name, uid
    except KeyError:
        return "uid", uid
