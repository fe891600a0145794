"""Whose data goes where, and in which order."""

from dataclasses import replace
from typing import Any

from keyplane.model.declaration import EntryReport, EntryState
from keyplane.model.names import EntryId
from keyplane.model.volumes import (
    Backup,
    Choice,
    OrderKind,
    Saved,
    SavedVolume,
    VolumeOrder,
    VolumesReport,
)
from keyplane.rollout import deadlines, tiers, volumes
from keyplane.rollout import machine as rollout
from keyplane.rollout.planned import Planned
from keyplane.rollout.policies import Rule, Terms
from keyplane.rollout.state import Missed, Offered, Phase, Reported, Started, State, Ticked
from keyplane.rollout.volumes import Arrival, Chosen, Give
from tests.unit.rollout.values import digest, edges, names, plan, planned, report, said

DATA = {"data": {"path": "/var/lib/pg"}}
ALPHA, BETA, GAMMA = (EntryId(f"pg:main@{name}") for name in ("alpha", "beta", "gamma"))
Plan = dict[EntryId, Planned]


def at(*machines: str) -> Plan:
    return plan(**{f"pg_{machine}": planned(machine, volumes=DATA) for machine in machines})


def asked(base: Plan, target: Plan, *orders: VolumeOrder, copies: Any = ()) -> list[Any]:
    found = volumes.arrivals(base, target, orders, copies)
    return [(each.to, each.source) for each in found]


def order(entry: EntryId, kind: OrderKind, number: int, **given: Any) -> VolumeOrder:
    held = {"data": "/var/lib/pg"}
    return VolumeOrder(
        entry=entry, kind=kind, number=number, who="ann", at_ms=1, volumes=held, **given
    )


def decided(base: Plan, target: Plan, choice: Choice, *orders: VolumeOrder) -> Any:
    arrivals = volumes.arrivals(base, target, orders, ())
    chosen = {each.to: Chosen(choice=choice) for each in arrivals}
    return volumes.decide(base, target, orders, arrivals, chosen, number=10, who="ann", at_ms=1)


def test_a_move_is_asked_about_and_nothing_else_is() -> None:
    assert asked(at("alpha"), at("beta")) == [(BETA, ALPHA)]
    assert asked(at(), at("alpha")) == []
    assert asked(at("alpha"), at()) == []
    assert asked(at("alpha"), at("alpha", "beta")) == []
    assert asked(at("alpha", "beta"), at("beta", "gamma")) == [(GAMMA, ALPHA)]
    bare = plan(pg_beta=planned("beta"))
    assert asked(at("alpha"), bare) == []


def test_what_was_said_once_is_not_asked_again() -> None:
    """A rollout that was cut off goes on with the same orders."""
    take = order(BETA, OrderKind.TAKE, 10, other=ALPHA)
    give = order(ALPHA, OrderKind.GIVE, 10, other=BETA)
    for base in (at("alpha"), at("alpha", "beta")):
        assert asked(base, at("beta"), take, give) == []
        found = volumes.transfers(base, at("beta"), (take, give))
        assert found.gives == {ALPHA: Give(to=BETA, number=10)}
        assert found.takes == {BETA: 10}
    saved = replace(take, contents={"/var/lib/pg": digest("x")})
    found = volumes.transfers(at("alpha"), at("beta"), (saved, give))
    assert (found.gives, found.takes) == ({}, {BETA: 10})


def test_who_comes_back_before_its_data_went_on_goes_on_with_it() -> None:
    """Nobody else can have written anything: nothing is asked, and nothing is copied."""
    take = order(BETA, OrderKind.TAKE, 10, other=ALPHA)
    give = order(ALPHA, OrderKind.GIVE, 10, other=BETA)
    base = at("alpha", "beta")
    assert asked(base, at("alpha"), take, give) == []
    change = decided(base, at("alpha"), Choice.EMPTY, take, give)
    (kept,) = change.put
    assert (kept.entry, kept.kind, kept.keeps, kept.number) == (ALPHA, OrderKind.TAKE, True, 10)
    assert change.drop == (take, give)


