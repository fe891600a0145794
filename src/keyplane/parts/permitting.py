"""Grants permits to stop members of guarded sets, as reports come and machines fall silent.

What is granted is `rollout.permits` to say. A grant is in the inventory before its machine hears
of it: that one is woken, and has it with the answer to its next ask.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from keyplane.journal import Journal
from keyplane.model.declaration import Member, Report
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.volumes import VolumesReport
from keyplane.parts.declared import Declared
from keyplane.parts.hearing import Hearing
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.inventory import Inventory
from keyplane.rollout import permits
from keyplane.rollout.permits import Asked

log = Journal(__name__.removeprefix("keyplane."))

_Told = TypeVar("_Told")

Members = dict[EntryId, Member]
Volumes = dict[EntryId, VolumesReport]


class Permitting:
    """Of one controller. All but the order of asks is read anew by another life of it."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        declared: Declared,
        hearing: Hearing,
        clock: Clock,
        hint: Callable[[MachineName], Awaitable[None]],
    ) -> None:
        self._inventory = inventory
        self._declared = declared
        self._hearing = hearing
        self._clock = clock
        self._hint = hint
        self._lock = asyncio.Lock()
        self._members: dict[MachineName, Members] = {}
        """By what was reported in this life of the controller, and, once read, before it."""
        self._volumes: dict[MachineName, Volumes] = {}
        """By the same reports. A machine with nothing to tell is in neither: a look goes over all."""
        self._told: set[MachineName] = set()
        """Machines whose newest report was taken in."""
        self._is_read = False
        self._current: set[MachineName] = set()
        """Machines of which the report that is held is known to be the last that they made."""
        self._out: dict[EntryId, str] | None = None
        self._turns: dict[tuple[EntryId, str], None] = {}
        """Permits that are asked for, the one asked first first."""
        self.refused: Mapping[EntryId, str] = {}
        """Why entries have to wait, as of the last decision."""

    def recorded(self, report: Report) -> None:
        """Take in a report as it is recorded: it is the newest of its machine."""
        self._take_in(report)
        self._current.add(report.machine)

    def beat(self, machine: MachineName, *, is_current: bool) -> None:
        """A machine says whether the report that is held is the last that it made."""
        if is_current:
            self._current.add(machine)
        else:
            self._current.discard(machine)

    async def held(self, machine: MachineName) -> dict[EntryId, str]:
        """The permits that entries of the machine have."""
        out = await self._read_out()
        return {entry: name for entry, name in out.items() if split_entry(entry)[2] == machine}

    def is_unaware(self, machine: MachineName) -> bool:
        """It asks for a permit that it was granted: a hint was lost."""
        members = self._members.get(machine, {})
        return any(
            members[entry].permit == name and not members[entry].held
            for entry, name in (self._out or {}).items()
            if entry in members
        )

    async def look(self) -> None:
        """Grant what can be granted now. Where that fails, the next look does."""
        try:
            async with self._lock:
                await self._decide()
        except PortError as error:
            log.warning("permits wait", cause=str(error))

    async def _decide(self) -> None:
        await self._read_members()
        out = await self._read_out()
        given = self._given()
        members = {
            entry: each
            for found in self._members.values()
            for entry, each in found.items()
            if entry not in given
        }
        asks = [(entry, each.permit) for entry, each in members.items() if each.permit is not None]
        if not out and not asks:
            self.refused, self._turns = {}, {}
            return
        for ask in sorted(asks):
            self._turns.setdefault(ask)
        self._turns = {turn: None for turn in self._turns if turn in set(asks)}
        guarded = await self._declared.guarded()
        heard = self._hearing.lately() & self._current
        found = permits.decide(
            Asked(
                guards=guarded.guards,
                declared=guarded.members,
                members=members,
                out=out,
                unheard=self._members.keys() - heard,
                waiting=[entry for entry, _ in self._turns],
                given=given,
            )
        )
        self.refused = found.refused
        if not found.granted and not found.over:
            return
        self._out = None  # where the answer is lost, the inventory knows
        await self._inventory.change_permits(
            granted=found.granted, over=found.over, at_ms=self._clock.now_ms()
        )
        kept = {entry: name for entry, name in out.items() if entry not in found.over}
        self._out = {**kept, **found.granted}
        for machine in sorted({split_entry(entry)[2] for entry in found.granted}):
            await self._hint(machine)

    async def _read_members(self) -> None:
        if not self._is_read:
            for machine, stored in (await self._inventory.reports()).items():
                if machine not in self._told:
                    self._take_in(stored.report)
            self._is_read = True

    def _take_in(self, report: Report) -> None:
        entries = report.entries.items()
        self._told.add(report.machine)
        members = {entry: each.member for entry, each in entries if each.member is not None}
        _keep(self._members, report.machine, members)
        orders = {entry: each.volumes for entry, each in entries if each.volumes is not None}
        _keep(self._volumes, report.machine, orders)

    def _given(self) -> frozenset[EntryId]:
        """Whose data another has taken by now."""
        volumes = {e: each for found in self._volumes.values() for e, each in found.items()}
        taken = {each.taken for each in volumes.values()}
        return frozenset(e for e, each in volumes.items() if each.given and each.given in taken)

    async def _read_out(self) -> dict[EntryId, str]:
        if self._out is None:
            self._out = dict(await self._inventory.permits())
        return self._out


def _keep(
    kept: dict[MachineName, dict[EntryId, _Told]],
    machine: MachineName,
    told: dict[EntryId, _Told],
) -> None:
    if told:
        kept[machine] = told
    else:
        kept.pop(machine, None)
