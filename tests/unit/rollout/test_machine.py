"""How a rollout goes on, ends and is told of."""

from typing import Any

from keyplane.model.declaration import EntryState, OfferNumber, Report, UnitState
from keyplane.model.names import EntryId, MachineName
from keyplane.rollout import deadlines, reckoning
from keyplane.rollout import machine as rollout
from keyplane.rollout import state as states
from keyplane.rollout.outcome import Fate, Lack, Outcome, Result
from keyplane.rollout.state import (
    Event,
    Finish,
    Offer,
    Offered,
    Phase,
    Reported,
    Started,
    State,
    Superseded,
    Ticked,
)
from tests.unit.rollout.values import edges, plan, planned, report, said, unit

BASE = plan(pg_alpha=planned(), web_alpha=planned(), cron_beta=planned(), log_gamma=planned())
TARGET = plan(pg_beta=planned(), web_alpha=planned("2"), cron_beta=planned(), log_gamma=planned())
BEFORE = {
    MachineName("alpha"): report("alpha", 1, 1, pg=said("1", pid=10), web=said("1", pid=11)),
    MachineName("beta"): report("beta", 1, 1, cron=said("1", pid=20)),
}


def begin(**given: Any) -> State:
    """PostgreSQL moves from alpha to beta, and web follows."""
    asked: dict[str, Any] = {
        "base": BASE,
        "base_edges": edges("web_alpha pg_alpha"),
        "target": TARGET,
        "target_edges": edges("web_alpha pg_beta"),
        "reports": BEFORE,
    }
    return rollout.begin(**(asked | given))


def run(state: State, *events: Event) -> tuple[State, list[Any]]:
    """The last state, and all effects, each event given twice to show that it may be."""
    effects: list[Any] = []
    for event in events:
        state, asked = rollout.step(state, event)
        effects.extend(asked)
        state, again = rollout.step(state, event)
        if not isinstance(event, Started):
            assert again == ()
    return state, effects


def offered(step: int, machine: str, number: int, now_ms: int = 0) -> Offered:
    return Offered(
        step=step, machine=MachineName(machine), offer=OfferNumber(1, number), now_ms=now_ms
    )


def told(one: Report, now_ms: int = 0) -> Reported:
    return Reported(report=one, now_ms=now_ms)


def outcome_of(effects: list[Any]) -> Outcome:
    (finish,) = [effect for effect in effects if isinstance(effect, Finish)]
    return finish.outcome


STEP_0 = (
    Started(now_ms=0),
    offered(0, "beta", 2),
    told(report("beta", 2, 2, cron=said("1", pid=20), pg=said("1", pid=21)), 100),
)
STEP_1 = (
    offered(1, "alpha", 2, 110),
    told(report("alpha", 2, 2, pg=said("1", pid=10), web=said("2", pid=12)), 200),
)
STEP_2 = (
    offered(2, "alpha", 3, 210),
    told(report("alpha", 3, 3, web=said("2", pid=12)), 300),
)


def test_a_rollout_goes_tier_by_tier_and_counts_what_it_did():
    """Each step is offered once the one before is healthy; the outcome counts processes."""
    state, effects = run(begin(), *STEP_0, *STEP_1, *STEP_2)
    offers = [effect for effect in effects if isinstance(effect, Offer)]
    assert [(offer.step, offer.machines) for offer in offers] == [
        (0, ("beta",)),
        (1, ("alpha",)),
        (2, ("alpha",)),
    ]
    assert state.phase is Phase.DONE
    assert state.sent == 3
    outcome = outcome_of(effects)
    assert outcome.result is Result.DONE
    assert outcome.unsent == ()
    assert outcome.counts == {
        Fate.STARTED: 1,
        Fate.RESTARTED: 1,
        Fate.RELOADED: 0,
        Fate.STOPPED: 1,
        Fate.APPLIED: 0,
        Fate.UNTOUCHED: 2,
        Fate.UNKNOWN: 0,
    }
    assert {entry: one.fate for entry, one in outcome.fates.items()} == {
        "pg:main@beta": Fate.STARTED,
        "web:main@alpha": Fate.RESTARTED,
        "pg:main@alpha": Fate.STOPPED,
    }


def test_no_difference_is_done_at_once():
    """A rollout of nothing offers nothing and ends."""
    state, effects = run(begin(target=BASE, target_edges=edges("web_alpha pg_alpha")), STEP_0[0])
    assert state.phase is Phase.DONE
    assert outcome_of(effects).counts[Fate.UNTOUCHED] == 4


