"""The sockets to which anybody may come, by what the kernel tells of them.

It is asked by netlink (sock_diag(7)), which looks at those that listen only: microseconds, where the
files of proc(5) take it through all that a machine could have. They serve where it has no sock_diag.
"""

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SOCK_DIAG = 4  # the netlink family NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_DUMP = 0x301  # NLM_F_REQUEST, NLM_F_ROOT and NLM_F_MATCH
_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR: the table changed under the dump
_ERROR, _DONE = 2, 3
_HEAD = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBxI48x")  # inet_diag_req_v2
_TOLD = struct.Struct("=BBxx2s2x16s16x12x12xII")  # inet_diag_msg
_ANSWER_MAX = 1 << 16
_WAIT_S = 2.0
"""The kernel answers within the call; only a fault of it would be waited for."""
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What the kernel tells of its sockets, and where."""

    name: str
    number: int
    listens: int
    """The state of a socket to which anybody may come."""


TCP = Protocol(name="tcp", number=socket.IPPROTO_TCP, listens=10)
UDP = Protocol(name="udp", number=socket.IPPROTO_UDP, listens=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    address: Address
    port: int
    uid: int
    inode: int


def listening(protocol: Protocol, ports: Collection[int]) -> list[Listener]:
    """All on these ports of this process's network namespace."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError, struct.error):
            return by_netlink(protocol, ports)
    return by_files(protocol, ports)


def by_netlink(protocol: Protocol, ports: Collection[int]) -> list[Listener]:
    """Raises OSError where the kernel has no sock_diag, or the table changed meanwhile."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as ask:
        ask.settimeout(_WAIT_S)
        found = list(_dumped(ask, protocol, ports, socket.AF_INET))
        if socket.has_ipv6:
            found += _dumped(ask, protocol, ports, socket.AF_INET6)
        return found


def _dumped(
    ask: socket.socket, protocol: Protocol, ports: Collection[int], family: int
) -> Iterator[Listener]:
    body = _ASKED.pack(family, protocol.number, 0, 1 << protocol.listens)
    ask.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _DUMP, family, 0) + body)
    while True:
        answer = ask.recv(_ANSWER_MAX)
        at = 0
        while at < len(answer):
            length, kind, flags, _, _ = _HEAD.unpack_from(answer, at)
            if flags & _INTERRUPTED:
                raise InterruptedError("the table of sockets changed while it was read")
            if kind == _DONE:
                return
            if kind == _ERROR:
                (number,) = struct.unpack_from("=i", answer, at + _HEAD.size)
                raise OSError(-number, "the kernel does not tell of its sockets")
            each = _told(answer, at + _HEAD.size, ports)
            if each is not None:
                yield each
            at += length + 3 & ~3


def _told(answer: bytes, at: int, ports: Collection[int]) -> Listener | None:
    family, _, port_bytes, place, uid, inode = _TOLD.unpack_from(answer, at)
    port = int.from_bytes(port_bytes, "big")
    if port not in ports:
        return None
    address = ipaddress.ip_address(place if family == socket.AF_INET6 else place[:4])
    return Listener(address=plain(address), port=port, uid=uid, inode=inode)


def by_files(protocol: Protocol, ports: Collection[int]) -> list[Listener]:
    """The same, by the files of proc(5)."""
    found = [*_of_file(protocol.name, protocol), *_of_file(f"{protocol.name}6", protocol)]
    return [each for each in found if each.port in ports]


def _of_file(name: str, protocol: Protocol) -> Iterator[Listener]:
    try:
        lines = Path(f"/proc/self/net/{name}").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if int(fields[3], 16) == protocol.listens:
            place, _, port = fields[1].partition(":")
            yield Listener(
                address=plain(_decoded(place)),
                port=int(port, 16),
                uid=int(fields[7]),
                inode=int(fields[9]),
            )


def _decoded(text: str) -> Address:
    """The kernel writes words of four bytes in its own order."""
    words = bytes.fromhex(text)
    ordered = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    return ipaddress.ip_address(ordered)


def plain(address: Address) -> Address:
    """An address of version 4 that was told as one of version 6, as itself."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
