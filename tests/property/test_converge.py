"""Whatever happens in whatever order, the agent's brain keeps its promises.

A machine in memory, driven one effect at a time: declarations, ends, failures, meddling, and
crashes of the agent between any two effects.
"""

from collections import deque
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keyplane.converge import effects, events, saved
from keyplane.model.declaration import (
    DeclaredDirectory,
    DeclaredEntry,
    EntryState,
    Health,
    Reload,
    UnitState,
)
from keyplane.model.host import PathKind
from keyplane.model.names import EntryId, UnitName
from keyplane.ports.host import HostBusyError, HostError
from tests.unit.converge.world import BY_ANA, World, digest, entry, unit

ENTRIES = [EntryId(f"{name}:main@alpha") for name in ("a", "b", "c")]
UNITS = ["job", "one", "two"]
TEXTS = ["red", "green", "blue"]
PATHS = ["/etc/x", "/etc/y", "/srv/d/z"]
ARCHIVES = ["tree 1", "tree 2"]
FOREIGN = {"/etc/foreign": b"f", "/srv/foreign/data": b"d"}

units = st.builds(
    lambda version, restart, config, health, archive: {
        "version": version,
        "restart": restart,
        "config": config,
        "health": health,
        "archive": archive,
    },
    st.sampled_from("123"),
    st.sampled_from(["always", "always", "on-failure"]),
    st.none() | st.sampled_from(TEXTS),
    st.booleans(),
    st.none() | st.sampled_from(ARCHIVES),
)


@st.composite
def declarations(draw: st.DrawFn) -> dict[EntryId, DeclaredEntry]:
    """Some entries, no two of which declare the same path."""
    free = set(PATHS)
    declared: dict[EntryId, DeclaredEntry] = {}
    for name in draw(st.lists(st.sampled_from(ENTRIES), unique=True)):
        files = {
            path: draw(st.sampled_from(TEXTS))
            for path in draw(
                st.lists(st.sampled_from(sorted(free)), unique=True) if free else st.just([])
            )
        }
        free -= files.keys()
        made = {}
        for each in draw(st.lists(st.sampled_from(UNITS), unique=True)):
            drawn = draw(units)
            config = {} if drawn["config"] is None else {f"/c/{name}/{each}": drawn["config"]}
            fields: dict[str, Any] = {"restart": drawn["restart"]}
            if drawn["health"] and each != "job":
                fields["health"] = Health(tcp="127.0.0.1:1")
            if each == "job":
                fields["run_once"] = True
                made[each] = unit(f"{each}{drawn['version']}", "exit", "0", config=config, **fields)
                continue
            archive = None if drawn["archive"] is None else digest(drawn["archive"])
            version = f"{each}{drawn['version']}{drawn['archive']}"
            made[each] = unit(
                version, config=config, archive=archive, reload=Reload(signal="HUP"), **fields
            )
        directories = {}
        archives = {}
        if draw(st.booleans()):
            directories[f"/srv/{name}"] = DeclaredDirectory(keep=draw(st.booleans()))
        if draw(st.booleans()):
            archives[f"/opt/{name}"] = draw(st.sampled_from(ARCHIVES))
        declared[name] = replace(
            entry(
                key=str(draw(st.integers(0, 3))),
                units=made,
                files=files,
                directories=directories,
                archives=archives,
            ),
            listens={"http": draw(st.sampled_from([8001, 8002]))} if draw(st.booleans()) else {},
        )
    return declared


FAULTS = (
    [("write", path) for path in PATHS]
    + [("start", f"{e}/{u}") for e in ENTRIES for u in UNITS]
    + [("stop", f"{e}/{u}") for e in ENTRIES for u in UNITS]
    + [("reload", f"{e}/{u}") for e in ENTRIES for u in UNITS]
    + [("fetch", digest(text)) for text in ARCHIVES]
    + [("unpack", f"/opt/{e}") for e in ENTRIES]
    + [("remove", path) for path in PATHS]
)