def test_who_comes_back_after_its_data_went_on_is_asked_about() -> None:
    """The other has it now, and may have written more."""
    give = order(ALPHA, OrderKind.GIVE, 10, other=BETA)
    taken = order(BETA, OrderKind.TAKE, 10, other=ALPHA, contents={"/var/lib/pg": digest("x")})
    for orders in ((give,), (give, taken)):
        assert asked(at("alpha", "beta"), at("alpha"), *orders) == [(ALPHA, BETA)]
    change = decided(at("alpha", "beta"), at("alpha"), Choice.HAND_OVER, give)
    (take,) = change.put
    assert (take.entry, take.other, take.contents) == (ALPHA, BETA, None)
    assert change.drop == (give,)


def test_who_gives_on_what_is_still_to_come_gets_it_first() -> None:
    """Else he would give what he has: nothing."""
    give = order(ALPHA, OrderKind.GIVE, 10, other=BETA)
    ready = order(BETA, OrderKind.TAKE, 10, other=ALPHA, contents={"/var/lib/pg": digest("x")})
    change = decided(at("beta"), at("gamma"), Choice.HAND_OVER, give, ready)
    assert [(each.entry, each.other) for each in change.put] == [(GAMMA, BETA)]
    assert change.drop == (give,)
    after = volumes.after((give, ready), change)
    again = decided(at("beta", "gamma"), at("gamma"), Choice.HAND_OVER, *after)
    assert again.drop == ()


def test_an_entry_that_goes_on_to_a_third_place_takes_from_who_has_the_data() -> None:
    take = order(BETA, OrderKind.TAKE, 10, other=ALPHA)
    give = order(ALPHA, OrderKind.GIVE, 10, other=BETA)
    assert asked(at("alpha", "beta"), at("gamma"), take, give) == [(GAMMA, ALPHA)]
    assert asked(at("alpha", "beta"), at("gamma"), give) == [(GAMMA, BETA)]


def test_a_machine_that_has_an_old_copy_is_asked_about() -> None:
    assert asked(at(), at("alpha"), copies=[ALPHA]) == [(ALPHA, None)]


def test_contents_follow_the_names_of_volumes() -> None:
    """Where a volume has another path, or is new, at the new place."""
    held = {"data": "/srv/data", "logs": "/srv/logs"}
    arrival = Arrival(to=BETA, source=ALPHA, volumes=held)
    saved = SavedVolume(name="data", path="/var/lib/pg", digest=digest("x"), size=1)
    backup = Backup(number=3, entry=ALPHA, at_ms=1, who="ann", why="backup", volumes=(saved,))
    chosen = {BETA: Chosen(choice=Choice.RESTORE, backup=backup)}
    change = volumes.decide(
        at("alpha"), at("beta"), (), (arrival,), chosen, number=10, who="ann", at_ms=1
    )
    assert change.put[0].contents == {"/srv/data": digest("x"), "/srv/logs": None}


def test_who_gives_stops_before_who_takes_starts_and_goes_last() -> None:
    base = at("alpha") | plan(web_beta=planned("1"))
    target = at("beta") | plan(web_beta=planned("2"))
    steps = tiers.tiers(
        base,
        edges("web_beta pg_alpha"),
        target,
        edges("web_beta pg_beta"),
        gives={ALPHA: Give(to=BETA, number=10)},
    )
    shown = [(names(step.yielded), names(step.switched), names(step.removed)) for step in steps]
    assert shown == [
        (["pg_alpha"], [], []),
        ([], ["pg_beta"], []),
        ([], ["web_beta"], []),
        ([], [], ["pg_alpha"]),
    ]


