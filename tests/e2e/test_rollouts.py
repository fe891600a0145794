"""How an edit goes over machines: one first, some at once, without those that are off, and back."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest

from tests.e2e import web_fleet
from tests.e2e.fleet import stilled, wait_for
from tests.e2e.web_fleet import WebFleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MACHINES = "abcdef"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebFleet]:
    directory = tmp_path_factory.mktemp("waves") / "waves"
    with web_fleet.up(directory, MACHINES, settle="500ms") as fleet:
        yield fleet


class Sampler:
    """Asks all replicas every 100 ms who answers, from a thread of its own.

    One after the other: whoever had no answer a moment ago may have one when the next is asked.
    """

    def __init__(self, fleet: WebFleet) -> None:
        self.fleet = fleet
        self.asked = 0
        self._unanswered: dict[str, list[tuple[float, float]]] = {name: [] for name in MACHINES}
        """When each was asked in vain, from when until when."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.is_set():
            begun = time.monotonic()
            for name in MACHINES:
                asked = time.monotonic()
                if self.fleet.try_get(f"http://{web_fleet.address(name)}:20000/") is None:
                    self._unanswered[name].append((asked, time.monotonic()))
            self.asked += 1
            self._ends.wait(max(0.0, 0.1 - (time.monotonic() - begun)))

    def away(self) -> dict[str, tuple[float, float]]:
        """From when until when each was surely away, which was once."""
        return {name: (each[0][1], each[-1][0]) for name, each in self._unanswered.items() if each}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def test_one_value_on_six_replicas_takes_one_at_a_time(fleet: WebFleet) -> None:
    """Six restarts in all, and never more than one is not ready."""
    before = fleet.start_ids()
    fleet.say("two")
    with Sampler(fleet) as sampler:
        end = fleet.apply()
    assert (end["outcome"], end["restarted"]) == ("done", 6)
    assert set(fleet.words().values()) == {"two"}
    after = fleet.start_ids()
    assert before.keys() == after.keys()
    assert all(before[unit] != after[unit] for unit in before)
    assert all(entry["units"]["server"]["restarts"] == 0 for entry in fleet.status()["entries"])
    assert sampler.asked > 5
    away = sampler.away()
    assert away, "they were seen to restart"
    for (one, (begun, ended)), (other, (then, until)) in itertools.combinations(away.items(), 2):
        assert ended <= then or until <= begun, f"{one} and {other} at once: {away}"


def test_what_fails_on_the_first_leaves_the_others_and_goes_back(fleet: WebFleet) -> None:
    """It is as it was, `status` says what runs, and the exit status that it went back."""
    before, had = fleet.words(), fleet.start_ids()
    fleet.say("broken", onFailure="rollback")
    end = fleet.apply(exit_status=5)
    assert end["outcome"] == "rolled-back"
    assert [failure["entry"] for failure in end["failures"]] == ["web:main@a"]
    assert fleet.words() == before
    entries = {entry["entry"]: entry for entry in fleet.status()["entries"]}
    assert all(entries[name]["state"] == "healthy" for name in fleet.entries)
    now = fleet.start_ids()
    assert {unit for unit in had if had[unit] != now[unit]} == {"web:main@a/server"}
    fleet.say("three")
    assert fleet.apply()["outcome"] == "done"
    assert set(fleet.words().values()) == {"three"}


def test_a_machine_that_is_off_is_skipped_and_comes_to_it_when_it_is_back(fleet: WebFleet) -> None:
    """The exit status says that somebody is missing; nobody applies anything again."""
    before = fleet.words()
    with stilled(fleet.agent("c")):
        wait_for(lambda: fleet.silent() == {"c"}, "c is silent")
        fleet.say("four")
        end = fleet.apply(exit_status=4)
        assert (end["outcome"], end["skipped"]) == ("done", ["c"])
        assert fleet.words() == dict.fromkeys(MACHINES, "four") | {"c": before["c"]}
    wait_for(lambda: set(fleet.words().values()) == {"four"}, "c is as the others")


def test_what_is_only_recorded_waits_for_a_push_and_a_freeze_for_a_thaw(fleet: WebFleet) -> None:
    """`status` names what is held and the command; nothing is sent while it is frozen."""
    before = fleet.words()
    fleet.say("five", upgrade="record")
    end = fleet.apply()
    assert sorted(each["entry"] for each in end["held"]) == fleet.entries
    assert fleet.words() == before
    assert "`keyplane push b` sends it" in fleet.run("status", exit_status=1).out
    fleet.run("push", "b")
    assert fleet.words() == before | {"b": "five"}
    fleet.run("push", "nowhere", exit_status=2)
    fleet.run("freeze", "--why", "a test")
    pushed = fleet.start("push", "--all")
    wait_for(lambda: fleet.shown()["state"] == "paused", "the push waits")
    assert fleet.words() == before | {"b": "five"}
    number = str(fleet.shown()["number"])
    assert "thaw" in fleet.run("rollout", "resume", number, exit_status=1).err
    fleet.run("thaw")
    out, err = pushed.communicate(timeout=300)
    assert pushed.returncode == 0, out + err
    assert set(fleet.words().values()) == {"five"}
    fleet.run("rollout", "stop", number, exit_status=1)
    rows = fleet.run("rollout", "list", "--json").json
    assert rows[0]["state"] == "done"
