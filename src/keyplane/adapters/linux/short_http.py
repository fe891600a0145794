"""As much of HTTP as a service needs to say a value: one request, one answer.

`PUT /NAME` with the value as its body, `DELETE /NAME` to withdraw it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from urllib import parse

TIMEOUT_S = 10.0
_HEAD_MAX = 8 * 1024

Say = Callable[[str, str | None], str | None]


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    say: Say,
    *,
    refused: str | None,
    size_max: int,
) -> None:
    """`refused`: why nothing of this peer is taken."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, text = await _take(reader, writer, say, refused, size_max)
            body = (text + "\n").encode() if text else b""
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _take(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    say: Say,
    refused: str | None,
    size_max: int,
) -> tuple[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n"))[:_HEAD_MAX].decode("latin-1")
    request, *lines = head.split("\r\n")
    method, _, rest = request.partition(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    length = int(headers.get("content-length", "0"))
    if length > size_max:
        return "413 Content Too Large", f"a value has {size_max} bytes at most"
    if "100-continue" in headers.get("expect", "").lower():
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await reader.readexactly(length)
    name = parse.unquote(parse.urlsplit(rest.partition(" ")[0]).path).lstrip("/")
    if refused is not None:
        return "403 Forbidden", refused
    if method not in {"PUT", "POST", "DELETE"}:
        return "405 Method Not Allowed", "PUT /NAME says a value, DELETE /NAME withdraws it"
    try:
        value = None if method == "DELETE" else body.decode()
    except UnicodeDecodeError:
        return "400 Bad Request", "a value is text in UTF-8"
    problem = say(name, value)
    return ("204 No Content", "") if problem is None else ("400 Bad Request", problem)
