"""What listens on this machine, by netlink and by files alike: sockets of the test's own."""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Collection, Iterator

import pytest

from keyplane.adapters.linux import socket_tables
from keyplane.adapters.linux.socket_tables import TCP, UDP, Listener, Protocol

Read = Callable[[Protocol, Collection[int]], list[Listener]]
ALL = range(65_536)


def often(read: Read) -> Read:
    """While others open and close sockets, a table that comes in pieces may lack one, or break off."""

    def found(protocol: Protocol, ports: Collection[int]) -> list[Listener]:
        told: list[Listener] = []
        for _ in range(5):
            with contextlib.suppress(InterruptedError):
                told += read(protocol, ports)
        return told

    return found


BOTH = [
    pytest.param(often(socket_tables.by_netlink), id="netlink"),
    pytest.param(often(socket_tables.by_files), id="files"),
]
PLACES = [
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "0.0.0.0"),
    (socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::"),
    (socket.AF_INET6, "::ffff:127.0.0.1"),
]


def expected(made: socket.socket) -> Listener:
    """By what the socket itself knows."""
    host, port = made.getsockname()[:2]
    return Listener(
        address=socket_tables.plain(ipaddress.ip_address(host)),
        port=port,
        uid=os.getuid(),
        inode=os.fstat(made.fileno()).st_ino,
    )


@contextlib.contextmanager
def bound(kind: socket.SocketKind) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as held:
        made: list[socket.socket] = []
        for family, host in PLACES:
            each = held.enter_context(socket.socket(family, kind))
            each.bind((host, 0))
            made.append(each)
        yield made


@pytest.mark.parametrize("read", BOTH)
def test_all_that_listen_are_told(read: Read) -> None:
    with bound(socket.SOCK_STREAM) as servers, bound(socket.SOCK_DGRAM) as receivers:
        idle = expected(servers.pop())  # bound, and listens to nobody
        for server in servers:
            server.listen()
        found = read(TCP, ALL)
        assert [each for each in map(expected, servers) if each not in found] == []
        assert idle not in found
        found = read(UDP, ALL)
        assert [each for each in map(expected, receivers) if each not in found] == []


@pytest.mark.parametrize("read", BOTH)
def test_just_those_on_the_ports_are_told(read: Read) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        found = read(TCP, {one.getsockname()[1]})
        assert expected(one) in found
        assert expected(other) not in found


@pytest.mark.parametrize("read", BOTH)
def test_a_connection_is_no_listener(read: Read) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        inodes = {each.inode for each in read(TCP, ALL)}
        assert os.fstat(server.fileno()).st_ino in inodes
        assert os.fstat(client.fileno()).st_ino not in inodes
        assert os.fstat(accepted.fileno()).st_ino not in inodes


@pytest.mark.parametrize("read", BOTH)
def test_of_many_none_is_left_out(read: Read) -> None:
    """They come in several pieces."""
    with contextlib.ExitStack() as held:
        servers = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(400)]
        inodes = {os.fstat(each.fileno()).st_ino for each in servers}
        assert inodes <= {each.inode for each in read(TCP, ALL)}


def test_a_kernel_that_has_no_sock_diag_is_read_by_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_tables, "_SOCK_DIAG", 31)  # a family that no kernel has
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(OSError):  # which one, is the kernel's
            socket_tables.by_netlink(TCP, ALL)
        assert expected(server) in often(socket_tables.listening)(TCP, ALL)
