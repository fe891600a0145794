"""Parts are killed at any moment of applies; all comes to what was applied last, each unit once.

KEYPLANE_CHAOS_ROUNDS and KEYPLANE_CHAOS_SEED turn it up: the default fits a check.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import drawn_fleet
from tests.e2e.drawn_fleet import Drawn
from tests.e2e.fleet import Fleet, Network, standing, wait_equal, wait_for

ROUNDS = int(os.environ.get("KEYPLANE_CHAOS_ROUNDS", "4"))
SEED = int(os.environ.get("KEYPLANE_CHAOS_SEED", "1"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 120 * ROUNDS)]

DELAY_MAX_S = 1.5
"""An apply of this fleet takes about as long."""


@pytest.fixture
def drawn(tmp_path: Path) -> Iterator[tuple[Drawn, Fleet]]:
    model = Drawn(random.Random(SEED))
    model.write(tmp_path / "drawn")
    with standing(Fleet(tmp_path / "drawn", Network())) as fleet:
        yield model, fleet


def pids(fleet: Fleet) -> dict[str, int]:
    """The one process of each entry."""
    return {entry: each[0][0] for entry, each in drawn_fleet.running(fleet).items()}


def shims(fleet: Fleet) -> list[int]:
    return sorted(p for p, command in fleet.holders().items() if "keyplane-shim" in command)


def parts(fleet: Fleet) -> dict[str, int]:
    """By what each was started as, with the supervisor that starts them."""
    found: dict[str, int] = {}
    for pid, command in fleet.holders().items():
        words = command.split()
        if "keyplane.parts.main" in words:
            kind, _, *machine = words[words.index("keyplane.parts.main") + 1 :]
            found[" ".join((kind, *machine)) if kind == "agent" else kind] = pid
        elif words and words[0].endswith("nats-server"):
            found["bus"] = pid
    return found


ALL_PARTS = {"supervise", "controller", "bus", *(f"agent {name}" for name in drawn_fleet.MACHINES)}


def kill(fleet: Fleet, rng: random.Random, living: dict[str, int]) -> list[str]:
    """Kill one or two things at once; which ones."""
    chosen = [rng.choice([*sorted(living), "shim"]) for _ in range(rng.choice((1, 1, 2)))]
    for name in chosen:
        victims = shims(fleet) if name == "shim" else [living[name]]
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(victims), signal.SIGKILL)
    return chosen


def test_it_converges_whatever_is_killed(drawn: tuple[Drawn, Fleet]) -> None:
    """After each round the last text runs: each unit once, and what it does not touch as it was."""
    model, fleet = drawn
    rng = model.rng
    assert_runs(model, fleet, "at the start")
    for turn in range(ROUNDS):
        what = [model.edit() for _ in range(rng.choice((1, 1, 2)))]
        model.write(fleet.directory)
        before = pids(fleet)
        diff = fleet.run("apply", "--dry-run", "--json").json["diff"]
        stay = {*diff["untouched"], *diff["reload"], *diff["rewire"]}
        living = parts(fleet)
        apply = fleet.start("apply", "--yes")
        try:
            time.sleep(rng.random() * DELAY_MAX_S)  # any moment will do, so no predicate
            killed = kill(fleet, rng, living)
            said = f"seed {SEED}, round {turn}: {what}, killed {killed}"
            if "supervise" in killed:
                fleet.run("up", ".", "--no-apply")
            out, err = apply.communicate(timeout=300)
        finally:
            apply.kill()
        print(said, "->", apply.returncode, err.strip()[-200:])
        assert "Traceback" not in out + err, f"{said}\n{out}\n{err}"
        assert apply.returncode == 0 or (apply.returncode == 1 and err), f"{said}\n{out}\n{err}"

        assert fleet.apply()["outcome"] == "done", said
        assert "no difference" in fleet.run("apply", "--yes").out, said
        assert_runs(model, fleet, said)
        after = pids(fleet)
        changed = {entry for entry in stay if before[entry] != after.get(entry)}
        assert len(changed) <= killed.count("shim"), f"{said}: {changed} changed"


def assert_runs(model: Drawn, fleet: Fleet, said: str) -> None:
    """It comes to what the text says, and no process is there twice or left over.

    What an apply has nothing to do with may have been killed just before its end.
    """
    wanted = {entry: [told] for entry, told in model.wanted().items()}
    wait_equal(lambda: (drawn_fleet.told(fleet), wanted), said)
    wait_equal(lambda: (reported(fleet), well(pids(fleet))), said)
    # One whose unit has ended goes when its turn comes, and the report of that end may be sooner.
    wait_for(lambda: len(shims(fleet)) == len(wanted), f"a shim for each entry, {said}")
    for entry in wanted:
        instance, _, machine = entry.partition(":main@")
        each = model.instances[instance]
        file = fleet.directory / f".keyplane/machines/{machine}/root/etc/drawn/{instance}"
        assert (file.read_text(), Path(f"{file}.conf").read_text()) == (each.text, each.note), said
    wait_for(lambda: parts(fleet).keys() == ALL_PARTS, f"all parts run, {said}")


def reported(fleet: Fleet) -> dict[str, tuple[int | None, str]]:
    """What `status` says of the one unit of each entry, and of the entry."""
    return {
        entry["entry"]: (unit["pid"], entry["state"])
        for entry in fleet.status()["entries"]
        for unit in entry["units"].values()
    }


def well(running: dict[str, int]) -> dict[str, tuple[int | None, str]]:
    return {entry: (pid, "healthy") for entry, pid in running.items()}
