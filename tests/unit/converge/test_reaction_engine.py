"""The engine as an agent works it: other contracts and rates, failures, late timers, a restart."""

from dataclasses import replace
from typing import Any

import msgspec

from keyplane.converge import reaction
from keyplane.converge import reaction_limits as limits
from keyplane.converge.reaction_state import (
    Contracts,
    Declared,
    Event,
    News,
    Reacted,
    Seen,
    State,
    Ticked,
    Told,
)
from keyplane.model import duration
from keyplane.model.fleet import Debounce, Rates, RestartBudget
from keyplane.model.names import EntryId, UnitName
from tests.unit.converge.reaction_traces import ENTRY, SECOND, export, read, trace, value

V = {"V": value("v")}
V1 = {"v": "1"}


def contracts(entries: dict[str, Any]) -> Contracts:
    return read(trace(entries, {}, "")).contracts


def begun(entries: dict[str, Any], initial: dict[str, str], rates: Rates | None = None) -> State:
    return reaction.begin(
        rates=Rates() if rates is None else rates,
        contracts=contracts(entries),
        exports={export(name): text for name, text in initial.items()},
    )


def told(at: int, **news: str | None) -> Told:
    said = tuple(News(export=export(name), value=text) for name, text in news.items())
    return Told(now_ms=at * SECOND, news=said)


def ticked(at: int) -> Ticked:
    return Ticked(now_ms=at * SECOND)


def declared(at: int, entries: dict[str, Any], rates: Rates | None = None) -> Declared:
    return Declared(
        now_ms=at * SECOND,
        rates=Rates() if rates is None else rates,
        contracts=contracts(entries),
    )


def seen(at: int, *, is_up: bool) -> Seen:
    return Seen(now_ms=at * SECOND, entry=EntryId(ENTRY), unit=UnitName("web"), is_up=is_up)


def window(text: str, **more: Any) -> Rates:
    parsed = duration.parse(text)
    assert parsed is not None
    return Rates(debounce=Debounce(window=parsed), **more)


def run(state: State, *events: Event) -> tuple[State, list[str]]:
    """Each row as `SECONDS ACTION STATE VALUES`."""
    rows: list[Reacted] = []
    for event in events:
        state, found = reaction.step(state, event)
        rows.extend(found)
    return state, [
        f"{row.at_ms // SECOND} {row.action} {row.state} {' '.join(row.values.values())}".strip()
        for row in rows
    ]


def test_a_late_timer_acts_late_and_never_in_the_past():
    """An agent that slept through a close resolves it when it wakes, before what it then hears."""
    _, rows = run(begun(V, V1), told(10, v="2"), told(55, v="3"), ticked(90))
    assert rows == ["55 restart running 2", "90 restart running 3"]


def test_rates_that_change_within_a_window_move_its_close():
    """And a longer one is waited for."""
    state, _ = run(begun(V, V1), told(10, v="2"))
    assert limits.due_ms(state) == 40 * SECOND
    _, rows = run(state, declared(15, V, window("5s")))
    assert rows == ["15 restart running 2"]
    state, rows = run(state, declared(15, V, window("1m")), ticked(69), ticked(70))
    assert rows == ["70 restart running 2"]
    assert limits.due_ms(state) is None


def test_other_rates_restart_nothing():
    """No window opens and nothing is waited for."""
    state, rows = run(begun(V, V1), declared(15, V, window("5s")))
    assert rows == []
    assert limits.due_ms(state) is None


def test_other_rates_open_no_window_for_what_is_held():
    none_left = RestartBudget(per_unit=0)
    first = replace(Rates(), restart_budget=none_left)
    state, rows = run(begun(V, V1, first), told(10, v="2"), ticked(40))
    assert rows == ["40 none running-stale 1"]
    state, rows = run(state, declared(100, V, window("1m", restart_budget=none_left)))
    assert (rows, limits.due_ms(state)) == ([], None)
    _, rows = run(state, declared(110, V))
    assert rows == ["110 restart running 2"]


def test_a_unit_that_stays_keeps_what_it_runs_with():
    """Another contract alone does nothing; a new name is taken up by its reaction."""
    state, rows = run(begun(V, V1), declared(10, {"V": value("v", "reload", onMissing="stop")}))
    assert (rows, limits.due_ms(state)) == ([], None)
    both = {**V, "W": value("w", "reload")}
    state, rows = run(state, declared(20, both))
    assert (rows, limits.due_ms(state)) == ([], None)
    _, rows = run(state, told(30, w="1"), ticked(60))
    assert rows == ["60 reload running 1 1"]


