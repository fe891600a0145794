"""What a rollout reads of an entry. The inventory's entries fit as they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from keyplane.model.names import Digest
from keyplane.model.plan import Entry


class Planned(Protocol):
    """An entry of a plan, and the contributions file at each path of its provides' `grants`."""

    @property
    def entry(self) -> Entry: ...

    @property
    def grants(self) -> Mapping[str, Digest]: ...
    @property
    def udp(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedEntry:
    """An entry in the middle of a rollout: its grants may be of base and target together."""

    entry: Entry
    grants: Mapping[str, Digest] = field(default_factory=dict[str, Digest])
    udp: tuple[str, ...] = ()


def same_declared(one: Planned, other: Planned) -> bool:
    """Whether both are declared to a machine alike: nothing would be sent for the difference.

    What a declaration does not hold (closure, dependencies, requirements) is left out: it is in
    the key already, or changes nothing on a machine.
    """
    return (
        one.udp == other.udp
        and dict(one.grants) == dict(other.grants)
        and _declared(one.entry) == _declared(other.entry)
    )


def _declared(entry: Entry) -> tuple[object, ...]:
    return (
        entry.key,
        entry.module,
        entry.version,
        entry.units,
        entry.resources,
        entry.listens,
        entry.volumes,
        entry.secrets,
        entry.artifacts,
        entry.publishes,
    )
