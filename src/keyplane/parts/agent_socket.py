"""How people on the machine speak to its agent: one JSON object a line, one answered by one.

`{"do": "status"}`, `{"do": "stop", "entry": ...}`, `{"do": "start", "entry": ...}`. Only the
agent's own account and root get to the socket, and who it is is asked of the kernel.
"""

import asyncio
import json
import pwd
import socket
import struct
from pathlib import Path
from typing import Any, Protocol

import msgspec

from keyplane.journal import Journal
from keyplane.model.declaration import Report
from keyplane.model.names import EntryId
from keyplane.parts import unix_socket

log = Journal(__name__.removeprefix("keyplane."))

NAME = "agent.sock"
TIMEOUT_S = 30.0
"""An agent answers from what it knows; one that takes longer hangs."""


class Asked(Protocol):
    """The agent, as people ask it."""

    def report(self) -> Report: ...
    def stop_entry(self, entry: EntryId, who: str) -> bool: ...
    def start_entry(self, entry: EntryId, who: str) -> bool: ...


async def serve(agent: Asked, path: Path) -> None:
    """Answer until cancelled; a socket that was removed is made anew."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                who = _peer(writer.get_extra_info("socket"))
                writer.write(_answer(agent, unix_socket.asked(line), who) + b"\n")
                await writer.drain()
        except (OSError, ValueError, KeyError) as error:
            log.warning("bad request", problem=str(error))
        finally:
            writer.close()

    while True:
        with unix_socket.listen(path) as listener:
            async with await asyncio.start_unix_server(answer, sock=listener):
                await unix_socket.until_removed(path)
        log.warning("the socket was removed; it is made anew", address=path)


def _answer(agent: Asked, request: dict[str, Any], who: str) -> bytes:
    match request["do"]:
        case "status":
            return msgspec.json.encode(agent.report())
        case "stop":
            return msgspec.json.encode(agent.stop_entry(EntryId(request["entry"]), who))
        case "start":
            return msgspec.json.encode(agent.start_entry(EntryId(request["entry"]), who))
        case other:
            raise ValueError(f"unknown request {other!r}")


def _peer(connection: socket.socket) -> str:
    """The name of the account at the other end."""
    size = struct.calcsize("3i")
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, uid, _ = struct.unpack("3i", found)
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def ask(path: Path, request: dict[str, Any]) -> bytes | None:
    """The agent's answer, or None if none listens there. Raises OSError if it does not answer."""
    try:
        client = unix_socket.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    with client:
        client.settimeout(TIMEOUT_S)
        client.sendall(json.dumps(request).encode() + b"\n")
        with client.makefile("rb") as stream:
            line = stream.readline()
    if not line.endswith(b"\n"):
        raise OSError("the agent closed the connection")
    return line