happenings = st.one_of(
    st.tuples(st.just("offer"), declarations()),
    st.tuples(st.just("offer"), declarations()),
    st.tuples(st.just("work"), st.integers(1, 12)),
    st.tuples(st.just("work"), st.integers(1, 12)),
    st.tuples(st.just("late"), st.integers(1, 5)),
    st.tuples(st.just("crash"), st.sampled_from(["whole", "whole", "ledger", "declaration"])),
    st.tuples(st.just("wait"), st.sampled_from([50, 500, 5_000, 40_000])),
    st.tuples(
        st.just("end"),
        st.tuples(
            st.sampled_from(ENTRIES), st.sampled_from(UNITS), st.integers(0, 1), st.booleans()
        ),
    ),
    st.tuples(st.just("fault"), st.tuples(st.sampled_from(FAULTS), st.booleans())),
    st.tuples(st.just("person"), st.tuples(st.sampled_from(ENTRIES), st.booleans())),
    st.tuples(st.just("meddle"), st.sampled_from(PATHS)),
    st.tuples(st.just("power"), st.none()),
)


class Trial:
    """A world in which effects are carried out one by one, or not at all before a crash."""

    def __init__(self) -> None:
        self.world = World(*TEXTS)
        for path, content in FOREIGN.items():
            self.world.host.files.put(path, content)
        self.world.host.artifacts.stored.update(map(digest, ARCHIVES))
        self.undone: deque[effects.Effect] = deque()
        self.done: deque[events.Event] = deque()
        """Answers that are late."""
        self.declared: dict[EntryId, DeclaredEntry] = {}
        self.lost_ledger = False
        self.pids: dict[tuple[EntryId, UnitName], int | None] = {}

    def work(self, steps: int) -> None:
        """Take in what came, or carry out an effect."""
        world = self.world
        for _ in range(steps):
            world.hear()
            if world.inbox:
                self.undone.extend(world.step(world.inbox.popleft()))
            elif self.undone:
                self.perform(self.undone.popleft())
            self.check()

    def perform(self, effect: effects.Effect) -> None:
        """Carried out; nothing that runs as declared may be touched by it."""
        before = self.running()
        self.world.perform(effect)
        match effect:
            case effects.StopProcess(entry=of, unit=name, digest=stopped):
                declared = self.declared.get(of)
                wanted = None if declared is None else declared.units.get(name)
                by_person = of in self.world.state.ledger.stops
                if wanted is not None and wanted.digest == stopped and not by_person:
                    # It was asked for before the last offer or start came.
                    assert self.asked_before(effect), f"{of}/{name} runs as declared"
            case _:
                after = self.running()
                gone = {key for key in before if before[key] != after.get(key)}
                assert not gone, f"{type(effect).__name__} touched {gone}"

    def asked_before(self, effect: effects.Effect) -> bool:
        return effect in self.stale

    stale: tuple[effects.Effect, ...] = ()

    def running(self) -> dict[tuple[EntryId, UnitName], tuple[int | None, ...]]:
        return {
            key: tuple(each.pid for each in found)
            for key, found in self.world.host.running().items()
        }

    def check(self) -> None:
        for key, found in self.world.host.running().items():
            assert len(found) == 1, f"{key} runs twice"
        files = self.world.host.files
        for path, content in FOREIGN.items():
            assert files.nodes[path].content == content

    def happen(self, what: str, how: Any) -> None:
        world = self.world
        match what:
            case "offer":
                self.stale = tuple(self.undone)
                self.declared = how
                world.counter += 1
                offered = world.declaration(how, world.counter)
                world.inbox.append(events.Offered(at_ms=world.now, declaration=offered))
                self.work(1)
            case "work":
                self.work(how)
            case "late":
                self.undone.rotate(-how)
            case "crash":
                self.crash(how)
            case "wait":
                self.work(200)
                world.run(how)
            case "end":
                of, name, code, unseen = how
                world.host.processes.end(of, UnitName(name), code=code, unseen=unseen)
            case "fault":
                (call, subject), permanent = how
                error = HostError("refused") if permanent else HostBusyError("not now")
                world.host.faults.plan(call, subject, error)
            case "person":
                of, stop = how
                self.stale = tuple(self.undone)
                world.inbox.append(
                    events.PersonStopped(at_ms=world.now, entry=of, stop=BY_ANA)
                    if stop
                    else events.PersonStarted(at_ms=world.now, entry=of, who="ana")
                )
            case "meddle":
                owned = world.state.ledger.paths.get(how)
                if owned is not None and owned.applied:
                    world.host.files.put(how, b"meddled")
            case "power":
                world.host.processes.lose()
                self.crash("whole")
            case _:
                raise AssertionError(what)
        self.check()

    def crash(self, how: str) -> None:
        """The agent dies: what was asked and not begun is never done."""
        self.undone.clear()
        self.stale = ()
        state = self.world.host.files.state
        if how != "whole" and how in state:
            state[how] = state[how][: len(state[how]) // 2]
        self.world.boot()
        # The controller offers again what it has, as it does to whoever asks with less.
        if self.world.counter:
            offered = self.world.declaration(self.declared, self.world.counter)
            self.world.inbox.append(events.Offered(at_ms=self.world.now, declaration=offered))

    def settle(self) -> None:
        """Nothing more happens, and nothing fails."""
        self.world.host.faults.heal()
        self.work(500)
        assert not self.undone
        self.world.run(120_000)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(happenings, max_size=25))
