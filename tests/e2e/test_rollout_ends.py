"""Whatever becomes of machines, artifacts and controllers, a rollout ends, and says how."""

import contextlib
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import pytest

from tests.e2e import web_fleet
from tests.e2e.fleet import stilled, wait_for
from tests.e2e.web_fleet import WebFleet

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

USUAL, SHORT = "2m", "12s"
"""Deadlines; the short one is for what is to come to it."""

BEAT_MS = 5_000
"""Between two heartbeats: whoever was heard since is no machine that was off a moment ago."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebFleet]:
    directory = tmp_path_factory.mktemp("ends") / "ends"
    with web_fleet.up(directory, "abcdefghij", settle="200ms", maxUnavailable=4) as fleet:
        yield fleet


def ended(begun: "subprocess.Popen[str]") -> tuple[int, str]:
    out, err = begun.communicate(timeout=300)
    assert "Traceback" not in out + err, out + err
    return begun.returncode, out + err


def heard_ms_ago(fleet: WebFleet, machine: str) -> int:
    found = next(each for each in fleet.status()["machines"] if each["machine"] == machine)
    return found["heard_ms_ago"]


def all_accepted(fleet: WebFleet) -> bool:
    return all(each["accepted"] == each["offered"] for each in fleet.status()["machines"])


def is_well(fleet: WebFleet) -> bool:
    return fleet.run("status", exit_status=None).exit == 0


def test_of_ten_machines_nine_converge_while_one_is_off(fleet: WebFleet) -> None:
    """The exit status says so, and the tenth comes to it when it is back."""
    before = fleet.words()
    with stilled(fleet.agent("d")):
        wait_for(lambda: fleet.silent() == {"d"}, "d is silent")
        fleet.say("two")
        end = fleet.apply(exit_status=4)
        assert (end["outcome"], end["skipped"]) == ("done", ["d"])
        assert fleet.words() == dict.fromkeys(fleet.machines, "two") | {"d": before["d"]}
        assert not is_well(fleet)
    wait_for(lambda: set(fleet.words().values()) == {"two"}, "d is as the others")
    wait_for(lambda: is_well(fleet), "status says so")


def test_an_artifact_that_is_not_to_be_had_ends_it_at_its_deadline(fleet: WebFleet) -> None:
    """The others are untouched, the first is as it was, and another rollout can begin."""
    before, had = fleet.words(), fleet.start_ids()
    store = fleet.directory / ".keyplane" / "store"
    known = {path.name for path in (store / "blobs" / "sha256").iterdir()}
    fleet.edit("modules/web/src/server.py", "asked = 0", "asked = 0  # another archive")
    fleet.say("two", onFailure="rollback", deadline=SHORT)
    fleet.run("freeze", "--why", "until the archive is lost")
    apply = fleet.start("apply", "--yes")
    wait_for(lambda: fleet.shown()["state"] == "paused", "it waits for the thaw")
    for path in (store / "blobs" / "sha256").iterdir():
        if path.name not in known:
            path.unlink()
    fleet.run("thaw")
    exit_status, said = ended(apply)
    assert exit_status == 5, said
    assert "web:main@a" in said, said
    view = fleet.run("rollout", "show", "--json").json
    assert view["rollout"]["state"] == "rolled-back"
    assert {each["machine"] for each in view["machines"] if each["state"] == "returned"} == {"a"}
    assert {each["state"] for each in view["machines"] if each["machine"] != "a"} == {"unsent"}
    now = fleet.start_ids()
    assert {unit for unit in had if had[unit] != now[unit]} <= {"web:main@a/server"}
    assert fleet.words() == before
    fleet.say("three", deadline=USUAL)
    assert fleet.apply()["outcome"] == "done"  # what was lost is packed anew
    assert set(fleet.words().values()) == {"three"}


def test_what_falls_ill_while_it_is_watched_goes_back(fleet: WebFleet) -> None:
    """The exit status says so, and what status says is what runs."""
    before = fleet.words()
    fleet.say("ill later", settle="5m", onFailure="rollback")
    end = fleet.apply(exit_status=5)
    assert end["outcome"] == "rolled-back"
    assert [each["entry"] for each in end["failures"]] == ["web:main@a"]
    entries = fleet.status()["entries"]
    assert {each["state"] for each in entries} == {"healthy"}
    assert not any(each["current"] for each in entries)
    assert fleet.words() == before == fleet.told()
    assert "rolled-back" in fleet.run("status", exit_status=1).out
    fleet.say("four", settle="200ms")
    assert fleet.apply()["outcome"] == "done"


def test_a_machine_that_dies_with_what_it_was_sent_ends_it_named(fleet: WebFleet) -> None:
    """The others stay as they are; with the machine back, a retry does the rest."""
    fleet.shut_gates()
    before = fleet.words()
    fleet.say("gated five", onFailure="stop", deadline=SHORT)
    apply = fleet.start("apply", "--yes")
    wait_for(lambda: fleet.told().get("a") == "gated five", "a starts the new one")
    with stilled(fleet.agent("a")):
        exit_status, said = ended(apply)
    assert exit_status == 1, said
    assert "web:main@a" in said or "a is silent" in said, said
    assert fleet.words() == before | {"a": None}
    number = str(fleet.shown()["number"])
    wait_for(lambda: heard_ms_ago(fleet, "a") < BEAT_MS, "a is back: a retry counts on it")
    fleet.open_gates(fleet.machines)
    fleet.run("rollout", "retry", number)
    assert set(fleet.words().values()) == {"gated five"}


def test_a_wave_ends_though_machines_die_leave_and_come_in_it(fleet: WebFleet) -> None:
    fleet.shut_gates()
    fleet.say("gated seven", deadline=USUAL)
    first = fleet.start("apply", "--yes")
    fleet.open_gates("ab")
    waves = {"c", "d"}
    wait_for(lambda: waves <= {m for m, w in fleet.told().items() if w == "gated seven"}, "a wave")
    os.kill(fleet.agent("c"), signal.SIGKILL)
    fleet.machines = "abcefghijk"
    fleet.write()
    second = fleet.start("apply", "--yes")
    wait_for(lambda: first.poll() is not None, "the first is told that it is overtaken", 200)
    fleet.open_gates(fleet.machines)
    exit_status, said = ended(first)
    assert exit_status == 1, said
    assert "took this one over" in said
    exit_status, said = ended(second)
    assert exit_status == 0, said
    wait_for(lambda: is_well(fleet), "all is as the text says")
    assert set(fleet.words().values()) == {"gated seven"}
    assert fleet.try_get(f"http://{web_fleet.address('d')}:20000/") is None


class Offers:
    """Reads the numbers that machines are offered, again and again, from the inventory itself."""

    def __init__(self, fleet: WebFleet) -> None:
        self.seen: dict[str, list[tuple[int, int]]] = {}
        self._path = fleet.directory / ".keyplane" / "controller" / "inventory.db"
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ends.wait(0.02):
            with contextlib.suppress(sqlite3.OperationalError):
                self._look()

    def _look(self) -> None:
        url = f"file:{self._path}?mode=ro"
        with contextlib.closing(sqlite3.connect(url, uri=True, timeout=60)) as base:
            for name, *number in base.execute("select machine, epoch, counter from offers"):
                row = self.seen.setdefault(name, [])
                if not row or row[-1] != (number[0], number[1]):
                    row.append((number[0], number[1]))

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._look()


def test_pushes_with_a_restart_between_never_offer_a_lower_number(fleet: WebFleet) -> None:
    fleet.say("eight", upgrade="record")
    fleet.apply()
    before = fleet.words()
    with Offers(fleet) as offers:
        fleet.run("push", "a")
        os.kill(fleet.parts()["controller"], signal.SIGKILL)
        wait_for(lambda: fleet.run("status", exit_status=None).exit in (0, 1), "it is back", 120)
        fleet.run("push", "b")
        wait_for(lambda: all_accepted(fleet), "each has accepted what it was offered last")
    assert fleet.words() == before | {"a": "eight", "b": "eight"}
    assert {"a", "b"} <= {name for name, row in offers.seen.items() if len(row) > 1}
    assert all(row == sorted(row) for row in offers.seen.values()), offers.seen
    ends = {each["machine"]: each["accepted"] for each in fleet.status()["machines"]}
    for name, row in offers.seen.items():
        if name in ends:
            assert ends[name] == "{}.{}".format(*row[-1])
