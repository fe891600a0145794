"""What inventories in memory keep, and several of them may share."""

from dataclasses import dataclass, field
from typing import Any

from keyplane.model.declaration import Word
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.ports import inventory, ordering
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Cordon
from keyplane.testing import volume_orders

Json = Any


@dataclass(slots=True)
class Truth:
    """What several inventories over the same truth share."""

    lease: tuple[str, int] | None = None
    revisions: list[inventory.Revision] = field(default_factory=list[inventory.Revision])
    plans: dict[Digest, inventory.StoredPlan] = field(
        default_factory=dict[Digest, inventory.StoredPlan]
    )
    """The one committed last stands last, and is the target."""
    committed: dict[Digest, tuple[str, int]] = field(default_factory=dict[Digest, tuple[str, int]])
    """By whom each generation was committed last, and when."""
    planned: dict[int, tuple[Digest, int]] = field(default_factory=dict[int, tuple[Digest, int]])
    """By revision: the generation that was planned from it last, and how many entries it moved."""
    rollouts: dict[int, inventory.StoredRollout] = field(
        default_factory=dict[int, inventory.StoredRollout]
    )
    offers: dict[MachineName, inventory.StoredOffer] = field(
        default_factory=dict[MachineName, inventory.StoredOffer]
    )
    sends: dict[MachineName, inventory.Send] = field(
        default_factory=dict[MachineName, inventory.Send]
    )
    frozen: str = ""
    lives: dict[MachineName, tuple[ordering.Life, ...]] = field(
        default_factory=dict[MachineName, tuple[ordering.Life, ...]]
    )
    reports: dict[MachineName, inventory.StoredReport] = field(
        default_factory=dict[MachineName, inventory.StoredReport]
    )
    audit: list[tuple[int, str, str, Json]] = field(
        default_factory=list[tuple[int, str, str, Json]]
    )
    words: dict[EntryId, Word] = field(default_factory=dict[EntryId, Word])
    histories: dict[MachineName, dict[str, int]] = field(
        default_factory=dict[MachineName, dict[str, int]]
    )
    occurrences: list[inventory.StoredOccurrence] = field(
        default_factory=list[inventory.StoredOccurrence]
    )
    facts: dict[MachineName, StoredFacts] = field(default_factory=dict[MachineName, StoredFacts])
    noted: int = 0
    """How many occurrences there ever were."""
    permits: dict[EntryId, str] = field(default_factory=dict[EntryId, str])
    cordons: dict[MachineName, Cordon] = field(default_factory=dict[MachineName, Cordon])
    volumes: volume_orders.Kept = field(default_factory=volume_orders.Kept)
    outage: str | None = None

    def forget(self, machine: MachineName) -> None:
        """One that will not be heard again."""
        self.reports.pop(machine, None)
        self.lives.pop(machine, None)
        self.cordons.pop(machine, None)
        for entry in [each for each in self.permits if split_entry(each)[2] == machine]:
            del self.permits[entry]


KEPT = (
    *("revisions", "plans", "rollouts", "offers", "lives", "reports", "audit"),
    *("words", "histories", "occurrences", "facts", "sends", "frozen"),
    *("permits", "cordons", "volumes"),
)
"""What a backup holds."""
