"""What happens to each entry, and what of it has to come before what.

A provider switches before its consumers, by every edge of the target; an entry that is gone is
removed once nobody that used it is left on it; where two entries cannot stand on one machine
together, the old one goes first.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import claims
from keyplane.rollout.planned import Planned, same_declared
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.volumes import Give


class Act(IntEnum):
    SWITCH = 0
    REWIRE = 1
    """Only the edges moved: nothing is sent, but what it used goes after what it uses now."""
    AWAIT = 2
    """Sent before, and never seen to be well: what uses it waits for that."""
    REMOVE = 3
    TIGHTEN = 4
    YIELD = 5
    """It stops, and gives its data to the one of its role that takes over."""


class Node(NamedTuple):
    entry: EntryId
    act: Act


class Why(IntEnum):
    PROVIDER = 0
    REMOVAL = 1
    MOVE = 2
    CONFLICT = 3
    HAND_OVER = 5
    SAME_ROLE = 4
    """Of another instance, on the same machine: they may claim the same without a plan's showing
    it, so the old one goes first where nothing speaks against it."""


class Before(NamedTuple):
    first: Node
    then: Node
    why: Why
    over: str = ""


def orders(  # noqa: PLR0913, PLR0917  # both ends of the difference, and what is special about some
    base: Mapping[EntryId, Planned],
    base_edges: Sequence[Edge],
    target: Mapping[EntryId, Planned],
    target_edges: Sequence[Edge],
    unproven: Collection[EntryId],
    gives: Mapping[EntryId, Give],
    refuges: Mapping[EntryId, Refuge],
) -> tuple[list[Node], list[Before]]:
    """All that happens, and all that should be kept of its order, each sorted."""
    used = [*base_edges, *(edge for refuge in refuges.values() for edge in refuge.edges)]
    nodes = _nodes(base, base_edges, target, target_edges)
    for entry in unproven:
        if entry in base and entry in target and same_declared(base[entry], target[entry]):
            nodes[entry] = Node(entry, Act.AWAIT)
    found = sorted(
        {
            *_by_providers(nodes, target_edges),
            *_by_removals(nodes, used, target_edges, _regranted(base, target)),
            *_by_moves(nodes, base, target),
            *_by_conflicts(nodes, base, target, refuges),
            *_by_data(nodes, gives),
        }
    )
    yields = {Node(entry, Act.YIELD) for entry in gives}
    return sorted({*nodes.values(), *yields, *(order.then for order in found)}), found


def _nodes(
    base: Mapping[EntryId, Planned],
    base_edges: Sequence[Edge],
    target: Mapping[EntryId, Planned],
    target_edges: Sequence[Edge],
) -> dict[EntryId, Node]:
    """What happens to each entry to which anything happens."""
    edges = {_ends(edge) for edge in base_edges} ^ {_ends(edge) for edge in target_edges}
    rewired = {consumer for consumer, _, _ in edges}
    found: dict[EntryId, Node] = {}
    for entry in base.keys() | target.keys():
        if entry not in target:
            found[entry] = Node(entry, Act.REMOVE)
        elif entry not in base or not same_declared(base[entry], target[entry]):
            found[entry] = Node(entry, Act.SWITCH)
        elif entry in rewired:
            found[entry] = Node(entry, Act.REWIRE)
    return found


def _ends(edge: Edge) -> tuple[str, str, str]:
    return edge.consumer, edge.slot, edge.provider


def _by_providers(nodes: Mapping[EntryId, Node], target_edges: Sequence[Edge]) -> Iterable[Before]:
    for edge in target_edges:
        provider, consumer = nodes.get(EntryId(edge.provider)), nodes.get(EntryId(edge.consumer))
        if provider and consumer and provider != consumer:
            yield Before(provider, consumer, Why.PROVIDER)


def _regranted(
    base: Mapping[EntryId, Planned], target: Mapping[EntryId, Planned]
) -> frozenset[EntryId]:
    return frozenset(
        entry
        for entry, planned in target.items()
        if entry in base and dict(base[entry].grants) != dict(planned.grants)
    )


def _by_removals(
    nodes: Mapping[EntryId, Node],
    base_edges: Sequence[Edge],
    target_edges: Sequence[Edge],
    regranted: frozenset[EntryId],
) -> Iterable[Before]:
    """What a consumer used goes away, or stops granting it something, once it has switched."""
    kept = {_ends(edge) for edge in target_edges}
    for edge in base_edges:
        provider, consumer = nodes.get(EntryId(edge.provider)), nodes.get(EntryId(edge.consumer))
        if provider is None or consumer is None or provider == consumer:
            continue
        if provider.act is Act.REMOVE:
            yield Before(consumer, provider, Why.REMOVAL)
        elif provider.entry in regranted and _ends(edge) not in kept:
            tighten = Node(provider.entry, Act.TIGHTEN)
            yield Before(consumer, tighten, Why.REMOVAL)
            yield Before(provider, tighten, Why.REMOVAL)


def _by_moves(
    nodes: Mapping[EntryId, Node],
    base: Mapping[EntryId, Planned],
    target: Mapping[EntryId, Planned],
) -> Iterable[Before]:
    """An entry that moves to another machine runs there before it goes here, or after, as it says."""
    homes: dict[tuple[str, str], tuple[list[Node], list[Node]]] = {}
    for node in sorted(nodes.values()):
        new, old = homes.setdefault(split_entry(node.entry)[:2], ([], []))
        if node.act is Act.REMOVE:
            old.append(node)
        elif node.entry not in base:
            new.append(node)
    for new, old in homes.values():
        for arriving, leaving in zip(new, old, strict=False):
            if _stops_first(target[arriving.entry]):
                yield Before(leaving, arriving, Why.MOVE)
            else:
                yield Before(arriving, leaving, Why.MOVE)


def _stops_first(arriving: Planned) -> bool:
    """Whether it says that it is not to run in two places. Ports are each machine's own."""
    return any(unit.handover == "stop-first" for unit in arriving.entry.units.values())