def test_a_value_from_another_export_keeps_the_last_one_until_the_new_one_is_heard():
    """A new path without a value is mere staleness."""
    state, rows = run(begun(V, V1), declared(10, {"V": value("x"), "W": value("w")}))
    assert (rows, limits.due_ms(state)) == ([], None)
    _, rows = run(state, told(20, w="1"), ticked(50), told(60, x="2"), ticked(90))
    assert rows == ["50 restart running 1 1", "90 restart running 2 1"]


def test_a_contract_that_now_stops_without_what_is_missing_stops_at_a_close():
    state, rows = run(
        begun(V, V1),
        told(10, v=None),
        ticked(40),
        declared(50, {"V": value("v", onMissing="stop")}),
    )
    assert rows == ["10 none running-stale 1"]
    _, rows = run(state, ticked(80))
    assert rows == ["80 stop stopped"]


def test_a_contract_that_now_keeps_the_last_value_starts_what_had_stopped():
    stopping = {"V": value("v", onMissing="stop")}
    state, rows = run(begun(stopping, V1), told(10, v=None), ticked(40), declared(50, V))
    assert rows == ["40 stop stopped"]
    _, rows = run(state, ticked(79), ticked(80))
    assert rows == ["80 start running-stale 1"]


def test_a_failed_unit_stops_as_a_running_one_does():
    """And what is seen of it then is of no weight."""
    stopping = {"V": value("v", onMissing="stop")}
    _, rows = run(
        begun(stopping, V1),
        seen(5, is_up=False),
        told(10, v=None),
        ticked(40),
        seen(50, is_up=True),
    )
    assert rows[1:] == ["40 stop stopped"]


def test_a_new_unit_starts_at_once_with_what_is_known():
    """And one that is no longer declared is forgotten, with the exports that it read."""
    state, rows = run(
        begun(V, V1), declared(10, {ENTRY: {"web": V, "zed": {"W": value("v")}}}), told(11, v="2")
    )
    assert rows == ["10 start running 1"]
    state, rows = run(state, declared(12, {ENTRY: {"zed": {"X": value("x")}}}))
    assert rows == []
    assert [unit.name for unit in state.units] == ["zed"]
    assert not state.exports


def test_a_unit_that_failed_says_so_until_it_runs_again():
    state, rows = run(begun(V, V1), seen(10, is_up=False), seen(20, is_up=True))
    assert rows == ["10 none failed 1", "20 none running 1"]
    _, rows = run(state, told(30, v=None), seen(40, is_up=False), seen(50, is_up=True))
    assert rows[1:] == ["40 none failed 1", "50 none running-stale 1"]


def test_fresh_values_restart_a_failed_unit_and_a_reload_does_not_mend_it():
    _, rows = run(begun(V, V1), seen(5, is_up=False), told(10, v="2"), ticked(40))
    assert rows[1:] == ["40 restart running 2"]
    two = {**V, "W": value("w", "reload")}
    start = begun(two, {"v": "1", "w": "1"})
    _, rows = run(start, seen(5, is_up=False), told(10, w="2"), ticked(40))
    assert rows[1:] == ["40 reload failed 1 2"]
    _, rows = run(start, told(1, w=None), seen(5, is_up=False), told(10, v="2"), ticked(40))
    assert rows[2:] == ["40 restart running-stale 2 1"]


def test_what_is_seen_of_a_unit_that_is_not_declared_is_nothing():
    gone = replace(seen(10, is_up=False), unit=UnitName("other"))
    assert run(begun(V, V1), gone)[1] == []


def test_an_agent_that_was_started_anew_goes_on_where_the_one_before_it_was():
    """The state as bytes and back is the state, in the middle of all that it can hold."""
    entries = {
        "V": value("v", maxStaleness="1m"),
        "L": value(["l", "m"], "live", template="${results.s.l}:${results.s.m}"),
        "D": value("d", onMissing={"default": "x"}),
    }
    scarce = replace(Rates(), restart_budget=RestartBudget(per_unit=1))
    state, rows = run(
        begun(entries, {"v": "1", "l": "1", "m": "1", "d": "1"}, scarce),
        told(10, v="2"),
        told(50, v="3", m=None),
        ticked(80),
        ticked(140),
        told(150, v="4", d=None),
    )
    assert rows[-1] == "140 none running-stale 1 1:1 2"
    again = msgspec.json.decode(msgspec.json.encode(state), type=State)
    assert again == state
    assert reaction.step(again, ticked(7_000)) == reaction.step(state, ticked(7_000))
