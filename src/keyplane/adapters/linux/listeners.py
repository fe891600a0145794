"""Who listens on a port of this machine: by what the kernel tells of sockets and of processes.

Where we may not look into a process, it is known by its account at most.
"""

import contextlib
import ipaddress
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from urllib import parse

from keyplane.adapters.linux import accounts, leftovers, socket_tables, strays
from keyplane.adapters.linux.socket_tables import TCP, Address, Listener, Protocol
from keyplane.adapters.linux.state_root import entry_of

_ANCESTORS_MAX = 64
"""Deeper than any process tree that is no loop of a race."""


def at(ports: Collection[int], address: str | None, protocol: Protocol = TCP) -> list[Listener]:
    """Those that a listener on one of the ports of the address would meet."""
    ours = _address(address)
    return [
        each
        for each in socket_tables.listening(protocol, ports)
        if each.address.is_unspecified or each.address == ours
    ]


def foreign(
    held: Mapping[Protocol, Collection[int]], address: str | None, shims: Collection[int]
) -> str | None:
    """Who holds one of the ports and is no child of one of our shims; None if nobody does."""
    for protocol, ports in held.items():
        for each in at(ports, address, protocol) if ports else ():
            holders = list(_holders(each.inode))
            if not any(_descends(pid, shims) for pid in holders) and _listens_still(each, protocol):
                port = f"port {each.port}" if protocol is TCP else f"port {each.port} of UDP"
                return f"{port} is held by {_named(each, holders)}"
    return None


def answers(
    target: str, ports: Collection[int], main: int | None, shims: Callable[[], Collection[int]]
) -> str | None:
    """Who else answers there (`HOST:PORT` or a URL); None if it is ours, or cannot be known.

    Shims are asked for where it is not the main process that listens.
    """
    place = parse.urlsplit(target if "//" in target else f"//{target}")
    try:
        port = place.port or {"http": 80, "https": 443}.get(place.scheme)
    except ValueError:
        return None
    if port is None or port not in ports:
        return None
    found = at((port,), place.hostname)
    if not found or any(main is not None and _holds(main, each.inode) for each in found):
        return None
    held = [(each, list(_holders(each.inode))) for each in found]
    ours = shims()
    if any(_descends(pid, ours) for _, holders in held for pid in holders):
        return None
    for each, holders in held:
        if _listens_still(each, TCP):
            return f"port {port} answers, but is held by {_named(each, holders)}"
    return None


def marked(
    ports: Collection[int], address: str | None, protocol: Protocol
) -> Iterator[tuple[int, Path]]:
    """Each of the ports that units of local machines hold there, with the run directory of one."""
    for each in at(ports, address, protocol) if ports else ():
        marks = (_mark(pid) for pid in _holders(each.inode))
        mark = next((mark for mark in marks if mark is not None), None)
        if mark is not None:
            yield each.port, mark


def _address(text: str | None) -> Address | None:
    try:
        return None if text is None else socket_tables.plain(ipaddress.ip_address(text))
    except ValueError:
        return None  # a name: who it is now may not be who it is to the unit


def _listens_still(listener: Listener, protocol: Protocol) -> bool:
    """Who holds it was looked for later than it was found, and may have ended in between."""
    return any(
        each.inode == listener.inode for each in socket_tables.listening(protocol, (listener.port,))
    )


def _holders(inode: int) -> Iterator[int]:
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and _holds(int(place.name), inode):
            yield int(place.name)


def _holds(pid: int, inode: int) -> bool:
    socket = f"socket:[{inode}]"
    try:
        with os.scandir(f"/proc/{pid}/fd") as files:
            return any(_link(file.path) == socket for file in files)
    except OSError:  # it ended, or we may not look
        return False


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115  # for each file of each process
    return ""


def _descends(pid: int, shims: Collection[int]) -> bool:
    """A shim takes in whatever loses its parent below it: none of a unit's gets away."""
    return any(each in shims for each in _lineage(pid))


def _lineage(pid: int) -> Iterator[int]:
    """A process and all above it."""
    for _ in range(_ANCESTORS_MAX):
        yield pid
        parent = leftovers.parent(pid)
        if parent is None or parent <= 1:
            return
        pid = parent


def _named(listener: Listener, holders: Collection[int]) -> str:
    if not holders:
        account = accounts.user_name(listener.uid)
        return f"a process of account {account} that cannot be looked into"
    pid = min(holders)
    entry = _entry(pid)
    return f"pid {pid} ({_command(pid)}{f' of {entry}' if entry else ''})"


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return "ended meanwhile"
    text = b" ".join(words).decode("utf-8", "replace")
    return text if len(text) <= 60 else f"{text[:57]}..."


def _entry(pid: int) -> str | None:
    """The entry of another machine of this computer, as its mark says."""
    mark = _mark(pid)
    return None if mark is None or len(mark.parts) <= 3 else entry_of(mark.parts[-3])


def _mark(pid: int) -> Path | None:
    """The run directory of the unit that a process belongs to, where it stands by now.

    Its shim knows that best: a fleet's directory may have been moved since. Where that was killed,
    it is as what the unit starts has it in its environment.
    """
    for ancestor in _lineage(pid):
        found = strays.run_directory(ancestor)
        if found is not None:
            return found
    with contextlib.suppress(OSError):
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name.decode("utf-8", "replace") == leftovers.RUN_MARK:
                return Path(value.decode("utf-8", "replace"))
    return None
