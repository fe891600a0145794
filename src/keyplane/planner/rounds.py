"""The rounds of planning, in order. Each is a module with one job."""

from collections.abc import Mapping
from dataclasses import dataclass

from keyplane.model import plan as plans
from keyplane.model.diagnostic import in_order
from keyplane.planner import (
    allocate,
    asked,
    assemble,
    bind,
    canonical,
    conflicts,
    families,
    grants,
    notes,
    place,
    read,
    resolve,
)
from keyplane.planner.draft import Draft
from keyplane.planner.key import Keying
from keyplane.planner.program import Family
from keyplane.planner.request import PlanRequest, PlanResult
from keyplane.planner.resolve import Resolved
from keyplane.planner.texts import Text


def plan(request: PlanRequest) -> PlanResult:
    """Plan a fleet. A plan always comes out; what is wrong are its diagnostics."""
    worked = work(request)
    return empty(request) if worked is None else worked.result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worked:
    """A plan and how it came about."""

    result: PlanResult
    draft: Draft
    families: dict[str, list[Family]]
    resolved: Mapping[Family, Resolved]
    keying: Keying
    standing: conflicts.Standing
    texts: dict[str, Text]
    """By machine, if they are to be kept."""


def work(request: PlanRequest, *, keep: bool = False) -> Worked | None:
    """All rounds; None where there is no fleet to plan."""
    found = derived(request)
    if found is None:
        return None
    draft, every = found
    resolved = {
        family: resolve.resolve(draft, family) for several in every.values() for family in several
    }
    keying = Keying(draft)
    keyed = keying.all(every, resolved)
    standing = conflicts.check(draft, every, resolved)
    made = assemble.assemble(draft, every, resolved, keyed, keep=keep)
    contents = [one.contents for one in draft.noted.values()]
    contents += [one.contents for one in resolved.values()]
    return Worked(
        result=PlanResult(
            plan=made.plan,
            contents={digest: content for some in contents for digest, content in some.items()},
            grants=grants.grants(draft, every),
            machines=made.machines,
            facts=asked.facts_asked(draft, every),
            digests=made.digests,
        ),
        draft=draft,
        families=every,
        resolved=resolved,
        keying=keying,
        standing=standing,
        texts=made.texts,
    )


def derived(request: PlanRequest) -> tuple[Draft, dict[str, list[Family]]] | None:
    """The rounds that look at roles; None where there is no fleet to plan."""
    fleet = request.documents.fleet
    if fleet is None:
        return None
    draft = Draft(request=request, fleet=fleet)
    with draft.noting(notes.STRUCTURE):
        read.read(draft)
        read.evaluate(draft)
        place.place(draft)
        bind.bind(draft)
        place.check_floors(draft)
        allocate.allocate(draft)
    return draft, families.derive_all(draft)


def empty(request: PlanRequest) -> PlanResult:
    """The plan of a fleet document that does not parse."""
    made = plans.Plan(
        format=plans.FORMAT,
        fleet=None,
        generation=canonical.digest_of({}),
        entries={},
        allocations=plans.Allocations(ports={}),
        edges=[],
        exports={},
        machines={},
        diagnostics=in_order(request.documents.diagnostics),
    )
    return PlanResult(plan=made, contents={}, grants={})
