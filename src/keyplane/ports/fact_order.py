"""Which facts plans are made by: what a machine says, once that has held.

Rules without state, for every implementation of the inventory and for the controller to share. A
fact that is said is not believed at once: until somebody takes it, plans go by what was taken
before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from keyplane.model import facts as model
from keyplane.model.facts import Facts
from keyplane.model.names import MachineName

Json = Any

HOLD_MS = 60_000
"""A network interface or a disk that comes and goes does so within seconds, and a machine that
boots is done within a minute; what lasts longer is worth a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFact:
    """One fact of one machine. None stands for a fact that is not there."""

    value: Json
    """As the machine says it now."""
    since_ms: int
    """When it first said so."""
    planned: Json = None
    """By which plans are made."""


@dataclass(frozen=True, kw_only=True)
class StoredFacts:
    """What a machine says of itself."""

    machine: MachineName
    at_ms: int
    """When it last said something else than before."""
    facts: Mapping[str, StoredFact] = field(default_factory=dict[str, StoredFact])

    @cached_property
    def said(self) -> Facts:
        return _facts({name: each.value for name, each in self.facts.items()})

    @cached_property
    def digest(self) -> str:
        """Of what is said: the machine says it again where its own is another."""
        return model.digest(self.said)

    @cached_property
    def planned(self) -> Facts:
        return _facts({name: each.planned for name, each in self.facts.items()})

    @cached_property
    def planned_digest(self) -> str:
        return model.digest(self.planned)

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """Those of which plans know another value than is said."""
        return tuple(
            name for name, each in sorted(self.facts.items()) if not same(each.value, each.planned)
        )


def after(
    stored: StoredFacts | None, machine: MachineName, said: Mapping[str, Json], now_ms: int
) -> StoredFacts:
    """What is kept once a machine has said all that it knows of itself.

    A value that is what it was keeps its time; one that went away stays until plans have let go.
    """
    known = dict[str, StoredFact]() if stored is None else stored.facts
    facts: dict[str, StoredFact] = {}
    for name in sorted(known.keys() | said.keys()):
        before, value = known.get(name), said.get(name)
        if before is None:
            facts[name] = StoredFact(value=value, since_ms=now_ms)
        elif same(before.value, value):
            facts[name] = before
        else:
            facts[name] = replace(before, value=value, since_ms=now_ms)
    return StoredFacts(machine=machine, at_ms=now_ms, facts=_without_nothing(facts))


def taken(stored: StoredFacts, said: Mapping[str, Json]) -> StoredFacts:
    """Plans are made by these from now on. Of what is said otherwise by now, that is to be taken next."""
    facts = dict(stored.facts)
    for name, value in sorted(said.items()):
        known = facts.get(name, StoredFact(value=None, since_ms=stored.at_ms))
        facts[name] = replace(known, planned=value)
    return replace(stored, facts=_without_nothing(facts))


def same(one: Json, other: Json) -> bool:
    """`1` and `true` are two values."""
    return type(one) is type(other) and one == other


def _without_nothing(facts: Mapping[str, StoredFact]) -> dict[str, StoredFact]:
    return {
        name: each
        for name, each in facts.items()
        if each.value is not None or each.planned is not None
    }


def _facts(values: Mapping[str, Json]) -> Facts:
    return Facts({name: value for name, value in sorted(values.items()) if value is not None})
