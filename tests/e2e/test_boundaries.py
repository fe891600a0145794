"""An apply is cut off at each boundary of its effects in turn; all comes to what was applied.

Agent, controller, bus or shims are killed before, within and after each file, archive, start,
reload, stop, write and message of a small apply. KEYPLANE_KILLS says how many boundaries of each
are tried (`all` for every one), KEYPLANE_KILLS_SEED which: the default fits a check.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e import two_texts
from tests.e2e.fleet import Fleet, Network, wait_equal, wait_for

KILLS = os.environ.get("KEYPLANE_KILLS", "")
SEED = int(os.environ.get("KEYPLANE_KILLS_SEED", "1"))
HOOK = Path(__file__).with_name("boundaries")

SPARE = 6
"""More than are tried: how often something is done hangs on who was quicker, as reports are written
together, and the last of a kind may not be come to."""

MOST_S = 90.0
"""What a check spends here, however slow its machine is; some 20 kills where that is idle."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(0 if KILLS else 600)]

Boundary = tuple[str, int]
"""Its name, and the how manieth of that name."""


@dataclass
class Tried:
    """The fleet, and what an apply that nobody disturbs makes of it."""

    fleet: Fleet
    folder: Path
    text: str = "a"
    until: float = 0.0
    """From then on each test tries one boundary."""
    boundaries: dict[tuple[str, str], list[Boundary]] = field(default_factory=dict)
    """Of each part, on the way to each text."""
    standing: dict[str, dict[str, str]] = field(default_factory=dict)
    processes: dict[str, list[str]] = field(default_factory=dict)

    def other(self) -> str:
        return "b" if self.text == "a" else "a"

    def go(self) -> None:
        self.text = self.other()
        two_texts.write(self.fleet.directory, self.text)

    def record(self) -> None:
        """What goes on without a disturbance, on the way to the other text."""
        before = two_texts.counts(self.fleet)
        self.go()
        for part in ("agent-alpha", "controller"):
            (self.folder / f"{part}.seen").write_text("")
        assert self.fleet.apply()["outcome"] == "done"
        settled(self.fleet)
        for part in ("agent-alpha", "controller"):
            seen: Counter[str] = Counter()
            found = self.boundaries[part, self.text] = []
            for name in (self.folder / f"{part}.seen").read_text().splitlines():
                seen[name] += 1
                found.append((name, seen[name]))
        begun = dict(two_texts.BEGUN[self.text])
        begun["web/once"] = 0 if self.text in ("a", *self.standing) else 1
        wait_equal(lambda: (difference(before, two_texts.counts(self.fleet)), begun), "all began")
        self.standing[self.text] = wait_for(self.standing_still, "its agent is at nothing")
        self.processes[self.text] = two_texts.processes(self.fleet)

    def standing_still(self) -> dict[str, str] | None:
        """What stands before and after its agent has had a turn; None if that is not the same."""
        before = two_texts.standing(self.fleet)
        state = str(two_texts.machine(self.fleet))
        self.fleet.run_agent("status", "--state", state, exit_status=None)
        return before if two_texts.standing(self.fleet) == before else None


def settled(fleet: Fleet) -> None:
    """Nothing is on its way any more."""
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "all is well")


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    directory = tmp_path_factory.mktemp("boundaries") / "fleet"
    two_texts.write(directory, "a")
    network = Network()
    it = Tried(Fleet(directory, network), directory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HOOK))
        patch.setenv("KEYPLANE_TEST_BOUNDARIES", str(directory))
        try:
            it.fleet.run("up", ".", "--yes")
            wait_for(lambda: set(two_texts.counts(it.fleet).values()) == {1}, "all say so")
            # Twice: the first time some of it is made that later stays.
            for _ in range(4):
                it.record()
            it.until = time.monotonic() + MOST_S
            yield it
        finally:
            try:
                it.fleet.close()
            finally:
                network.close()


def chosen(tried: Tried, part: str, most: int) -> list[tuple[str, Boundary]]:
    """On the way to which text, and at which boundary."""
    every = [(text, each) for text in "ab" for each in tried.boundaries[part, text]]
    if KILLS == "all":
        return every
    return random.Random(f"{SEED} {part}").sample(every, min(most + SPARE, len(every)))


