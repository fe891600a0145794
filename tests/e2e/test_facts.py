"""What machines say of themselves, with real agents: filled holes, moves, and what waits."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOLD = "30s"
"""Longer than it takes to see that a fact has flipped, and that it is back."""

FLEET = """
fleet = "told"
[machines.alpha]
address = "127.78.0.1"
local = true
[machines.beta]
address = "127.78.0.2"
local = true
[machines.gamma]
address = "127.78.0.3"
local = true
[instances.cache]
module = "cache"
placement.every.main = { machines = ["alpha"] }
[instances.reader]
module = "reader"
placement.every.main = { machines = ["beta"] }
[instances.picky]
module = "picky"
placement.count.main = { count = 1, machines = ["alpha", "beta"] }
[instances.roamer]
module = "roamer"
placement.count.main = { count = 1, machines = ["alpha", "beta"] }
onFact = "apply"
[instances.named]
module = "named"
placement.every.main = { machines = ["gamma"] }
"""
INTERFACES = """
[cache.exports]
key = "string"
"""
CACHE = """
module = "cache"
version = "1"
[roles.main.provides.cache]
interface = "cache"
scope = "mesh"
exports.key = { fact = "cache.key", lifecycle = "probed" }
[roles.main.volumes.said]
path = "/etc/keyplane/facts.d/cache"
[roles.main.units.serve]
kind = "process"
command = ["sh", "-c", '''
cd /etc/keyplane/facts.d/cache && echo "key-of-$NAME" > .new && mv .new cache.key
exec sleep 1000000
''']
env = { NAME = "${machine.name}" }
"""
READER = """
module = "reader"
version = "1"
[roles.main.uses.cache]
interface = "cache"
[roles.main.units.read]
kind = "process"
command = ["sleep", "1000000"]
env = { KEY = "${results.cache.key}", ZONE = "${machine.facts.zone}" }
"""
NEEDS = """
module = "NAME"
version = "1"
[roles.main.units.one]
kind = "process"
command = ["sleep", "1000000"]
[[roles.main.requirements]]
subject = "NAME.ok"
predicate = "exists"
"""
CACHE_AT, READER_AT, NAMED_AT = "cache:main@alpha", "reader:main@beta", "named:main@gamma"
READ = f"{READER_AT}/read"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Up, with all machines as they are to be at first."""
    folder = tmp_path_factory.mktemp("told")
    texts = {
        "fleet.toml": FLEET,
        "interfaces.toml": INTERFACES,
        "modules/cache/module.toml": CACHE,
        "modules/reader/module.toml": READER,
        **{
            f"modules/{name}/module.toml": NEEDS.replace("NAME", name)
            for name in ("picky", "roamer", "named", "late")
        },
    }
    for name, text in texts.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYPLANE_FACT_HOLD", HOLD)
        with running(folder / "source", folder / "fleet") as fleet:
            yield fleet


def say(fleet: Fleet, machine: str, fact: str, value: str) -> None:
    """As a person does, or a tool of the machine."""
    folder = fleet.directory / f".keyplane/machines/{machine}/root/etc/keyplane/facts.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".new").write_text(f"{value}\n", encoding="utf-8")
    (folder / ".new").replace(folder / fact)


def facts(fleet: Fleet, machine: str) -> dict[str, Any]:
    return fleet.run("machine", "show", machine, "--json").json["facts"]


