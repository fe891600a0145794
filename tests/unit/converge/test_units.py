"""Units: what a declaration starts, leaves alone, replaces, reloads and stops."""

from dataclasses import replace

from keyplane.converge import effects, events
from keyplane.model.declaration import (
    DeclaredDirectory,
    EntryState,
    Health,
    OfferNumber,
    Reload,
    UnitState,
)
from keyplane.model.names import UnitName
from keyplane.ports.host import HostBusyError, HostError
from tests.unit.converge.world import BY_ANA, DB, SERVER, WEB, World, digest, entry, unit


def test_a_declared_unit_is_started_and_told_healthy_once_it_has_run_a_second() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})}, run_ms=500)
    assert world.report().state is EntryState.APPLIED
    assert world.reports[-1].settled == OfferNumber(1, 1)
    world.run(1_000)
    report = world.report()
    assert report.state is EntryState.HEALTHY
    assert report.units[SERVER].pid == world.pid()
    assert report.units[SERVER].restarts == 0


def test_an_entry_whose_key_alone_moved_is_left_alone() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    pid = world.pid()
    world.forget()
    world.offer({WEB: entry(key="other", units={"server": unit()})})
    assert world.pid() == pid
    assert world.acts == []
    assert world.report().key == digest("other")
    assert world.reports[-1].settled == OfferNumber(1, 2)


def test_a_moved_digest_stops_the_old_one_before_the_new_one_starts() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit("1")})})
    world.forget()
    world.offer({WEB: entry(units={"server": unit("2")})})
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]
    assert world.report().state is EntryState.HEALTHY
    assert world.report().units[SERVER].digest == digest("unit 2")


def test_the_old_one_is_stopped_only_when_everything_else_is_in_place() -> None:
    """A failing fetch costs no downtime, and is told."""
    world = World("conf")
    world.offer({WEB: entry(units={"server": unit("1")})})
    pid = world.pid()
    after = unit("2", archive=digest("code"), config={"/etc/web.conf": "conf"})
    world.offer({WEB: entry(units={"server": after})})
    assert world.pid() == pid
    assert world.host.files.nodes["/etc/web.conf"].content == b"conf"
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.cause is not None
    assert digest("code") in report.cause
    assert report.units[SERVER].digest == digest("unit 1")
    world.host.artifacts.stored.add(digest("code"))
    world.run(31_000)
    assert world.pid() != pid
    assert world.report().state is EntryState.HEALTHY


def test_a_fetch_that_fails_is_tried_again_within_a_second() -> None:
    world = World()
    world.host.artifacts.stored.add(digest("code"))
    world.host.faults.plan("fetch", digest("code"), *[HostBusyError("cut")] * 2)
    world.offer({WEB: entry(units={"server": unit(archive=digest("code"))})}, run_ms=150)
    assert world.report().state is EntryState.APPLYING
    assert world.report().cause == f"archive {digest('code')}: cut"
    world.run(650)
    assert world.pid() is not None


def test_changed_config_reloads_and_restarts_nothing() -> None:
    world = World("one", "two")

    def declared(text: str):
        reload = Reload(signal="HUP")
        return {WEB: entry(units={"server": unit(config={"/etc/c": text}, reload=reload)})}

    world.offer(declared("one"))
    pid = world.pid()
    world.forget()
    world.offer(declared("two"))
    assert world.acts == [("reload", f"{WEB}/server")]
    assert world.pid() == pid
    assert world.host.files.nodes["/etc/c"].content == b"two"
    assert world.report().units[SERVER].reloads == 1


def test_a_reload_that_a_crash_swallowed_is_done_by_the_next_life() -> None:
    """The file was written, the agent died before the reload."""
    world = World("one", "two")

    def declared(text: str):
        reload = Reload(signal="HUP")
        return {WEB: entry(units={"server": unit(config={"/etc/c": text}, reload=reload)})}

    world.offer(declared("one"))
    world.host.faults.plan("reload", f"{WEB}/server", HostBusyError("not now"))
    world.offer(declared("two"), run_ms=0)
    assert world.host.files.nodes["/etc/c"].content == b"two"
    assert ("reload", f"{WEB}/server") not in world.acts
    world.boot()
    world.run(1_000)
    assert world.acts.count(("reload", f"{WEB}/server")) == 1


