"""A step of a rollout: what is sent at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from keyplane.model.names import EntryId, MachineName, split_entry


class Gap(NamedTuple):
    consumer: EntryId
    provider: EntryId


class Hold(NamedTuple):
    entry: EntryId
    by: EntryId | None
    """What is held and has to go before it; None: it is held for a reason of its own."""
    why: str = ""
    """That reason, where it is none of its policy's."""


class Work(NamedTuple):
    """A step on one machine."""

    rekeyed: tuple[EntryId, ...] = ()
    """Activated or changed."""
    live: tuple[EntryId, ...] = ()
    removed: tuple[EntryId, ...] = ()
    tightened: tuple[EntryId, ...] = ()
    awaited: tuple[EntryId, ...] = ()
    yielded: tuple[EntryId, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is sent at once. Each list is sorted.

    Without slots, as what is derived is kept: a step of a hundred thousand entries is asked for
    one machine's with each report.
    """

    activated: tuple[EntryId, ...] = ()
    """In the target only."""
    changed: tuple[EntryId, ...] = ()
    """Another key."""
    live: tuple[EntryId, ...] = ()
    """The same key; configData, contracts, live fields or grants are other ones."""
    removed: tuple[EntryId, ...] = ()
    """In the base only."""
    tightened: tuple[EntryId, ...] = ()
    """Their grants lose the consumers that have gone by now."""
    awaited: tuple[EntryId, ...] = ()
    """An earlier rollout sent them and did not see them well; nothing is sent for them now."""
    yielded: tuple[EntryId, ...] = ()
    """They stop here and give their data away; a later step removes them."""
    rewired: tuple[EntryId, ...] = ()
    """Nothing is sent for them: from here on they count as users of their new providers."""
    gaps: tuple[Gap, ...] = ()
    """Users of an entry that is removed here, which do without it until they switch."""
    remarks: tuple[str, ...] = ()
    """Where the order costs somebody something, and why."""
    settle_ms: int = 0
    """How long its machines are to be well before the next step: others follow them."""
    holds: tuple[Hold, ...] = ()
    """Only of a step that is recorded and not sent."""
    tier: int = 0
    """Which of the order it is a part of."""
    together: tuple[tuple[MachineName, ...], ...] = ()
    """Machines of its tier that cannot be parted."""
    away: bool = False
    """None of its machines was heard when the tier was parted."""

    @property
    def held(self) -> bool:
        return bool(self.holds)

    @cached_property
    def switched(self) -> tuple[EntryId, ...]:
        """All that go from base to target."""
        return tuple(sorted((*self.activated, *self.changed, *self.live)))

    @cached_property
    def machines(self) -> tuple[MachineName, ...]:
        """All whose declaration may change with this step."""
        return tuple(sorted(self._work))

    def work(self, machine: MachineName) -> Work:
        return self._work.get(machine, Work())

    @cached_property
    def _work(self) -> Mapping[MachineName, Work]:
        live = frozenset(self.live)
        found: dict[MachineName, tuple[list[EntryId], ...]] = {}
        kinds = (
            (entry for entry in self.switched if entry not in live),
            self.live,
            self.removed,
            self.tightened,
            self.awaited,
            self.yielded,
        )
        for position, entries in enumerate(kinds):
            for entry in entries:
                machine = split_entry(entry)[2]
                found.setdefault(machine, ([], [], [], [], [], []))[position].append(entry)
        return {machine: Work(*(tuple(one) for one in lists)) for machine, lists in found.items()}
