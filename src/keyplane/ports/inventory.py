"""The inventory holds the truth: revisions, plans, the target, offers, reports, facts, rollouts, audit.

Every call is one transaction. A write by a controller that lost the lease is refused.

*The lease.* An inventory is opened for a holder, a name that no other process of any life has, or
for none. Each write is refused unless the lease is its holder's at that moment; one that has run
out is still its holder's until another takes it. Without a holder, writes go through only while
the lease is free: never taken, or released. A tool that writes beside no controller either relies
on that or takes the lease for its run. Whoever renews after the time he had should read anew: the
lease may have been another's in between.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from keyplane.model.declaration import OfferNumber, Report, Word
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.occurrence import Occurrence
from keyplane.model.plan import Entry, Plan
from keyplane.model.volumes import OrderChange
from keyplane.ports.errors import PermanentError, TransientError
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Guarding
from keyplane.ports.leases import Leases
from keyplane.ports.volume_orders import VolumeOrders

Json = Any


class InventoryUnavailableError(TransientError):
    """Locked for too long, out of space, or not reachable; the message says which."""


class InventoryUnusableError(PermanentError):
    """Damaged, read-only, of a newer version, or no inventory at all; the message says which."""


class TargetMovedError(PermanentError):
    """The target is no longer the parent that the new one was planned from."""

    def __init__(self, parent: Digest | None, target: Digest | None) -> None:
        super().__init__(
            f"planned from {parent or 'nothing'}, but the target is {target or 'nothing'} by now:"
            " plan again"
        )


class RevisionMovedError(PermanentError):
    """The newest revision is no longer the one that a change was made from."""

    def __init__(self, parent: int | None, newest: int | None) -> None:
        super().__init__(
            f"made from revision {parent or 'nothing'}, but the newest is {newest or 'nothing'}"
            " by now: look again"
        )


class LeaseLostError(PermanentError):
    """Another controller holds the lease."""

    def __init__(self, holder: str | None, held_by: str | None) -> None:
        if holder is None:
            text = f"{held_by} holds the lease, and alone may write"
        elif held_by is None:
            text = f"{holder} may not write without the lease, which is free"
        else:
            text = f"{holder} may not write: {held_by} holds the lease"
        super().__init__(text)


class StaleWriteError(PermanentError):
    """What stands is newer: a higher offer, or a later rollout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The whole text of a fleet at one time."""

    number: int
    digest: Digest
    at_ms: int
    who: str
    why: str
    files: Mapping[str, bytes]
    """By path relative to the fleet directory."""
    verb: str = ""
    """What made it, such as `apply` or `set`; empty if a release before 0.2 did."""
    parent: int | None = None
    """The revision that it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionNote:
    """A revision without its text, and what was planned from it."""

    number: int
    at_ms: int
    who: str
    verb: str
    why: str
    parent: int | None
    generation: Digest | None
    """The last one that was made the target from it."""
    moved: int | None
    """How many entries that one moved."""


NO_CHANGE: Mapping[str, Json] = {"changed": False}
"""In the audit log, of what somebody asked for that was so already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What somebody does to the fleet: one revision, and one row of the audit log.

    Where the text is the newest revision's, it is that revision again.
    """

    files: Mapping[str, bytes]
    parent: int | None
    """The newest revision, as whoever made the change knows it."""
    verb: str
    why: str
    moved: int
    """How many entries it moves."""
    detail: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """For the audit log, beside the revision, the generation and the rollout."""
    forgets: MachineName | None = None
    """A machine that will not be heard again: its report, its cordon and the permits of its entries
    go. If it is, its reports are taken in as those of a new one. What it was offered stays: its
    numbers go on, and what happened on it can still be looked up."""
    facts: Mapping[MachineName, Mapping[str, Json]] = field(
        default_factory=dict[MachineName, Mapping[str, Json]]
    )
    """By which it is planned, and by which plans are made from now on, as by `take_facts`."""

    def audited(self, revision: int, generation: str, rollout: int) -> Json:
        """The detail of its row of the audit log."""
        why = {"why": self.why} if self.why else {}
        ends = {"revision": revision, "generation": generation, "rollout": rollout}
        return {**self.detail, **why, **ends}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGeneration:
    """A generation whose plan can still be read."""

    generation: Digest
    revision: int
    who: str
    at_ms: int
    """When it was last made the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEntry:
    """An entry with what its declaration needs and the plan's document does not show."""

    entry: Entry
    grants: Mapping[str, Digest] = field(default_factory=dict[str, Digest])
    """The contributions file at each path; its bytes stand in `contents`."""
    udp: tuple[str, ...] = ()
    """Its listens that are of UDP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A generation as it was committed. Entries and contents are kept by digest, once each."""

    plan: Plan
    revision: int
    entries: Mapping[EntryId, PlannedEntry]
    """Those of the plan, all of them and no other."""
    contents: Mapping[Digest, bytes]