def environment(fleet: Fleet, unit: str) -> dict[str, str]:
    """Of a unit that runs; nothing where it does not."""
    found = fleet.start_ids().get(unit)
    if found is None:
        return {}
    try:
        raw = Path(f"/proc/{found[0]}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (each.partition(b"=") for each in raw.split(b"\0"))
    return {name.decode(): value.decode() for name, _, value in pairs}


def planned(fleet: Fleet) -> list[str]:
    """The facts of each target that was made by facts alone, the oldest first."""
    rows = fleet.run("audit", "--json").json
    return [row["detail"]["why"] for row in rows if row["what"] == "facts"]


def test_a_probed_export_fills_its_hole_once_its_provider_runs(fleet: Fleet) -> None:
    """`up` ended well with the hole in it; what reads it is started by itself."""
    say(fleet, "beta", "zone", "a")
    wait_for(lambda: environment(fleet, READ).get("KEY") == "key-of-alpha", "the key in its reader")
    assert environment(fleet, READ)["ZONE"] == "a"
    assert facts(fleet, "alpha")["cache.key"] == "key-of-alpha"


def test_machines_tell_what_they_are(fleet: Fleet) -> None:
    """With the time since when each is so; `command.NAME` is read from one list."""
    shown = fleet.run("machine", "show", "alpha").out
    assert f'"{os.uname().release}"' in shown
    view = fleet.run("machine", "show", "alpha", "--json").json
    assert view["facts"]["cpu.count"] == os.cpu_count()
    assert "sh" in view["facts"]["commands"]
    assert view["facts_since"].keys() >= {"os.id", "kernel.modules", "addresses"}
    # And whoever plans the directory here does so by the same facts.
    entries = fleet.run("plan", ".", "--json", exit_status=3).json["entries"]
    assert entries[READER_AT]["units"]["read"]["env"] == {"KEY": "key-of-alpha", "ZONE": "a"}
    entries = fleet.run("plan", ".", "--json", "--alone", exit_status=3).json["entries"]
    assert entries[READER_AT]["holes"] == ["read.KEY", "read.ZONE"]


def test_what_has_no_place_yet_stops_nothing_and_comes_with_its_fact(fleet: Fleet) -> None:
    """Three requirements were unmet when the fleet was applied."""
    for machine, fact in (("alpha", "picky.ok"), ("alpha", "roamer.ok"), ("gamma", "named.ok")):
        say(fleet, machine, fact, "true")
    there = {"picky:main@alpha/one", "roamer:main@alpha/one", f"{NAMED_AT}/one"}
    wait_for(lambda: there <= fleet.start_ids().keys(), "all that fits now")
    for fact in ("picky.ok", "roamer.ok"):
        say(fleet, "beta", fact, "true")
    wait_for(lambda: facts(fleet, "beta").get("roamer.ok") is True, "beta's facts")


def test_a_fact_that_flips_and_flips_back_makes_no_plan(fleet: Fleet) -> None:
    """While others change for good: what may move moves, what may not waits, all else goes on."""
    before, ids = planned(fleet), fleet.start_ids()
    say(fleet, "alpha", "roamer.ok", "false")
    wait_for(lambda: facts(fleet, "alpha")["roamer.ok"] is False, "the flip is told")
    say(fleet, "alpha", "roamer.ok", "true")
    wait_for(lambda: facts(fleet, "alpha")["roamer.ok"] is True, "the flip back is told")
    say(fleet, "beta", "zone", "b")
    wait_for(lambda: environment(fleet, READ).get("ZONE") == "b", "the zone in its reader")
    # With what else beta said lately, if the controller had no turn in between.
    (why,) = planned(fleet)[len(before) :]
    assert "zone of beta" in why
    assert {each.rpartition(" of ")[2] for each in why.split(", ")} == {"beta"}
    now = fleet.start_ids()
    assert now.keys() == ids.keys()
    assert {unit for unit in ids if ids[unit] != now[unit]} == {READ}


def test_what_may_move_moves_and_all_else_waits_for_a_person(fleet: Fleet) -> None:
    """Nothing of one machine's facts stands in the way of another fact, nor of an apply."""
    ids = fleet.start_ids()
    say(fleet, "alpha", "roamer.ok", "false")
    say(fleet, "alpha", "picky.ok", "false")
    say(fleet, "gamma", "named.ok", "false")
    wait_for(lambda: "roamer:main@beta/one" in fleet.start_ids(), "the move of what may move")
    wait_for(lambda: "roamer:main@alpha/one" not in fleet.start_ids(), "its old place is free")
    waiting = wait_for(
        lambda: found if len(found := _waiting(fleet)) == 2 else None, "what waits is told"
    )
    assert waiting["picky:main@alpha"] == ("it would move to beta", "keyplane facts alpha")
    assert waiting[NAMED_AT][1] == ""
    assert f"{NAMED_AT} requires named.ok exists (it is false)" in waiting[NAMED_AT][0]
    shown = fleet.run("status", exit_status=None).out
    assert "`keyplane facts alpha` plans by it all the same" in shown
    assert "(it is false) of gamma, so it is not placed there; it goes on as it runs" in shown
    end = fleet.apply()
    assert (end["outcome"], end["stopped"]) == ("done", 0)
    now = fleet.start_ids()
    for unit in (f"{CACHE_AT}/serve", READ, "picky:main@alpha/one", f"{NAMED_AT}/one"):
        assert now[unit] == ids[unit]


def _waiting(fleet: Fleet) -> dict[str, tuple[str, str]]:
    return {
        entry: (how, each["command"])
        for each in fleet.status()["facts"]
        for entry, how in each["entries"].items()
    }


def test_a_person_has_it_planned_by_all_the_same(fleet: Fleet) -> None:
    """What would move moves; what has no other place goes on as it runs."""
    ids = fleet.start_ids()
    shown = fleet.run("facts", "--dry-run").out
    assert "picky:main  moves from alpha to beta" in shown
    assert fleet.start_ids() == ids
    ran = fleet.run("facts", "--yes")
    assert f"{NAMED_AT} stays as it is for now" in ran.err
    now = fleet.start_ids()
    assert "picky:main@beta/one" in now
    assert "picky:main@alpha/one" not in now
    assert now[f"{NAMED_AT}/one"] == ids[f"{NAMED_AT}/one"]
    wait_for(lambda: not fleet.status()["facts"], "nothing waits any more")


def test_a_requirement_that_is_not_met_holds_its_own_entry_only(fleet: Fleet) -> None:
    """An apply goes on with all else, and the entry comes once its machine fits."""
    with (fleet.directory / "fleet.toml").open("a", encoding="utf-8") as text:
        text.write('[instances.late]\nmodule = "late"\n')
        text.write('placement.every.main = { machines = ["gamma"] }\n')
    fleet.edit("modules/cache/module.toml", 'version = "1"', 'version = "2"')
    ran = fleet.run("apply", "--yes")
    assert "late:main@gamma requires late.ok exists (it has no value)" in ran.out
    assert "late:main@gamma/one" not in fleet.start_ids()
    versions = json.loads(fleet.run("plan", ".", "--json", exit_status=3).out)["entries"]
    assert versions[CACHE_AT]["version"] == "2"
    say(fleet, "gamma", "late.ok", "true")
    wait_for(lambda: "late:main@gamma/one" in fleet.start_ids(), "the machine that fits now")
