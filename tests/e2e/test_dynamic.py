"""Dynamic values between real agents on a real bus: nobody commits anything, and the agents decide."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keyplane.converge import saved
from keyplane.model import duration
from tests.e2e.fleet import Fleet, running, stilled, take_away, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "fleets" / "dynamic"
GAME = "game:main@beta"
WINDOW_MS = 3_000
"""As the machines of the fleet say."""
TRIES = 20
"""Others may take the processor away for longer than a window; then it is tried once more."""


class Dynamic:
    """The fleet, and the files by which its providers say their addresses."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.state = fleet.directory / ".keyplane"

    def say(self, instance: str, address: str | None) -> None:
        path = self.state / f"machines/alpha/root/var/lib/{instance}/address"
        if address is None:
            path.unlink()
            return
        draft = path.with_name("draft")
        draft.write_text(address)
        draft.replace(path)

    def unit(self) -> dict[str, Any]:
        return self.entry()["units"]["main"]

    def entry(self) -> dict[str, Any]:
        entries = self.fleet.status()["entries"]
        return next(entry for entry in entries if entry["entry"] == GAME)

    def values(self) -> dict[str, str]:
        folder = GAME.replace(":", "+")
        path = self.state / f"machines/beta/root/run/keyplane/{folder}/units/main/values.json"
        return json.loads(path.read_text())

    def said(self) -> list[str]:
        """What the game printed: its values at each start, and its size at each reload."""
        return self.fleet.run("logs", GAME).out.splitlines()

    def until(self, holds: Callable[[], object]) -> None:
        wait_for(holds, "what was said comes about", 180)

    def settle(self, one: str, two: str) -> int:
        """Both addresses in effect, every window over and the row with it; how often it started."""
        self.say("vpn-a", one)
        self.say("vpn-b", two)
        self.until(lambda: (self.values().get("ONE"), self.values().get("TWO")) == (one, two))
        self.until(self.is_at_rest)
        self.until(lambda: self.entry()["state"] == "healthy")
        return len(self.said())

    def kept(self, machine: str, name: str) -> bytes:
        """What an agent has saved, without its seal."""
        path = self.state / f"machines/{machine}/agent/{name}"
        return path.read_bytes().partition(b"\n")[2]

    def is_at_rest(self) -> bool:
        """No window is open, and the next one is in no row with the last."""
        state = saved.decode_reactions(self.kept("beta", saved.REACTIONS))
        assert state is not None
        [unit] = state.units
        now_ms = time.monotonic_ns() // 1_000_000
        is_over = unit.acted_ms is None or now_ms > unit.acted_ms + WINDOW_MS
        return state.opened_ms is None and unit.hold is None and is_over

    def published(self, instance: str) -> str | None:
        """What the provider's agent says of an address."""
        said = json.loads(self.kept("alpha", "published"))
        return said[f"{instance}:node@alpha/provides/peer/address"]["value"]

    def heard(self, instance: str) -> list[tuple[int, str]]:
        """When the game's agent heard which address, in milliseconds."""
        trace = json.loads(self.fleet.run("react", "--record", GAME).out)
        export = f"{instance}:node@alpha/provides/peer/address"
        return [
            (_ms(each["at"]), each["value"])
            for each in trace["events"]
            if each["export"] == export and "value" in each
        ]


def _ms(at: str) -> int:
    found = duration.parse(at)
    assert found is not None
    return found.milliseconds


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dynamic]:
    """Without first values the game waits; the rollout ends once both are there."""
    with running(SOURCE, tmp_path_factory.mktemp("dynamic") / "fleet", up=False) as fleet:
        found = Dynamic(fleet)
        starting = fleet.start("up", ".", "--yes")
        folder = found.state / "machines/alpha/root/var/lib"
        wait_for(
            lambda: (folder / "vpn-a").is_dir() and (folder / "vpn-b").is_dir(), "folders", 180
        )
        wait_for(lambda: _state_of_game(found) == "waiting", "a game that waits", 180)
        found.say("vpn-a", "10.9.0.1")
        found.say("vpn-b", "10.9.1.1")
        out, err = starting.communicate(timeout=300)
        assert starting.returncode == 0, out + err
        yield found


def _state_of_game(found: Dynamic) -> str | None:
    ran = found.fleet.run("status", "--json", exit_status=None)
    if not ran.out:
        return None
    return next((e["state"] for e in ran.json["entries"] if e["entry"] == GAME), None)


