"""What a user of the example sees, on real agents, a real bus and a real PostgreSQL."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fleet import ROOT, Fleet, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("arena")]

ARENA = ROOT / "examples" / "arena"
GAME = "mygame-eu:server@alpha/gameserver"


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Fleet]:
    with running(ARENA, tmp_path / "arena") as fleet:
        yield fleet


def game(fleet: Fleet, path: str, data: bytes | None = None) -> str:
    port = fleet.listen("mygame-eu:server@alpha", "game")
    return fleet.get(f"http://127.77.0.1:{port}{path}", data)


def changed(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> set[str]:
    return {unit for unit in before.keys() | after.keys() if before.get(unit) != after.get(unit)}


def count(fleet: Fleet) -> int:
    """Add one to the counter that the game server keeps in the database."""
    return json.loads(game(fleet, "/counter", b""))["counter"]


def move_database(fleet: Fleet) -> None:
    line = 'settings.main.listen = "tcp"\nplacement.every.main = { machines = ["%s"] }'
    fleet.edit("fleet.toml", line % "alpha", line % "beta")


def test_one_edit_restarts_one_process(arena: Fleet) -> None:
    """slots 32 → 64: the game server restarts with 64 slots, and nothing else does."""
    assert json.loads(game(arena, "/slots"))["slots"] == 32
    before = arena.start_ids()
    assert len(before) >= 8, before
    arena.edit("fleet.toml", "settings.server.slots = 32", "settings.server.slots = 64")

    end = arena.apply()

    assert changed(before, arena.start_ids()) == {GAME}
    assert (end["restarted"], end["reloaded"], end["started"], end["stopped"]) == (1, 0, 0, 0)
    assert json.loads(game(arena, "/slots"))["slots"] == 64


def test_a_maps_file_reloads_and_restarts_nothing(arena: Fleet) -> None:
    """The server answers the new maps under the same start-id; its counter goes on."""
    first = json.loads(game(arena, "/counter", b""))
    before = arena.start_ids()
    maps = arena.directory / "modules" / "mygame" / "maps.json"
    maps.write_text(json.dumps(["the-new-island"]))

    end = arena.apply()

    assert (end["restarted"], end["reloaded"]) == (0, 1)
    wait_for(lambda: "the-new-island" in game(arena, "/maps"), "the new maps")
    assert changed(before, arena.start_ids()) == set()
    assert json.loads(game(arena, "/counter", b"")) != first


def test_moving_the_database_restarts_it_and_its_consumers(arena: Fleet) -> None:
    """Consumers restart once, after the new place is healthy, and reach the new address and data."""
    count(arena)
    before, counted = arena.start_ids(), count(arena)
    move_database(arena)

    end = arena.apply("--volumes", "pg-shared:main=hand-over")

    after = arena.start_ids()
    moved = changed(before, after)
    assert {unit.partition(":")[0] for unit in moved} == {"pg-shared", "mygame-eu", "lobby-eu"}
    assert not any(unit.startswith("motd") for unit in moved)
    assert end["outcome"] == "done"
    assert "127.77.0.2" in game(arena, "/whoami")
    assert count(arena) == counted + 1
    units = {
        f"{entry['entry']}/{name}": unit
        for entry in arena.status()["entries"]
        for name, unit in entry["units"].items()
    }
    assert all(unit["restarts"] == 0 for unit in units.values()), units


def test_a_socket_reaches_its_consumers_on_the_same_machine(tmp_path: Path) -> None:
    """listen = "socket": the provider's path is where its export says, in each consumer's view."""
    source = tmp_path / "source"
    shutil.copytree(ARENA, source, ignore=shutil.ignore_patterns(".keyplane"))
    fleet_file = source / "fleet.toml"
    text = fleet_file.read_text()
    text = text.replace('settings.main.listen = "tcp"', 'settings.main.listen = "socket"')
    text = text.replace('machines = ["beta"]', 'machines = ["alpha"]')
    fleet_file.write_text(text)
    with running(source, tmp_path / "arena") as fleet:
        assert "host=/run/keyplane-postgres" in game(fleet, "/whoami")
        assert json.loads(game(fleet, "/counter", b""))["counter"] == 1


def test_no_move_leaves_its_data_without_a_word(arena: Fleet) -> None:
    """Until somebody says what is to become of it, nothing is applied, and all goes on."""
    before, counted = arena.start_ids(), count(arena)
    move_database(arena)
    ran = arena.run("apply", "--yes", exit_status=1)
    for said in (
        "data (/var/lib/keyplane-postgres)",
        "--volumes pg-shared:main=hand-over",
        "--volumes pg-shared:main=start-empty",
        "nothing was applied",
    ):
        assert said in ran.out + ran.err, f"{said!r} is not in\n{ran.out}{ran.err}"
    refused = json.loads(arena.run("apply", "--json", exit_status=1).out.splitlines()[-1])
    assert refused["code"] == "volumes-unsaid"
    assert (arena.start_ids(), count(arena)) == (before, counted + 1)


ODD = """
[roles.main.settings]
text = { type = "string" }
[roles.main.units.odd]
kind = "process"
command = ["python3", "-c", "import signal; signal.pause()", "${settings.text}", "no", "08", "1.0", "", "naïve ☃ \\u0001"]
env = { ODD_A = "no", ODD_B = "08", ODD_C = "1.0", ODD_D = "", ODD_E = "snow ☃ and \\"quotes\\"", ODD_F = "${settings.text}" }
"""


def test_twenty_applies_of_the_same_fleet_restart_nothing(tmp_path: Path) -> None:
    """Odd values, reordered tables, and restarts of every part among them: no difference."""
    source = tmp_path / "source"
    module = source / "modules" / "odd"
    module.mkdir(parents=True)
    (module / "module.toml").write_text('module = "odd"\nversion = "1.0"\n' + ODD)
    head = 'fleet = "odd"\n'
    machines = [
        f'[machines.{name}]\nlocal = true\naddress = "127.77.0.{n}"\n'
        for n, name in enumerate(("alpha", "beta"), 1)
    ]
    instances = [
        f'[instances.odd-{n}]\nmodule = "odd"\nsettings.main.text = {json.dumps(text, ensure_ascii=False)}\nplacement.every.main = {{}}\n'
        for n, text in enumerate(("no", "08", "1.0", "", "ünï ☃ 漢字"))
    ]
    (source / "fleet.toml").write_text(head + "".join(machines + instances))
    with running(source, tmp_path / "odd") as fleet:
        before = fleet.start_ids()
        assert len(before) == 10
        for turn in range(20):
            if turn % 5 == 1:
                (fleet.directory / "fleet.toml").write_text(
                    head + "".join(reversed(instances)) + "".join(reversed(machines))
                )
            if turn in (3, 8, 13):
                name = {3: "agent alpha", 8: "controller", 13: "bus"}[turn]
                pid = fleet.parts()[name]
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda n=name, p=pid: fleet.parts().get(n, p) != p, f"{name} is back")
            if turn == 17:
                fleet.run("down")
                fleet.run("up", ".", "--yes")
            proposal = fleet.run("apply", "--dry-run", "--json").json
            assert not proposal["diff"]["activate"], proposal["diff"]
            assert not proposal["diff"]["reload"], proposal["diff"]
            assert not proposal["diff"]["rewire"], proposal["diff"]
            end = fleet.apply()
            assert (end["restarted"], end["reloaded"], end["started"], end["untouched"]) == (
                0,
                0,
                0,
                10,
            )
        assert fleet.start_ids() == before


def test_descriptions_comments_and_idle_tags_make_no_difference(arena: Fleet) -> None:
    """What affects nothing that runs is no difference."""
    path = arena.directory / "fleet.toml"
    text = path.read_text()
    path.write_text(
        "# a comment\n"
        + text.replace(
            "[machines.gamma]",
            '[machines.gamma]\ndescription = "the third"\ntags = ["nobody-asks"]',
            1,
        )
    )
    proposal = arena.run("apply", "--dry-run", "--json").json
    assert proposal["diff"]["activate"] == []
    assert proposal["diff"]["deactivate"] == []
    assert proposal["diff"]["reload"] == []
    assert len(proposal["diff"]["untouched"]) == proposal["entries"]


def test_down_and_up_adopt_what_runs(arena: Fleet) -> None:
    """`down` ends the control plane alone; `up` finds each service as it was."""
    before = arena.start_ids()
    arena.run("down")
    assert arena.run("status", exit_status=None).exit != 0
    assert len(arena.holders()) >= len(before)
    arena.run("up", ".", "--yes")
    assert arena.start_ids() == before


def test_down_with_units_leaves_nothing(arena: Fleet) -> None:
    arena.run("down", "--units")
    assert arena.holders() == {}
    arena.run("up", ".", "--yes")
    assert json.loads(game(arena, "/counter", b""))


def test_wrong_documents_are_all_shown_and_nothing_is_applied(arena: Fleet) -> None:
    """An unknown field, a wrong type and a missing module, in two files: one run names all."""
    before = arena.start_ids()
    arena.edit(
        "fleet.toml", "settings.server.slots = 32", 'settings.server.slots = 64\nplacment = "x"'
    )
    arena.edit("fleet.toml", 'module = "lobby"', 'module = "loby"')
    arena.edit(
        "modules/motd/module.toml", 'kind    = "process"', 'kind = "process"\nstopTimeout = 5'
    )

    ran = arena.run("apply", "--yes", exit_status=3)

    text = ran.out + ran.err
    for said in (
        "placment",
        "placement",
        "loby",
        "lobby",
        "stopTimeout",
        "modules/motd/module.toml",
        "resolution:",
    ):
        assert said in text, f"{said!r} is not in\n{text}"
    assert arena.start_ids() == before


def test_a_process_that_dies_at_start_is_named_with_its_log(arena: Fleet) -> None:
    """The others go on untouched; the exit status tells."""
    before = arena.start_ids()
    server = arena.directory / "modules" / "mygame" / "src" / "server.py"
    server.write_text('import sys\nprint("the dungeon collapsed", flush=True)\nsys.exit(7)\n')

    ran = arena.run("apply", "--yes", exit_status=None)

    assert ran.exit not in (0, 2, 3), ran.exit
    text = ran.out + ran.err
    for said in ("mygame-eu:server@alpha", "the dungeon collapsed", "exit 7"):
        assert said in text, f"{said!r} is not in\n{text}"
    after = arena.start_ids()
    assert changed(before, after) == {GAME}
    entry = next(e for e in arena.status()["entries"] if e["entry"].startswith("mygame-eu"))
    assert entry["state"] == "failed"


@pytest.mark.parametrize("part", ["agent alpha", "controller", "bus"])
def test_a_part_killed_during_an_apply_changes_nothing_of_its_end(arena: Fleet, part: str) -> None:
    """After its restart all converges: nothing is started twice, nothing is left over."""
    before, counted = arena.start_ids(), count(arena)
    move_database(arena)
    pid = arena.parts()[part]
    apply = arena.start("apply", "--yes", "--json", "--volumes", "hand-over")
    try:
        wait_for(lambda: set(arena.start_ids()) - set(before), "the rollout is on its way")
        os.kill(pid, signal.SIGKILL)
        out, err = apply.communicate(timeout=300)
    finally:
        apply.kill()
    assert apply.returncode == 0, out + err
    assert "Traceback" not in out + err
    end = json.loads(out.splitlines()[-1])
    assert end["outcome"] == "done"

    after = arena.start_ids()
    assert {unit.partition(":")[0] for unit in changed(before, after)} == {
        "pg-shared",
        "mygame-eu",
        "lobby-eu",
    }
    assert "127.77.0.2" in game(arena, "/whoami")
    assert count(arena) == counted + 1
    commands = list(arena.holders().values())
    assert (
        sum("server.py --slots" in command for command in commands)
        - sum("keyplane-shim" in c and "server.py --slots" in c for c in commands)
        == 1
    ), commands
    running_ids = {pid for pid, _ in after.values()}
    assert running_ids <= set(arena.holders())
    assert not arena.run("apply", "--dry-run", "--json").json["diff"]["activate"]