def test_an_older_report_never_settles_a_newer_offer():
    """Healthy under another number, or said before what is known already, is no answer."""
    late = report("beta", 2, 1, cron=said("1"), pg=said("1"))
    for one in (
        report("beta", 1, 9, pg=said("1")),
        report("beta", 2, 9, settled=1, pg=said("1")),
        report("beta", 2, 9, pg=said("0")),
        report("beta", 2, 9, pg=said("1", EntryState.APPLYING)),
        report("beta", 2, 9, pg=said("1", EntryState.APPLIED)),
        report("beta", 2, 9),
    ):
        state, _ = run(begin(), *STEP_0[:2], told(one), told(late))
        assert (state.phase, state.step) == (Phase.WAITING, 0)
    state, _ = run(begin(), *STEP_0[:2], told(report("beta", 3, 2, pg=said("1"))))
    assert (state.phase, state.step) == (Phase.SENDING, 1)


def test_a_new_life_of_an_agent_counts_its_reports_anew():
    """A lower sequence of another life is newer; a late word of the old life is not."""
    reborn = report("beta", 2, 1, boot="b2", pg=said("1"))
    state, _ = run(begin(), *STEP_0[:2], told(report("beta", 2, 9, boot="b1")), told(reborn))
    assert state.step == 1
    state, _ = run(begin(), *STEP_0[:2], told(reborn))
    old = report("beta", 2, 1, boot="b1", pg=said("1", EntryState.FAILED))
    state, effects = run(state, told(old))
    assert state.phase is Phase.SENDING
    assert effects == []


def test_what_a_person_stopped_and_what_is_done_hold_nothing_up():
    """An entry stopped by hand passes, and one whose jobs have all run."""
    for one in (
        said("1", EntryState.STOPPED, pid=None, unit_state=UnitState.STOPPED),
        said("1", EntryState.APPLIED, pid=None, unit_state=UnitState.DONE),
    ):
        state, _ = run(begin(), *STEP_0[:2], told(report("beta", 2, 2, pg=one)))
        assert state.step == 1


def test_a_failed_entry_ends_the_rollout_with_its_cause_and_log():
    """Nobody waits for a deadline when the answer is there; what was not sent is named."""
    broken = said("1", EntryState.FAILED, pid=None, cause="exit 1", log_tail=("boom", "Traceback"))
    state, effects = run(begin(), *STEP_0[:2], told(report("beta", 2, 2, pg=broken), 50))
    assert state.phase is Phase.FAILED
    outcome = outcome_of(effects)
    (trouble,) = outcome.troubles
    assert (trouble.entry, trouble.unit, trouble.lack) == ("pg:main@beta", "main", Lack.SUCCESS)
    assert trouble.said == "main of pg:main@beta is failed: exit 1"
    assert trouble.log_tail == ("boom", "Traceback")
    assert outcome.sent == ("pg:main@beta",)
    assert outcome.unsent == ("pg:main@alpha", "web:main@alpha")
    assert outcome.why_unsent == "step 1 of 3 failed, and nothing was sent after it"
    assert outcome.ended_ms == 50


def test_a_failure_that_is_not_of_this_rollout_stops_nothing():
    """Another entry may fail; so may one whose live change was not applied yet."""
    ill = said("1", EntryState.FAILED, pid=None)
    state, _ = run(begin(), *STEP_0[:2], told(report("beta", 2, 2, cron=ill, pg=said("1"))))
    assert state.step == 1
    live = plan(web_alpha=planned(units={"main": unit("1", restart="no")}))
    state = begin(base=plan(web_alpha=planned()), base_edges=[], target=live, target_edges=[])
    state, _ = run(
        state, STEP_0[0], offered(0, "alpha", 2), told(report("alpha", 2, 2, settled=1, web=ill))
    )
    assert state.phase is Phase.WAITING
    state, _ = run(state, told(report("alpha", 2, 3, web=ill)))
    assert state.phase is Phase.FAILED


def test_an_entry_of_an_earlier_step_that_fails_later_stops_the_rollout():
    """What was switched has to stay well until the end."""
    dead = report("beta", 2, 3, pg=said("1", EntryState.FAILED, pid=None))
    state, _ = run(begin(), *STEP_0, offered(1, "alpha", 2, 110), told(dead, 120))
    assert (state.phase, state.step) == (Phase.WAITING, 1)  # alpha is still at work
    state, _ = run(state, Ticked(now_ms=120 + rollout.FAILING_MS))
    assert (state.phase, state.step) == (Phase.FAILED, 1)


def test_the_deadline_names_who_was_silent():
    """A machine that is off ends the rollout, by name; what it was sent is unknown."""
    state, effects = run(begin(), *STEP_0[:2], Ticked(now_ms=119_999))
    assert state.phase is Phase.WAITING
    assert deadlines.due_ms(state) == 120_000
    state, effects = run(state, Ticked(now_ms=120_000))
    assert state.phase is Phase.FAILED
    outcome = outcome_of(effects)
    assert outcome.silent == ("beta",)
    assert [trouble.lack for trouble in outcome.troubles] == [Lack.VOICE]
    assert outcome.counts[Fate.UNKNOWN] == 1


