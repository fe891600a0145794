"""Tells whoever listens what a rollout does. Decides nothing, and keeps nothing that matters."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from keyplane.model.declaration import EntryReport, EntryState, Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.parts import control_messages as messages
from keyplane.rollout import progress, reckoning
from keyplane.rollout.outcome import Fate, Outcome, Trouble
from keyplane.rollout.state import Event, Started, State

LISTENER_EVENTS_MAX = 10_000
"""A listener that reads nothing for so long misses what follows; the rollout goes on."""

_REMOVED = "removed"
_RELOADED = "reloaded"
_APPLIED = "applied"
_UNTOUCHED = "with no restart"


@dataclass(frozen=True, slots=True)
class _Known:
    """What was said of an entry last, and of its processes when it was last healthy."""

    state: str
    processes: frozenset[tuple[str, int | None, int | None]] = frozenset()
    reloads: int = 0


class Telling:
    """The listeners of the rollout that is open."""

    def __init__(self) -> None:
        self._listeners: list[asyncio.Queue[messages.Event]] = []
        self._known: dict[MachineName, dict[EntryId, _Known]] = {}
        self._applied: set[EntryId] = set()

    def begin(self, reports: Mapping[MachineName, Report]) -> None:
        """Take what the machines say now as known to all."""
        self._applied = set()
        self._known = {
            machine: {entry: _known(report) for entry, report in each.entries.items()}
            for machine, each in reports.items()
        }

    def listen(self, begun: messages.Begun) -> AsyncIterator[messages.Event]:
        """Yield from here on until the end; a rollout that ends before the first look is told."""
        queue: asyncio.Queue[messages.Event] = asyncio.Queue(LISTENER_EVENTS_MAX)
        queue.put_nowait(begun)
        self._listeners.append(queue)
        return self._events(queue)

    async def _events(self, queue: asyncio.Queue[messages.Event]) -> AsyncIterator[messages.Event]:
        try:
            while True:
                event = await queue.get()
                yield event
                if isinstance(event, messages.Ended):
                    return
        finally:
            self._listeners = [each for each in self._listeners if each is not queue]

    def say(self, event: messages.Event) -> None:
        for queue in self._listeners:
            if not queue.full():
                queue.put_nowait(event)
        if isinstance(event, messages.Ended):
            self._listeners = []  # who never looks is not waited for

    def tell(self, report: Report, state: State) -> None:
        """Say which entries of the rollout are now in another state."""
        switched: Mapping[EntryId, Digest] = state.keys
        known = self._known.setdefault(report.machine, {})
        for entry, each in report.entries.items():
            if entry not in switched:
                continue
            if each.state is EntryState.APPLYING or each.key == switched[entry]:
                self._tell_entry(known, entry, each)
        for entry in [each for each in known if each not in report.entries]:
            del known[entry]
            self.say(messages.EntryMoved(entry=entry, state=_REMOVED))
        for entry in reckoning.applied(state, report):
            if entry not in self._applied:
                self._applied.add(entry)
                self.say(messages.EntryMoved(entry=entry, state=_APPLIED, detail=_UNTOUCHED))

    def _tell_entry(self, told: dict[EntryId, _Known], entry: EntryId, report: EntryReport) -> None:
        """An entry whose processes stayed has come to nothing new but a reload."""
        before, now = told.get(entry), _known(report)
        if report.state not in (EntryState.HEALTHY, EntryState.STALE):
            if before is None or before.state != now.state:
                self.say(
                    messages.EntryMoved(entry=entry, state=now.state, detail=report.cause or "")
                )
                kept = _Known(now.state) if before is None else replace(before, state=now.state)
                told[entry] = kept
            return
        told[entry] = now
        if before is None or before.processes != now.processes:
            self.say(messages.EntryMoved(entry=entry, state=now.state))
        elif before.reloads != now.reloads:
            self.say(messages.EntryMoved(entry=entry, state=_RELOADED))


def _known(report: EntryReport) -> _Known:
    units = report.units.items()
    return _Known(
        state=report.state.value,
        processes=frozenset((name, unit.pid, unit.start_ticks) for name, unit in units),
        reloads=sum(unit.reloads for _, unit in units),
    )


def progressed(before: State, state: State, events: Sequence[Event]) -> messages.Stepped | None:
    """Where it stands now; None if that was said before, though not by another life."""
    said = progress.sentence(state)
    is_new = any(isinstance(event, Started) for event in events)
    return stepped(state, said) if said and (is_new or said != progress.sentence(before)) else None


def stepped(state: State, said: str) -> messages.Stepped:
    return messages.Stepped(
        step=state.step + 1,
        steps=state.asked,
        phase=state.phase.value,
        machines=list(state.steps[state.step].machines),
        said=said,
    )


async def only(*events: messages.Event) -> AsyncIterator[messages.Event]:
    for event in events:
        yield event


def taken_over(number: int, who: str, verb: str) -> str:
    """What is said to whoever watches a rollout that a newer one ended."""
    by = f" with `{verb}`" if verb else ""
    return (
        f"rollout {number}, which {who} began{by}, took this one over and does what was left of it: "
        "`keyplane status` shows how it comes about"
    )


def ended(
    outcome: Outcome,
    problem: str = "",
    successor: str = "",
    held: Sequence[messages.HeldEntry] = (),
) -> messages.Ended:
    """How a rollout ended; `problem` is what it waited for when it did, `successor` what took over.

    `held` are its holds with what is told of each.
    """

    def count(fate: Fate) -> int:
        return outcome.counts.get(fate, 0)

    why = [*outcome.remarks]
    if successor:
        why.append(successor)
    elif outcome.why_unsent:
        why.append(outcome.why_unsent)
    if outcome.result.value == "failed" and problem:
        why.append(problem)
    return messages.Ended(
        outcome=outcome.result.value,
        started=count(Fate.STARTED),
        restarted=count(Fate.RESTARTED),
        reloaded=count(Fate.RELOADED),
        stopped=count(Fate.STOPPED),
        applied=count(Fate.APPLIED),
        untouched=count(Fate.UNTOUCHED),
        milliseconds=outcome.ended_ms - outcome.started_ms,
        failures=[
            messages.Failure(
                entry=trouble.entry or f"machine {trouble.machine}",
                cause=_cause(trouble),
                log=list(trouble.log_tail),
            )
            for trouble in outcome.troubles
        ],
        unsent=list(outcome.unsent),
        skipped=list(outcome.skipped),
        held=list(held),
        why="; ".join(why),
    )


def _cause(trouble: Trouble) -> str:
    """What is said of it, and the machine's own words where they say more."""
    if trouble.cause is None or trouble.cause in trouble.said:
        return trouble.said
    return f"{trouble.said.rstrip('.')}: {trouble.cause}"
