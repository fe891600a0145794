"""What happened on a machine: every start, stop, restart and reload, with its cause."""

from keyplane.converge import events, history, saved
from keyplane.model.declaration import EntryState, Reload, Restart
from keyplane.model.names import EntryId, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence
from tests.unit.converge.world import BY_ANA, DB, SERVER, WEB, World, entry, unit


def noted(world: World) -> list[tuple[str, str]]:
    """(act, cause) of each thing that happened to a unit."""
    return [(each.act.value, each.cause.value) for each in world.state.history.kept if each.unit]


def restarts(world: World) -> int:
    return world.report().units[SERVER].restarts


def test_a_start_and_a_restart_are_of_the_rollout_that_declared_them() -> None:
    world = World("one", "two")
    reload = Reload(signal="HUP")
    world.offer({WEB: entry(units={"server": unit(config={"/c": "one"}, reload=reload)})})
    world.offer({WEB: entry(units={"server": unit("2", config={"/c": "one"}, reload=reload)})})
    world.offer({WEB: entry(units={"server": unit("2", config={"/c": "two"}, reload=reload)})})
    world.offer({})
    assert noted(world) == [
        ("start", "rollout"),
        ("restart", "rollout"),
        ("reload", "rollout"),
        ("stop", "rollout"),
    ]


def test_a_crash_is_an_end_and_a_restart_and_is_counted() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.processes.end(WEB, SERVER, code=3)
    world.run(2_000)
    assert noted(world)[1:] == [("end", "crash"), ("restart", "crash")]
    assert world.state.history.kept[1].detail == "exit 3"
    assert restarts(world) == 1


def test_what_a_person_stops_and_starts_is_told_as_that_and_counts_as_no_restart() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="bob"), run_ms=2_000)
    assert noted(world)[1:] == [("stop", "person"), ("start", "person")]
    assert [each.detail for each in world.state.history.kept if not each.unit] == [
        "by ana, on the machine",
        "by bob, on the machine",
    ]
    assert restarts(world) == 0


def test_a_start_after_a_stop_by_another_hand_counts_as_no_restart() -> None:
    """As after `down --units`: the shim says that it was asked to end the unit."""
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    seen = world.host.processes.observe()[0]
    world.host.processes.ask_to_end(seen.entry, seen.unit)
    world.boot()
    world.run(2_000)
    assert noted(world)[1:] == [("stop", "person"), ("start", "person")]
    assert restarts(world) == 0
    assert world.report().state is EntryState.HEALTHY


def test_a_machine_that_went_down_starts_its_units_anew_and_counts_none() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.processes.lose()
    world.boot()
    world.run(2_000)
    assert noted(world)[1:] == [("end", "reboot"), ("start", "reboot")]
    assert restarts(world) == 0


def test_a_process_that_vanished_is_drift_and_its_start_a_restart() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.processes.runs.clear()
    world.run(60_000)
    assert noted(world)[1:] == [("end", "drift"), ("restart", "drift")]
    assert restarts(world) == 1


def test_what_is_found_running_without_a_ledger_is_adopted() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    del world.host.files.state[saved.LEDGER]
    world.boot()
    world.run(2_000)
    assert noted(world) == [("start", "rollout"), ("adopt", "adoption")]


def test_an_agents_restart_adds_nothing() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.boot()
    world.run(60_000)
    assert noted(world) == [("start", "rollout")]


def test_a_job_that_ran_to_its_end_is_done() -> None:
    world = World()
    job = unit("1", "exit", "0", run_once=True)
    world.offer({WEB: entry(units={"server": job})})
    assert noted(world) == [("start", "rollout"), ("end", "done")]


def test_a_start_that_fails_is_noted_once_for_each_cause() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1", "missing")})})
    world.run(120_000)
    assert noted(world) == [("fail", "rollout")]


def test_a_unit_that_ignores_its_stop_is_noted_as_killed() -> None:
    world = World()
    world.host.processes.stubborn.add((WEB, SERVER))
    world.offer({WEB: entry(units={"server": unit()})})
    world.offer({WEB: entry(units={"server": unit("2")})})
    assert noted(world)[1:] == [("stop", "rollout"), ("restart", "rollout")]
    assert "was killed" in world.state.history.kept[1].detail


def test_a_unit_that_ends_for_good_is_done() -> None:
    world = World()
    once = unit("1", "exit", "0", restart=Restart.ON_FAILURE)
    world.offer({WEB: entry(units={"server": once})})
    assert noted(world) == [("start", "rollout"), ("end", "done")]


# The history itself.


def told(world: World) -> list[Occurrence]:
    return [each for report in world.reports for each in report.occurrences]


def test_each_occurrence_is_told_once_and_in_order() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    for _ in range(5):
        world.host.processes.end(WEB, SERVER, code=1)
        world.run(40_000)
    assert [each.number for each in told(world)] == list(range(1, 12))
    world.run(60_000)
    assert len(told(world)) == 11


def test_what_happened_without_a_line_is_told_when_it_is_back() -> None:
    world = World()
    world.is_cut = True
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(40_000)
    assert told(world) == []
    world.is_cut = False
    world.run(40_000)
    assert [each.act for each in told(world)] == [Act.START, Act.END, Act.RESTART]


def test_a_new_life_goes_on_with_the_numbers_of_the_one_before() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    name = world.reports[-1].history
    world.boot()
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(2_000)
    assert world.reports[-1].history == name
    assert world.state.history.last == 3


def test_a_lost_history_is_begun_under_another_name() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    name = world.reports[-1].history
    world.host.files.state[saved.HISTORY] = b"torn"
    world.boot()
    world.run(2_000)
    assert world.reports[-1].history != name


def test_times_follow_a_clock_that_was_set() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    before = world.state.history.kept[0].at_ms
    world.clock.jump(86_400_000)
    world.tell(events.ClockSet(at_ms=world.now, wall_ms=world.clock.now_ms() - world.now))
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(2_000)
    assert world.state.history.kept[1].at_ms - before > 86_000_000


def test_one_entry_that_loops_does_not_push_out_the_others() -> None:
    note = history.Note(entry=WEB, unit=SERVER, act=Act.END, cause=Cause.CRASH, detail="x" * 999)
    other = history.Note(entry=DB, unit=SERVER, act=Act.START, cause=Cause.ROLLOUT)
    kept = history.add(history.History(name="a"), [other], at_ms=1)
    for _ in range(2 * history.KEPT_MAX):
        kept = history.add(kept, [note], at_ms=2)
    assert len(kept.kept) == history.KEPT_MAX
    assert kept.kept[0].entry == DB
    assert kept.last == 2 * history.KEPT_MAX + 1
    assert len(kept.kept[-1].detail) == history.DETAIL_MAX
    assert len(kept.untold()) == history.TOLD_MAX


def test_a_report_is_not_sent_again_for_what_it_has_told() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.run(60_000)
    count = len(world.reports)
    world.run(120_000)
    assert len(world.reports) == count
    assert EntryId(WEB) in world.reports[-1].entries
    assert UnitName("server") in world.reports[-1].entries[WEB].units
