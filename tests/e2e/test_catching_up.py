"""Machines that were off are back at one moment, and their service goes on meanwhile."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import web_fleet
from tests.e2e.fleet import wait_for
from tests.e2e.web_fleet import WebFleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OFF = ("b", "c", "d")


@contextlib.contextmanager
def stilled(fleet: WebFleet) -> Iterator[None]:
    agents = [fleet.agent(name) for name in OFF]
    for pid in agents:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGCONT)


def silent(fleet: WebFleet) -> set[str]:
    return {each["machine"] for each in fleet.status()["machines"] if each["silent"]}


def test_machines_that_are_back_together_restart_one_after_the_other(tmp_path: Path) -> None:
    """With no `maxUnavailable` stated, as a rollout would have sent it to them."""
    with web_fleet.up(tmp_path / "back", "abcd", settle="200ms") as fleet:
        before = fleet.words()
        fleet.open_gates("a")
        with stilled(fleet):
            wait_for(lambda: silent(fleet) == set(OFF), "they are silent")
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
