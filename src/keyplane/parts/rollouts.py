"""What people ask of rollouts: how they stand, and that they pause, end, or send once more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

import msgspec

from keyplane.model.declaration import EntryState
from keyplane.model.names import Digest, MachineName, split_entry
from keyplane.parts import control_messages as messages
from keyplane.parts import freezing, held, rolling_state, rollout_messages, telling
from keyplane.parts.applying import TRIES_MAX
from keyplane.parts.control_client import RefusedError
from keyplane.parts.mixing import BaseMovedError
from keyplane.parts.offering import Offering
from keyplane.parts.planning import Base, Planning
from keyplane.parts.rolling import Rolling
from keyplane.parts.volumes import Volumes
from keyplane.ports.clock import Clock
from keyplane.ports.inventory import NO_CHANGE, Inventory, StoredPlan, StoredRollout
from keyplane.rollout import machine, progress, reckoning, view
from keyplane.rollout import state as states
from keyplane.rollout.planned import same_declared
from keyplane.rollout.policies import Terms
from keyplane.rollout.state import Event, Paused, Resumed, State, Stopped

LISTED_MAX = 20


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Of one controller."""

    inventory: Inventory
    rolling: Rolling
    offering: Offering
    planning: Planning
    clock: Clock
    work: asyncio.Lock
    """Held while the target may be moved."""
    volumes: Volumes
    absent: Callable[[], Awaitable[frozenset[MachineName]]]

    async def rows(self) -> rollout_messages.RolloutRows:
        latest = await self.inventory.rollout()
        found: list[rollout_messages.RolloutRow] = []
        for number in range(latest.number if latest else 0, 0, -1):
            row = await self.inventory.rollout(number)
            if row is None or len(found) == LISTED_MAX:
                break
            found.append(_row(row, states.decode(row.state)))
        return rollout_messages.RolloutRows(rollouts=found)

    async def view(self, number: int | None) -> rollout_messages.RolloutView:
        """That one, or the latest."""
        row, state = await self._find(number)
        return rollout_messages.RolloutView(
            rollout=_row(row, state),
            machines=[
                rollout_messages.RolloutMachine(
                    machine=turn.machine,
                    step=turn.step + 1,
                    state=turn.state,
                    entries=list(turn.entries),
                    said=turn.said,
                )
                for turn in view.turns(state)
            ],
            end=None if state.phase.is_open else await self._end(row, state),
        )

    async def _end(self, row: StoredRollout, state: State) -> messages.Ended:
        is_latest = bool(row.base) and any(step.held for step in state.steps)
        target = await self.inventory.target() if is_latest else None
        return rolling_state.end(row, state, target)

    async def act(
        self, asked: rollout_messages.RolloutAct
    ) -> rollout_messages.RolloutView | rollout_messages.Frozen:
        """Do it, or refuse it; it is in the audit log once it is done, unless it was so already."""
        by = f"by {asked.who}" + (f": {asked.why}" if asked.why else "")
        if asked.verb in ("freeze", "thaw"):
            return await self._freeze(asked, by if asked.verb == "freeze" else "")
        latest, _ = await self._find(None)
        number = latest.number if asked.number is None else asked.number
        if await self._is_so(asked, number, by):
            return msgspec.structs.replace(await self.view(number), changed=False)
        match asked.verb:
            case "pause":
                await self._tell(number, Paused(why=by, now_ms=0))
            case "resume":
                if frozen := await self.inventory.frozen():
                    raise _refused("frozen", f"the fleet is frozen {frozen}: `keyplane thaw`")
                await self._tell(number, Resumed(now_ms=0))
            case "stop":
                await self._tell(number, Stopped(why=by, now_ms=0))
            case "close":
                await self._close(number, by)
        await self._audit(asked, f"rollout {asked.verb}", {"rollout": number})
        return await self.view(number)

    async def _freeze(
        self, asked: rollout_messages.RolloutAct, why: str
    ) -> rollout_messages.Frozen:
        before = await self.inventory.frozen()
        if changed := _is_new(asked, before, why):
            await self.rolling.freeze(why)
            await self._audit(asked, asked.verb, {})
        return rollout_messages.Frozen(frozen=await self.inventory.frozen(), changed=changed)

    async def _is_so(self, asked: rollout_messages.RolloutAct, number: int, by: str) -> bool:
        """Whether a word on one rollout says what holds already."""
        row, state = await self._find(number)
        match asked.verb:
            case "pause":
                return row.open and not _is_new(asked, state.paused, by)
            case "resume":
                return row.open and not state.paused
            case "close":
                return not _is_new(asked, state.closed, by)
            case _:
                return False

    async def _audit(
        self, asked: rollout_messages.RolloutAct, what: str, about: Mapping[str, int]
    ) -> None:
        detail = {**about, **({"why": asked.why} if asked.why else {})}
        at_ms = self.clock.now_ms()
        await self.inventory.audit(who=asked.who, what=what, detail=detail, at_ms=at_ms)

    async def again(self, asked: rollout_messages.Again) -> AsyncIterator[messages.Event]:
        """Begin a rollout to the same target, for what is not there yet."""
        async with self.work:
            taken = await self.rolling.taken(asked.request) if asked.repeated else None
            return await self._again(asked) if taken is None else taken

    async def _again(self, asked: rollout_messages.Again) -> AsyncIterator[messages.Event]:
        latest, _ = await self._find(None)
        target = await self.inventory.target()
        assert target is not None, "there is a rollout, so there is a target"
        if asked.retry is not None:
            await self._renew(asked.retry, latest.number, asked.who)
        left = TRIES_MAX
        while True:
            left -= 1
            try:
                return await self._begin(asked, target)
            except BaseMovedError:
                if not left:
                    raise

    async def _begin(
        self, asked: rollout_messages.Again, target: StoredPlan
    ) -> AsyncIterator[messages.Event]:
        latest, latest_state = await self._find(None)
        base = await self.rolling.declared.base(target)
        named = _named(asked, target, base) if asked.retry is None else latest_state.named
        revision = await self.inventory.revision(target.revision)
        decided = await self.volumes.decide(base.entries, target.entries, {}, asked.who)
        events = await self.rolling.begin(
            target,
            base,
            parent=Digest(target.plan.generation),
            before=target,
            who=asked.who,
            terms=Terms(
                rules={} if revision is None else self.planning.rules(revision.files),
                absent=await self.absent(),
                named=named,
                unnamed=await self._unnamed(named, target, base, latest, latest_state),
                transfers=decided.transfers,
            ),
            volumes=decided.change,
            request=asked.request,
        )
        _, state = await self._find(None)
        about = {"machines": sorted(named)} if named else {"rollout": asked.retry}
        await self.inventory.audit(
            who=asked.who,
            what="push" if asked.retry is None else "rollout retry",
            detail={**about, **({} if state.steps else NO_CHANGE)},
            at_ms=self.clock.now_ms(),
        )
        return events

    async def _unnamed(  # how all stands before it
        self,
        named: frozenset[MachineName],
        target: StoredPlan,
        base: Base,
        latest: StoredRollout,
        state: State,
    ) -> dict[MachineName, str]:
        """Machines that a push sends nothing as nobody named them, and why; none of a retry."""
        others = _machines(target, base) - named
        if not named or not others:
            return {}
        if latest.open and state.paused and not freezing.is_pause(state.paused):
            why = f"rollout {latest.number} was paused {state.paused}"
            return dict.fromkeys(others, why)
        return held.unrecorded(others, await self.inventory.sends(), await self.inventory.reports())

    async def _renew(self, number: int, latest: int, who: str) -> None:
        """Have what was sent and failed tried again, under another number."""
        if number != latest:
            raise _refused(
                "overtaken", f"rollout {latest} came after {number}, and has what it had not sent"
            )
        _, state = await self._find(number)
        if state.phase.is_open:
            raise _refused("open", f"rollout {number} is open: it is still at it")
        if state.closed:
            raise _refused("closed", f"rollout {number} was closed {state.closed}")
        left = machine.unproven(state)
        await self.offering.renew(sorted({split_entry(entry)[2] for entry in left}))
        # What its agent has given up is started by a word, as a person on the machine would say it.
        reported = {
            entry: report.state
            for each in (await self.inventory.reports()).values()
            for entry, report in each.report.entries.items()
        }
        for entry in left:
            if reported.get(entry) is EntryState.FAILED:
                at_ms = self.clock.now_ms()
                await self.inventory.say(entry, stop=False, who=who, at_ms=at_ms)

    async def _tell(self, number: int, event: Event) -> None:
        if not await self.rolling.tell(number, event):
            raise _refused("not-open", f"rollout {number} is not open: `keyplane rollout list`")

    async def _close(self, number: int, by: str) -> None:
        row, state = await self._find(number)
        if row.open:
            raise _refused("open", f"rollout {number} is open: `keyplane rollout stop {number}`")
        await self.inventory.save_rollout(
            number, state=states.encode(replace(state, closed=by)), is_open=False
        )

    async def _find(self, number: int | None) -> tuple[StoredRollout, State]:
        row = await self.inventory.rollout(number)
        if row is None:
            what = "no rollout yet" if number is None else f"no rollout {number}"
            raise _refused("unknown-rollout", f"there is {what}: `keyplane rollout list`")
        state = states.decode(row.state)
        if state is None:
            raise _refused("unreadable", f"rollout {row.number} is of another release")
        return row, state


