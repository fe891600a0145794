"""Processes that end: restarts, back-off, and when an entry is told as failed."""

import pytest

from keyplane.converge import backoff, events
from keyplane.model.declaration import EntryState, Restart, UnitState
from keyplane.model.host import ObservedProcess
from tests.unit.converge.world import DB, SERVER, WEB, World, digest, entry, unit


def test_a_unit_that_ended_is_started_again() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})}, run_ms=20_000)
    first = world.pid()
    world.host.processes.end(WEB, SERVER, code=1)
    world.run(100)
    assert world.report().units[SERVER].state is UnitState.BACKING_OFF
    assert world.report().units[SERVER].last_exit == "exit 1"
    world.run(2_000)
    assert world.pid() not in {None, first}
    assert world.report().units[SERVER].restarts == 1
    assert world.report().state is EntryState.HEALTHY


def test_a_unit_that_dies_at_once_fails_its_entry_within_a_second_and_goes_on_being_tried() -> None:
    world = World()
    world.host.processes.say(WEB, SERVER, "port in use")
    world.offer(
        {WEB: entry(units={"server": unit("1", "exit", "1")}), DB: entry(units={"server": unit()})},
        run_ms=1_000,
    )
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.cause == "server: ended: exit 1"
    assert report.units[SERVER].state is UnitState.BACKING_OFF
    assert report.units[SERVER].log_tail == ("port in use",)
    assert world.report(DB).state in {EntryState.APPLIED, EntryState.HEALTHY}
    starts = len(world.acts)
    world.run(120_000)
    assert 4 <= len(world.acts) - starts <= 12
    assert world.report().state is EntryState.FAILED


def test_a_program_that_is_not_there_fails_its_entry_at_once() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1", "missing", "x")})}, run_ms=100)
    assert world.report().state is EntryState.FAILED
    assert world.report().cause == "server: no such file: missing x"


def test_one_that_died_over_and_over_is_believed_only_after_a_long_run() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    for _ in range(3):
        world.host.processes.end(WEB, SERVER, signal=11)
        world.run(1_200)
    assert world.pid() is not None
    world.run(2_000)
    assert world.report().state is EntryState.FAILED
    assert world.report().units[SERVER].last_exit == "signal SEGV"
    world.run(10_000)
    assert world.report().state is EntryState.HEALTHY


def test_a_corrected_declaration_is_tried_at_once() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1", "exit", "1")})}, run_ms=60_000)
    world.offer({WEB: entry(units={"server": unit("2")})}, run_ms=100)
    assert world.pid() is not None
    world.run(1_000)
    assert world.report().state is EntryState.HEALTHY


@pytest.mark.parametrize(
    ("restart", "code", "state"),
    [
        (Restart.NO, 0, UnitState.DONE),
        (Restart.NO, 1, UnitState.FAILED),
        (Restart.ON_FAILURE, 0, UnitState.DONE),
        (Restart.ON_FAILURE, 1, UnitState.HEALTHY),
        (Restart.ALWAYS, 0, UnitState.HEALTHY),
    ],
)
def test_restart_says_what_follows_an_end(restart: Restart, code: int, state: UnitState) -> None:
    """In the next life too."""
    world = World()
    world.offer({WEB: entry(units={"server": unit(restart=restart)})}, run_ms=20_000)
    world.host.processes.end(WEB, SERVER, code=code)
    world.run(3_000)
    assert world.report().units[SERVER].state is state
    acts = world.acts
    world.boot()
    world.run(60_000)
    assert world.report().units[SERVER].state is state
    assert world.acts == acts


def test_an_end_that_nobody_told_is_found_by_the_next_pass() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.processes.end(WEB, SERVER, code=1, unseen=True)
    world.run(31_000)
    assert world.report().units[SERVER].restarts == 1
    assert world.pid() is not None


def test_an_end_of_an_earlier_process_is_not_taken_for_one_of_the_later() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    pid = world.pid()
    late = ObservedProcess(
        entry=WEB, unit=SERVER, digest=digest("unit 1"), running=False, pid=1, exit_code=1
    )
    world.tell(events.Exited(at_ms=world.now, process=late))
    assert world.pid() == pid
    assert world.report().units[SERVER].state is UnitState.HEALTHY


def test_waits_double_up_to_half_a_minute() -> None:
    waits = [backoff.delay_ms(failures) for failures in range(1, 12)]
    assert waits[:4] == [200, 400, 800, 1_600]
    assert waits == sorted(waits)
    assert waits[-1] == 30_000
    assert backoff.delay_ms(10_000) == 30_000
