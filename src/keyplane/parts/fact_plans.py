"""Plans again where what machines say of themselves is another, and has been so for long enough.

What no entry reads is taken as it comes. What would stop or move something waits for a person, but
where the instance says `onFact = "apply"`; so does what an entry could not be placed with. Of what
waits, plans go by what was before: nothing that it has a part in moves, and nothing else waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyplane.journal import Journal
from keyplane.model.diagnostic import Severity
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.parts import by_facts, fact_edits, fact_victims
from keyplane.parts.by_facts import Known, Values
from keyplane.parts.committing import Committing
from keyplane.parts.control_client import RefusedError
from keyplane.parts.fact_messages import FactsWaiting
from keyplane.parts.fact_victims import Victim
from keyplane.parts.knowing import Knowing
from keyplane.parts.mixing import BaseMovedError
from keyplane.parts.planning import Base, Planned
from keyplane.parts.revising import Made
from keyplane.parts.rolling import Rolling
from keyplane.ports.errors import PortError
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.inventory import (
    Inventory,
    Revision,
    RevisionMovedError,
    StoredPlan,
    TargetMovedError,
)

log = Journal(__name__.removeprefix("keyplane."))

Json = Any

WHO = "keyplane"
VERB = "facts"
ALONE_MAX = 16
"""Facts that are tried one by one, to see which of them is in the way: each costs a plan. Of more
that come at once the others wait with them."""
HINDERED_TICKS = 10
"""What was in the way may be gone; each look reads the whole target."""

Plan = Callable[[Made, StoredPlan | None, Base], Awaitable[Planned]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What a machine says and nobody plans by, though it has held."""

    machine: MachineName
    facts: Values
    """As they are said."""
    victims: Mapping[EntryId, Victim]
    """What it would stop, move or leave without a place."""
    why: str = ""
    """What it waits for, where that is no person's word."""

    def row(self, stored: StoredFacts | None) -> FactsWaiting:
        """As people are told of it."""
        known = dict[str, Json]() if stored is None else stored.planned
        helps = not self.why and any(each.loses for each in self.victims.values())
        return FactsWaiting(
            machine=self.machine,
            said=dict(sorted(self.facts.items())),
            planned={name: known.get(name) for name in sorted(self.facts)},
            entries={entry: each.how for entry, each in sorted(self.victims.items())},
            why=self.why,
            command=f"keyplane facts {self.machine}" if helps else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What is planned from."""

    revision: Revision
    target: StoredPlan
    base: Base


@dataclass(slots=True)
class FactPlans:
    """Of one controller. What it remembers it can work out again."""

    inventory: Inventory
    facts: Knowing
    plan: Plan
    rolling: Rolling
    committing: Committing
    work: asyncio.Lock
    """Held while the target may be moved."""
    heard: Callable[[], frozenset[MachineName]]
    """Machines that were heard lately."""
    waiting: tuple[Waiting, ...] = ()
    _read: tuple[str, frozenset[tuple[str, str]]] | None = None
    """The generation of the target, and the facts on which it hangs."""
    _judged: tuple[str, Mapping[MachineName, Values]] | None = None
    """The same, and what was found to wait then."""
    _again_ticks: int = 0
    """At which of the coming ticks the same is looked at once more."""

    async def tick(self) -> None:
        """Look at what is due. Nothing is read while all is as it was."""
        try:
            await self._tick()
        except (TargetMovedError, RevisionMovedError, BaseMovedError):
            return  # the next look sees what came instead
        except RefusedError as error:  # such as what a move needs to be told of data
            log.warning("facts wait for a person", cause=error.problem.message)
            due = await self.facts.due(self.heard())
            self.waiting = _all_wait(due, error.problem.message)
        except (PortError, OSError) as error:
            log.warning("facts are planned by later", cause=str(error))

    async def _tick(self) -> None:
        due = await self.facts.due(self.heard())
        if not due:
            self.waiting, self._judged = (), None
            return
        self._again_ticks -= 1
        if self._again_ticks == 0:
            self._judged = None
        if self.rolling.is_open:
            return  # it ends by itself, or a person ends it
        async with self.work:
            await self._look(due)

    def rows(self, known: Known) -> list[FactsWaiting]:
        """What waits and is still said, as people are told of it."""
        return [
            each.row(known.get(each.machine))
            for each in self.waiting
            if by_facts.are_said(known, each.machine, each.facts)
        ]

    async def meant(
        self, made: Made, target: StoredPlan | None, base: Base
    ) -> tuple[Made, Planned]:
        """What somebody edits, planned by the facts that wait for just that."""
        waiting = self.rows(await self.facts.known())
        return await fact_edits.meant(self.plan, made, target, base, waiting)

    def planned(self, planned: Planned) -> None:
        """What was just made the target hangs on these facts."""
        self._read = planned.plan.generation, planned.facts

    async def _look(self, due: Mapping[MachineName, Values]) -> None:
        target = await self.inventory.target()
        if target is None:
            await self.facts.take(due)
            return
        generation = target.plan.generation
        if self._judged is not None and self._judged == (generation, due):
            return
        self._judged = generation, due
        revision = await self.inventory.revision(target.revision)
        if revision is None:
            return
        base = await self.rolling.declared.base(target)
        scene = _Scene(revision=revision, target=target, base=base)
        unread = await self._unread(scene, due)
        await self.facts.take(unread)
        due = by_facts.without(due, unread)
        if not due:
            self.waiting = ()
            return
        if why := await self._hindrance(scene.target):
            self.waiting = _all_wait(due, why)
            self._again_ticks = HINDERED_TICKS
            return
        await self._plan_by(scene, due)

    async def _unread(
        self, scene: _Scene, due: Mapping[MachineName, Values]
    ) -> dict[MachineName, Values]:
        """What is due and has no part in the target."""
        generation = scene.target.plan.generation
        if self._read is None or self._read[0] != generation:
            found = await self._try(scene, {})
            self._read = generation, found.facts
        read = by_facts.said_in(self._read[1])
        return {
            machine: {name: value for name, value in said.items() if name not in read(machine)}
            for machine, said in due.items()
        }

    async def _hindrance(self, target: StoredPlan) -> str:
        """Why no rollout is to begin by itself."""
        latest = await self.rolling.status(target)
        if latest is None or latest.state == "done" or latest.closed:
            return ""
        return (
            f"rollout {latest.number} is {latest.state}, and a person has to say what of it goes on"
        )

    async def _plan_by(self, scene: _Scene, due: Mapping[MachineName, Values]) -> None:
        """Take as much as stops, moves and spoils nothing; the rest waits, fact by fact."""
        taken, trial = due, await self._try(scene, due)
        in_the_way = fact_victims.victims(scene.target, scene.base, trial)
        waiting: list[Waiting] = []
        if in_the_way:
            taken = by_facts.of_others(due, {split_entry(each)[2] for each in in_the_way})
            trial = await self._try(scene, taken)
            if fact_victims.victims(scene.target, scene.base, trial):
                taken = {}
            # Of a machine on which something would stop, not every word is the one that stops it.
            left = by_facts.without(due, taken)
            for number, one in enumerate(by_facts.one_by_one(left)):
                more = by_facts.together(taken, one)
                found, victims = trial, in_the_way
                if number < ALONE_MAX:
                    found = await self._try(scene, more)
                    victims = fact_victims.victims(scene.target, scene.base, found)
                if victims:
                    waiting += (
                        Waiting(machine=machine, facts=said, victims=victims)
                        for machine, said in one.items()
                    )
                else:
                    taken, trial = more, found
        if trial.refused:
            log.warning("what machines say cannot be planned by", rows=_errors(trial))
            why = "the documents have errors with it"
            waiting, taken = list(_all_wait(due, why)), {}
        self.waiting = tuple(waiting)
        if taken:
            await self._take(scene, trial, taken)

    async def _try(self, scene: _Scene, taken: Mapping[MachineName, Values]) -> Planned:
        made = Made(files=scene.revision.files, newest=scene.revision, verb=VERB, take=taken)
        return await self.plan(made, scene.target, scene.base)

    async def _take(
        self, scene: _Scene, trial: Planned, taken: Mapping[MachineName, Values]
    ) -> None:
        if trial.plan.generation != scene.target.plan.generation:
            made = Made(
                files=scene.revision.files,
                newest=scene.revision,
                verb=VERB,
                said=by_facts.told(taken),
                take=taken,
                detail={"facts": {machine: sorted(said) for machine, said in taken.items()}},
            )
            try:
                await self.committing.commit(
                    made,
                    trial,
                    base=scene.base,
                    target=scene.target,
                    who=WHO,
                    why="",
                    push=False,
                    volumes={},
                )
            finally:
                self.facts.moved()
            log.info("planned by facts", facts=made.said)
        else:
            await self.facts.take(taken)
        self.planned(trial)


def _all_wait(due: Mapping[MachineName, Values], why: str) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(machine=machine, facts=said, victims={}, why=why)
        for machine, said in sorted(due.items())
    )


def _errors(planned: Planned) -> list[str]:
    return [row.message for row in planned.rows if row.severity is Severity.ERROR]