def test_six_changes_inside_a_window_are_one_restart(dynamic: Dynamic) -> None:
    """By what its agent heard, and when: six, the last less than a window after the first."""
    for turn in range(TRIES):
        before = dynamic.settle("10.9.0.1", "10.9.1.1")
        said = [f"10.9.{10 + turn}.{last}" for last in range(6)]
        for address in said:
            dynamic.say("vpn-a", address)
            dynamic.until(lambda address=address: dynamic.published("vpn-a") == address)
        dynamic.until(lambda last=said[-1]: dynamic.said()[-1] == f"{last} 10.9.1.1")
        heard = [at for at, address in dynamic.heard("vpn-a") if address in said]
        if len(heard) == len(said) and heard[-1] - heard[0] < WINDOW_MS:
            assert len(dynamic.said()) - before == 1
            return
    pytest.fail(f"{TRIES} tries, and never were six heard within a window")


def test_two_meshes_that_renumber_at_once_are_one_restart(dynamic: Dynamic) -> None:
    for turn in range(2, 2 + TRIES):
        before = dynamic.settle("10.9.0.1", "10.9.1.1")
        one, two = f"10.9.0.{turn}", f"10.9.1.{turn}"
        dynamic.say("vpn-a", one)
        dynamic.say("vpn-b", two)
        dynamic.until(lambda both=f"{one} {two}": dynamic.said()[-1] == both)
        [first] = [at for at, address in dynamic.heard("vpn-a") if address == one]
        [then] = [at for at, address in dynamic.heard("vpn-b") if address == two]
        if abs(first - then) < WINDOW_MS:
            assert len(dynamic.said()) - before == 1
            return
    pytest.fail(f"{TRIES} tries, and never were both heard within a window")


def test_a_flap_back_is_nothing(dynamic: Dynamic) -> None:
    for turn in range(66, 66 + TRIES):
        before = dynamic.settle("10.9.0.1", "10.9.1.1")
        pid, away = dynamic.unit()["pid"], f"10.9.0.{turn}"
        dynamic.say("vpn-a", away)
        dynamic.until(lambda away=away: dynamic.published("vpn-a") == away)
        dynamic.say("vpn-a", "10.9.0.1")
        dynamic.until(lambda: dynamic.published("vpn-a") == "10.9.0.1")
        # The other's next change is made after it: whatever came of the flap has come by then.
        dynamic.say("vpn-b", f"10.9.1.{turn}")
        dynamic.until(lambda turn=turn: dynamic.said()[-1] == f"10.9.0.1 10.9.1.{turn}")
        heard = dynamic.heard("vpn-a")[-2:]
        if [each for _, each in heard] == [away, "10.9.0.1"] and heard[1][0] - heard[0][
            0
        ] < WINDOW_MS:
            assert len(dynamic.said()) - before == 1
            assert dynamic.unit()["pid"] != pid
            return
    pytest.fail(f"{TRIES} tries, and never was it back within a window")


def test_a_service_says_its_own_value_and_its_reader_is_reloaded(dynamic: Dynamic) -> None:
    """By `keyplane-agent publish` in the unit; the file is written, and the process stays."""
    dynamic.settle("10.9.0.1", "10.9.1.1")
    pid = dynamic.unit()["pid"]
    assert dynamic.values()["/etc/reader/size"] == "size 1\n"
    env = _environment(dynamic, "vpn-a:node@alpha", "node")
    ran = dynamic.fleet.network.inside(lambda: _publish(env, "size", "2"))
    assert ran == 0
    dynamic.until(lambda: "size 2" in dynamic.said())
    assert dynamic.unit()["pid"] == pid
    assert dynamic.fleet.network.inside(lambda: _publish(env, "size", "many")) != 0
    assert dynamic.fleet.network.inside(lambda: _publish(env, "address", "x")) != 0
    stranger = {**env, "KEYPLANE_RUN": "/elsewhere"}
    assert dynamic.fleet.network.inside(lambda: _publish(stranger, "size", "3")) != 0


def _environment(dynamic: Dynamic, entry: str, unit: str) -> dict[str, str]:
    pid = dynamic.fleet.start_ids()[f"{entry}/{unit}"][0]
    raw = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    env = dict(line.decode().split("=", 1) for line in raw if b"=" in line)
    socket = dynamic.state / f"machines/alpha/root{env['KEYPLANE_PUBLISH']}"
    return {**env, "KEYPLANE_PUBLISH": str(socket)}


def _publish(env: dict[str, str], name: str, value: str) -> int:

    words = [str(Path(sys.executable).with_name("keyplane-agent")), "publish", name, value]
    return subprocess.run(words, env=env, check=False, capture_output=True, timeout=60).returncode


