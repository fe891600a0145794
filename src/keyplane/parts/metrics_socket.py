"""Tells a part's metrics to whoever asks at its socket, by the least of HTTP that that takes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from keyplane import metrics
from keyplane.journal import Journal
from keyplane.parts import unix_socket
from keyplane.ports.errors import PortError

log = Journal(__name__.removeprefix("keyplane."))

REQUEST_S = 5.0
"""Who asks has said all of it by then."""
REQUEST_BYTES_MAX = 16_384


async def serve(path: Path, part: str, measure: Callable[[], Awaitable[None]]) -> None:
    """Answer until cancelled. `measure` sets what is read off the part's state.

    Where nobody can be answered, the part goes on without.
    """
    while True:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with unix_socket.listen(path) as listener:
                server = await asyncio.start_unix_server(
                    lambda reader, writer: _answer(reader, writer, part, measure),
                    sock=listener,
                    limit=REQUEST_BYTES_MAX,
                )
                async with server:
                    await unix_socket.until_removed(path)
        except OSError as error:
            log.warning("nobody can read metrics here", socket=path, problem=str(error))
            return


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    part: str,
    measure: Callable[[], Awaitable[None]],
) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            async with asyncio.timeout(REQUEST_S):
                await reader.readuntil(b"\r\n\r\n")
                status, body = "200 OK", await _body(part, measure)
        except PortError as error:
            status, body = "503 Service Unavailable", f"{error}\n".encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {metrics.CONTENT_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
    writer.close()


async def _body(part: str, measure: Callable[[], Awaitable[None]]) -> bytes:
    await measure()
    return metrics.text(part)
