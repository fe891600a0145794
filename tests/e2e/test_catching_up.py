"""Machines that were off are back at one moment, and their service goes on meanwhile."""

from pathlib import Path

import pytest

from tests.e2e import web_fleet
from tests.e2e.fleet import stilled, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OFF = ("b", "c", "d")


def test_machines_that_are_back_together_restart_one_after_the_other(tmp_path: Path) -> None:
    """With no `maxUnavailable` stated, as a rollout would have sent it to them."""
    with web_fleet.up(tmp_path / "back", "abcd", settle="200ms") as fleet:
        before = fleet.words()
        fleet.open_gates("a")
        with stilled(*map(fleet.agent, OFF)):
            wait_for(lambda: fleet.silent() == set(OFF), "they are silent")
            fleet.say("gated two")
            assert fleet.apply(exit_status=4)["skipped"] == list(OFF)
        done: set[str] = set()
        while len(done) < len(OFF):

            def begun(done: frozenset[str] = frozenset(done)) -> set[str] | None:
                told = fleet.told()
                return {m for m in OFF if told.get(m) == "gated two"} - done or None

            started = wait_for(begun, f"one more than {done} starts the new one")
            assert len(started) == 1
            others = set(OFF) - done - started
            assert {m: w for m, w in fleet.words().items() if m in others} == {
                m: w for m, w in before.items() if m in others
            }
            done |= started
            fleet.open_gates(started)
        wait_for(lambda: set(fleet.words().values()) == {"gated two"}, "all are as the first")
        wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "status says so")