def test_changed_config_and_changed_digest_restart_without_a_reload() -> None:
    world = World("one", "two")
    reload = Reload(signal="HUP")
    world.offer({WEB: entry(units={"server": unit("1", config={"/c": "one"}, reload=reload)})})
    world.forget()
    world.offer({WEB: entry(units={"server": unit("2", config={"/c": "two"}, reload=reload)})})
    assert [act for act, _ in world.acts] == ["stop", "start"]


def test_live_fields_restart_nothing() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.forget()
    after = replace(unit(), health=Health(tcp="127.0.0.1:1"), stop_timeout_ms=1)
    world.offer({WEB: entry(units={"server": after})})
    assert world.acts == []
    assert world.report().state is EntryState.HEALTHY


def test_a_run_once_job_is_done_before_the_others_start_and_once() -> None:
    world = World()
    job = unit("m1", "run", run_once=True)
    world.offer({WEB: entry(units={"zz-migrate": job, "server": unit()})})
    assert world.acts == [("start", f"{WEB}/zz-migrate")]
    assert world.report().state is EntryState.APPLYING
    assert world.report().units[SERVER].state is UnitState.PENDING
    assert world.reports[-1].settled == OfferNumber(0, 0)
    world.host.processes.end(WEB, UnitName("zz-migrate"), code=0)
    world.run(2_000)
    assert world.acts[-1] == ("start", f"{WEB}/server")
    assert world.report().units[UnitName("zz-migrate")].state is UnitState.DONE
    assert world.report().state is EntryState.HEALTHY
    world.forget()
    world.boot()
    world.offer({WEB: entry(key="x", units={"zz-migrate": job, "server": unit("2")})})
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/server")]


def test_a_job_is_not_done_again_by_a_rollback() -> None:
    world = World()
    for version in ("1", "2", "1"):
        job = unit(f"m{version}", "exit", "0", run_once=True)
        world.offer({WEB: entry(units={"migrate": job, "server": unit(version)})})
    assert world.acts.count(("start", f"{WEB}/migrate")) == 2
    assert world.report().state is EntryState.HEALTHY


def test_a_job_that_fails_holds_its_entry_back_and_no_other() -> None:
    world = World()
    world.host.processes.say(WEB, UnitName("migrate"), "Traceback", "boom")
    job = unit("m", "exit", "3", run_once=True)
    world.offer(
        {WEB: entry(units={"migrate": job, "server": unit()}), DB: entry(units={"server": unit()})},
        run_ms=5_000,
    )
    report = world.report()
    assert report.state is EntryState.FAILED
    assert report.cause == "migrate: ended: exit 3"
    assert report.units[UnitName("migrate")].log_tail == ("Traceback", "boom")
    assert world.pid() is None
    assert world.report(DB).state is EntryState.HEALTHY


def test_a_unit_that_left_its_entry_is_stopped_before_a_new_one_starts() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.forget()
    world.offer({WEB: entry(units={"renamed": unit()})})
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{WEB}/renamed")]


def test_a_port_is_free_before_its_next_holder_starts() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()}, listens={"http": 8080})})
    world.forget()
    world.offer({DB: entry(units={"server": unit()}, listens={"sql": 8080})})
    assert world.acts == [("stop", f"{WEB}/server"), ("start", f"{DB}/server")]


def test_a_stop_that_fails_is_told_and_tried_again() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    error = HostBusyError("web does not end")
    world.host.faults.plan("stop", f"{WEB}/server", error, error, error)
    world.offer({}, run_ms=900)
    assert world.report().state is EntryState.FAILED
    assert world.report().cause == "stop of server: web does not end"
    world.run(2_000)
    assert world.pid() is None
    assert world.reports[-1].entries == {}


def test_a_start_that_is_refused_fails_its_entry_at_once_and_goes_on_trying() -> None:
    world = World()
    world.host.faults.plan("start", f"{WEB}/server", HostError("no account web"))
    world.offer({WEB: entry(units={"server": unit()})}, run_ms=150)
    assert world.report().state is EntryState.FAILED
    assert world.report().cause == "server: no account web"
    assert world.reports[-1].settled == OfferNumber(1, 1)
    world.run(500)
    assert world.pid() is not None
    world.run(15_000)
    assert world.report().state is EntryState.HEALTHY


