"""What somebody removes under a fleet that runs comes back, and nothing is started twice by it."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import drawn_fleet
from tests.e2e.drawn_fleet import Drawn
from tests.e2e.fleet import Fleet, Network, standing, stilled, take_away, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Drawn, Fleet]]:
    model = Drawn(random.Random(1))
    directory = tmp_path_factory.mktemp("damage") / "drawn"
    model.write(directory)
    with standing(Fleet(directory, Network())) as fleet:
        yield model, fleet


def state(fleet: Fleet) -> Path:
    return fleet.directory / ".keyplane"


def sockets(fleet: Fleet) -> None:
    """All that tells where the control plane is reached."""
    take_away(state(fleet) / "run", beside=fleet.directory.parent)


def controller_keys(fleet: Fleet) -> None:
    """And the controller's next life makes others."""
    for key in ("bus.seed", "signing.key"):
        (state(fleet) / "controller" / key).unlink()


def bus(fleet: Fleet) -> None:
    pid = fleet.parts()["bus"]
    with stilled(pid):
        take_away(state(fleet) / "bus", beside=fleet.directory.parent)
        os.kill(pid, signal.SIGKILL)


def inventory(fleet: Fleet) -> None:
    """The agents know higher numbers than the new one does."""
    fleet.run("down")
    for file in (state(fleet) / "controller").glob("inventory*"):
        file.unlink()
    fleet.run("up", ".", "--yes")


def store(fleet: Fleet) -> None:
    take_away(state(fleet) / "store", beside=fleet.directory.parent)


def ledger(fleet: Fleet) -> None:
    """Torn, as by a disk; the agent's next life starts without it."""
    file = state(fleet) / "machines" / "alpha" / "agent" / "ledger"
    file.write_bytes(file.read_bytes()[:100])
    pid = fleet.parts()["agent alpha"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: fleet.parts().get("agent alpha", pid) != pid, "the agent is back")


@pytest.mark.parametrize("remove", [sockets, controller_keys, bus, inventory, store, ledger])
def test_what_was_removed_restarts_nothing(fleet: tuple[Drawn, Fleet], remove: object) -> None:
    """An apply says no difference, and the next edit costs what it says."""
    model, it = fleet
    assert callable(remove)
    before = drawn_fleet.running(it)
    remove(it)
    assert it.apply()["outcome"] == "done"
    assert drawn_fleet.running(it) == before
    # Who was started anew may not have been heard yet, and is then waited for by nobody.
    wait_for(lambda: it.run("status", exit_status=None).exit == 0, "all is well")
    model.instances["edge-2"].text = f"after {remove.__name__}"
    model.write(it.directory)
    end = it.apply()
    assert (end["outcome"], end["restarted"]) == ("done", 1)
    assert_runs(model, it)


def epochs(fleet: Fleet) -> dict[str, int]:
    """Of what each machine was offered last."""
    machines = fleet.status()["machines"]
    return {each["machine"]: int(each["offered"].split(".")[0]) for each in machines}


def test_a_restored_inventory_brings_back_what_was(
    fleet: tuple[Drawn, Fleet], tmp_path: Path
) -> None:
    """As docs/how-to/backup.md says: with the offers of a new epoch, and no needless restart."""
    model, it = fleet
    inventory = state(it) / "controller" / "inventory.db"
    before, then = drawn_fleet.running(it), epochs(it)
    with (
        contextlib.closing(sqlite3.connect(inventory)) as live,
        contextlib.closing(sqlite3.connect(tmp_path / "backup")) as backup,
    ):
        live.backup(backup)
    kept = model.instances["edge-2"].text
    model.instances["edge-2"].text = "after the backup"
    model.write(it.directory)
    assert it.apply()["restarted"] == 1
    changed = drawn_fleet.running(it)["edge-2:main@beta"]
    it.run("down")
    for file in inventory.parent.glob("inventory*"):
        file.unlink()
    shutil.copy(tmp_path / "backup", inventory)
    it.run("up", ".", "--no-apply")
    wait_for(
        lambda: drawn_fleet.running(it).get("edge-2:main@beta", changed) != changed, "it went back"
    )
    wait_for(lambda: it.run("status", exit_status=None).exit == 0, "all is well")
    after = drawn_fleet.running(it)
    assert {entry for entry in before if before[entry] != after[entry]} == {"edge-2:main@beta"}
    assert epochs(it) == {**then, "beta": then["beta"] + 1}
    assert it.apply()["restarted"] == 1
    assert_runs(model, it)
    model.instances["edge-2"].text = kept
    model.write(it.directory)
    it.apply()


def test_a_machine_whose_folder_was_removed_starts_its_units_anew(
    fleet: tuple[Drawn, Fleet],
) -> None:
    """Nobody could find them any more: they are ended first, and none is there twice."""
    model, it = fleet
    before = drawn_fleet.running(it)
    # Not moved away first: what is only elsewhere is none of theirs.
    wait_for(lambda: removed(state(it) / "machines" / "beta"), "all of it is gone")
    here = [entry for entry in before if entry.endswith("@beta")]
    wait_for(lambda: all(is_another(it, before, entry) for entry in here), "all run anew")
    wait_for(lambda: it.run("status", exit_status=None).exit == 0, "all is well")
    assert_runs(model, it)
    after = drawn_fleet.running(it)
    assert {entry for entry in before if before[entry] != after[entry]} == set(here)


def test_a_fleet_that_was_moved_is_found_where_it_is(
    fleet: tuple[Drawn, Fleet],
) -> None:
    """Its control plane ends, and `up` in the new place adopts what runs."""
    model, it = fleet
    before = drawn_fleet.running(it)
    parts = it.parts()
    old, new = it.directory, it.directory.with_name("moved")
    for here, there in ((old, new), (new, old)):
        here.rename(there)
        it.directory = there
        wait_for(lambda p=parts: not p.keys() & running_parts(p), "the control plane ended")
        it.run("up", ".", "--yes")
        parts = it.parts()
        assert drawn_fleet.running(it) == before
    assert_runs(model, it)


def test_a_fleet_whose_state_was_removed_leaves_nothing_behind(
    fleet: tuple[Drawn, Fleet],
) -> None:
    """Its control plane ends; `down --units` ends what runs, and `up` begins anew."""
    model, it = fleet
    parts = it.parts()
    for turn in ("down", "up"):
        # Who still writes there puts some of it back.
        wait_for(lambda: removed(state(it)), "all of it is gone")
        wait_for(lambda p=parts: not p.keys() & running_parts(p), "the control plane ended")
        wait_for(lambda: removed(state(it)), "all of it is gone")
        if turn == "down":
            ran = it.run("down", "--units")
            assert "was removed while units ran" in ran.out
            wait_for(lambda: not it.holders(), "nothing is left")
            assert not state(it).exists()
            assert "no control plane was ever up" in it.run("down", "--units", exit_status=2).err
        it.run("up", ".", "--yes")
        assert_runs(model, it)
        parts = it.parts()


def removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def running_parts(parts: dict[str, int]) -> set[str]:
    return {name for name, pid in parts.items() if Path(f"/proc/{pid}").exists()}


def is_another(fleet: Fleet, before: dict[str, list[tuple[int, str, str]]], entry: str) -> bool:
    return drawn_fleet.running(fleet).get(entry, before[entry]) != before[entry]


def assert_runs(model: Drawn, fleet: Fleet) -> None:
    assert drawn_fleet.told(fleet) == {entry: [told] for entry, told in model.wanted().items()}