def test_nothing_stops_for_a_successor_that_is_only_recorded() -> None:
    steps = tiers.tiers(
        at("alpha"),
        [],
        at("beta"),
        [],
        recorded={BETA: ""},
        gives={ALPHA: Give(to=BETA, number=10)},
    )
    assert all(step.held for step in steps)


def begin() -> State:
    transfers = volumes.Transfers(gives={ALPHA: Give(to=BETA, number=10)}, takes={BETA: 10})
    return rollout.begin(
        base=at("alpha"),
        base_edges=[],
        target=at("beta"),
        target_edges=[],
        reports={},
        terms=Terms(transfers=transfers, rules={"pg": Rule(rolls_back=True)}),
    )


def run(state: State, *happened: Any) -> State:
    for event in happened:
        state, _ = rollout.step(state, event)
    return state


def offered(state: State, machine: str, number: int, now_ms: int) -> Offered:
    made = report(machine, number, 1).offer
    return Offered(
        step=state.step,
        machine=report(machine, 0, 1).machine,
        offer=made,
        now_ms=now_ms,
        back=state.back,
    )


def gave(number: int) -> EntryReport:
    stored = {"/var/lib/pg": Saved(digest=digest("x"), size=1)}
    return EntryReport(
        state=EntryState.STOPPED,
        key=digest("alpha"),
        volumes=VolumesReport(saved=number, given=number, volumes=stored),
    )


def test_the_next_step_is_sent_once_the_data_is_given_under_that_number() -> None:
    state = run(begin(), Started(now_ms=0))
    state = run(state, offered(state, "alpha", 1, 1))
    assert (state.phase, state.step) == (Phase.WAITING, 0)
    state = run(state, Reported(report=report("alpha", 1, 1, pg=gave(9)), now_ms=2))
    assert state.step == 0
    state = run(state, Reported(report=report("alpha", 1, 2, pg=gave(10)), now_ms=3))
    assert (state.phase, state.step) == (Phase.SENDING, 1)


def test_data_on_its_way_has_hours_and_a_machine_that_falls_silent_has_not() -> None:
    state = run(begin(), Started(now_ms=0))
    state = run(state, offered(state, "alpha", 1, 1))
    state = run(state, Ticked(now_ms=state.patience_ms[0] + 1_000))
    assert state.phase is Phase.WAITING
    assert deadlines.due_ms(state) == 1 + state.patience_ms[0] + deadlines.DATA_MS
    away = frozenset({report("alpha", 0, 1).machine})
    state = run(state, Missed(absent=away, now_ms=state.patience_ms[0] + 2_000))
    assert run(state, Ticked(now_ms=state.patience_ms[0] + 2_000)).phase is not Phase.WAITING


def test_a_rollback_lets_who_gave_go_on_with_its_data() -> None:
    """Its step is taken back too, and has passed once it is well again."""
    state = run(begin(), Started(now_ms=0))
    state = run(state, offered(state, "alpha", 1, 1))
    state = run(state, Reported(report=report("alpha", 1, 2, pg=gave(10)), now_ms=3))
    state = run(state, offered(state, "beta", 1, 4))
    failed = said("beta", EntryState.FAILED)
    state = run(state, Reported(report=report("beta", 1, 1, pg=failed), now_ms=5))
    state = run(state, Ticked(now_ms=10_000))
    assert (state.phase, state.step) == (Phase.RECALLING, 1)
    state = run(state, offered(state, "beta", 2, 10_001))
    state = run(state, Reported(report=report("beta", 2, 2), now_ms=10_002))
    assert (state.phase, state.step, state.back) == (Phase.RECALLING, 0, True)
    state = run(state, offered(state, "alpha", 2, 10_003))
    state = run(state, Reported(report=report("alpha", 2, 3, pg=gave(10)), now_ms=10_004))
    assert state.phase is Phase.RETURNING
    back = report("alpha", 2, 4, pg=said("alpha"))
    assert run(state, Reported(report=back, now_ms=10_005)).phase is Phase.ROLLED_BACK
