"""Probes over the network: one connection each, closed in any case, nothing followed.

Each unit of a machine at rest is probed again and again, so a probe has what it takes and no stream.
"""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from typing import Any
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
        if context is None:
            line = await _answered(target.hostname, port, request.encode("utf-8"))
        else:
            line = await _answered_safely(target.hostname, port, request.encode("utf-8"), context)
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
        (await _connected(host.strip("[]"), int(port))).close()
    except (OSError, ValueError, OverflowError) as error:
        return f"{place}: {_words(error)}"
    return None


async def _answered(host: str, port: int, request: bytes) -> bytes:
    """The first line of it."""
    loop = asyncio.get_running_loop()
    with await _connected(host, port) as made:
        await loop.sock_sendall(made, request)
        line = b""
        while b"\n" not in line and len(line) < _STATUS_LINE_MAX:
            more = await loop.sock_recv(made, _STATUS_LINE_MAX)
            if not more:
                break
            line += more
    return line.partition(b"\n")[0]


async def _answered_safely(host: str, port: int, request: bytes, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_STATUS_LINE_MAX)
    try:
        writer.write(request)
        return await reader.readline()
    finally:
        # At once: a peer that does not close its side must not hold the probe.
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _connected(host: str, port: int) -> socket.socket:
    """At the first address of a name that answers."""
    refused = OSError(f"{host} has no address")
    for family, address in await _addresses(host, port):
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # What runs on this machine answers within the call, and is not waited for.
            with contextlib.suppress(BlockingIOError):
                made.connect(address)
                return made
            await asyncio.get_running_loop().sock_connect(made, address)
        except OSError as error:
            made.close()
            refused = error
        except BaseException:
            made.close()
            raise
        else:
            return made
    raise refused


async def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    """Of which family each is, and what it is called by."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, (host, port))]


def _words(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error) or type(error).__name__
