"""An edit of what a fact waits for: it is planned by that fact, and shown with all that comes of it.

Whoever edits an entry is shown what becomes of it, and so has said it; of an entry that he does not
edit, nobody has. One that moves with its provider's key alone is none that he edits.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace

from keyplane.model.diagnostic import Severity
from keyplane.model.names import EntryId, MachineName
from keyplane.model.plan import Plan
from keyplane.parts import by_facts
from keyplane.parts.by_facts import Values
from keyplane.parts.fact_messages import FactsWaiting
from keyplane.parts.planning import Base, Planned
from keyplane.parts.revising import Made
from keyplane.planner import compare
from keyplane.ports.inventory import StoredPlan
from keyplane.rollout import withheld

_OF_PROVIDERS = "dependency "
"""How the inputs of a key begin that are other entries."""


def edited(before: Plan, after: Plan) -> frozenset[EntryId]:
    """Entries of which an edit says something else, or that it takes away."""
    found = compare.diff(before, after)
    own = {
        entry
        for entry, inputs in found.why.items()
        if any(not each.startswith(_OF_PROVIDERS) for each in inputs)
    }
    gone = set(found.deactivate) - set(found.activate)
    return frozenset(map(EntryId, {*own, *gone, *found.reload, *found.rewire}))


def to_take(
    waiting: Iterable[FactsWaiting], edits: Collection[EntryId]
) -> dict[MachineName, Values]:
    """Of facts that wait, those that are in the way of nothing but what is edited."""
    taken: dict[MachineName, Values] = {}
    for each in waiting:
        if each.entries and each.entries.keys() <= set(edits):
            taken = by_facts.together(taken, {MachineName(each.machine): each.said})
    return taken


def is_all_of_them(edits: Collection[EntryId], without: Plan, by: Plan) -> bool:
    """Whether what a plan loses by the facts, beside one without them, is edited anyway."""
    rows = [
        row
        for row in by.diagnostics
        if row.severity is Severity.ERROR and row not in without.diagnostics
    ]
    return without.entries.keys() - by.entries.keys() <= set(edits) and all(
        any(withheld.is_of(row, entry) for entry in edits) for row in rows
    )


async def meant(
    plan: Callable[[Made, StoredPlan | None, Base], Awaitable[Planned]],
    made: Made,
    target: StoredPlan | None,
    base: Base,
    waiting: Sequence[FactsWaiting],
) -> tuple[Made, Planned]:
    """What somebody edits, planned by the facts that wait for just that."""
    planned = await plan(made, target, base)
    if target is None or made.take or not waiting:
        return made, planned
    edits = edited(target.plan, planned.plan)
    if not (taken := to_take(waiting, edits)):
        return made, planned
    told = f"planned by {by_facts.told(taken)}"
    by = replace(
        made,
        take=taken,
        will=f"{made.will}, {told}" if made.will else "",
        said=f"{made.said}, {told}" if made.said else told,
        detail={**made.detail, "facts": {each: sorted(said) for each, said in taken.items()}},
    )
    trial = await plan(by, target, base)
    if trial.refused or not is_all_of_them(edits, planned.plan, trial.plan):
        return made, planned
    return by, trial
