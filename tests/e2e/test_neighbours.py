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
[roles.main.units.serve]
kind = "process"
command = ["python3", "-m", "http.server", "--bind", "${machine.address}", "${alloc.ports.web}"]
health = { tcp = "${machine.address}:${alloc.ports.web}" }
"""


def write(folder: Path, name: str) -> Path:
    (folder / "modules" / "web").mkdir(parents=True)
    (folder / "fleet.toml").write_text(FLEET.replace("NAME", name))
    (folder / "modules" / "web" / "module.toml").write_text(MODULE)
    return folder


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
