"""Names the effect boundaries of an agent and of a controller, and kills there what a test says.

Python loads this by itself where the folder is on its path. The product knows nothing of it: what
an effect ends in is wrapped from outside, in agents and controllers only.
"""

import contextlib
import functools
import inspect
import os
import signal
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("KEYPLANE_TEST_BOUNDARIES", "/nonexistent"))


class Boundaries:
    """Writes each down in `PART.seen`; at the one that `PART.armed` names, it kills."""

    def __init__(self, part):
        self.seen = os.open(FOLDER / f"{part}.seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.armed = FOLDER / f"{part}.armed"
        self.text, self.left = "", 0

    def at(self, name):
        os.write(self.seen, name.encode(errors="replace") + b"\n")
        try:
            text = self.armed.read_text()
        except FileNotFoundError:
            return
        wanted, number, victims = text.split("\n")
        if text != self.text:
            self.text, self.left = text, int(number)
        if name != wanted:
            return
        self.left -= 1
        if self.left == 0:
            pids = _pids(victims)
            if os.getpid() in pids:  # no other thread of it lives to see that the others are gone
                sys.setswitchinterval(60)
            self.armed.unlink(missing_ok=True)  # a test may have disarmed it in this moment
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(pid, signal.SIGKILL)

    def around(self, owner, method, name):
        call = getattr(owner, method)

        @functools.wraps(call)
        async def awaited(*given, **named):
            said = f"{method} {name(*given, **named)}".strip()
            self.at(f"before {said}")
            done = await call(*given, **named)
            self.at(f"after {said}")
            return done

        @functools.wraps(call)
        def called(*given, **named):
            said = f"{method} {name(*given, **named)}".strip()
            self.at(f"before {said}")
            done = call(*given, **named)
            self.at(f"after {said}")
            return done

        setattr(owner, method, awaited if inspect.iscoroutinefunction(call) else called)


def _pids(victims):
    """`self`, `shims`, `all` of the fleet with who commands it, or a pid."""
    if victims == "self":
        return [os.getpid()]
    if victims == "all":
        return [*(pid for pid in _ours() if pid != os.getpid()), os.getpid()]
    if victims != "shims":
        return [int(victims)]
    here = str(FOLDER).encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if b"keyplane-shim" in command and here in command:
            found.append(int(folder.name))
    return found


def _ours():
    """All that was started with this folder in its environment, commands of people too."""
    mark = f"KEYPLANE_TEST_BOUNDARIES={FOLDER}".encode()
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if mark in variables.split(b"\0"):
            yield int(folder.name)


def _first(_, first="", *__, **named):
    return str(first)


def _machine(offer):
    return offer.machine


def _unit(_, entry, unit, *__, **___):
    return f"{entry}/{unit}"


def _nothing(*_, **__):
    return ""


def _target(_, target, **__):
    return Path(target).name


def _agent(it):
    from keyplane.adapters.linux.artifacts import ArtifactCache
    from keyplane.adapters.linux.files import LinuxFiles
    from keyplane.adapters.linux.processes import LinuxProcesses
    from keyplane.adapters.linux.volumes import LinuxVolumes
    from keyplane.adapters.nats.agent_bus import NatsAgentBus

    for method in ("write", "make_directory", "unpack", "remove"):
        it.around(LinuxFiles, method, _first)
    it.around(LinuxFiles, "write_state", lambda _, contents: " ".join(contents))
    for method in ("fetch", "remove"):
        it.around(ArtifactCache, method, lambda _, digest: digest)
    for method in ("stop", "forget", "reload"):
        it.around(LinuxProcesses, method, _unit)
    it.around(LinuxProcesses, "start", lambda _, spec: f"{spec.entry}/{spec.unit}")
    it.around(LinuxVolumes, "save", lambda _, entry, *__: entry)
    it.around(LinuxVolumes, "take", _first)
    it.around(NatsAgentBus, "report", _nothing)
    # Within an effect.
    for method in ("rename", "replace", "symlink"):
        it.around(os, method, _target)
    it.around(os, "posix_spawn", _nothing)


def _controller(it):
    from keyplane.adapters.nats.controller_bus import NatsControllerBus
    from keyplane.adapters.oci.layout import Layout, _Intake
    from keyplane.adapters.sql.inventory import SqlInventory

    for method in ("add_revision", "commit", "save_rollout", "record_reports", "audit"):
        it.around(SqlInventory, method, _nothing)
    for method in ("change_volume_orders", "keep_backup"):
        it.around(SqlInventory, method, _nothing)
    it.around(SqlInventory, "store_offers", lambda _, offers, **__: " ".join(map(_machine, offers)))
    it.around(Layout, "put", lambda _, digest, *__: digest)
    for method in ("write", "finish"):
        it.around(_Intake, method, _nothing)
    it.around(NatsControllerBus, "hint", _first)
    it.around(os, "replace", _target)


def _begin():
    words = sys.orig_argv
    if not FOLDER.is_dir() or "keyplane.parts.main" not in words:
        return
    kind, _, *machine = words[words.index("keyplane.parts.main") + 1 :]
    if kind == "agent":
        _agent(Boundaries(f"agent-{machine[0]}"))
    elif kind == "controller":
        _controller(Boundaries("controller"))


_begin()
