"""How a unit says a value of its own: one request to its agent, at the socket in its environment."""

import os
import socket
import time
import urllib.parse
from pathlib import Path

from keyplane.parts import unix_socket
from keyplane.ports.errors import PortError

VARIABLE = "KEYPLANE_PUBLISH"
TIMEOUT_S = 15.0
COMES_S = 15.0
"""A unit may be up before its agent listens for it, or while its agent is started again."""
POLL_S = 0.05


class PublishError(PortError):
    """It was not taken; the message says why."""


def publish(name: str, value: str | None) -> None:
    """Say the value of an export, or withdraw it; returns once the agent has it."""
    place = os.environ.get(VARIABLE)
    if not place:
        raise PublishError(f"${VARIABLE} is not set: units that export published values have it")
    # Where a unit has no private root, declared paths stand under it.
    path = Path(os.environ.get("KEYPLANE_ROOT", "") + place)
    body = b"" if value is None else value.encode("utf-8", "replace")
    method = "DELETE" if value is None else "PUT"
    head = (
        f"{method} /{urllib.parse.quote(name)} HTTP/1.1\r\nHost: agent\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    try:
        with _connected(path) as client:
            client.settimeout(TIMEOUT_S)
            client.sendall(head.encode() + body)
            answer = _read(client)
    except OSError as error:
        raise PublishError(f"no agent takes values at {path}: {error.strerror or error}") from error
    status, _, text = answer.partition(b"\r\n\r\n")
    code = status.split(b" ", 2)[1:2]
    if code != [b"204"]:
        said = text.decode("utf-8", "replace").strip()
        raise PublishError(said or f"the agent answers {status[:80]!r}")


def _connected(path: Path) -> socket.socket:
    deadline = time.monotonic() + COMES_S
    while True:
        try:
            return unix_socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def _read(client: socket.socket) -> bytes:
    found = b""
    while chunk := client.recv(65_536):
        found += chunk
    return found
