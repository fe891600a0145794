"""What a Linux machine tells about itself (`ports.facts.MachineFacts`), from files of its kernel.

Nothing that moves while a machine is at work: the size of its memory, and not what is free of it.
"""

import asyncio
import ipaddress
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from keyplane.adapters.linux.fact_files import FactFiles
from keyplane.wire.facts import LIST_MAX

Json = Any

PACKAGE_MANAGERS = {
    "apt-get": "apt",
    "dnf": "dnf",
    "yum": "yum",
    "zypper": "zypper",
    "apk": "apk",
    "pacman": "pacman",
}
"""By command, the one that the distribution means first."""
CONTAINER_RUNTIMES = ("podman", "docker")
OWN_S = 30.0
"""What the machine itself tells is looked at so often, in 3 ms; files of facts at each call."""

_LOOPBACK, _LINK, _TEMPORARY = 0x10, 0x20, 0x01
"""Scopes and a flag of `/proc/net/if_inet6`."""


class LinuxFacts:
    """Remembers what is slow to find out for as long as the files that tell it are the same."""

    def __init__(self, *, root: Path, path: str, system: Path = Path("/")) -> None:
        """Declared paths stand below `root`; `path` has the folders in which units find commands.

        `system` is where the kernel's and the distribution's own files are.
        """
        self._files = FactFiles(root)
        self._root = root
        self._path = path
        self._system = system
        self._commands: tuple[object, list[str]] = (None, [])
        self._modules: tuple[object, frozenset[str]] = (None, frozenset())
        self._own: tuple[float, dict[str, Json]] = (-OWN_S, {})
        self._last: Mapping[str, Json] = {}

    async def gather(self) -> Mapping[str, Json]:
        """The same object again where nothing is another."""
        is_due = time.monotonic() - self._own[0] >= OWN_S
        if is_due or self._files.are_there():
            return await asyncio.to_thread(self._gather)
        return self._gather()  # a thread would cost more than the look

    def _gather(self) -> Mapping[str, Json]:
        now = time.monotonic()
        if now - self._own[0] >= OWN_S:
            self._own = (now, self._gather_own())
        found = {**self._files.read(), **self._own[1]}
        if found != self._last:
            self._last = found
        return self._last

    def _gather_own(self) -> dict[str, Json]:
        commands = self._find_commands()
        own: dict[str, Json] = {
            **self._os(),
            "kernel.name": platform.system(),
            "kernel.release": platform.release(),
            "kernel.modules": sorted(self._loadable())[:LIST_MAX],
            "cpu.architecture": platform.machine(),
            "cpu.count": os.cpu_count(),
            "memory.bytes": self._memory(),
            "disk.bytes": self._disk(),
            "addresses": sorted({*self._addresses(), *self._addresses_v6()}),
            "commands": commands,
            "package.manager": next(
                (name for command, name in PACKAGE_MANAGERS.items() if command in commands), None
            ),
            "container.runtime": next(
                (name for name in CONTAINER_RUNTIMES if name in commands), None
            ),
            "service.manager": self._init_system(),
        }
        for capability in ("package-manager", "container-runtime", "service-manager"):
            own[f"capability.{capability}"] = own[capability.replace("-", ".")] is not None
        return {name: value for name, value in own.items() if value is not None}

    def _os(self) -> dict[str, Json]:
        said: dict[str, str] = {}
        for line in self._text("etc/os-release").splitlines():
            name, _, value = line.partition("=")
            said[name] = value.strip().strip("\"'")
        facts = {"os.id": "ID", "os.version": "VERSION_ID", "os.name": "PRETTY_NAME"}
        return {fact: said[name] for fact, name in facts.items() if said.get(name)}

    def _loadable(self) -> frozenset[str]:
        """Modules that are loaded, built in, or could be loaded."""
        there = frozenset(self._names("sys/module"))
        if self._text("proc/sys/kernel/modules_disabled").strip() == "1":
            return there
        folder = f"lib/modules/{platform.release()}"
        lists = [self._system / folder / name for name in ("modules.dep", "modules.builtin")]
        stamp = [_stamp(each) for each in lists]
        if self._modules[0] != stamp:
            names = (name for each in lists for name in _modules_in(each))
            self._modules = (stamp, frozenset(names))
        return self._modules[1] | there

    def _find_commands(self) -> list[str]:
        folders = [Path(each) for each in self._path.split(os.pathsep) if each.startswith("/")]
        stamp = [_stamp(folder) for folder in folders]
        if self._commands[0] != stamp:
            names = {name for folder in folders for name in _executables(folder)}
            self._commands = (stamp, sorted(names)[:LIST_MAX])
        return self._commands[1]

    def _memory(self) -> int | None:
        for line in self._text("proc/meminfo").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemTotal":
                return int(rest.split()[0]) * 1024
        return None

    def _disk(self) -> int | None:
        """Of the file system on which declared paths stand."""
        try:
            found = os.statvfs(self._root)
        except OSError:
            return None
        return found.f_blocks * found.f_frsize

    def _addresses(self) -> Iterator[str]:
        """Of IPv4, but for the loopback's."""
        leaf = ""
        for line in self._text("proc/net/fib_trie").splitlines():
            words = line.split()
            if words[:1] == ["|--"]:
                leaf = words[1]
            elif words[:3] == ["/32", "host", "LOCAL"] and not leaf.startswith("127."):
                yield leaf

    def _addresses_v6(self) -> Iterator[str]:
        """Those by which others reach the machine for longer than a day."""
        for line in self._text("proc/net/if_inet6").splitlines():
            digits, _, _, scope, flags, _ = line.split()
            if int(scope, 16) not in (_LOOPBACK, _LINK) and not int(flags, 16) & _TEMPORARY:
                yield str(ipaddress.IPv6Address(bytes.fromhex(digits)))

    def _init_system(self) -> str | None:
        if (self._system / "run/systemd/system").is_dir():
            return "systemd"
        return "openrc" if (self._system / "run/openrc").is_dir() else None

    def _text(self, path: str) -> str:
        try:
            return (self._system / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _names(self, path: str) -> list[str]:
        try:
            return [each.name for each in (self._system / path).iterdir()]
        except OSError:
            return []


def _modules_in(path: Path) -> Iterator[str]:
    """The names of modules in a list of their files."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            file = line.partition(":")[0].strip().rpartition("/")[2]
            name, dot, _ = file.partition(".ko")
            if dot:
                yield name.replace("-", "_")


def _executables(folder: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file() and os.access(entry.path, os.X_OK):
                yield entry.name


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
