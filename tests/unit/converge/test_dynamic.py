"""Dynamic values in the agent: what its units run with, and when one of them is touched."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from keyplane.converge import events, saved
from keyplane.converge.reaction_state import News
from keyplane.model.declaration import EntryState, Reload, UnitState
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import EntryId, MachineName
from keyplane.model.occurrence import Act, Cause
from keyplane.model.reaction import Contract, DeclaredRates
from keyplane.ports.host import HostBusyError
from tests.unit.converge.world import BY_ANA, SERVER, WEB, World, entry, unit

PEER = "vpn:node@beta/provides/peer/address"
SIZE = "vpn:node@beta/provides/peer/size"
RATES = DeclaredRates(window_ms=30_000, burst=3, restarts_per_unit=5, budget_ms=3_600_000)
VALUES = "/run/keyplane/web+main@alpha/units/server/values.json"
CONF = "/etc/web/peers.conf"
_numbers = itertools.count(1)


def contract(reaction: str = "restart", *sources: str, **fields: Any) -> Contract:
    return Contract(sources=sources or (PEER,), reaction=ReactionKind(reaction), **fields)


def told(world: World, value: str | None, export: str = PEER, *, run_ms: int = 0, **more: Any):
    fields: dict[str, Any] = {"number": next(_numbers)} | more
    news = News(export=export, value=value, **fields)
    world.tell(events.ValuesTold(at_ms=world.now, news=(news,)), run_ms=run_ms)


def began(
    dynamic: Mapping[str, Contract], *, first: str | None = "10.0.0.1", **fields: Any
) -> World:
    """A unit with these contracts, running with a first value."""
    world = World()
    made = unit(dynamic=dynamic, reload=Reload(signal="HUP"), **fields)
    world.offer({WEB: entry(units={"server": made})}, rates=RATES)
    if first is not None:
        told(world, first, run_ms=60_000)  # its window is over
        world.forget()
    return world


def env(world: World) -> Mapping[str, str]:
    (run,) = [run for run in world.host.processes.runs.values() if run.seen.running]
    return run.spec.env


def values(world: World) -> dict[str, str]:
    return json.loads(world.host.files.nodes[VALUES].content)


def reaction(world: World) -> str | None:
    return world.report().units[SERVER].reaction


def test_a_unit_waits_for_its_first_value_and_then_starts_at_once():
    """It never runs without one; its report says what it waits for."""
    world = began({"PEER": contract()}, first=None)
    assert world.acts == []
    assert world.report().state is EntryState.WAITING
    assert reaction(world) == "waiting"
    assert PEER in (world.report().cause or "")
    told(world, "10.0.0.1", run_ms=2_000)
    assert world.acts == [("start", f"{WEB}/server")]
    assert env(world)["PEER"] == "10.0.0.1"
    assert env(world)["KEYPLANE_VALUES"] == VALUES
    assert values(world) == {"PEER": "10.0.0.1"}
    assert world.report().state is EntryState.HEALTHY
    assert reaction(world) == "running"


def test_six_changes_in_a_window_are_one_restart_with_the_last_value():
    world = began({"PEER": contract()})
    for last in range(2, 8):
        told(world, f"10.0.0.{last}", run_ms=4_000)
    assert world.acts == []
    world.run(30_000)
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]
    assert env(world)["PEER"] == "10.0.0.7"
    world.run(120_000)
    assert len(world.acts) == 2
    last = world.state.history.kept[-1]
    assert (last.act, last.cause) == (Act.RESTART, Cause.REACTION)


def test_a_report_whose_answer_was_lost_is_made_good_once_all_is_as_before():
    """The controller has it for all that: what was reported before is not what it knows."""
    world = began({"PEER": contract()})
    world.is_unanswered = True
    told(world, None, run_ms=200)
    assert world.report().state is EntryState.STALE
    told(world, "10.0.0.1")
    world.is_unanswered = False
    world.run(60_000)
    assert world.report().state is EntryState.HEALTHY


def test_a_flap_back_within_the_window_is_nothing():
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=5_000)
    told(world, "10.0.0.1", run_ms=120_000)
    assert world.acts == []


def test_two_exports_that_change_at_once_are_one_restart():
    both = {"PEER": contract(), "SIZE": contract("restart", SIZE)}
    world = began(both, first=None)
    told(world, "10.0.0.1")
    assert world.acts == []
    told(world, "8", SIZE, run_ms=2_000)
    world.forget()
    told(world, "10.0.0.2", run_ms=1_000)
    told(world, "9", SIZE, run_ms=60_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert (env(world)["PEER"], env(world)["SIZE"]) == ("10.0.0.2", "9")


def test_a_reload_rewrites_the_file_and_restarts_nothing():
    """Of configData and of a variable alike: the latter is in the file of values alone."""
    parts = ("peer ", 0, "\n")
    world = began({CONF: contract("reload", parts=parts), "PEER": contract("reload")})
    assert world.host.files.nodes[CONF].content == b"peer 10.0.0.1\n"
    told(world, "10.0.0.2", run_ms=60_000)
    assert world.acts == [("reload", f"{WEB}/server")]
    last = world.state.history.kept[-1]
    assert (last.act, last.cause) == (Act.RELOAD, Cause.REACTION)
    assert world.host.files.nodes[CONF].content == b"peer 10.0.0.2\n"
    assert values(world)["PEER"] == "10.0.0.2"
    assert env(world)["PEER"] == "10.0.0.1"


def test_a_live_value_is_written_and_nothing_is_told_to_the_unit():
    world = began({"PEER": contract("live"), CONF: contract("live")})
    told(world, "10.0.0.2", run_ms=60_000)
    assert world.acts == []
    assert values(world) == {"PEER": "10.0.0.2", CONF: "10.0.0.2"}
    assert world.host.files.nodes[CONF].content == b"10.0.0.2"


def test_a_restart_on_a_changed_file_brings_the_new_file():
    world = began({CONF: contract()})
    told(world, "10.0.0.2", run_ms=60_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert world.host.files.nodes[CONF].content == b"10.0.0.2"


def test_a_crash_starts_the_unit_with_what_is_known_and_the_window_then_does_nothing():
    """A start for another cause takes up the new value; no second restart follows."""
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=1_000)
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(5_000)
    assert world.acts == [("start", f"{WEB}/server")]
    assert env(world)["PEER"] == "10.0.0.2"
    world.run(120_000)
    assert len(world.acts) == 1


def test_an_apply_in_the_middle_of_a_window_restarts_once():
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=1_000)
    made = unit("2", dynamic={"PEER": contract()}, reload=Reload(signal="HUP"))
    world.offer({WEB: entry(key="2", units={"server": made})}, rates=RATES)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert env(world)["PEER"] == "10.0.0.2"
    world.run(120_000)
    assert len(world.acts) == 2


def test_a_window_that_closes_while_the_unit_is_being_replaced_restarts_once():
    """The close comes between the stop and the start of the apply."""
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=29_900)
    made = unit("2", dynamic={"PEER": contract()}, reload=Reload(signal="HUP"))
    world.counter += 1
    offered = world.declaration({WEB: entry(key="2", units={"server": made})}, world.counter)
    (stop,) = world.step(events.Offered(at_ms=world.now, declaration=offered))
    world.clock.advance(200)
    for effect in (*world.step(events.Ticked(at_ms=world.now)), stop):
        world.perform(effect)
    world.run(120_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert env(world)["PEER"] == "10.0.0.2"


def test_rates_that_change_in_the_middle_of_a_window_close_it_at_once_and_restart_nothing_else():
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", run_ms=5_000)
    made = unit(dynamic={"PEER": contract()}, reload=Reload(signal="HUP"))
    entries = {WEB: entry(units={"server": made})}
    world.offer(entries, rates=DeclaredRates(window_ms=8_000), run_ms=2_000)
    assert world.acts == []
    world.run(2_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    world.forget()
    world.offer(entries, rates=DeclaredRates(window_ms=9_000), run_ms=120_000)
    assert world.acts == []


def test_another_life_of_the_agent_touches_nothing_and_closes_the_window():
    """The state was saved: the window that was open closes in the next life, once."""
    world = began({"PEER": contract()})
    world.boot()
    world.run(60_000)
    assert world.acts == []
    told(world, "10.0.0.2", run_ms=1_000)
    world.boot()
    world.run(60_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    world.boot()
    world.run(60_000)
    assert len(world.acts) == 2


@pytest.mark.parametrize("lost", [saved.REACTIONS, saved.LEDGER, saved.DECLARATION])
def test_a_state_that_was_lost_restarts_nothing_and_takes_the_next_value(lost: str):
    """What runs is kept as it is; a fresh value restarts it once."""
    world = began({"PEER": contract()})
    offered = world.state.declaration
    assert offered is not None
    del world.host.files.state[lost]
    world.boot()
    world.tell(events.Offered(at_ms=world.now, declaration=offered), run_ms=1_000)
    told(world, "10.0.0.1", run_ms=60_000)
    assert world.acts == []
    told(world, "10.0.0.2", run_ms=60_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert env(world)["PEER"] == "10.0.0.2"


def test_a_machine_that_boots_with_the_bus_down_starts_with_the_last_values():
    """As `running-stale`, until the same value is heard: then `running`, with no restart."""
    world = began({"PEER": contract()})
    world.host.processes.lose()
    world.boot()
    world.run(5_000)
    assert world.acts == [("start", f"{WEB}/server")]
    assert env(world)["PEER"] == "10.0.0.1"
    assert reaction(world) == "running-stale"
    assert world.report().state is EntryState.STALE
    told(world, "10.0.0.1", number=next(_numbers) - 1, stored=True, run_ms=5_000)
    assert reaction(world) == "running"
    assert world.report().state is EntryState.HEALTHY
    world.run(120_000)
    assert len(world.acts) == 1


def test_a_clock_that_began_anew_with_the_machine_holds_nothing_up():
    """Times of before the boot are moved: no window of the past, none of the far future."""
    world = began({"PEER": contract()})
    world.clock.advance(500_000_000)
    told(world, "10.0.0.2")
    world.host.processes.lose()
    world.clock.advance(1_000 - world.now)
    world.boot()
    world.run(40_000)
    assert world.acts == [("start", f"{WEB}/server")]
    told(world, "10.0.0.3", run_ms=40_000)
    assert [act for act, _ in world.acts] == ["start", "stop", "start"]


def test_missing_with_keep_last_keeps_it_running_and_says_so():
    world = began({"PEER": contract()})
    told(world, None, run_ms=600_000)
    assert world.acts == []
    assert reaction(world) == "running-stale"
    assert world.report().units[SERVER].stale_since_ms.keys() == {"PEER"}
    told(world, "10.0.0.1", run_ms=1_000)
    assert reaction(world) == "running"
    assert world.acts == []


def test_missing_with_stop_stops_it_at_the_close_and_a_value_starts_it():
    world = began({"PEER": contract(on_missing=OnMissing.STOP)})
    told(world, None, run_ms=20_000)
    assert world.acts == []
    world.run(20_000)
    assert world.acts == [("stop", f"{WEB}/server")]
    last = world.state.history.kept[-1]
    assert (last.act, last.cause) == (Act.STOP, Cause.REACTION)
    assert world.report().units[SERVER].state is UnitState.STOPPED
    assert world.report().state is EntryState.STOPPED
    assert PEER in (world.report().cause or "")
    world.boot()
    world.run(60_000)
    assert len(world.acts) == 1
    told(world, "10.0.0.9", run_ms=60_000)
    assert world.acts[1:] == [("start", f"{WEB}/server")]
    assert env(world)["PEER"] == "10.0.0.9"


@pytest.mark.parametrize(("back", "restarts"), [("10.0.0.1", False), ("10.0.0.9", True)])
def test_one_that_could_not_be_stopped_until_its_value_is_back_runs_on(back: str, restarts: bool):
    world = began({"PEER": contract(on_missing=OnMissing.STOP)})
    pid = world.pid()
    world.host.faults.plan("stop", f"{WEB}/server", *[HostBusyError("hangs")] * 1_000)
    told(world, None, run_ms=60_000)
    assert world.pid() == pid
    told(world, back, run_ms=60_000)
    world.host.faults.heal()
    world.run(600_000)
    assert (world.pid() != pid) is restarts
    assert env(world)["PEER"] == back
    assert reaction(world) == "running"
    assert world.report().state is EntryState.HEALTHY


def test_silence_stops_and_restarts_nothing_and_is_shown():
    """For a hundred times `maxStaleness`, with `onMissing = "stop"`: only a word stops it."""
    world = began({"PEER": contract(on_missing=OnMissing.STOP, max_staleness_ms=10_000)})
    since = world.now
    world.tell(events.Silence(at_ms=since, exports=(PEER,), is_silent=True))
    assert reaction(world) == "running"
    world.run(20_000)
    assert reaction(world) == "running-stale"
    assert world.report().units[SERVER].stale_since_ms == {
        "PEER": since + world.clock.now_ms() - world.now
    }
    world.run(1_000_000)
    assert world.acts == []
    world.tell(events.Silence(at_ms=world.now, exports=(PEER,), is_silent=False))
    assert reaction(world) == "running"
    assert world.report().units[SERVER].stale_since_ms == {}
    world.run(100_000)
    assert world.acts == []


def test_an_older_word_never_replaces_a_newer_one():
    world = began({"PEER": contract()})
    told(world, "10.0.0.2", number=10_000, run_ms=60_000)
    world.forget()
    told(world, "10.0.0.1", number=9_999, run_ms=120_000)
    assert world.acts == []
    assert env(world)["PEER"] == "10.0.0.2"


def test_a_burst_trips_the_breaker_and_the_report_says_so():
    world = began({"PEER": contract()})
    for last in range(2, 6):
        told(world, f"10.0.0.{last}", run_ms=31_000)
    assert [act for act, _ in world.acts].count("start") == 3
    assert reaction(world) == "running-stale"
    assert world.report().state is EntryState.STALE
    world.run(120_000)
    assert [act for act, _ in world.acts].count("start") == 4
    assert reaction(world) == "running"
    assert env(world)["PEER"] == "10.0.0.5"


def test_a_unit_that_a_person_stopped_stays_stopped_and_starts_with_the_newest_value():
    world = began({"PEER": contract()})
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA), run_ms=1_000)
    told(world, "10.0.0.2", run_ms=120_000)
    assert [act for act, _ in world.acts] == ["stop"]
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=120_000)
    assert [act for act, _ in world.acts] == ["stop", "start"]
    assert env(world)["PEER"] == "10.0.0.2"


def test_a_fresh_value_restarts_a_unit_that_failed():
    """It may be what the unit lacked, however long it would have waited."""
    world = began({"PEER": contract()}, first=None)
    world.host.processes.problems.clear()
    told(world, "10.0.0.1", run_ms=2_000)
    for _ in range(6):
        world.host.processes.end(WEB, SERVER, code=1)
        world.run(20_000)
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(100)
    assert not world.host.running()
    told(world, "10.0.0.2", run_ms=120_000)
    assert env(world)["PEER"] == "10.0.0.2"


def test_a_provider_that_moved_leaves_the_last_value():
    """The contract names another export, of which nothing was ever heard."""
    world = began({"PEER": contract()})
    moved = contract("restart", PEER.replace("beta", "gamma"), on_missing=OnMissing.STOP)
    made = unit(dynamic={"PEER": moved}, reload=Reload(signal="HUP"))
    world.offer({WEB: entry(units={"server": made})}, rates=RATES, run_ms=600_000)
    assert world.acts == []
    assert env(world)["PEER"] == "10.0.0.1"


def test_each_effect_may_be_the_last_of_a_life():
    """A crash before or after any of them: one restart in the end, with the new value."""
    for boundary in range(12):
        world = began({"PEER": contract(), CONF: contract("reload")})
        told(world, "10.0.0.2")
        world.clock.advance(31_000)
        world.inbox.append(events.Ticked(at_ms=world.now))
        left = boundary
        while world.inbox and left >= 0:
            for effect in world.step(world.inbox.popleft()):
                left -= 1
                if left < 0:
                    break
                world.perform(effect)
        world.boot()
        world.run(120_000)
        starts = [act for act, _ in world.acts].count("start")
        assert starts == 1, boundary
        assert env(world)["PEER"] == "10.0.0.2"
        assert world.host.files.nodes[CONF].content == b"10.0.0.2"


def test_a_path_that_two_want_is_refused():
    """A file of values is declared like any other."""
    world = World("x")
    one = unit(dynamic={CONF: contract()})
    other = unit("2", config={CONF: "x"})
    entries = {
        WEB: entry(units={"server": one}),
        EntryId("b:main@alpha"): entry(units={"server": other}),
    }
    world.offer(entries)
    assert MachineName("alpha") == world.reports[-1].machine
    assert CONF in (world.reports[-1].refused or "")
