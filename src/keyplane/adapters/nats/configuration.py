"""The configuration of an embedded server, as a value and as text. JSON, which NATS reads too."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.nats import permissions
from keyplane.adapters.nats.permissions import User
from keyplane.ports.bus import BusServerError

HOST = "127.0.0.1"
"""An embedded server serves its own machine; a fleet's is a cluster with TLS, run apart."""
PAYLOAD_SIZE_MAX = 8 * 1024 * 1024
"""The most that nats-server takes without a warning; a declaration holds whole files."""
LOG_SIZE_MAX = 10 * 1024 * 1024
"""Months of one server's notes; one old file is kept beside it."""
_ESCAPE = re.compile(rb"\\(u00..|.)")
_NUMBERED = {b"b": b"\\x08", b"f": b"\\x0c"}
"""Of JSON's escapes, those that nats-server does not read: it has `\\xNN` for any other character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the server's files stand."""

    directory: Path

    @property
    def configuration(self) -> Path:
        return self.directory / "nats.conf"

    @property
    def log(self) -> Path:
        return self.directory / "nats.log"

    @property
    def pid(self) -> Path:
        return self.directory / "nats.pid"

    @property
    def port(self) -> Path:
        return self.directory / "port"

    @property
    def lock(self) -> Path:
        return self.directory / "lock"

    @property
    def store(self) -> Path:
        return self.directory / "store"


def compose(layout: Layout, *, name: str, port: int, users: tuple[User, ...]) -> bytes:
    """Raises for no users at all: the server would read that as letting everybody in."""
    if not users:
        raise BusServerError("a bus without users would let everybody in")
    configuration = {
        "server_name": name,
        "host": HOST,
        "port": port,
        "pid_file": str(layout.pid),
        "log_file": str(layout.log),
        "log_size_limit": LOG_SIZE_MAX,
        "logfile_max_num": 2,
        "max_payload": PAYLOAD_SIZE_MAX,
        # The default loses what it acknowledged in the last two minutes when the power goes.
        "jetstream": {"store_dir": str(layout.store), "sync_interval": "always"},
        "authorization": permissions.authorization(users),
    }
    text = json.dumps(configuration, indent=1, ensure_ascii=False).encode()
    return _ESCAPE.sub(_escaped, text)


def _escaped(found: re.Match[bytes]) -> bytes:
    said = found[1]
    if said.startswith(b"u"):
        return b"\\x" + said[3:]
    return _NUMBERED.get(said, found[0])