def _by_data(nodes: Mapping[EntryId, Node], gives: Mapping[EntryId, Give]) -> Iterable[Before]:
    """Data is given before anything starts on it, and before who gave it goes."""
    for entry, give in gives.items():
        for then in (give.to, entry):
            if then in nodes:
                yield Before(Node(entry, Act.YIELD), nodes[then], Why.HAND_OVER)


def _by_conflicts(
    nodes: Mapping[EntryId, Node],
    base: Mapping[EntryId, Planned],
    target: Mapping[EntryId, Planned],
    refuges: Mapping[EntryId, Refuge],
) -> Iterable[Before]:
    """What two entries of one machine cannot both have goes from the one before to the other."""
    freed: dict[tuple[MachineName, str], list[EntryId]] = {}
    leaving: dict[tuple[MachineName, str, str], list[EntryId]] = {}
    wanted: dict[EntryId, frozenset[str]] = {}
    for entry, node in nodes.items():
        old = claims.claims(base[entry]) if entry in base else frozenset[str]()
        new = claims.claims(target[entry]) if entry in target else frozenset[str]()
        machine = split_entry(entry)[2]
        refuge = refuges.get(entry)
        if refuge is not None and refuge.planned is not None:
            fled = claims.claims(refuge.planned)
        else:
            fled = frozenset[str]()
        for claim in (old | fled) - new:
            freed.setdefault((machine, claim), []).append(entry)
        if node.act is Act.SWITCH:
            wanted[entry] = new - old
        elif node.act is Act.REMOVE:
            leaving.setdefault(_role(entry, base[entry]), []).append(entry)
    for taker, new in wanted.items():
        machine = split_entry(taker)[2]
        over: dict[EntryId, list[str]] = {}
        for claim in sorted(new):
            for holder in freed.get((machine, claim), ()):
                over.setdefault(holder, []).append(claim)
        for holder, both in over.items():
            yield Before(nodes[holder], nodes[taker], Why.CONFLICT, ", ".join(both))
        if taker not in base:
            for holder in leaving.get(_role(taker, target[taker]), ()):
                if holder not in over:
                    yield Before(nodes[holder], nodes[taker], Why.SAME_ROLE)


def _role(entry: EntryId, planned: Planned) -> tuple[MachineName, str, str]:
    _, role, machine = split_entry(entry)
    return machine, planned.entry.module, role
