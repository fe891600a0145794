"""The controller: texts become targets, targets become offers, reports become progress.

It decides nothing about order or gates (`rollout` does) and nothing about machines (agents do).
All that it must not forget is in the inventory before anybody hears of it; killed at any point,
it goes on from there.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import msgspec

from keyplane import metrics, wire
from keyplane.journal import Journal
from keyplane.model.declaration import NO_OFFER
from keyplane.model.documents import Documents
from keyplane.model.names import MachineName
from keyplane.parts import (
    by_facts,
    machine_views,
    measuring,
    proposing,
    status,
    volume_messages,
)
from keyplane.parts import control_messages as messages
from keyplane.parts.applying import Applying
from keyplane.parts.catching_up import CatchingUp
from keyplane.parts.committing import Committing
from keyplane.parts.control_client import RefusedError
from keyplane.parts.cordoning import Cordoning
from keyplane.parts.fact_plans import FactPlans
from keyplane.parts.hearing import Hearing
from keyplane.parts.knowing import Knowing
from keyplane.parts.leaving import Leaving
from keyplane.parts.offering import Offering, has
from keyplane.parts.past import Past
from keyplane.parts.people import People
from keyplane.parts.permitting import Permitting
from keyplane.parts.planning import Base, Planned, Planning
from keyplane.parts.revising import Made, Revising
from keyplane.parts.rolling import Rolling
from keyplane.parts.rollouts import Rollouts
from keyplane.parts.status import Known
from keyplane.parts.volumes import Volumes
from keyplane.planner.explain import Explained
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PermanentError, PortError
from keyplane.ports.inventory import (
    Inventory,
    StoredPlan,
)
from keyplane.ports.store import ArtifactIntake
from keyplane.rollout import declaring_values
from keyplane.rollout.declaring_values import Rights

log = Journal(__name__.removeprefix("keyplane."))

TICK_S = 1.0
"""How often is looked at what nothing tells of: who is silent, and what is to be tried again."""


class Controller:
    """One controller of one fleet."""

    def __init__(  # noqa: PLR0913  # the ports that it stands on
        self,
        *,
        inventory: Inventory,
        planning: Planning,
        offering: Offering,
        store: ArtifactIntake,
        clock: Clock,
        agents: Callable[[Sequence[str]], Awaitable[None]],
        permit: Callable[[Mapping[MachineName, Rights]], Awaitable[None]],
        hold_ms: int,
    ) -> None:
        """`agents` sees to it that exactly these machines have an agent here.

        `permit` lets each say and read just these values on the bus; facts count after `hold_ms`.
        """
        self._inventory = inventory
        self._planning = planning
        self._offering = offering
        self._clock = clock
        self._permit = permit
        self._hearing = Hearing(clock)
        self.work = asyncio.Lock()
        """Held while what machines will fetch is made, and until the target names it."""
        self.applied = asyncio.Event()
        """Set whenever the target was moved."""
        self.facts = Knowing(inventory=inventory, clock=clock, hold_ms=hold_ms)
        self._revising = Revising(inventory=inventory, planning=planning, facts=self.facts)
        self._cordoning = Cordoning(inventory, clock)
        self.past = Past(inventory=inventory, revising=self._revising)
        self._rolling = Rolling(inventory=inventory, offering=offering, clock=clock)
        self.volumes = Volumes(inventory=inventory, rolling=self._rolling, clock=clock)
        self.rollouts = Rollouts(
            inventory,
            self._rolling,
            offering,
            planning,
            clock,
            self.work,
            self.volumes,
            self._absent,
        )
        self._permitting = Permitting(
            inventory=inventory,
            declared=self._rolling.declared,
            hearing=self._hearing,
            clock=clock,
            hint=offering.hint,
        )
        self._catching_up = CatchingUp(
            inventory=inventory, rolling=self._rolling, hearing=self._hearing, clock=clock
        )
        self._rolling.recording.recorded = self._permitting.recorded
        self._rolling.refused = lambda: self._permitting.refused
        self.people = People(inventory=inventory, rolling=self._rolling, clock=clock)
        self._leaving = Leaving(
            inventory=inventory, planning=planning, rolling=self._rolling, agents=agents
        )
        self._committing = Committing(
            planning=planning,
            store=store,
            rolling=self._rolling,
            leaving=self._leaving,
            people=self.people,
            volumes=self.volumes,
            permit=permit,
            absent=self._absent,
        )
        self.fact_plans = FactPlans(
            inventory=inventory,
            facts=self.facts,
            plan=self._planned,
            rolling=self._rolling,
            committing=self._committing,
            work=self.work,
            heard=self._hearing.lately,
        )

        self._applying = Applying(
            inventory=inventory,
            planning=planning,
            rolling=self._rolling,
            cordoning=self._cordoning,
            committing=self._committing,
            facts=self.facts,
            fact_plans=self.fact_plans,
        )

    # What people ask.

    async def ready(self) -> messages.Ready:
        target = await self._inventory.target()
        reports = await self._inventory.reports()
        return messages.Ready(
            machines=sorted(self._hearing.lately() & reports.keys()),
            generation=target.plan.generation if target else None,
        )

    async def status(self) -> messages.Status:
        target = await self._inventory.target()
        known = await self._known(target)
        found = status.compute(target, known, await self._rolling.status(target))
        facts, frozen = self.fact_plans.rows(known.facts), await self._inventory.frozen()
        return msgspec.structs.replace(found, frozen=frozen, facts=facts)

    async def measure(self) -> None:
        measuring.measure(await self.status())

    async def machines(self) -> messages.MachineRows:
        documents, _ = await self._explained(target := await self._inventory.target(), None)
        found = machine_views.rows(target, documents, await self._known(target))
        return messages.MachineRows(machines=found)

    async def machine(self, name: MachineName) -> messages.MachineView:
        target = await self._inventory.target()
        documents, explained = await self._explained(target, name)
        known = await self._known(target)
        names = machine_views.names(target, documents, known)
        if name not in names:
            raise _refused(
                "unknown-machine", f"no machine {name} in the target: it has {', '.join(names)}"
            )
        return machine_views.view(name, target, documents, known, explained)

    async def _explained(
        self, target: StoredPlan | None, machine: MachineName | None
    ) -> tuple[Documents, dict[str, list[Explained]]]:
        """What the target's text says; nothing before the first apply."""
        revision = None if target is None else await self._inventory.revision(target.revision)
        if target is None or revision is None:
            return Documents(), {}
        facts = await self.facts.known()
        return await asyncio.to_thread(
            self._planning.explain, revision.files, target.plan, machine, facts
        )

    async def _known(self, target: StoredPlan | None) -> Known:
        reports = await self._inventory.reports()
        names = {*reports, *map(MachineName, target.plan.machines if target else ())}
        return Known(
            reports=reports,
            offers=await self._inventory.last_offers(names),
            heard_ms_ago=self._hearing.ms_ago(),
            lately=self._hearing.lately(),
            lives=self._hearing.lives,
            cordons=await self._inventory.cordons(),
            waits=self._permitting.refused,
            now_ms=self._clock.now_ms(),
            facts=await self.facts.known(),
        )

    async def propose(self, question: messages.Propose) -> messages.Proposal:
        made = await self._revising.made(question.asked)
        if made.is_nothing:
            return proposing.of_nothing(made, await self._inventory.target())
        target, base = await self._rolling.declared.now()
        made, planned = await self.fact_plans.meant(made, target, base)
        asked = await self.volumes.questions(base.entries, planned.entries, question.volumes)
        return proposing.of_plan(made, target, base.entries, planned, asked)

    async def apply(self, request: messages.Apply, *, who: str) -> AsyncIterator[messages.Event]:
        """Commit the text as the target and follow its rollout. Refused before anything is done."""
        async with self.work:
            taken = await self._rolling.taken(request.request) if request.repeated else None
            if taken is not None:
                return taken
            made = await self._revising.made(request.asked)
            target = await self._inventory.target()
            if (request.revision, request.parent) != (
                made.parent,
                target.plan.generation if target else None,
            ):
                raise await self.past.overtaken(request.revision, made, self._clock.now_ms())
            if made.is_nothing:
                raise _refused("nothing", made.said)
            events = await self._applying.apply(request, made, target, who=who)
            self.applied.set()
            return events

    async def target(self) -> messages.Target:
        found = await self._inventory.target()
        known = await self.facts.known()
        facts = {str(machine): dict(stored.planned) for machine, stored in known.items()}
        return messages.Target(
            plan=None if found is None else found.plan,
            facts=facts,
            waiting=self.fact_plans.rows(known),
        )

    async def audit(self, who: str, what: str, **detail: object) -> None:
        """Write down what somebody changed. What commits a target does so by itself."""
        now = self._clock.now_ms()
        await self._inventory.audit(who=who, what=what, detail=detail, at_ms=now)

    async def say(self, request: messages.Say) -> messages.Said:
        async with self.work:
            return await self.people.say(request)

    async def back_up(self, asked: volume_messages.BackUp) -> volume_messages.Pending:
        async with self.work:
            base = await self._rolling.declared.base(await self._inventory.target())
            return await self.volumes.back_up(asked, base.entries)

    async def follow(self) -> AsyncIterator[messages.Event]:
        return await self._rolling.follow()

    async def _planned(self, made: Made, target: StoredPlan | None, base: Base) -> Planned:
        text = messages.Text(files=dict(made.files))
        cordoned = await self._cordoning.cordoned(made)
        known = await self._rolling.known() | self._hearing.lately()
        began = self._clock.monotonic_ms()
        try:
            facts = by_facts.taken(await self.facts.known(), made.take)
            return await asyncio.to_thread(
                self._planning.plan, text, target, base, known, facts, cordoned
            )
        finally:
            metrics.planning.observe((self._clock.monotonic_ms() - began) / 1000)

    # What agents say.

    async def on_ask(self, machine: MachineName, payload: bytes) -> bytes:
        ask = wire.decode_ask(payload)
        if isinstance(ask, wire.Refused):
            self._hearing.heard(machine)
            raise PermanentError(ask.reason)
        self._hearing.heard(machine, ask.boot)
        boot, sequence = await self._rolling.recording.heard(machine)
        heard = sequence if boot == ask.boot else 0
        answer = await self._offering.answer(machine, ask)
        if answer.declaration is not None and await self._catching_up.has_to_wait(machine):
            answer = wire.Answer(declaration=None, highest=ask.have)
        facts = await self.facts.digest(machine)
        held = await self._permitting.held(machine)
        return wire.encode(msgspec.structs.replace(answer, heard=heard, facts=facts, permits=held))

    async def on_report(self, machine: MachineName, payload: bytes) -> None:
        self._hearing.heard(machine)
        report = wire.decode_report(payload, machine=machine)
        if isinstance(report, wire.Refused):
            log.warning("report refused", machine=machine, reason=report.reason)
            raise PermanentError(report.reason)
        self._hearing.reported(machine, report.boot)
        metrics.reports.inc()
        self._offering.heard(machine, report.offer)
        await self._rolling.reported(report)
        self._leaving.reported(machine)
        self._catching_up.reported(report)
        await self._permitting.look()
        await self.volumes.reported(report)

    async def on_beat(self, machine: MachineName, payload: bytes) -> None:
        beat = wire.decode_beat(payload)
        if isinstance(beat, wire.Refused):
            self._hearing.heard(machine)
            return
        self._hearing.heard(machine, beat.boot)
        self._offering.heard(machine, beat.offer)
        last = await self._offering.glance(machine)
        if last is None:
            has_last = beat.offer == NO_OFFER
        else:
            has_last = has(last, beat.offer, beat.generation)
        # A late report of a former life stands until the present one is made to speak.
        boot, told = await self._rolling.recording.heard(machine)
        is_current = (boot, told) == (beat.boot or boot, beat.sequence)
        self._permitting.beat(machine, is_current=is_current)
        is_known = beat.facts is None or beat.facts == await self.facts.digest(machine)
        is_known = is_known and not self._permitting.is_unaware(machine)
        if not has_last or not is_current or not is_known:
            await self._offering.hint(machine)

    async def _absent(self) -> frozenset[MachineName]:
        """Machines that spoke once, and have said nothing for longer than they would if they could."""
        if not self._hearing.is_long_enough:
            return frozenset()
        return await self._rolling.known() - self._hearing.lately()

    # Its own loop.

    async def run(self) -> None:
        """Go on with what was begun, and keep time for it, until cancelled."""
        was_open = True
        while True:
            with contextlib.suppress(PortError):  # the next one asks again
                await self._rolling.tick(await self._absent())
                await self.volumes.tick()
            if was_open or self._rolling.is_open:
                was_open = self._rolling.is_open or not await self._renew_rights()
            await self._leaving.tick()
            await self._permitting.look()
            await self.fact_plans.tick()
            await self._rolling.due.wait(TICK_S)

    async def _renew_rights(self) -> bool:
        """Those of what is declared now, which was all that was needed before; False for later."""
        async with self.work:
            try:
                target = await self._inventory.target()
                base = await self._rolling.declared.base(target)
                plans = [base.entries, base.fled()]
                plans += [] if target is None else [target.entries]
                await self._permit(declaring_values.rights(*plans))
            except (PortError, OSError) as error:
                log.warning("rights on the bus were not renewed", cause=str(error))
                return False
        return True


def _refused(code: str, message: str) -> RefusedError:
    return RefusedError(messages.Problem(code=code, message=message))
