"""What must hold of the order of a rollout, and of what its end says.

Reads policies from the text itself and progress from reports; of the product's own words it reads
only what it checks: steps, and the outcome.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyplane.model.declaration import Declaration, EntryState, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.ports.inventory import StoredPlan, StoredRollout
from keyplane.rollout import gate, reckoning
from keyplane.rollout.outcome import Outcome
from keyplane.rollout.state import Phase, State

Json = Any

SOUND = (EntryState.HEALTHY, EntryState.APPLIED, EntryState.STALE, EntryState.STOPPED)
_SECONDS = {"1s": 1.0, "3s": 3.0, "10s": 10.0}
_FAILED = (Phase.FAILED, Phase.ROLLED_BACK, Phase.ROLLBACK_FAILED)


@dataclass(slots=True, kw_only=True)
class _Run:
    """A rollout, as the watch knows it."""

    number: int
    base: Mapping[EntryId, Digest]
    target: Mapping[EntryId, Digest]
    policies: Mapping[str, Mapping[str, Json]]
    """Of each instance, whole."""
    state: State
    sent: dict[EntryId, tuple[OfferNumber, int]] = field(
        default_factory=dict[EntryId, tuple[OfferNumber, int]]
    )
    """Entries that were offered with another key than they had, as which number and in which step."""
    earlier: dict[EntryId, None] = field(default_factory=dict[EntryId, None])
    """Of these, those that a rollout before sent."""
    seen: dict[EntryId, None] = field(default_factory=dict[EntryId, None])
    """Of these, those that were reported well since."""
    well: dict[EntryId, float] = field(default_factory=dict[EntryId, float])
    """Since when."""

    def is_off(self, entry: EntryId) -> bool:
        """Nobody waits for it; for one that was sent it before and fell silent then, only at the end."""
        machine = split_entry(entry)[2]
        return machine in self.state.left or (
            entry in self.earlier and machine in self.state.absent
        )

    def follow(self, former: "_Run") -> None:
        """Who was sent the same by the one before counts as one of the first, once it is well."""
        for entry, sent in former.sent.items():
            if self.target.get(entry) == self.base.get(entry) == former.target.get(entry):
                self.sent[entry] = sent
                self.earlier[entry] = None
                if entry in former.seen:
                    self.seen[entry] = None
                if entry in former.well:
                    self.well[entry] = former.well[entry]


class RolloutWatch:
    """Of the latest rollout; nothing is known of one that a backup brought back."""

    def __init__(
        self,
        fault: Callable[[str, str], None],
        now: Callable[[], float],
        ended: Callable[[int, tuple[MachineName, ...]], None],
    ) -> None:
        """`ended` is told of each rollout that ends, with the machines that it says it missed."""
        self._fault = fault
        self._now = now
        self._told = ended
        self._run: _Run | None = None
        self._well: dict[EntryId, dict[Digest, None]] = {}
        """What was ever reported well."""
        self._known: dict[EntryId, dict[Digest, None]] = {}
        """The same, as far as a controller can know: of what was declared, in an open rollout, since the
        inventory was restored and since the entry came."""
        self._passed_over: dict[EntryId, None] = {}
        """Sent to machines that a rollout went on without, and not well since: others may need it."""
        self._ended: dict[int, Phase] = {}

    def begun(
        self,
        stored: StoredPlan,
        row: StoredRollout,
        state: State | None,
        files: Mapping[str, bytes],
        *,
        at_once: bool,
    ) -> None:
        """A rollout; one that only restores what a lost inventory forgot has no order to keep."""
        former, self._run = self._run, None
        if state is None or at_once:
            return
        run = self._run = _Run(
            number=row.number,
            base={entry: Digest(each.entry.key) for entry, each in row.base.items()},
            target={entry: Digest(each.entry.key) for entry, each in stored.entries.items()},
            policies={
                name: each["policy"]
                for name, each in json.loads(files["fleet.json"])["instances"].items()
            },
            state=state,
        )
        if former is not None:
            run.follow(former)

    def restored(self) -> None:
        self._run = None
        self._ended.clear()
        self._known.clear()

    def saved(self, number: int, state: State, declared: Mapping[EntryId, Digest]) -> None:
        ended = self._ended.get(number)
        if ended not in (None, state.phase):
            self._fault(
                "what has ended stays as it ended", f"rollout {number} was {ended}: {state.phase}"
            )
        if not state.phase.is_open:
            self._ended[number] = state.phase
        run = self._run
        if run is None or number != run.number:
            return
        run.state = state
        off = (entry for entry in run.sent if split_entry(entry)[2] in state.left)
        self._passed_over.update(dict.fromkeys(off))
        for entry in self._known.keys() - declared.keys():
            del self._known[entry]
        if state.phase.is_open or ended is not None:
            return
        outcome = reckoning.outcome(state)
        self._told(number, outcome.skipped)
        self._tells(run, outcome)
        if state.phase is Phase.DONE:
            self._is_done(run, outcome, declared)
        elif state.phase is Phase.ROLLED_BACK:
            self._is_back(run, declared)
        elif state.phase is Phase.FAILED:
            self._may_stay(run, outcome)

    # Order.

    def offered(self, declaration: Declaration, declared: Mapping[EntryId, Digest]) -> None:
        """Before that is what is declared."""
        run = self._run
        if run is None or run.state.back:
            return
        for entry, each in declaration.entries.items():
            was = declared.get(entry)
            if was is None or was == each.key or each.key != run.target.get(entry):
                continue
            run.sent[entry] = (declaration.offer, run.state.step)
            run.earlier.pop(entry, None)
            run.seen.pop(entry, None)
            run.well.pop(entry, None)
            self._in_order(run, entry)

    def _in_order(self, run: _Run, entry: EntryId) -> None:
        instance, role, machine = split_entry(entry)
        # Those that are not heard are sent it and not waited for.
        # Those that a person names come first, whoever else was sent something.
        if machine in run.state.left | run.state.named or instance not in run.policies:
            return
        members = [each for each in run.sent if split_entry(each)[:2] == (instance, role)]
        here = [each for each in members if not run.is_off(each)]
        away = [each for each in here if each not in run.seen]
        policy = run.policies[instance]
        is_paced = "maxUnavailable" in policy or policy["upgrade"] != "together"
        most = policy.get("maxUnavailable", 1) if is_paced else len(members)
        if len([each for each in away if each not in run.earlier]) > most:
            self._fault("no more members of a role restart at once than may", f"{', '.join(away)}")
        if policy["upgrade"] != "first" or here == [entry]:
            return
        # What was down already is sent before all others, and has nothing to lose.
        is_down = entry in run.state.unproven
        passed = len(here) - len(away)
        if len(away) > max(1, passed) and not is_down:
            self._fault(
                "others follow once the first is well",
                f"{', '.join(away)} are sent after {passed}",
            )
        first = next((each for each in here if each not in away), None)
        if passed == 1 and first is not None and not is_down:
            watched = self._now() - run.well.get(first, self._now())
            if watched < _SECONDS[policy["settle"]] - 0.01:
                self._fault(
                    "a first machine is watched for its settle time",
                    f"{entry} is sent {watched:.1f} s after {first} was well",
                )

    def was_well(self, entry: EntryId, key: Digest | None) -> bool:
        return key in self._well.get(entry, ())

    def reported(self, report: Report) -> None:
        for entry, said in report.entries.items():
            if gate.is_sound(said):
                self._well.setdefault(entry, {})[said.key] = None
                self._passed_over.pop(entry, None)
        run = self._run
        if run is None:
            return
        for entry, said in report.entries.items() if run.state.phase.is_open else ():
            if gate.is_sound(said) and said.key in (run.base.get(entry), run.target.get(entry)):
                self._known.setdefault(entry, {})[said.key] = None
        for entry, (number, _) in run.sent.items():
            if split_entry(entry)[2] != report.machine:
                continue
            said = report.entries.get(entry)
            is_well = (
                said is not None
                and report.settled >= number
                and said.key == run.target.get(entry)
                and said.state in SOUND
            )
            if is_well:
                run.seen[entry] = None
                run.well.setdefault(entry, self._now())
            else:
                run.well.pop(entry, None)

    # Ends.

    def _tells(self, run: _Run, outcome: Outcome) -> None:
        """What was sent, what was not, and why: nothing is left out, and all of it is so."""
        promise = "the end of a rollout says what was sent, what never was, and why"
        who = f"rollout {run.number}, {outcome.result}"
        named = {*outcome.sent, *outcome.unsent, *(each.entry for each in outcome.held)}
        moved = {
            e for e in run.base.keys() | run.target.keys() if run.base.get(e) != run.target.get(e)
        }
        if missing := sorted(moved - named):
            self._fault(promise, f"{who}: {', '.join(missing)} is not named")
        # One that was sent may still be held from taking access away from who has gone.
        never = {*outcome.unsent, *(each.entry for each in outcome.held)} - {*outcome.sent}
        for entry in sorted(moved & never):
            if entry in run.sent and not run.state.back:
                self._fault(promise, f"{who}: {entry} was sent")
        if outcome.unsent and not outcome.why_unsent:
            self._fault(promise, f"{who}: no word of why {', '.join(outcome.unsent)} was not sent")
        if run.state.phase in _FAILED and not any(each.said for each in outcome.troubles):
            self._fault(promise, f"{who}: no machine and no cause is named")

    def _is_done(self, run: _Run, outcome: Outcome, declared: Mapping[EntryId, Digest]) -> None:
        for entry in outcome.sent:
            wanted = run.target.get(entry)
            if split_entry(entry)[2] in outcome.skipped or wanted == run.base.get(entry):
                continue
            if declared.get(entry) != wanted or (entry in run.sent and entry not in run.seen):
                self._fault(
                    "a rollout that is done has done what it says",
                    f"rollout {run.number}: {entry} was not seen well",
                )

    def _is_back(self, run: _Run, declared: Mapping[EntryId, Digest]) -> None:
        for entry in run.sent:
            was, now = run.base.get(entry), declared.get(entry)
            if entry in run.state.unproven:
                # An earlier rollout sent it: it goes back to what was before that one.
                # What this one sent was seen well since: it is nothing to go back to.
                better = self._known.get(entry, {}).keys() - {run.target.get(entry)}
                is_better = better and entry not in self._passed_over
                if now == was and is_better and not self.was_well(entry, now):
                    self._fault(
                        "nothing goes back to what was never well",
                        f"rollout {run.number}: {entry} is {now}",
                    )
                if now is None or self.was_well(entry, now):
                    continue
            if now != was:
                self._fault(
                    "what was rolled back is declared as before",
                    f"rollout {run.number}: {entry} is {now}",
                )

    def _may_stay(self, run: _Run, outcome: Outcome) -> None:
        for each in outcome.troubles:
            instance = None if each.entry is None else split_entry(each.entry)[0]
            if run.policies.get(instance or "", {}).get("onFailure") == "rollback":
                self._fault(
                    "what fails goes back where its policy says so",
                    f"rollout {run.number}: {each.said}",
                )