@dataclass(frozen=True, slots=True)
class Build:
    """What of a module an entry runs."""

    module: str
    version: str
    digest: Digest
    """Of all that was made for it; the same for two versions that differ in their texts alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffer:
    """What a machine was last offered."""

    machine: MachineName
    offer: OfferNumber
    digest: Digest
    """Of the declaration without its number: the number rises only when this changes."""
    signed: bytes
    """The declaration as it is sent."""
    carried: Mapping[EntryId, Build] = field(default_factory=dict[EntryId, Build])
    """What it sends; kept apart, for `sends`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """What the last offer of a machine carried."""

    offer: OfferNumber
    at_ms: int
    carried: Mapping[EntryId, Build]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    report: Report
    received_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRollout:
    """A rollout's state, as `rollout` encodes it. One at most is open, and only the latest."""

    number: int
    generation: Digest
    created_ms: int
    who: str
    open: bool
    state: bytes
    base: Mapping[EntryId, PlannedEntry]
    """What was declared when it began: entries of tiers not yet sent stay as they are here.

    Empty in all but the latest.
    """
    request: str = ""
    """By whose name it was asked for: the same request again is for this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOccurrence:
    """What happened on a machine, in the order in which it was told."""

    id: int
    machine: MachineName
    occurrence: Occurrence


class Inventory(Leases, Guarding, VolumeOrders, Protocol):
    """Revisions, plans and what became of them."""

    async def add_revision(
        self, files: Mapping[str, bytes], *, who: str, why: str, at_ms: int
    ) -> Revision:
        """Record a revision; the same text as the latest is that one again."""
        ...

    async def revision(self, number: int | None = None) -> Revision | None:
        """That one, or the latest."""
        ...

    async def history(self, limit: int) -> tuple[RevisionNote, ...]:
        """The newest revisions, the newest first."""
        ...

    async def generations(self) -> tuple[KeptGeneration, ...]:
        """Those that are kept, the one committed last first: the target."""
        ...

    async def target(self) -> StoredPlan | None: ...

    async def plan(self, generation: Digest) -> StoredPlan | None:
        """One of the kept generations."""
        ...

    async def commit(  # noqa: PLR0913  # one compare-and-set writes all of it
        self,
        stored: StoredPlan,
        *,
        parent: Digest | None,
        rollout: bytes,
        base: Mapping[EntryId, PlannedEntry],
        who: str,
        at_ms: int,
        change: Change | None = None,
        volumes: OrderChange | None = None,
        request: str = "",
    ) -> StoredRollout:
        """Make the plan the target and open its rollout, closing one that is open.

        Compare-and-set on the parent generation; only what moved is written; the twenty newest
        generations are kept, and a few hundred rollouts. Raises TargetMovedError.

        With a change its revision and its row of the audit log are written too, all or nothing;
        raises RevisionMovedError if its parent is not the newest revision. The plan names the
        revision as `ordering.revision_after` has it. Without one the text stays as it is. What
        becomes of the data of entries that move is written with it: `volumes`.
        """
        ...

    async def rollout(self, number: int | None = None) -> StoredRollout | None:
        """That one, or the latest."""
        ...

    async def save_rollout(self, number: int, *, state: bytes, is_open: bool) -> None:
        """Raises StaleWriteError if it would open one that is not the latest, or is not there."""
        ...

    async def store_offers(self, offers: Sequence[StoredOffer], *, at_ms: int) -> None:
        """Keep all of them, each of another machine, with what they carry, or none.

        Raises StaleWriteError if a number is not above the last one of its machine.
        """
        ...

    async def sends(self) -> Mapping[MachineName, Send]:
        """By machine; one that was offered something by a release before 0.2 has no row."""
        ...

    async def frozen(self) -> str:
        """Why nothing is to be sent; empty where the fleet is not frozen."""
        ...

    async def freeze(self, why: str) -> None:
        """From now on; an empty reason ends it."""
        ...

    async def last_offer(self, machine: MachineName) -> StoredOffer | None: ...

    async def last_offers(
        self, machines: Collection[MachineName]
    ) -> Mapping[MachineName, StoredOffer]:
        """Of each that was ever offered something."""
        ...

    async def record_reports(
        self, reports: Sequence[Report], *, received_ms: int
    ) -> Sequence[bool]:
        """Keep the newest of each machine; False for each that is older than what is kept.

        They count in their order, one after another, and are kept all or none.

        What happened is taken in from each, once, and is not kept with the report.

        `ordering.heard` says which is older, across the lives of an agent too.
        """
        ...

    async def reports(self) -> Mapping[MachineName, StoredReport]: ...

    async def record_facts(
        self, machine: MachineName, said: Mapping[str, Json], *, received_ms: int
    ) -> StoredFacts:
        """Keep all that a machine says of itself, as `fact_order.after` has it."""
        ...

    async def take_facts(self, machine: MachineName, said: Mapping[str, Json]) -> StoredFacts:
        """Let plans be made by these values from now on, also where the machine says others by now."""
        ...

    async def facts(self) -> Mapping[MachineName, StoredFacts]:
        """By machine; none of a machine that never said any."""
        ...

    async def occurrences(
        self,
        machine: MachineName,
        entry: EntryId | None,
        *,
        after: int,
        since_ms: int,
        limit: int,
    ) -> tuple[StoredOccurrence, ...]:
        """The last ones of a machine, or of one entry of it, oldest first; gaps among them.

        `after` is the id of one that is known already, or 0.
        """
        ...

    async def say(self, entry: EntryId, *, stop: bool, who: str, at_ms: int) -> Word:
        """Record what a person says of an entry, under a number above all others."""
        ...

    async def words(self) -> Mapping[EntryId, Word]:
        """The last word on each entry on which there is one."""
        ...

    async def forget_words(self, entries: Collection[EntryId]) -> None:
        """Of entries that are gone; they come back as new ones."""
        ...

    async def audit(self, *, who: str, what: str, detail: Json, at_ms: int) -> None: ...

    async def audit_log(self, limit: int) -> tuple[tuple[int, str, str, Json], ...]:
        """(at_ms, who, what, detail), the newest first."""
        ...

    async def close(self) -> None: ...