def test_whatever_happens_it_converges_and_harms_nothing(story: list[tuple[str, Any]]) -> None:
    trial = Trial()
    for what, how in story:
        trial.happen(what, how)
    trial.settle()
    world, host = trial.world, trial.world.host
    stopped = set(world.state.ledger.stops)
    up = host.running()
    for of, declared in trial.declared.items():
        refused = {
            path
            for path in (*declared.files, *(p for u in declared.units.values() for p in u.config))
            if host.files.observe(path).kind is PathKind.FILE
            and path not in world.state.ledger.paths
        }
        assert not refused or any(how == "ledger" for what, how in story if what == "crash")
        report = world.report(of)
        assert report.key == declared.key
        if refused:
            assert report.state is EntryState.FAILED
            continue
        for path, file in declared.files.items():
            assert host.files.observe(path).digest == file.digest
        for path, archive in declared.archives.items():
            assert host.files.observe(path).digest == archive.digest
        for path in declared.directories:
            assert host.files.observe(path).kind is PathKind.DIRECTORY
        for name, each in declared.units.items():
            told = report.units[name].state
            found = up.get((of, name), [])
            if of in stopped:
                assert told is UnitState.STOPPED
                assert not found
            elif each.run_once or told is UnitState.DONE:
                assert told is UnitState.DONE
                assert not found
            else:
                assert told is UnitState.HEALTHY
                assert [run.digest for run in found] == [each.digest]
                for path, config in each.config.items():
                    assert host.files.observe(path).digest == config.digest
        assert report.state is (EntryState.STOPPED if of in stopped else EntryState.HEALTHY)
    assert {of for of, _ in up} <= trial.declared.keys()
    assert set(world.reports[-1].entries) == set(trial.declared)
    assert set(world.state.ledger.paths) <= set(world.state.declared_at)
    nobodys = [
        path
        for path in host.files.nodes
        if path.startswith(("/etc/x", "/etc/y", "/c/", "/opt/"))
        and path not in world.state.declared_at
    ]
    assert not nobodys or any(how == "ledger" for what, how in story if what == "crash")
    # A second pass has nothing to do.
    world.forget()
    world.run(65_000)
    assert world.asked == []
    if world.counter:
        assert world.reports[-1].settled == world.reports[-1].offer == world.state.ledger.offer


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(declarations(), declarations(), st.integers(0, 60))
def test_a_unit_whose_digest_stays_keeps_its_process(
    first: dict[EntryId, DeclaredEntry], second: dict[EntryId, DeclaredEntry], crash_at: int
) -> None:
    """Through a crash between any two effects, too."""
    trial = Trial()
    trial.happen("offer", first)
    trial.settle()
    before = trial.running()
    trial.happen("offer", second)
    trial.work(crash_at)
    trial.crash("whole")
    trial.settle()
    after = trial.running()
    kept = 0
    for (of, name), pids in before.items():
        if of in second and name in second[of].units:
            if second[of].units[name].digest == first[of].units[name].digest:
                assert after[of, name] == pids
                kept += 1
            else:
                assert after.get((of, name)) != pids
    assert len(after) >= kept


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(declarations(), st.integers(1, 80))
def test_what_is_saved_is_read_back_as_it_was(
    declared: dict[EntryId, DeclaredEntry], steps: int
) -> None:
    trial = Trial()
    trial.happen("offer", declared)
    trial.work(steps)
    ledger, declaration = trial.world.state.ledger, trial.world.state.declaration
    assert declaration is not None
    assert saved.decode_ledger(saved.encode_ledger(ledger)) == ledger
    assert saved.decode_declaration(saved.encode_declaration(declaration)) == declaration
