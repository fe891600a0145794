"""Takes each guard out of the product, so that a promise of the simulator is broken.

    python -m tests.simulation.mutants

looks anew for a seed that finds each, and writes it down: a test that has one takes a moment.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import nacl.signing
import pytest

from keyplane import wire
from keyplane.converge import (
    backoff,
    brain,
    caching,
    dynamic,
    effects,
    folding,
    handing,
    paths,
    permits,
    persons,
    processes,
    reaction,
    reaction_limits,
    saved,
    saving,
    units,
)
from keyplane.converge import volumes as converge_volumes
from keyplane.converge.reaction_state import News, Sounded, Told
from keyplane.documents import edits, rewriting
from keyplane.model.names import EntryId
from keyplane.parts import (
    agent,
    agent_effects,
    by_facts,
    controller,
    cordoning,
    fact_plans,
    fact_victims,
    knowing,
    offering,
    planning,
    revising,
    rolling,
    rolling_state,
    rollouts,
)
from keyplane.ports import fact_order
from keyplane.rollout import deadlines, failing, gate, machine, reckoning, refuges, volumes, waves
from keyplane.rollout import permits as rollout_permits
from keyplane.rollout.state import Phase, encode
from keyplane.rollout.transitions import Turn
from keyplane.testing import inventory
from keyplane.testing.simulation import run
from tests.simulation.seeds import JOBS, SEEDS

Patch = pytest.MonkeyPatch


def accepts_older_offers(patch: Patch) -> None:
    patch.setattr(brain, "_refusal", lambda state, offered: None)


def never_stops_strays(patch: Patch) -> None:
    patch.setattr(units, "running", lambda live: [])


def stops_before_the_new_one_is_well(patch: Patch) -> None:
    patch.setattr(handing, "is_well", lambda draft, entry, unit, declared: True)


def takes_over_from_nobody(patch: Patch) -> None:
    patch.setattr(handing, "successor", lambda draft, entry, wanted, unit: None)


def acts_before_it_saves(patch: Patch) -> None:
    patch.setattr(agent.Agent, "_save", lambda self: None)


def saves_the_ledger_alone(patch: Patch) -> None:
    def save(self) -> None:
        content = saved.encode_ledger(self._state.ledger)
        self._host.files.write_state({saved.LEDGER: content})

    patch.setattr(agent.Agent, "_save", save)


def offers_the_former_target(patch: Patch) -> None:
    take_up = rolling.Rolling._take_up

    def stuck(self, row, state, target) -> None:
        take_up(self, row, state, self._target or target)

    patch.setattr(rolling.Rolling, "_take_up", stuck)


def lets_a_late_report_stand(patch: Patch) -> None:
    held = agent.Agent._held
    patch.setattr(agent.Agent, "_held", lambda self: replace(held(self), told=0))


def begins_with_older_reports(patch: Patch) -> None:
    read = rolling.Rolling._reports

    async def older(self):
        reports, self.earlier = getattr(self, "earlier", {}), await read(self)
        return reports

    patch.setattr(rolling.Rolling, "_reports", older)


def waits_for_ever(patch: Patch) -> None:
    patch.setattr(deadlines, "due_ms", lambda state: None)


def forgets_stops(patch: Patch) -> None:
    begin = brain.begin

    def forgetful(*, earlier, **more):
        ledger = earlier.ledger and replace(earlier.ledger, stops={})
        return begin(earlier=replace(earlier, ledger=ledger), **more)

    patch.setattr(brain, "begin", forgetful)


def counts_occurrences_anew(patch: Patch) -> None:
    begin = brain.begin

    def forgetful(*, earlier, **more):
        history = earlier.history and replace(earlier.history, last=0, kept=())
        return begin(earlier=replace(earlier, history=history), **more)

    patch.setattr(brain, "begin", forgetful)


def writes_over_foreign_files(patch: Patch) -> None:
    patch.setattr(paths, "_judge_foreign", lambda spec, seen: paths.Verdict(paths.Act.APPLY))


def tidies_parents(patch: Patch) -> None:
    remove = paths.remove_leftovers

    def tidy(draft, entry, standing) -> None:
        for path in draft.leftovers(entry):
            parent = path.rpartition("/")[0]
            draft.attempt(entry, effects.RemovePath(entry=entry, path=parent))
        remove(draft, entry, standing)

    patch.setattr(paths, "remove_leftovers", tidy)


def removes_volumes(patch: Patch) -> None:
    own = paths.Draft.own

    def unkept(self, path, owned, **named) -> None:
        own(self, path, replace(owned, found=False, spec=replace(owned.spec, keep=False)), **named)

    patch.setattr(paths.Draft, "own", unkept)


def restarts_where_a_reload_would_do(patch: Patch) -> None:
    keep = units._keep

    def restarted(draft, unit, standing) -> None:
        memory = draft.unit_memory(unit.entry, unit.name)
        if memory is not None and memory.loaded not in (None, unit.config) and unit.reloadable:
            live = draft.unit_live(unit.entry, unit.name)
            units._stop(draft, live.processes[unit.declared.digest], standing)
            return
        keep(draft, unit, standing)

    patch.setattr(units, "_keep", restarted)


def hears_of_no_end(patch: Patch) -> None:
    patch.setattr(processes, "ended", lambda draft, process, tail: None)


def waits_for_no_provider(patch: Patch) -> None:
    patch.setattr(gate, "machine_lacks", lambda state, machine: ())


def plans_on_what_was(patch: Patch) -> None:
    async def sent(inventory):
        return planning.Sent(rollout=0, steps=0)

    patch.setattr(planning.Sent, "__eq__", lambda self, other: True)
    patch.setattr(rolling_state, "now_sent", sent)


def writes_without_the_lease(patch: Patch) -> None:
    patch.setattr(inventory.MemoryInventory, "_write", inventory.MemoryInventory._read)


def makes_up_for_no_hint(patch: Patch) -> None:
    async def deaf(self, machine, payload) -> None:
        self._hearing.heard(machine)

    patch.setattr(controller.Controller, "on_beat", deaf)


def lets_go_of_what_is_declared(patch: Patch) -> None:
    def all_of_it(draft) -> None:
        for digest in sorted(draft.artifacts) if draft.looked else ():
            draft.attempt(EntryId(""), effects.LetGo(digest=digest))

    patch.setattr(caching, "let_go", all_of_it)


def starts_before_all_is_fetched(patch: Patch) -> None:
    converge_unit = units._converge_unit

    def hasty(draft, unit, standing) -> None:
        converge_unit(draft, replace(unit, ready=True), standing)

    patch.setattr(units, "_converge_unit", hasty)


def heeds_every_word_as_a_start(patch: Patch) -> None:
    patch.setattr(
        persons, "stop", lambda draft, entry, said, here: here and draft.stops.update({entry: said})
    )


def says_without_a_record(patch: Patch) -> None:
    say = inventory.MemoryInventory.say

    async def secretly(self, entry, **named):
        word = await say(self, entry, **named)
        self._write().audit.pop()
        return word

    patch.setattr(inventory.MemoryInventory, "say", secretly)


def sets_all_alike(patch: Patch) -> None:
    rewrite = rewriting.rewrite

    def generous(files, steps):
        made = rewrite(files, steps)
        assert not isinstance(made, edits.Refused)
        also = made["fleet.json"].replace(b'"settle": "3s"', b'"settle": "4s"')
        return {**made, "fleet.json": also}

    patch.setattr(rewriting, "rewrite", generous)


def rolls_back_to_the_oldest(patch: Patch) -> None:
    patch.setattr(revising, "_chosen", lambda named, kept: kept[-1])


def tries_at_once(patch: Patch) -> None:
    patch.setattr(backoff, "delay_ms", lambda failures: 10)


def tells_no_cause(patch: Patch) -> None:
    unstartable = processes.unstartable

    def plainly(draft, spec, failure) -> None:
        unstartable(draft, spec, replace(failure, cause="it could not be started"))

    patch.setattr(processes, "unstartable", plainly)


def sees_drift_everywhere(patch: Patch) -> None:
    patch.setattr(paths, "_drift", lambda owned, seen: "looked odd")


def forgets_what_was_loaded(patch: Patch) -> None:
    observed = folding._observed

    def forgetful(draft, event):
        found = list(observed(draft, event))
        for entry in found:
            memory = draft.memory(entry)
            for name, unit in (memory.units if memory else {}).items():
                if unit.loaded:
                    draft.remember(entry, name, replace(unit, loaded={}))
        return found

    patch.setattr(folding, "_observed", forgetful)


def believes_the_wall_clock(patch: Patch) -> None:
    patch.setattr(rolling.Rolling, "_now_ms", lambda self: self._clock.now_ms())


def trusts_lost_answers(patch: Patch) -> None:
    patch.setattr(rolling.Rolling, "_forget", lambda self: None)


def takes_equal_numbers_for_equal(patch: Patch) -> None:
    patch.setattr(offering, "has", lambda last, number, generation: number == last.offer)


def keeps_to_numbers_of_a_backup(patch: Patch) -> None:
    patch.setattr(offering.Offering, "heard", lambda self, machine, has: None)


def begins_a_lost_fleet_in_steps(patch: Patch) -> None:
    first = rolling_state.first_state
    patch.setattr(
        rolling_state,
        "first_state",
        lambda stored, base, _, *rest: first(stored, base, stored, *rest),
    )


def signs_with_another_key(patch: Patch) -> None:
    sign, other = wire.sign, nacl.signing.SigningKey.generate()
    patch.setattr(wire, "sign", lambda declaration, key: sign(declaration, other))


def raises_port_errors(patch: Patch) -> None:
    async def bare(self, effect):
        return await self._perform(effect, effects.resource(effect))

    patch.setattr(agent_effects.Performer, "perform", bare)


def forgets_who(patch: Patch) -> None:
    commit = inventory.MemoryInventory.commit

    async def secretly(self, *given, change=None, **named):
        row = await commit(self, *given, change=change, **named)
        if change is not None:
            self._write().audit.pop()
        return row

    patch.setattr(inventory.MemoryInventory, "commit", secretly)


def sends_to_all_at_once(patch: Patch) -> None:
    patch.setattr(waves, "_allowed", lambda rounds, is_paced: float("inf"))


def restarts_any_number(patch: Patch) -> None:
    parts = waves._parts
    patch.setattr(
        waves,
        "_parts",
        lambda loads, order, limits, *rest: parts(loads, order, dict.fromkeys(limits, 9), *rest),
    )


def watches_no_first_machine(patch: Patch) -> None:
    parts = waves._parts
    patch.setattr(waves, "_parts", lambda *given: [(machines, 0) for machines, _ in parts(*given)])


def takes_nothing_back(patch: Patch) -> None:
    patch.setattr(failing, "is_to_return", lambda state, troubles: False)


def goes_back_to_what_failed(patch: Patch) -> None:
    patch.setattr(refuges, "left", lambda state, base, unproven: {})


def takes_one_step_back(patch: Patch) -> None:
    patch.setitem(machine.TRANSITIONS, (Phase.RETURNING, Turn.RETURNED), Phase.ROLLED_BACK)


def believes_older_reports(patch: Patch) -> None:
    def newest(state, machine, *, settled):
        return state.seen[machine].report if machine in state.seen else None

    patch.setattr(gate, "_answer", newest)


def tells_half(patch: Patch) -> None:
    entries = reckoning._entries
    patch.setattr(reckoning, "_entries", lambda *given: entries(*given)[1:])


def stops_what_is_closed(patch: Patch) -> None:
    async def close(self, number, by) -> None:
        _, state = await self._find(number)
        made = replace(state, closed=by, phase=Phase.STOPPED)
        await self.inventory.save_rollout(number, state=encode(made), is_open=False)

    patch.setattr(rollouts.Rollouts, "_close", close)


def asks_for_no_permit(patch: Patch) -> None:
    patch.setattr(permits, "may_stop", lambda draft, entry, standing: True)


def saves_what_still_runs(patch: Patch) -> None:
    patch.setattr(converge_volumes, "_is_down", lambda *given: True)


def tells_nobody_what_to_take(patch: Patch) -> None:
    told = volumes.declared
    patch.setattr(volumes, "declared", lambda orders: (told(orders)[0], None))


def closes_windows_at_once(patch: Patch) -> None:
    patch.setattr(reaction_limits, "closes_ms", lambda state: state.opened_ms)


def has_budget_always(patch: Patch) -> None:
    patch.setattr(reaction_limits, "has_budget", lambda unit, rates, now_ms: True)
    patch.setattr(reaction_limits, "budget_ms", lambda unit, rates: 0)


def restarts_for_a_flap(patch: Patch) -> None:
    resolved = reaction_limits.resolved_at_close

    def nervous(unit):
        return resolved(unit) or (tuple(unit.values.values()) if unit.collapsed else ())

    patch.setattr(reaction_limits, "resolved_at_close", nervous)
    patch.setattr(dynamic, "withdraw", lambda draft, entry, name: None)  # it would make up for it


def restarts_for_any_word(patch: Patch) -> None:
    taken = dynamic.is_outdated

    def nervous(memory, unit):
        return taken(memory, unit) or (unit is not None and unit.collapsed > 2)

    patch.setattr(dynamic, "is_outdated", nervous)


def takes_silence_for_missing(patch: Patch) -> None:
    step = reaction.step

    def hasty(state, event):
        if isinstance(event, Sounded) and event.is_silent:
            news = tuple(
                News(export=each, value=None, number=known.number)
                for each in event.exports
                if (known := state.exports.get(each)) is not None
            )
            return step(state, Told(now_ms=event.now_ms, news=news))
        return step(state, event)

    patch.setattr(reaction, "step", hasty)


def keeps_no_turn(patch: Patch) -> None:
    patch.setattr(dynamic, "is_outdated", lambda memory, unit: False)


def saves_no_reactions(patch: Patch) -> None:
    due = saving.due

    def forgetful(kept, state, issued, *, is_late):
        kept, contents = due(kept, state, issued, is_late=is_late)
        contents.pop(saved.REACTIONS, None)
        return kept, contents

    patch.setattr(saving, "due", forgetful)


def plans_by_what_nobody_reads(patch: Patch) -> None:
    async def none(self, scene, due):
        return {}

    patch.setattr(fact_plans.FactPlans, "_unread", none)


def believes_each_fact_at_once(patch: Patch) -> None:
    patch.setattr(fact_order, "HOLD_MS", 0)


def asks_nobody_about_facts(patch: Patch) -> None:
    patch.setattr(fact_victims, "victims", lambda target, base, trial: {})


def refuses_what_facts_hold(patch: Patch) -> None:
    patch.setattr(by_facts, "rows", lambda request, found: frozenset())


def believes_who_is_silent(patch: Patch) -> None:
    due = knowing.Knowing.due

    async def deaf(self, heard):
        return await due(self, await self.known())

    patch.setattr(knowing.Knowing, "due", deaf)


def edits_by_all_that_is_said(patch: Patch) -> None:
    def said(machines, values):
        return {
            machine: fact_order.taken(each, {name: f.value for name, f in each.facts.items()})
            for machine, each in machines.items()
        }

    patch.setattr(by_facts, "taken", said)


def plans_by_no_fact(patch: Patch) -> None:
    async def idle(self) -> None:
        pass

    patch.setattr(fact_plans.FactPlans, "tick", idle)


def grants_whatever_is_asked(patch: Patch) -> None:
    decide = rollout_permits.decide

    def generous(asked):
        decided = decide(asked)
        all_of_it = {entry: asked.members[entry].permit for entry in decided.refused}
        return replace(decided, granted={**decided.granted, **all_of_it}, refused={})

    patch.setattr(rollout_permits, "decide", generous)


def places_whatever_is_drained(patch: Patch) -> None:
    async def nowhere(self, made):
        return {}

    patch.setattr(cordoning.Cordoning, "cordoned", nowhere)


def leaves_who_is_removed(patch: Patch) -> None:
    remove = edits.remove_machine

    def half(documents, machine):
        made = remove(documents, machine)
        return made if isinstance(made, edits.Refused) else replace(made, steps=made.steps[:-1])

    patch.setattr(edits, "remove_machine", half)


def misses_who_is_lost(patch: Patch) -> None:
    missed = gate.missed
    patch.setattr(gate, "missed", lambda state: missed(replace(state, lost=frozenset())))


MUTANTS: dict[Callable[[Patch], None], str] = {
    # The promise that breaks; any, where several do.
    accepts_older_offers: "offer numbers never fall",
    stops_before_the_new_one_is_well: "what is taken over from stays until the other is well",
    takes_over_from_nobody: "what is taken over from stays until the other is well",
    never_stops_strays: "no unit has two processes",
    acts_before_it_saves: "the ledger is saved first",
    saves_the_ledger_alone: "no unit runs what is not declared",
    offers_the_former_target: "what is declared is of the target or of the base",
    begins_with_older_reports: "a rollout that nothing hinders comes to its end",
    lets_a_late_report_stand: "a rollout that nothing hinders comes to its end",
    waits_for_ever: "every rollout ends",
    forgets_stops: "a person's stop holds",
    counts_occurrences_anew: "no occurrence has another's number",
    writes_over_foreign_files: "a foreign file is never touched",
    tidies_parents: "nothing outside the ledger is removed",
    removes_volumes: "what must not be lost is never removed",
    restarts_where_a_reload_would_do: "what did not change keeps its process",
    hears_of_no_end: "what is healthy runs",
    waits_for_no_provider: "a consumer is switched after its provider",
    lets_go_of_what_is_declared: "an archive stays while it is needed",
    starts_before_all_is_fetched: "nothing is started from an archive that is not there",
    plans_on_what_was: "a target is planned against what is declared",
    writes_without_the_lease: "",
    makes_up_for_no_hint: "it converges once it is healed",
    heeds_every_word_as_a_start: "a word is heeded as it was said",
    says_without_a_record: "whoever changed something can be found",
    sets_all_alike: "an edit changes just what it says",
    rolls_back_to_the_oldest: "a rollback brings its generation's text",
    tries_at_once: "a taken port is not tried over and over",
    tells_no_cause: "a taken port is told with who has it",
    sees_drift_everywhere: "nothing spins",
    forgets_what_was_loaded: "a second look has no effects",
    believes_the_wall_clock: "a rollout is given its time",
    trusts_lost_answers: "it converges once it is healed",
    takes_equal_numbers_for_equal: "",
    keeps_to_numbers_of_a_backup: "it converges once it is healed",
    begins_a_lost_fleet_in_steps: "a lost inventory takes nothing away",
    signs_with_another_key: "every offer is readable",
    asks_for_no_permit: "no more of a set are stopped than may be",
    forgets_who: "whoever changed something can be found",
    sends_to_all_at_once: "others follow once the first is well",
    restarts_any_number: "no more members of a role restart at once than may",
    watches_no_first_machine: "a first machine is watched for its settle time",
    takes_nothing_back: "what fails goes back where its policy says so",
    goes_back_to_what_failed: "nothing goes back to what was never well",
    takes_one_step_back: "what was rolled back is declared as before",
    believes_older_reports: "a rollout that is done has done what it says",
    tells_half: "the end of a rollout says what was sent, what never was, and why",
    stops_what_is_closed: "what has ended stays as it ended",
    saves_what_still_runs: "nothing runs while its data is saved",
    tells_nobody_what_to_take: "data is where its entry is",
    raises_port_errors: "nothing ends by an error of its own",
    closes_windows_at_once: "a unit restarts once for a window",
    has_budget_always: "a restart budget is never exceeded",
    restarts_for_a_flap: "no unit is restarted without a fresh value",
    restarts_for_any_word: "what did not change keeps its process",
    takes_silence_for_missing: "no unit is stopped but on its provider's word",
    keeps_no_turn: "it converges once it is healed",
    saves_no_reactions: "",
    plans_by_what_nobody_reads: "a fact that no entry reads makes no plan",
    believes_each_fact_at_once: "a fact makes a plan once it has held",
    asks_nobody_about_facts: "what facts would stop or move waits for a person",
    refuses_what_facts_hold: "facts are in the way of no apply",
    believes_who_is_silent: "a silent machine moves nothing",
    edits_by_all_that_is_said: "an edit carries no move of another",
    plans_by_no_fact: "it converges once it is healed",
    grants_whatever_is_asked: "no more of a set are stopped than may be",
    places_whatever_is_drained: "nothing is placed by count where it may not be",
    leaves_who_is_removed: "nothing names a machine that was removed",
    misses_who_is_lost: "a machine that is lost is not missed",
}

FOUND = Path(__file__).with_name("mutants.txt")
"""A seed that found each."""


def hints() -> dict[str, int]:
    lines = FOUND.read_text(encoding="ascii").splitlines()
    return {name: int(seed) for name, seed in map(str.split, lines)}


def find(mutant: Callable[[Patch], None], seeds: Sequence[int], jobs: int) -> run.Outcome | None:
    """The first outcome, of some seeds, in which its promise is broken."""
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        for outcome in run.outcomes(seeds, jobs):
            if outcome.broken and outcome.broken.startswith(MUTANTS[mutant]):
                return outcome
    return None


def ranges(hint: int) -> Iterator[range]:
    """Where one is looked for: first among seeds of the kind that found it before."""
    kinds = [0, run.WITH_VALUES, run.WITH_FACTS, run.WITH_SETS, run.WITH_MISTAKES]
    kinds.sort(key=lambda first: not first <= hint < first + run.WITH_VALUES)
    return (range(first, first + SEEDS) for first in kinds)


def check(mutant: Callable[[Patch], None]) -> None:
    """Fail where no seed finds it."""
    hint = hints().get(mutant.__name__, 0)
    # The seed that found it stands first; where the product moved on, it is looked for anew.
    found = find(mutant, [hint], 1) or find(mutant, next(ranges(hint)), JOBS)
    assert found is not None, f"{SEEDS} seeds, and nobody saw: {MUTANTS[mutant]}"
    print(f"seed {found.seed}: {found.broken}")


def parted(*, part: int) -> Sequence[Callable[[Patch], None]]:
    """Those of one of two test files, which two workers run at once."""
    return list(MUTANTS)[part::2]


def main() -> int:
    known, lost = hints(), 0
    logging.getLogger("keyplane").addHandler(logging.NullHandler())
    for mutant in MUTANTS:
        name, began = mutant.__name__, time.monotonic()
        hint = known.get(name, 0)
        found = find(mutant, [hint], 1) or next(
            (one for seeds in ranges(hint) if (one := find(mutant, seeds, JOBS)) is not None), None
        )
        took = time.monotonic() - began
        said = "by none" if found is None else f"by {found.seed}"
        sys.stdout.write(f"{name}: {said}, {took:.1f} s\n")
        sys.stdout.flush()
        lost += found is None
        known[name] = hint if found is None else found.seed
        lines = (f"{each.__name__} {known.get(each.__name__, 0)}\n" for each in MUTANTS)
        FOUND.write_text("".join(lines), encoding="ascii")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
