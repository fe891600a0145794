"""Health: probes at their intervals, retries, the start period."""

from keyplane.converge import effects
from keyplane.model.declaration import EntryState, Health, UnitState
from tests.unit.converge.world import SERVER, WEB, World, entry, unit

HEALTH = Health(http="http://127.0.0.1:1/", interval_ms=2_000, retries=2, start_period_ms=5_000)


def probes(world: World) -> int:
    return sum(isinstance(each, effects.Probe) for each in world.effects)


def test_a_unit_is_healthy_as_soon_as_a_probe_passes() -> None:
    world = World()
    world.host.processes.problems[WEB, SERVER] = "connection refused"
    world.offer({WEB: entry(units={"server": unit(health=HEALTH)})}, run_ms=1_000)
    assert world.report().state is EntryState.APPLIED
    assert world.report().units[SERVER].state is UnitState.STARTING
    assert "connection refused" in str(world.report().units[SERVER].cause)
    del world.host.processes.problems[WEB, SERVER]
    world.run(350)
    assert world.report().state is EntryState.HEALTHY


def test_one_that_never_comes_up_is_unhealthy_after_its_start_period_and_not_restarted() -> None:
    world = World()
    world.host.processes.problems[WEB, SERVER] = "503"
    world.host.processes.say(WEB, SERVER, "waiting for the database")
    world.offer({WEB: entry(units={"server": unit(health=HEALTH)})}, run_ms=4_900)
    assert world.report().state is EntryState.APPLIED
    world.run(5_000)
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.cause == "server: unhealthy: 503"
    assert report.units[SERVER].log_tail == ("waiting for the database",)
    assert [act for act, _ in world.acts] == ["start"]


def test_single_failures_do_not_make_a_healthy_unit_unhealthy() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit(health=HEALTH)})})
    world.host.processes.problems[WEB, SERVER] = "503"
    world.run(2_000)
    assert world.report().units[SERVER].state is UnitState.HEALTHY
    world.run(2_100)
    assert world.report().units[SERVER].state is UnitState.UNHEALTHY
    assert world.report().state is EntryState.FAILED
    del world.host.processes.problems[WEB, SERVER]
    world.run(2_100)
    assert world.report().state is EntryState.HEALTHY


def test_a_healthy_unit_is_probed_at_its_interval_and_no_more() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit(health=HEALTH)})})
    world.forget()
    world.run(60_000)
    assert probes(world) == 30


def test_a_new_life_probes_before_it_tells() -> None:
    """What was healthy is not told as starting because its agent was restarted."""
    world = World()
    world.offer({WEB: entry(units={"server": unit(health=HEALTH)})})
    world.boot()
    world.reports.clear()
    world.run(5_000)
    assert [report.entries[WEB].state for report in world.reports] == [EntryState.HEALTHY]
