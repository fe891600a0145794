"""The edges of a plan: one for each placement that a slot is bound to."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from keyplane.model import plan
from keyplane.planner import canonical
from keyplane.planner.draft import Bindings, Chosen, Draft, SlotSpec, Target
from keyplane.planner.program import Families, Family

_MAKE: Any = msgspec.structs.replace


@dataclass(slots=True, kw_only=True)
class Edges:
    """In the order of their canonical JSON."""

    found: list[plan.Edge] = field(default_factory=list[plan.Edge])
    _encoded: dict[str, list[tuple[bytes, list[bytes]]]]
    """What stands between pieces that many entries share, and the pieces."""

    def encoded(self, machine: str) -> bytes:
        """Those of the machine's entries; put together when asked for, as they are long."""
        return b",".join([glue.join(pieces) for glue, pieces in self._encoded[machine]])

    def put(self, machine: str, glue: bytes, pieces: list[bytes]) -> None:
        self._encoded[machine].append((glue, pieces))


def edges(draft: Draft, families: Families, ids: dict[Family, list[str]]) -> Edges:
    out = Edges(_encoded={name: [] for name in draft.fleet.machines})
    for chosen in sorted(Chosen):
        for several in families.values():
            if len(several) == 1:
                _of_family(out, several[0], ids[several[0]], chosen)
            elif several:
                _of_families(out, several, ids, chosen)
    return out


def _of_families(
    out: Edges, families: list[Family], ids: dict[Family, list[str]], chosen: Chosen
) -> None:
    """Entries of one role that are bound in several ways, by machine all the same."""
    rows = sorted(
        (machine, number, index)
        for number, family in enumerate(families)
        for index, machine in enumerate(family.machines)
    )
    targets = [_targets(family.assignment.slots, family.bindings, chosen) for family in families]
    for machine, number, index in rows:
        if targets[number]:
            _of_entry(out, ids[families[number]][index], machine, targets[number], chosen)


def _of_family(out: Edges, family: Family, ids: list[str], chosen: Chosen) -> None:
    targets = _targets(family.assignment.slots, family.bindings, chosen)
    if not targets:
        return
    if any(target.machine is None for _, target in targets):
        for reader, machine in zip(ids, family.machines, strict=True):
            _of_entry(out, reader, machine, targets, chosen)
        return
    protos = _edges("", "", targets, chosen)
    out.found.extend([_MAKE(proto, consumer=reader) for reader in ids for proto in protos])
    head = b'{"chosen":"%b","consumer":' % chosen.value.encode()
    tails = [b",%b" % canonical.encode_plain(_told(proto))[1:] for proto in protos]
    pieces = [head, *(b"%b,%b" % (tail, head) for tail in tails[:-1]), tails[-1]]
    for reader, machine in zip(ids, family.machines, strict=True):
        # The reader stands between any two pieces.
        out.put(machine, b'"%b"' % reader.encode(), pieces)


def _told(edge: plan.Edge) -> dict[str, str]:
    """What comes after the consumer."""
    return {"provide": edge.provide, "provider": edge.provider, "slot": edge.slot}


def _of_entry(
    out: Edges,
    reader: str,
    machine: str,
    targets: list[tuple[SlotSpec, Target]],
    chosen: Chosen,
) -> None:
    found = _edges(reader, machine, targets, chosen)
    out.found.extend(found)
    out.put(machine, b",", [canonical.encode_plain(edge) for edge in found])


def _targets(
    slots: tuple[SlotSpec, ...], bindings: Bindings, chosen: Chosen
) -> list[tuple[SlotSpec, Target]]:
    return [
        (slot, target)
        for slot, binding in zip(slots, bindings, strict=True)
        if binding is not None and binding.chosen is chosen
        for target in binding.targets
    ]


def _edges(
    reader: str, machine: str, targets: list[tuple[SlotSpec, Target]], chosen: Chosen
) -> list[plan.Edge]:
    """A slot may have the name of an interface that the role requires: one edge is enough."""
    found = sorted(
        {(target.offer.provide, _provider(target, machine), slot.name) for slot, target in targets}
    )
    return [
        plan.Edge(
            consumer=reader, slot=slot, provider=provider, provide=provide, chosen=chosen.value
        )
        for provide, provider, slot in found
    ]


def _provider(target: Target, own: str) -> str:
    if target.offer.assignment is None:
        return target.offer.id
    return f"{target.offer.id}@{own if target.machine is None else target.machine}"