def _named(asked: rollout_messages.Again, target: StoredPlan, base: Base) -> frozenset[MachineName]:
    """The machines to which a person sends whatever they lack."""
    there = _machines(target, base)
    if unknown := sorted(set(asked.machines) - there):
        raise _refused(
            "unknown-machine",
            f"no machine {', '.join(unknown)} in the target: it has {', '.join(sorted(there))}",
        )
    if asked.all:
        return there
    behind = {
        split_entry(entry)[2]
        for entry in {*base.entries, *target.entries}
        if entry not in base.entries
        or entry not in target.entries
        or not same_declared(base.entries[entry], target.entries[entry])
    }
    return frozenset({*map(MachineName, asked.machines), *(behind if asked.behind else ())})


def _machines(target: StoredPlan, base: Base) -> frozenset[MachineName]:
    placed = {split_entry(entry)[2] for entry in (*base.entries, *target.entries)}
    names = {*target.plan.machines, *placed}
    return frozenset(map(MachineName, names))


def _is_new(asked: rollout_messages.RolloutAct, before: str, said: str) -> bool:
    """Whether what is said is not so yet: another reason is something new, and none is not."""
    return said != before and not (said and before and not asked.why)


def _row(row: StoredRollout, state: State | None) -> rollout_messages.RolloutRow:
    said = ""
    if state is not None:
        said = progress.sentence(state) or telling.ended(reckoning.outcome(state)).why
    return rollout_messages.RolloutRow(
        number=row.number,
        state="unreadable" if state is None else state.phase.value,
        open=row.open,
        who=row.who,
        created_ms=row.created_ms,
        generation=row.generation,
        step=0 if state is None else state.sent,
        steps=0 if state is None else state.asked,
        said=said,
    )


def _refused(code: str, message: str) -> RefusedError:
    return RefusedError(messages.Problem(code=code, message=message))
