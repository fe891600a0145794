"""Probes over the network: one connection each, closed in any case, nothing followed."""

import asyncio
import contextlib
import ssl
from urllib import parse

_STATUS_LINE_MAX = 8_192


async def http(url: str) -> str | None:
    """Healthy is a status of 200 to 399, of this URL itself: redirections are not followed.

    A certificate is not verified: what is asked is whether the unit answers, on its own machine,
    often under a name that its certificate does not hold.
    """
    target = parse.urlsplit(url)
    if target.scheme not in ("http", "https") or not target.hostname:
        return f"{url} is no http URL"
    context = None
    if target.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    port = target.port or (443 if context else 80)
    host = target.netloc.rpartition("@")[2]
    path = parse.urlunsplit(("", "", target.path or "/", target.query, ""))
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: keyplane\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n"
    )
    try:
        reader, writer = await asyncio.open_connection(
            target.hostname, port, ssl=context, limit=_STATUS_LINE_MAX
        )
        try:
            writer.write(request.encode("utf-8"))
            line = await reader.readline()
        finally:
            await _close(writer)
    except (OSError, ValueError) as error:
        return f"{url}: {_words(error)}"
    parts = line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/") or not parts[1].isdigit():
        return f"{url}: no answer of HTTP"
    status = int(parts[1])
    return None if 200 <= status < 400 else f"{url}: status {status}"


async def tcp(place: str) -> str | None:
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        return f"{place} is no HOST:PORT"
    try:
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        return f"{place}: {_words(error)}"
    await _close(writer)
    return None


async def _close(writer: asyncio.StreamWriter) -> None:
    # At once: a peer that does not close its side must not hold the probe.
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _words(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error) or type(error).__name__