def test_a_burst_trips_the_breaker_and_the_state_says_so(dynamic: Dynamic) -> None:
    """It goes on running on what it has; once it is quiet, one restart takes up the last value."""
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    said: list[str] = []
    is_over = threading.Event()

    def flap() -> None:
        while not is_over.wait(0.1):
            if not said or dynamic.published("vpn-a") == said[-1]:  # as fast as it is taken up
                said.append(f"10.9.2.{len(said) % 250}")
                dynamic.say("vpn-a", said[-1])

    def is_held() -> bool:
        unit = dynamic.unit()
        return unit["reaction"] == "running-stale" and "ONE" in unit["stale_since"]

    flapping = threading.Thread(target=flap)
    flapping.start()
    try:
        dynamic.until(is_held)
    finally:
        is_over.set()
        flapping.join()
    dynamic.until(lambda: dynamic.said()[-1] == f"{said[-1]} 10.9.1.1")
    dynamic.until(lambda: dynamic.entry()["state"] == "healthy")
    assert len(dynamic.said()) - before < len(said)


def test_a_store_that_was_deleted_restarts_nothing(dynamic: Dynamic) -> None:
    """The bus is killed, its store removed; values are said again, and the next change arrives."""
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    bus = dynamic.fleet.parts()["bus"]
    with stilled(bus):  # what it wrote is gone before another is started
        take_away(dynamic.state / "bus" / "store", beside=dynamic.fleet.directory.parent)
        os.kill(bus, signal.SIGKILL)
    dynamic.until(lambda: dynamic.fleet.parts().get("bus") not in (None, bus))
    dynamic.say("vpn-a", "10.9.0.3")
    dynamic.until(lambda: dynamic.said()[-1] == "10.9.0.3 10.9.1.1")
    assert len(dynamic.said()) - before == 1


def test_a_provider_that_is_cut_off_stops_and_restarts_nobody(dynamic: Dynamic) -> None:
    """For far longer than `maxStaleness`; the state and its age are told, and end with its return."""
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    agent = dynamic.fleet.parts()["agent alpha"]
    os.kill(agent, signal.SIGSTOP)
    try:
        dynamic.until(lambda: dynamic.entry()["state"] == "running-stale")
        assert "ONE" in dynamic.unit()["stale_since"]
        assert dynamic.values()["ONE"] == "10.9.0.1"
    finally:
        os.kill(agent, signal.SIGCONT)
    dynamic.until(lambda: dynamic.entry()["state"] == "healthy")
    assert len(dynamic.said()) == before


def test_missing_is_said_by_the_provider_alone(dynamic: Dynamic) -> None:
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    dynamic.say("vpn-b", None)
    dynamic.until(lambda: dynamic.entry()["state"] == "running-stale")
    dynamic.say("vpn-b", "10.9.1.1")
    dynamic.until(lambda: dynamic.entry()["state"] == "healthy")
    assert len(dynamic.said()) == before


def test_rates_that_change_restart_nothing(dynamic: Dynamic) -> None:
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    dynamic.fleet.edit("fleet.toml", "perUnit = 500", "perUnit = 600")
    end = dynamic.fleet.apply()
    assert (end["started"], end["restarted"], end["reloaded"]) == (0, 0, 0)
    saved = dynamic.state / "machines/beta/agent/declaration"
    dynamic.until(lambda: b'"restarts_per_unit":600' in saved.read_bytes())
    assert len(dynamic.said()) == before


def test_what_was_heard_is_recorded_and_replayed_with_another_window(dynamic: Dynamic) -> None:
    """A window of a tenth would have made more restarts of the same changes."""
    dynamic.settle("10.9.0.1", "10.9.1.1")
    path = dynamic.state / "machines/beta/agent/record"
    dynamic.until(lambda: b"10.9.0.1" in path.read_bytes())
    trace = dynamic.fleet.directory / "trace.json"
    trace.write_text(dynamic.fleet.run("react", "--record", GAME).out)
    rows = dynamic.fleet.run("react", str(trace), "--json").json
    assert [row for row in rows if row["action"] in ("restart", "reload", "start")]
    assert {row["entry"] for row in rows} == {GAME}
    assert rows[-1]["values"]["TWO"] == "10.9.1.1"
    dynamic.fleet.run("react", "--record", "vpn-a:node@alpha", exit_status=2)
    dynamic.fleet.run("react", "--record", "game:main@nowhere", exit_status=2)
