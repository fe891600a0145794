"""What is only recorded goes to machines that a person names, and to no other."""

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, Network, standing, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MACHINES = ("a", "b", "c")
MODULE = """
module = "web"
version = "1"
[policy]
settle = "100ms"
[roles.main.units.server]
kind = "process"
command = ["sh", "-c", "while :; do sleep 1; done", "one"]
"""
FLEET = """
fleet = "pushes"
[instances.web]
module = "web"
placement.every.main = {}
policy.maxUnavailable = 3
""" + "".join(
    f'[machines.{name}]\naddress = "127.77.0.{number}"\nlocal = true\n'
    for number, name in enumerate(MACHINES, start=1)
)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("pushes") / "pushes"
    (directory / "modules" / "web").mkdir(parents=True)
    (directory / "modules" / "web" / "module.toml").write_text(MODULE)
    (directory / "interfaces.toml").write_text("")
    (directory / "fleet.toml").write_text(FLEET)
    with standing(Fleet(directory, Network())) as fleet:
        yield fleet


def version(fleet: Fleet, old: str, new: str, number: str) -> None:
    """Another version, under which another word is run."""
    fleet.edit("modules/web/module.toml", f'done", "{old}"', f'done", "{new}"')
    path = fleet.directory / "modules" / "web" / "module.toml"
    head, _, rest = path.read_text().partition("[policy]")
    path.write_text(f'\nmodule = "web"\nversion = "{number}"\n[policy]{rest}')
    assert head


def runs(fleet: Fleet) -> dict[str, str]:
    """The word that each machine's server was started with."""
    found: dict[str, str] = {}
    for unit, (pid, _) in fleet.start_ids().items():
        machine = unit.partition("@")[2].partition("/")[0]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        found[machine] = words[-1].decode()
    return found


def offered(fleet: Fleet) -> dict[str, tuple[int, ...]]:
    return {
        each["machine"]: tuple(map(int, each["offered"].split(".")))
        for each in fleet.status()["machines"]
    }


def sends(fleet: Fleet, do: str, *values: object) -> list[Any]:
    """In the inventory itself, beside the controller."""
    path = fleet.directory / ".keyplane" / "controller" / "inventory.db"
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database, database:
        return database.execute(do, values).fetchall()


def test_naming_one_sends_one_and_names_two(fleet: Fleet) -> None:
    """One of the others is held by its policy, and one of which no send is recorded as well."""
    assert runs(fleet) == dict.fromkeys(MACHINES, "one")
    sends(fleet, "delete from sends where machine = ?", "c")
    fleet.edit(
        "fleet.toml", "policy.maxUnavailable", 'policy.upgrade = "record"\npolicy.maxUnavailable'
    )
    version(fleet, "one", "two", "2")
    assert len(fleet.apply()["held"]) == 3
    assert runs(fleet) == dict.fromkeys(MACHINES, "one")
    pushed = fleet.run("push", "a")
    assert runs(fleet) == {"a": "two", "b": "one", "c": "one"}
    said = "is recorded and not sent with web 2 over web 1"
    b = f"web:main@b {said}: its policy says so; `keyplane push b` sends it"
    c = f"web:main@c {said}: no send to c is recorded; `keyplane push c` sends it"
    assert [line.strip() for line in pushed.err.splitlines()] == [b, c]
    shown = fleet.run("status", exit_status=1).out
    assert b in shown
    assert c in shown


def test_of_two_pushes_with_a_restart_between_no_number_falls(fleet: Fleet) -> None:
    """Nor is what was sent before sent again."""
    before = offered(fleet)
    fleet.run("push", "b")
    between, had = offered(fleet), fleet.start_ids()
    assert between["b"] > before["b"]
    killed = fleet.parts()["controller"]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: fleet.parts().get("controller") not in (None, killed), "another is there")
    fleet.run("push", "b")
    assert offered(fleet) == between
    assert fleet.start_ids() == had
    fleet.run("push", "c")
    after = offered(fleet)
    assert after["c"] > between["c"]
    assert (after["a"], after["b"]) == (between["a"], between["b"])
    assert runs(fleet) == dict.fromkeys(MACHINES, "two")
    assert [row[0] for row in sends(fleet, "select machine from sends order by machine")] == [
        *MACHINES
    ]


def begin_frozen(fleet: Fleet) -> str:
    """Apply while the fleet is frozen, and leave it so; the number of its rollout."""
    fleet.run("freeze")
    before = latest(fleet)["number"]
    applying = fleet.start("apply", "--yes")
    wait_for(lambda: latest(fleet)["number"] > before, "the apply is recorded")
    applying.kill()
    applying.communicate()
    return str(latest(fleet)["number"])


def latest(fleet: Fleet) -> dict[str, Any]:
    return fleet.run("rollout", "show", "--json").json["rollout"]


def test_a_machine_without_a_recorded_send_is_held_whatever_its_policy(fleet: Fleet) -> None:
    """What else was never sent follows the one that is named, as its policy says."""
    fleet.edit("fleet.toml", 'policy.upgrade = "record"', 'policy.upgrade = "first"')
    version(fleet, "two", "three", "3")
    fleet.run("rollout", "stop", begin_frozen(fleet))
    fleet.run("thaw")
    assert runs(fleet) == dict.fromkeys(MACHINES, "two")
    sends(fleet, "delete from sends where machine = ?", "c")
    pushed = fleet.run("push", "b")
    assert runs(fleet) == {"a": "three", "b": "three", "c": "two"}
    assert "no send to c is recorded; `keyplane push c` sends it" in pushed.err
    assert pushed.err.count("recorded and not sent") == 1
    fleet.run("push", "--behind")
    assert runs(fleet) == dict.fromkeys(MACHINES, "three")


def test_what_a_person_paused_goes_on_for_those_alone_who_are_named(fleet: Fleet) -> None:
    version(fleet, "three", "four", "4")
    number = begin_frozen(fleet)
    fleet.run("rollout", "pause", number, "--why", "lunch")
    fleet.run("thaw")
    assert latest(fleet)["state"] == "paused"
    pushed = fleet.run("push", "b")
    assert runs(fleet) == {"a": "three", "b": "four", "c": "three"}
    assert f"rollout {number} was paused by" in pushed.err
    assert "lunch; `keyplane push a` sends it" in pushed.err
    assert "lunch; `keyplane push c` sends it" in pushed.err
    fleet.run("push", "--all")
    assert runs(fleet) == dict.fromkeys(MACHINES, "four")


def test_an_apply_may_push(fleet: Fleet) -> None:
    """All machines are named by it, and nothing is held."""
    fleet.edit("fleet.toml", 'policy.upgrade = "first"', 'policy.upgrade = "record"')
    version(fleet, "four", "five", "5")
    ran = fleet.run("apply", "--yes", "--push")
    assert "not sent" not in ran.out + ran.err
    assert runs(fleet) == dict.fromkeys(MACHINES, "five")