def test_a_persons_stop_holds_through_offers_and_lives_until_a_start() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.tell(events.PersonStopped(at_ms=world.now, entry=WEB, stop=BY_ANA))
    assert world.report().state is EntryState.STOPPED
    assert world.report().units[SERVER].state is UnitState.STOPPED
    world.offer({WEB: entry(key="x", units={"server": unit("2")})})
    world.boot()
    world.run(60_000)
    assert world.pid() is None
    assert world.report().state is EntryState.STOPPED
    world.tell(events.PersonStarted(at_ms=world.now, entry=WEB, who="ana"), run_ms=2_000)
    assert world.pid() is not None
    assert world.report().state is EntryState.HEALTHY


def test_a_new_life_keeps_what_runs_with_or_without_a_ledger() -> None:
    world = World("one")
    declared = {WEB: entry(units={"server": unit(config={"/c": "one"})})}
    world.offer(declared)
    pid = world.pid()
    world.forget()
    world.boot()
    world.run(2_000)
    assert world.pid() == pid
    assert world.report().state is EntryState.HEALTHY
    world.host.files.state.clear()
    world.boot()
    world.offer(declared)
    assert world.pid() == pid
    assert world.acts == []
    assert world.report().units[SERVER].restarts == 0


def test_what_runs_undeclared_is_stopped_once_something_is_declared() -> None:
    """With a permit: that it is of no guarded set is known to nobody here."""
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.files.state.clear()
    world.boot()
    world.run(60_000)
    assert world.pid() is not None
    world.offer({})
    member = world.report().member
    assert member is not None
    assert member.permit is not None
    assert world.pid() is not None
    world.tell(events.Permitted(at_ms=world.now, permits={WEB: member.permit}), run_ms=2_000)
    assert world.pid() is None
    assert world.host.processes.observe() == ()


def test_after_the_machine_went_down_everything_is_started_again() -> None:
    """Those too that are not restarted when they end by themselves."""
    world = World()
    world.offer({WEB: entry(units={"server": unit(restart="no")})})
    world.host.processes.lose()
    world.boot()
    world.run(2_000)
    assert world.pid() is not None
    assert world.report().state is EntryState.HEALTHY


def test_a_unit_is_shown_what_other_entries_have_in_place_on_its_machine() -> None:
    """A consumer reaches its provider's socket; what is not there yet cannot be shown."""
    world = World("conf")
    world.offer({DB: entry(units={"server": unit()}, directories={"/run/db": DeclaredDirectory()})})
    world.offer(
        {
            DB: entry(units={"server": unit()}, directories={"/run/db": DeclaredDirectory()}),
            WEB: entry(units={"server": unit(config={"/etc/web.conf": "conf"})}),
        }
    )
    specs = {entry_id: run.spec for (entry_id, _, _), run in world.host.processes.runs.items()}
    assert specs[DB].paths == ("/run/db",)
    assert specs[WEB].paths == ("/etc/web.conf", "/run/db")


def test_a_port_that_somebody_else_holds_fails_the_unit_and_starts_nothing() -> None:
    """It is looked at ever more slowly, and starts once the port is free."""
    world = World()
    world.host.processes.foreign_ports.add(7)
    world.offer({WEB: entry(units={"server": unit()}, listens={"http": 7})})
    assert world.report().state is EntryState.FAILED
    assert world.report().cause == "server: port 7 is held by pid 7 (somebody else)"
    world.forget()
    world.run(120_000)
    looks = [each for each in world.effects if isinstance(each, effects.StartProcess)]
    assert len(looks) < 15
    assert world.acts == []
    world.host.processes.foreign_ports.clear()
    world.run(60_000)
    assert world.report().state is EntryState.HEALTHY
    assert world.report().units[SERVER].restarts == 0


def test_each_listen_is_judged_by_its_protocol() -> None:
    """One number may be of both; what is said to be of UDP is no port of TCP."""
    world = World()
    listens = {"game": 7, "api": 8, "query": 8}
    world.offer({WEB: entry(units={"server": unit()}, listens=listens, udp=("game", "query"))})
    (run,) = world.host.processes.runs.values()
    assert (run.spec.ports, run.spec.udp_ports) == ((8,), (7, 8))


def test_a_job_before_the_units_needs_no_port() -> None:
    world = World()
    world.host.processes.foreign_ports.add(7)
    units = {"job": unit("j", "exit", "0", run_once=True), "server": unit()}
    world.offer({WEB: entry(units=units, listens={"http": 7})})
    assert world.report().units[UnitName("job")].state is UnitState.DONE
