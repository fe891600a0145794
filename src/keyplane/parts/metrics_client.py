"""Asks parts of an embedded control plane for their metrics, each at its own socket."""

import http.client
from pathlib import Path

from keyplane.parts import unix_socket
from keyplane.parts.state_dir import StateDir
from keyplane.ports.errors import TransientError

TIMEOUT_S = 10.0
"""A part that does not say what it counted within it does nothing else either."""


class PartSilentError(TransientError):
    """A part does not answer."""


def parts(state: StateDir) -> list[str]:
    """Those that have a socket: `controller`, `supervisor`, `agent:MACHINE`."""
    return sorted(_name(path.stem) for path in state.metrics.glob("*.sock"))


def _name(stem: str) -> str:
    return stem.replace("agent-", "agent:", 1) if stem.startswith("agent-") else stem


def read(state: StateDir, part: str) -> str:
    """A part's metrics in the text exposition format; raises PartSilentError."""
    connection = _Connection(state.metrics_socket(part.replace(":", "-", 1)))
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise PartSilentError(f"{part} does not answer ({reason})") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise PartSilentError(f"{part} cannot say: {text.strip()}")
    return text


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("keyplane", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = unix_socket.connect(self._path)
        self.sock.settimeout(TIMEOUT_S)
