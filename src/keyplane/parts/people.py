"""What people ask of single entries: that one stops or starts, and what happened to it.

A word is in the inventory and in the audit before any machine hears of it. It goes out with the
machine's declaration, which is whole: a machine that is away heeds it when it is back.
"""

import difflib
from collections.abc import Iterable

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.parts import control_messages as messages
from keyplane.parts import occurrence_messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.rolling import Rolling
from keyplane.ports.clock import Clock
from keyplane.ports.inventory import Inventory, StoredPlan


class People:
    """Of one controller."""

    def __init__(self, *, inventory: Inventory, rolling: Rolling, clock: Clock) -> None:
        self._inventory = inventory
        self._rolling = rolling
        self._clock = clock

    async def say(self, request: messages.Say) -> messages.Said:
        """Record a word on an entry that is declared, and have its machine hear of it."""
        target = await self._inventory.target()
        base = await self._rolling.declared.base(target)
        entry = EntryId(request.entry)
        declared = {*base.entries, *(target.entries if target else ())}
        if entry not in declared:
            raise _unknown(request.entry, declared)
        at_ms = self._clock.now_ms()
        await self._inventory.say(entry, stop=request.stop, who=request.who, at_ms=at_ms)
        machine = split_entry(entry)[2]
        await self._rolling.offer_again([machine])
        offer = await self._inventory.last_offer(machine)
        return messages.Said(
            entry=entry, machine=machine, offer=str(offer.offer) if offer else None
        )

    async def forget(self, target: StoredPlan) -> None:
        """Words on entries that left the target are over: they come back as new ones."""
        over = (await self._inventory.words()).keys() - target.entries.keys()
        if over:
            await self._inventory.forget_words(sorted(over))

    async def occurrences(
        self, asked: occurrence_messages.OccurrencesAsked
    ) -> occurrence_messages.Occurrences:
        """What happened to an entry or on a machine; refused where none of that name was ever."""
        entry = None if asked.entry is None else EntryId(asked.entry)
        machine = asked.machine if entry is None else _machine_of(entry)
        found = (
            await self._inventory.occurrences(
                MachineName(machine),
                entry,
                after=asked.after,
                since_ms=asked.since_ms,
                limit=asked.limit,
            )
            if machine
            else ()
        )
        if not any(entry in (None, each.occurrence.entry) for each in found):
            await self._check_known(asked)
        return occurrence_messages.Occurrences(
            occurrences=[
                occurrence_messages.OccurrenceRow(
                    id=each.id,
                    number=each.occurrence.number,
                    at_ms=each.occurrence.at_ms,
                    machine=each.machine,
                    entry=each.occurrence.entry,
                    unit=each.occurrence.unit,
                    act=each.occurrence.act.value,
                    cause=each.occurrence.cause.value,
                    detail=each.occurrence.detail,
                )
                for each in found
            ]
        )

    async def _check_known(self, asked: occurrence_messages.OccurrencesAsked) -> None:
        target = await self._inventory.target()
        reports = await self._inventory.reports()
        declared = set(target.entries if target else ())
        if asked.entry is not None:
            reported = {entry for each in reports.values() for entry in each.report.entries}
            if asked.entry not in {*declared, *reported}:
                raise _unknown(asked.entry, {*declared, *reported})
        else:
            machines = {*reports, *(target.plan.machines if target else ())}
            if asked.machine not in machines:
                raise _unknown(asked.machine or "", machines)


def _machine_of(entry: EntryId) -> MachineName | None:
    return MachineName(entry.rpartition("@")[2]) if "@" in entry else None


def _unknown(name: str, known: Iterable[str]) -> RefusedError:
    """Names the nearest ones, or all of them where they are few."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    told = f": there are {', '.join(names[:20])}" if names and not near else ""
    return RefusedError(
        messages.Problem(code="unknown-name", message=f"nothing here is named {name}{hint}{told}")
    )
