"""An inventory in memory, with every promise of the port and no disk.

It may not be used where anything has to outlive the process.
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keyplane.model.declaration import Report, Word
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import OrderChange
from keyplane.ports import fact_order, inventory, ordering
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Cordon
from keyplane.ports.leases import Lease
from keyplane.testing import volume_orders
from keyplane.testing.truth import KEPT, Truth

Json = Any
Backup = Mapping[str, Any]
"""All that is kept, by name."""


class MemoryInventory(volume_orders.InMemory):
    """The port `Inventory`, in memory."""

    def __init__(self, holder: str | None = None) -> None:
        self._holder = holder
        self._truth = Truth()

    def beside(self, holder: str | None) -> "MemoryInventory":
        """Another process's inventory over the same truth."""
        other = MemoryInventory(holder)
        other._truth = self._truth
        return other

    def break_down(self, cause: str | None) -> None:
        """Make every call over this truth fail with the cause, until None is given."""
        self._truth.outage = cause

    def backup(self) -> Backup:
        """A copy of all that is kept, for `restore`."""
        return {name: copy.copy(getattr(self._truth, name)) for name in KEPT}

    def restore(self, backup: Backup) -> None:
        """Go back to what a copy holds; every inventory over this truth sees it so."""
        for name, kept in backup.items():
            setattr(self._truth, name, copy.copy(kept))
        self._truth.lease = None

    def _read(self) -> Truth:
        if self._truth.outage is not None:
            raise inventory.InventoryUnavailableError(self._truth.outage)
        return self._truth

    def _write(self) -> Truth:
        truth = self._read()
        held_by = None if truth.lease is None else truth.lease[0]
        if held_by != self._holder:
            raise inventory.LeaseLostError(self._holder, held_by)
        return truth

    async def take_lease(self, holder: str, *, now_ms: int, until_ms: int) -> bool:
        truth = self._read()
        self._holder = holder
        if truth.lease is not None and truth.lease[0] != holder and truth.lease[1] > now_ms:
            return False
        truth.lease = (holder, until_ms)
        return True

    async def lease(self) -> Lease | None:
        held = self._read().lease
        return None if held is None else Lease(*held)

    async def release_lease(self) -> None:
        truth = self._read()
        if truth.lease is not None and truth.lease[0] == self._holder:
            truth.lease = None

    async def add_revision(
        self, files: Mapping[str, bytes], *, who: str, why: str, at_ms: int
    ) -> inventory.Revision:
        return self._revise(files, who=who, why=why, at_ms=at_ms, verb="")

    def _revise(
        self, files: Mapping[str, bytes], *, who: str, why: str, at_ms: int, verb: str
    ) -> inventory.Revision:
        truth = self._write()
        digest = ordering.revision_digest(files)
        if truth.revisions and truth.revisions[-1].digest == digest:
            return truth.revisions[-1]
        made = inventory.Revision(
            number=len(truth.revisions) + 1,
            digest=digest,
            at_ms=at_ms,
            who=who,
            why=why,
            files=dict(files),
            verb=verb,
            parent=len(truth.revisions) or None,
        )
        truth.revisions.append(made)
        return made

    async def history(self, limit: int) -> tuple[inventory.RevisionNote, ...]:
        truth = self._read()
        return tuple(
            inventory.RevisionNote(
                number=each.number,
                at_ms=each.at_ms,
                who=each.who,
                verb=each.verb,
                why=each.why,
                parent=each.parent,
                generation=planned[0] if planned else None,
                moved=planned[1] if planned else None,
            )
            for each in reversed(truth.revisions[-limit:])
            for planned in (truth.planned.get(each.number),)
        )

    async def generations(self) -> tuple[inventory.KeptGeneration, ...]:
        truth = self._read()
        return tuple(
            inventory.KeptGeneration(
                generation=generation, revision=stored.revision, who=who, at_ms=at_ms
            )
            for generation, stored in reversed(truth.plans.items())
            for who, at_ms in (truth.committed[generation],)
        )

    async def revision(self, number: int | None = None) -> inventory.Revision | None:
        revisions = self._read().revisions
        wanted = len(revisions) if number is None else number
        return revisions[wanted - 1] if 1 <= wanted <= len(revisions) else None

    def known_facts(self) -> dict[MachineName, StoredFacts]:
        """As `facts`, whoever has the lease and whether or not it answers."""
        return dict(self._truth.facts)

    def texts(self) -> dict[int, dict[str, bytes]]:
        """Of each revision, for whoever looks at the truth."""
        revisions = self._truth.revisions
        return {number: dict(each.files) for number, each in enumerate(revisions, start=1)}

    async def target(self) -> inventory.StoredPlan | None:
        return next(reversed(self._read().plans.values()), None)

    async def plan(self, generation: Digest) -> inventory.StoredPlan | None:
        return self._read().plans.get(generation)

    async def commit(  # noqa: PLR0913  # the port's own shape
        self,
        stored: inventory.StoredPlan,
        *,
        parent: Digest | None,
        rollout: bytes,
        base: Mapping[EntryId, inventory.PlannedEntry],
        who: str,
        at_ms: int,
        change: inventory.Change | None = None,
        volumes: OrderChange | None = None,
        request: str = "",
    ) -> inventory.StoredRollout:
        truth = self._write()
        assert stored.plan.entries.keys() == stored.entries.keys()
        standing = next(reversed(truth.plans), None)
        if standing != parent:
            raise inventory.TargetMovedError(parent, standing)
        generation = Digest(stored.plan.generation)
        if change is not None:
            newest = len(truth.revisions) or None
            if newest != change.parent:
                raise inventory.RevisionMovedError(change.parent, newest)
            revision = self._revise(
                change.files, who=who, why=change.why, at_ms=at_ms, verb=change.verb
            )
            assert revision.number == stored.revision, "the plan names the revision that it is of"
            if truth.planned.get(revision.number, ("", 0))[0] != generation:
                truth.planned[revision.number] = (generation, change.moved)
        truth.committed[generation] = (who, at_ms)
        truth.plans.pop(generation, None)
        truth.plans[generation] = replace(
            stored, entries=dict(stored.entries), contents=dict(stored.contents)
        )
        for old in list(truth.plans)[: -ordering.GENERATIONS_KEPT]:
            del truth.plans[old]
        number = max(truth.rollouts, default=0) + 1
        for earlier in truth.rollouts.values():
            truth.rollouts[earlier.number] = replace(earlier, open=False, base={})
        truth.rollouts[number] = inventory.StoredRollout(
            number=number,
            generation=generation,
            created_ms=at_ms,
            who=who,
            open=True,
            state=rollout,
            base=dict(base),
            request=request,
        )
        truth.rollouts.pop(number - ordering.ROLLOUTS_KEPT, None)
        if change is not None:
            if change.forgets is not None:
                truth.forget(change.forgets)
            detail = change.audited(stored.revision, generation, number)
            truth.audit.append((at_ms, who, change.verb, detail))
            for machine, said in change.facts.items():
                self._take(machine, said)
        if volumes is not None:
            truth.volumes.change(volumes)
        return truth.rollouts[number]

    async def rollout(self, number: int | None = None) -> inventory.StoredRollout | None:
        rollouts = self._read().rollouts
        return rollouts.get(max(rollouts, default=0) if number is None else number)

    async def save_rollout(self, number: int, *, state: bytes, is_open: bool) -> None:
        rollouts = self._write().rollouts
        latest = max(rollouts, default=0)
        if number not in rollouts or (is_open and number != latest):
            raise inventory.StaleWriteError(
                f"rollout {number} cannot be saved so: {latest} is the latest"
            )
        rollouts[number] = replace(rollouts[number], state=state, open=is_open)

    async def store_offers(self, offers: Sequence[inventory.StoredOffer], *, at_ms: int) -> None:
        truth = self._write()
        for offer in offers:
            last = truth.offers.get(offer.machine)
            if last is not None and offer.offer <= last.offer:
                raise inventory.StaleWriteError(
                    f"{offer.machine} was offered {last.offer} already, and {offer.offer} is not"
                    " above"
                )
        for offer in offers:
            truth.offers[offer.machine] = replace(offer, carried={})
            truth.sends[offer.machine] = inventory.Send(
                offer=offer.offer, at_ms=at_ms, carried=dict(offer.carried)
            )

    async def sends(self) -> Mapping[MachineName, inventory.Send]:
        return dict(sorted(self._read().sends.items()))

    async def frozen(self) -> str:
        return self._read().frozen

    async def freeze(self, why: str) -> None:
        self._write().frozen = why

    async def last_offer(self, machine: MachineName) -> inventory.StoredOffer | None:
        return self._read().offers.get(machine)

    async def last_offers(
        self, machines: Collection[MachineName]
    ) -> Mapping[MachineName, inventory.StoredOffer]:
        offers = self._read().offers
        return {machine: offers[machine] for machine in machines if machine in offers}

    async def record_reports(
        self, reports: Sequence[Report], *, received_ms: int
    ) -> Sequence[bool]:
        truth = self._write()
        return [self._record(truth, report, received_ms) for report in reports]

    def _record(self, truth: Truth, report: Report, received_ms: int) -> bool:
        self._note(truth, report)
        report = replace(report, occurrences=())
        lives = ordering.heard(
            truth.lives.get(report.machine, ()),
            boot=report.boot,
            sequence=report.sequence,
            now_ms=received_ms,
        )
        if lives is None:
            return False
        truth.lives[report.machine] = lives
        truth.reports[report.machine] = inventory.StoredReport(
            report=report, received_ms=received_ms
        )
        return True

    async def reports(self) -> Mapping[MachineName, inventory.StoredReport]:
        return dict(sorted(self._read().reports.items()))

    async def record_facts(
        self, machine: MachineName, said: Mapping[str, Json], *, received_ms: int
    ) -> StoredFacts:
        facts = self._write().facts
        facts[machine] = fact_order.after(facts.get(machine), machine, said, received_ms)
        return facts[machine]

    async def take_facts(self, machine: MachineName, said: Mapping[str, Json]) -> StoredFacts:
        self._write()
        return self._take(machine, said)

    def _take(self, machine: MachineName, said: Mapping[str, Json]) -> StoredFacts:
        facts = self._truth.facts
        known = facts.get(machine, StoredFacts(machine=machine, at_ms=0))
        facts[machine] = fact_order.taken(known, said)
        return facts[machine]

    async def facts(self) -> Mapping[MachineName, StoredFacts]:
        return dict(sorted(self._read().facts.items()))

    def _note(self, truth: Truth, report: Report) -> None:
        known = truth.histories.get(report.machine, {})
        fresh = ordering.unheard(known, report)
        for each in ordering.said_on_machine(fresh):
            detail = {"entry": each.entry, "machine": report.machine}
            truth.audit.append((each.at_ms, each.who, each.act.value, detail))
        for each in fresh:
            truth.noted += 1
            truth.occurrences.append(
                inventory.StoredOccurrence(id=truth.noted, machine=report.machine, occurrence=each)
            )
            same = [
                other
                for other in truth.occurrences
                if (other.machine, other.occurrence.entry) == (report.machine, each.entry)
            ]
            if len(same) > ordering.OCCURRENCES_KEPT:
                truth.occurrences.remove(same[0])
        if report.occurrences:
            last = report.occurrences[-1].number
            last = max(known.get(report.history, 0), last)
            truth.histories[report.machine] = {**known, report.history: last}

    async def occurrences(
        self,
        machine: MachineName,
        entry: EntryId | None,
        *,
        after: int,
        since_ms: int,
        limit: int,
    ) -> tuple[inventory.StoredOccurrence, ...]:
        found = [
            each
            for each in self._read().occurrences
            if each.machine == machine
            and each.id > after
            and each.occurrence.at_ms >= since_ms
            and (entry is None or each.occurrence.entry in (entry, ordering.WHOLE_MACHINE))
        ]
        return tuple(found[-limit:])

    async def say(self, entry: EntryId, *, stop: bool, who: str, at_ms: int) -> Word:
        truth = self._write()
        highest = max((word.number for word in truth.words.values()), default=0)
        word = Word(number=max(at_ms, highest + 1), stop=stop, who=who, at_ms=at_ms)
        truth.words[entry] = word
        detail = {"entry": entry, "number": word.number}
        truth.audit.append((at_ms, who, "stop" if stop else "start", detail))
        return word

    async def words(self) -> Mapping[EntryId, Word]:
        return dict(sorted(self._read().words.items()))

    async def forget_words(self, entries: Collection[EntryId]) -> None:
        words = self._write().words
        for entry in entries:
            words.pop(entry, None)

    async def permits(self) -> Mapping[EntryId, str]:
        return dict(sorted(self._read().permits.items()))

    async def change_permits(
        self, *, granted: Mapping[EntryId, str], over: Collection[EntryId], at_ms: int
    ) -> None:
        del at_ms  # only a database's reader would look at it
        permits = self._write().permits
        for entry in over:
            permits.pop(entry, None)
        permits.update(granted)

    async def cordons(self) -> Mapping[MachineName, Cordon]:
        return dict(sorted(self._read().cordons.items()))

    async def cordon(self, machine: MachineName, cordon: Cordon | None) -> None:
        cordons = self._write().cordons
        cordons.pop(machine, None)
        if cordon is not None:
            cordons[machine] = cordon

    async def audit(self, *, who: str, what: str, detail: Json, at_ms: int) -> None:
        self._write().audit.append((at_ms, who, what, detail))

    async def audit_log(self, limit: int) -> tuple[tuple[int, str, str, Json], ...]:
        return tuple(reversed(self._read().audit))[:limit]

    async def close(self) -> None:
        """Nothing is held."""
