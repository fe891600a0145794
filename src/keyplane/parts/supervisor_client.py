"""Speaks to a supervisor over its socket. Used by the controller that it runs."""

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keyplane.parts import unix_socket
from keyplane.ports.control import ControlRefusedError, ControlUnreachableError

LINE_BYTES_MAX = 1 << 20
"""Of an answer."""
COMES_BACK_S = 20.0
"""One whose socket was removed makes it anew within a second; a busy machine makes it ten."""
POLL_S = 0.05


async def ask(path: Path, request: Mapping[str, Any]) -> None:
    """Have the supervisor do something; raises if it does not."""
    with await _connected(path) as client:
        client.settimeout(0)
        reader, writer = await asyncio.open_unix_connection(sock=client, limit=LINE_BYTES_MAX)
        writer.write(json.dumps(request).encode() + b"\n")
        line = await reader.readline()
        writer.close()
    answer = json.loads(line) if line.endswith(b"\n") else {"error": "nothing"}
    if "ok" not in answer:
        raise ControlRefusedError(f"the supervisor answers {answer.get('error')}")


async def _connected(path: Path) -> socket.socket:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + COMES_BACK_S
    while True:
        try:
            return unix_socket.connect(path)
        except OSError as error:
            if loop.time() > deadline:
                raise ControlUnreachableError(
                    f"the supervisor is not reached at {path}: {error.strerror}"
                ) from error
        await asyncio.sleep(POLL_S)