def test_progress_pushes_the_deadline_out_and_flapping_does_not():
    """Each thing that comes further does it once; so the end comes."""
    starting = said("1", EntryState.APPLIED, unit_state=UnitState.BACKING_OFF)
    state, _ = run(begin(), *STEP_0[:2], told(report("beta", 2, 2, pg=starting), 60_000))
    assert deadlines.due_ms(state) == 180_000
    state, _ = run(state, told(report("beta", 2, 3, pg=starting), 90_000))
    assert deadlines.due_ms(state) == 180_000
    state, effects = run(state, Ticked(now_ms=180_000))
    (trouble,) = outcome_of(effects).troubles
    assert trouble.said == "main of pg:main@beta is backing-off."
    assert outcome_of(effects).silent == ()


def test_what_units_say_of_their_own_start_is_added_to_the_deadline():
    """A database that says it needs five minutes has them."""
    slow = unit(health={"tcp": "h:1", "startPeriod": "5m"}, stop_timeout="10s")
    target = plan(pg_beta=planned(units={"main": slow}))
    state, _ = run(begin(base={}, base_edges=[], target=target, target_edges=[]), STEP_0[0])
    assert deadlines.due_ms(state) == 120_000 + 310_000


def test_a_refused_declaration_is_told():
    """Why a machine did not accept stands in the outcome."""
    refusing = Report(
        machine=MachineName("beta"),
        offer=OfferNumber(1, 1),
        settled=OfferNumber(1, 1),
        sequence=2,
        boot="b1",
        refused="unknown field x",
    )
    _, effects = run(begin(), *STEP_0[:2], told(refusing, 9), Ticked(now_ms=120_000))
    (trouble,) = outcome_of(effects).troubles
    assert trouble.lack is Lack.ACCEPTANCE
    assert trouble.said == "beta has not accepted 1.2; it has 1.1: unknown field x"


def test_offers_that_are_never_made_end_it_too():
    """A controller that cannot store an offer does not hang."""
    state, effects = run(begin(), STEP_0[0], Ticked(now_ms=120_000))
    assert state.phase is Phase.FAILED
    assert [trouble.lack for trouble in outcome_of(effects).troubles] == [Lack.OFFER]
    assert state.sent == 0


def test_a_late_word_of_an_earlier_offer_is_none_of_this_step():
    """The number that a machine had for the step before says nothing of this one."""
    late = offered(1, "alpha", 2, 210)
    state, effects = run(begin(), *STEP_0, *STEP_1, late)
    assert (state.phase, state.step) == (Phase.SENDING, 2)
    assert state.offered == frozenset()
    assert len(effects) == 3


def test_a_newer_rollout_takes_over():
    """What this one had not sent is named, and nothing more is asked for."""
    state, effects = run(begin(), *STEP_0, Superseded(now_ms=150))
    assert state.phase is Phase.SUPERSEDED
    outcome = outcome_of(effects)
    assert outcome.why_unsent == "a newer rollout took over"
    assert outcome.unsent == ("pg:main@alpha", "web:main@alpha")
    assert run(state, *STEP_1)[1] == []


def test_a_restart_in_the_middle_asks_for_what_is_open():
    """Saved before its effects: the offer is asked again; a finished one says so again."""
    state, _ = run(begin(), *STEP_0)
    resumed = states.decode(states.encode(state))
    assert resumed is not None
    assert resumed == state
    _, effects = rollout.step(resumed, Started(now_ms=500))
    assert effects == (Offer(step=1, machines=(MachineName("alpha"),)),)
    ended, first = run(begin(), *STEP_0, *STEP_1, *STEP_2)
    resumed = states.decode(states.encode(ended))
    assert resumed is not None
    _, again = rollout.step(resumed, Started(now_ms=900))
    assert list(again) == first[-1:]


def test_a_clock_that_was_set_back_between_two_lives_makes_nobody_silent():
    """The step began in what is now the future; who speaks after the restart has spoken."""
    day = 86_400_000
    began = run(begin(), Started(now_ms=day), offered(0, "beta", 2, day))[0]
    speaks = told(report("beta", 2, 2, cron=said("1", pid=20)), 600)
    state, effects = run(began, Started(now_ms=500), speaks, Ticked(now_ms=10 * day))
    assert state.phase is Phase.FAILED
    outcome = outcome_of(effects)
    assert outcome.silent == ()
    assert outcome.ended_ms - outcome.started_ms >= 0


def test_bytes_of_another_version_are_not_taken_for_a_rollout():
    """A newer release's rollout is not gone on with by guess."""
    saved = states.encode(begin())
    assert states.decode(saved.replace(b'"version":2', b'"version":3')) is None
    assert states.decode(b"{") is None
    assert states.decode(b'{"version":2}') is None


