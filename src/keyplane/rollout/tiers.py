"""In which steps the machines' declarations switch from one plan to the next.

Decides only the order, from both plans: each change as early as what has to come before it lets
it be. Where not all of the order can be kept, the step says what that costs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import graph, orders
from keyplane.rollout.orders import Act, Before, Node, Why
from keyplane.rollout.planned import Planned
from keyplane.rollout.refuge import Refuge
from keyplane.rollout.steps import Gap, Hold, Step
from keyplane.rollout.volumes import Give


def tiers(  # noqa: PLR0913  # both ends of the difference, and what is special about some
    base: Mapping[EntryId, Planned],
    base_edges: Sequence[Edge],
    target: Mapping[EntryId, Planned],
    target_edges: Sequence[Edge],
    unproven: Collection[EntryId] = (),
    *,
    recorded: Mapping[EntryId, str] | None = None,
    gives: Mapping[EntryId, Give] | None = None,
    refuges: Mapping[EntryId, Refuge] | None = None,
) -> tuple[Step, ...]:
    """The steps from base to target; none if every machine is declared alike by both.

    Entries that an earlier rollout sent and did not see well are `unproven`: they have a place
    in the order like those that change. Those that are only `recorded`, be they to switch or to go,
    and all that has to come after one of them, are in steps of their own behind all others, which
    are held. Those of `gives` stop first, and give their data to who takes over. What an entry
    of `refuges` would go back to counts like what it is.
    """
    gives = gives or {}
    nodes, wanted = orders.orders(
        base, base_edges, target, target_edges, unproven, gives, refuges or {}
    )
    kept, gaps = _without_contradictions(nodes, wanted)
    layers = graph.layers(nodes, _arrows(kept))
    recorded = recorded or {}
    held = _held(nodes, kept, recorded, gives)
    free = (_step([node for node in each if node not in held], base, target) for each in layers)
    late = (
        _holding(_step([node for node in each if node in held], base, target), held, recorded)
        for each in layers
    )
    early = [order for order in kept if _is_early(order)]
    steps = (*_squeezed(free), *_squeezed(late))
    return tuple(_remarked(step, early, gaps) for step in steps)


def _held(
    nodes: Sequence[Node],
    kept: Sequence[Before],
    recorded: Collection[EntryId],
    gives: Mapping[EntryId, Give],
) -> dict[Node, EntryId | None]:
    """What is not sent, each with what of it has to come before."""
    if not recorded:
        return {}
    found: dict[Node, EntryId | None] = {
        node: None
        for node in nodes
        if node.act in (Act.SWITCH, Act.REMOVE) and node.entry in recorded
    }
    arrows = _arrows(kept)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        for follower in arrows.get(node, ()):
            if follower not in found:
                found[follower] = node.entry
                waiting.append(follower)
    taking = {node.entry for node in found if node.act is Act.SWITCH}
    # Nothing stops for a successor that nobody sends.
    found.update(
        (Node(entry, Act.YIELD), None) for entry, give in gives.items() if give.to in taking
    )
    return found


def _holding(
    step: Step, held: Mapping[Node, EntryId | None], recorded: Mapping[EntryId, str]
) -> Step:
    here = {*step.switched, *step.removed, *step.tightened, *step.awaited, *step.yielded}
    # The first that was found of an entry: what holds it was found before, so none holds itself.
    first: dict[EntryId, EntryId | None] = {}
    for node, by in held.items():
        first.setdefault(node.entry, by)
    holds = (
        Hold(entry, by, recorded.get(entry, "") if by is None else "")
        for entry, by in sorted(first.items())
        if entry in here
    )
    return replace(step, holds=tuple(holds))


def _without_contradictions(
    nodes: Sequence[Node], wanted: Sequence[Before]
) -> tuple[list[Before], list[Gap]]:
    """Orders that can be kept together, and who does without what because of the others.

    What stays in a circle after this shares a tier: a circle of consumers, or entries of one
    machine that swap what they hold. A circle by which an entry would have to go both before
    its successor on the machine and after its consumers is cut there: the consumers do without.
    """
    number = graph.components(nodes, _arrows(wanted))
    kept = [o for o in wanted if o.why is not Why.SAME_ROLE or not _within(o, number)]
    number = graph.components(nodes, _arrows(kept))
    cut = {number[o.first] for o in kept if _is_early(o) and _within(o, number)}
    dropped = {
        order
        for order in kept
        if order.why in (Why.REMOVAL, Why.MOVE)
        and order.first.act is not Act.REMOVE
        and _within(order, number)
        and number[order.first] in cut
    }
    gaps = [Gap(o.first.entry, o.then.entry) for o in sorted(dropped) if o.why is Why.REMOVAL]
    return [order for order in kept if order not in dropped], gaps


def _is_early(order: Before) -> bool:
    """What goes makes room for what comes."""
    return order.why in (Why.CONFLICT, Why.MOVE) and order.first.act is Act.REMOVE


def _remarked(step: Step, early: Iterable[Before], gaps: Iterable[Gap]) -> Step:
    """With what its removals cost, and why they come so early."""
    removed = frozenset(step.removed)
    here = tuple(gap for gap in gaps if gap.provider in removed)
    found = [
        f"{order.first.entry} is deactivated before {order.then.entry} is switched: {_why(order)}"
        for order in early
        if order.first.entry in removed
    ]
    found += [f"{gap.consumer} does without {gap.provider} until it has switched" for gap in here]
    return replace(step, gaps=here, remarks=tuple(sorted(found)))


def _why(order: Before) -> str:
    if order.why is Why.MOVE:
        return "it moves, and says handover = stop-first"
    return f"both hold {order.over} of {split_entry(order.then.entry)[2]}"


def _within(order: Before, number: Mapping[Node, int]) -> bool:
    return number[order.first] == number[order.then]


def _arrows(kept: Sequence[Before]) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for order in kept:
        found.setdefault(order.first, []).append(order.then)
    return found


def _step(
    layer: Sequence[Node],
    base: Mapping[EntryId, Planned],
    target: Mapping[EntryId, Planned],
) -> Step:
    lists: dict[str, list[EntryId]] = {}
    for entry, act in sorted(layer):
        match act:
            case Act.SWITCH if entry not in base:
                lists.setdefault("activated", []).append(entry)
            case Act.SWITCH if base[entry].entry.key != target[entry].entry.key:
                lists.setdefault("changed", []).append(entry)
            case Act.SWITCH:
                lists.setdefault("live", []).append(entry)
            case Act.REMOVE:
                lists.setdefault("removed", []).append(entry)
            case Act.TIGHTEN:
                lists.setdefault("tightened", []).append(entry)
            case Act.AWAIT:
                lists.setdefault("awaited", []).append(entry)
            case Act.YIELD:
                lists.setdefault("yielded", []).append(entry)
            case Act.REWIRE:
                lists.setdefault("rewired", []).append(entry)
    return Step(
        activated=tuple(lists.get("activated", ())),
        changed=tuple(lists.get("changed", ())),
        live=tuple(lists.get("live", ())),
        removed=tuple(lists.get("removed", ())),
        tightened=tuple(lists.get("tightened", ())),
        awaited=tuple(lists.get("awaited", ())),
        yielded=tuple(lists.get("yielded", ())),
        rewired=tuple(lists.get("rewired", ())),
    )


def _squeezed(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Without steps by which nothing is sent; what they rewire goes with the next, or the last."""
    found: list[Step] = []
    rewired: list[EntryId] = []
    for step in steps:
        rewired.extend(step.rewired)
        if step.machines:
            found.append(replace(step, rewired=tuple(sorted(rewired))))
            rewired.clear()
    if found and rewired:
        found[-1] = replace(found[-1], rewired=tuple(sorted((*found[-1].rewired, *rewired))))
    return tuple(found)
