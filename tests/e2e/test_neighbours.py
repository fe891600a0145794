"""Two fleets on one box, in one network."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fleet import Fleet, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLEET = """
fleet = "NAME"
[machines.alpha]
address = "127.77.0.1"
local = true
[instances.web]
module = "web"
placement.every.main = { machines = ["alpha"] }
"""
MODULE = """
module = "web"
version = "1"
[roles.main.listens]
web = { protocol = "tcp" }
talk = { protocol = "udp" }
[roles.main.units.serve]
kind = "process"
command = ["python3", "-m", "http.server", "--bind", "${machine.address}", "${alloc.ports.web}"]
health = { tcp = "${machine.address}:${alloc.ports.web}" }
[roles.main.units.talk]
kind = "process"
command = ["python3", "-c", '''
import signal, socket, sys
one = socket.socket(type=socket.SOCK_DGRAM)
one.bind((sys.argv[1], int(sys.argv[2])))
signal.pause()
''', "${machine.address}", "${alloc.ports.talk}"]
"""


def write(folder: Path, name: str) -> Path:
    (folder / "modules" / "web").mkdir(parents=True)
    (folder / "fleet.toml").write_text(FLEET.replace("NAME", name))
    (folder / "modules" / "web" / "module.toml").write_text(MODULE)
    return folder


def held_udp(fleet: Fleet, port: int) -> bool:
    pids = [pid for pid, _ in fleet.start_ids().values()]
    return bool(pids) and f":{port:04X} " in Path(f"/proc/{pids[0]}/net/udp").read_text()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("first")
    with running(write(folder / "source", "first"), folder / "fleet") as fleet:
        yield fleet


def test_a_fleet_that_would_take_anothers_port_is_refused_before_anything_starts(
    first: Fleet, tmp_path: Path
) -> None:
    """Also where only the other's units run; it says what to change."""
    second = Fleet(write(tmp_path / "second", "second"), first.network)
    for turn in range(2):
        ran = second.run("up", ".", "--yes", exit_status=1)
        assert f"held by web:main@alpha of the fleet in {first.directory}" in ran.err
        assert "such as 127.77.1.1" in ran.err
        assert f"keyplane down {first.directory} --units" in ran.err
        assert not (second.directory / ".keyplane").exists()
        if turn == 0:
            first.run("down")
    first.run("up", ".", "--yes")


def test_a_port_of_udp_that_another_has_is_refused_too_and_its_number_alone_is_not(
    first: Fleet, tmp_path: Path
) -> None:
    """As before a start: TCP and UDP are two things with one row of numbers."""
    ports = {name: first.listen("web:main@alpha", name) for name in ("web", "talk")}
    wait_for(lambda: held_udp(first, ports["talk"]), "the other has its port of UDP")
    second = Fleet(write(tmp_path / "second", "second"), first.network)
    listen = f'talk = {{ protocol = "udp", port = {ports["talk"]} }}'
    second.edit("modules/web/module.toml", 'talk = { protocol = "udp" }', listen)
    other = 'web = { protocol = "tcp", port = 8099 }'
    second.edit("modules/web/module.toml", 'web = { protocol = "tcp" }', other)
    err = second.run("up", ".", "--yes", exit_status=1).err
    assert f"port {ports['talk']} of UDP of 127.77.0.1 is held by web:main@alpha" in err
    assert "port 8099" not in err
    assert not (second.directory / ".keyplane").exists()
    swapped = f'talk = {{ protocol = "udp", port = {ports["web"]} }}'
    second.edit("modules/web/module.toml", listen, swapped)
    try:
        second.run("up", ".", "--yes")
    finally:
        second.run("down", "--units", exit_status=None)


def test_two_fleets_with_addresses_of_their_own_do_not_meet(first: Fleet, tmp_path: Path) -> None:
    """Each has its own bus, store, sockets and units; the end of one is nothing to the other."""
    before = first.start_ids()
    second = Fleet(write(tmp_path / "second", "second"), first.network)
    second.edit("fleet.toml", "127.77.0.1", "127.77.1.1")
    try:
        assert "1 started" in second.run("up", ".", "--yes").out
        assert second.start_ids().keys() == before.keys()
        assert not set(second.start_ids().values()) & set(before.values())
        port = second.listen("web:main@alpha", "web")
        assert port == first.listen("web:main@alpha", "web")
        assert "fleet.toml" not in second.get(f"http://127.77.1.1:{port}/")
    finally:
        second.run("down", "--units", exit_status=None)
    assert first.start_ids() == before
    wait_for(lambda: first.run("status", exit_status=None).exit == 0, "the first is well")


def test_up_twice_is_the_same_as_once(first: Fleet) -> None:
    before, parts = first.start_ids(), first.parts()
    ran = first.run("up", ".", "--yes")
    assert "already up" in ran.out
    assert "0 restarted, 0 reloaded, 1 untouched" in ran.out
    assert first.start_ids() == before
    assert first.parts() == parts