def test_the_edges_of_what_is_declared_now():
    """A controller that plans anew from the middle knows who uses what at this moment."""
    new = edges("web_alpha pg_beta")
    state, _ = run(begin(), *STEP_0[:2])
    assert [edge.provider for edge in rollout.edges(state, new)] == ["pg:main@alpha"]
    state, _ = run(state, STEP_0[2])
    assert [edge.provider for edge in rollout.edges(state, new)] == ["pg:main@beta"]


def test_reloads_and_jobs_are_counted_as_what_they_are():
    """A reload replaces no process; a job that ran again is a start."""
    base = plan(web_alpha=planned(), job_alpha=planned())
    live = planned(units={"main": unit("1", config_data={"/etc/a": "sha256-a"})})
    target = plan(web_alpha=live, job_alpha=planned("2"))
    ran = {"pid": None, "unit_state": UnitState.DONE}
    before = report("alpha", 1, 1, web=said("1"), job=said("1", **ran))
    after = report("alpha", 2, 2, web=said("1", reloads=1), job=said("2", **ran))
    state = begin(
        base=base,
        base_edges=[],
        target=target,
        target_edges=[],
        reports={MachineName("alpha"): before},
    )
    _, effects = run(state, STEP_0[0], offered(0, "alpha", 2), told(after))
    outcome = outcome_of(effects)
    assert outcome.fates[EntryId("web:main@alpha")].reloaded == ("main",)
    assert outcome.fates[EntryId("job:main@alpha")].started == ("main",)
    assert outcome.units == {
        Fate.STARTED: 1,
        Fate.RESTARTED: 0,
        Fate.RELOADED: 1,
        Fate.STOPPED: 0,
    }


def test_what_became_another_with_its_process_is_counted_and_no_untouched_one():
    """Applied live or under another key: once its machine tried all of it, and it is well."""
    base = plan(web_alpha=planned(), motd_alpha=planned(), cron_alpha=planned())
    live = planned(units={"main": unit("1", health={"tcp": "a:1"})})
    rekeyed = planned("2", units={"main": unit("1")})
    target = base | plan(web_alpha=live, motd_alpha=rekeyed)
    before = report("alpha", 1, 1, web=said("1"), motd=said("1"), cron=said("1"))
    state = begin(
        base=base,
        base_edges=[],
        target=target,
        target_edges=[],
        reports={MachineName("alpha"): before},
    )
    sent = (STEP_0[0], offered(0, "alpha", 2))
    taken = report("alpha", 2, 2, settled=1, web=said("1"), motd=said("2"), cron=said("1"))
    began, _ = run(state, *sent, told(taken))
    assert reckoning.applied(began, taken) == ()
    ill = said("2", EntryState.FAILED)
    failing = report("alpha", 2, 2, web=said("1"), motd=ill, cron=said("1"))
    assert reckoning.applied(began, failing) == ("web:main@alpha",)
    after = report("alpha", 2, 3, web=said("1"), motd=said("2"), cron=said("1"))
    _, effects = run(state, *sent, told(after))
    outcome = outcome_of(effects)
    assert {entry: one.fate for entry, one in outcome.fates.items()} == {
        "web:main@alpha": Fate.APPLIED,
        "motd:main@alpha": Fate.APPLIED,
    }
    assert (outcome.counts[Fate.APPLIED], outcome.counts[Fate.UNTOUCHED]) == (2, 1)


def test_what_was_never_seen_well_is_waited_for_by_the_next_rollout():
    """A rollout that takes over in the middle switches nobody to what may not run yet."""
    first, _ = run(begin(), *STEP_0[:2], Superseded(now_ms=50))
    assert rollout.unproven(first) == ("pg:main@beta",)
    base = BASE | plan(pg_beta=planned())
    second = begin(base=base, unproven=rollout.unproven(first))
    assert [step.awaited for step in second.steps] == [("pg:main@beta",), (), ()]
    second, effects = run(second, Started(now_ms=60), offered(0, "beta", 2, 60))
    assert second.phase is Phase.WAITING
    assert rollout.unproven(second) == ("pg:main@beta",)
    done, _ = run(second, STEP_0[2])
    assert (done.phase, done.step) == (Phase.SENDING, 1)
    assert rollout.unproven(done) == ("web:main@alpha",)
    ended, _ = run(begin(), *STEP_0, *STEP_1, *STEP_2)
    assert rollout.unproven(ended) == ()
    broken = report("beta", 2, 2, pg=said("1", EntryState.FAILED, pid=None))
    failed, effects = run(second, told(broken))
    assert [trouble.entry for trouble in outcome_of(effects).troubles] == ["pg:main@beta"]
    assert rollout.unproven(failed) == ("pg:main@beta",)