def cut(tried: Tried, part: str, most: int, victim: str) -> int:
    """Apply with a kill at each of some boundaries; how many of them were come to."""
    most = int(KILLS) if KILLS.isdecimal() else most
    at = chosen(tried, part, most)
    rng = random.Random(SEED)
    rng.shuffle(at)
    left = {text: [each for towards, each in at if towards == text] for text in "ab"}
    reached = 0
    while left["a"] or left["b"]:
        if reached and not KILLS and time.monotonic() > tried.until:
            break
        if reached >= most and KILLS != "all":
            break
        tried.go()
        mine = left[tried.text]
        if not mine:
            assert tried.fleet.apply()["outcome"] == "done"
            continue
        reached += cut_at(tried, part, mine.pop(), victim)
    print(f"{victim} killed at {reached} of {len(at)} boundaries of {part}")
    return reached


def cut_at(tried: Tried, part: str, boundary: Boundary, victim: str) -> bool:
    name, number = boundary
    said = f"{victim} killed {name} ({number}) of {part}, towards {tried.text}"
    fleet = tried.fleet
    before, reloads = two_texts.counts(fleet), two_texts.counts(fleet, "reloaded")
    armed = tried.folder / f"{part}.armed"
    victims = victim
    if victim == "bus":  # it may have been killed a moment ago
        victims = str(wait_for(lambda: fleet.parts().get("bus"), "the bus runs"))
    draft = armed.with_suffix(".new")
    draft.write_text(f"{name}\n{number}\n{victims}")
    draft.replace(armed)
    ran = fleet.run("apply", "--yes", exit_status=None)
    assert ran.exit == 0 or (ran.exit == 1 and ran.err), f"{said}\n{ran.out}\n{ran.err}"
    is_reached = not armed.exists()
    armed.unlink(missing_ok=True)
    if victim == "self":
        assert ran.exit == 0, f"{said}\n{ran.out}\n{ran.err}"
    else:  # who applied may have been told that it failed, and a service begun anew is seen later
        wait_for(lambda: fleet.run("apply", "--yes", exit_status=None).exit == 0, said)
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, f"all is well, {said}")
    check(tried, said, before, may_restart=victim == "shims")
    if victim != "shims":  # by a signal, and what obeys it says so when its turn comes
        wait_for(lambda: reloaded(fleet, reloads) > 0, f"it is reloaded, {said}")
    assert reloaded(fleet, reloads) <= 2, f"{said}: {reloaded(fleet, reloads)} reloads"
    return is_reached


def reloaded(fleet: Fleet, before: dict[str, int]) -> int:
    return difference(before, two_texts.counts(fleet, "reloaded"))["conf/watcher"]


def check(tried: Tried, said: str, before: dict[str, int], *, may_restart: bool) -> None:
    fleet, text = tried.fleet, tried.text
    wait_for(lambda: two_texts.processes(fleet) == tried.processes[text], f"what runs, {said}")
    least, more = two_texts.BEGUN[text], 1 if may_restart else 0

    def lacks() -> list[str]:  # what runs may not have said so yet
        began = difference(before, two_texts.counts(fleet))
        return [unit for unit, count in least.items() if began[unit] < count]

    wait_for(lambda: not lacks(), f"all began, {said}")
    began = difference(before, two_texts.counts(fleet))
    for unit, count in least.items():
        assert began[unit] <= count + more, f"{said}: {unit} began {began[unit]} times"
    wait_equal(lambda: (two_texts.standing(fleet), tried.standing[text]), said)


def test_the_agent_is_killed_at_a_boundary(tried: Tried) -> None:
    """It goes on where it was: what was started is not started again, and nothing is left over."""
    assert cut(tried, "agent-alpha", 8, "self") > 0


def test_the_controller_is_killed_at_a_boundary(tried: Tried) -> None:
    """Its next life goes on with the rollout, or nothing of it was begun."""
    assert cut(tried, "controller", 4, "self") > 0


def test_the_bus_is_killed_at_a_boundary(tried: Tried) -> None:
    assert cut(tried, "controller", 1, "bus") > 0
    assert cut(tried, "agent-alpha", 1, "bus") > 0


def test_the_shims_are_killed_at_a_boundary(tried: Tried) -> None:
    """What they ran is started anew, once."""
    assert cut(tried, "agent-alpha", 2, "shims") > 0
