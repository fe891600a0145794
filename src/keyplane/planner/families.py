"""Which entries are bound alike, so that one look derives all of them.

Alike are entries with the same bindings, whose providers beside them are bound alike too where
their exports read slots of their own, and whose machines lack the same facts.
"""

from collections.abc import Hashable, Iterator, Mapping

from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Reach
from keyplane.planner import (
    counts,
    derive,
    graph,
    notes,
    prepare,
    reactions,
    scope_rows,
    settings,
    sizes,
    terms,
)
from keyplane.planner.compiled import CompiledBody
from keyplane.planner.draft import ANY, Assignment, Bindings, Draft
from keyplane.planner.looks import DEPTH_MAX, FactState
from keyplane.planner.program import Family, Gap, Program
from keyplane.planner.rows import Fault
from keyplane.planner.terms import Own, OwnKind, Tree


def derive_all(draft: Draft) -> dict[str, list[Family]]:
    found = {
        assignment.id: derive_role(draft, assignment) for assignment in draft.assignments.values()
    }
    for role in sizes.refuse_all(draft, found):
        draft.crowded = True
        for family in found[role]:
            family.owns = _owns(family.program)
    return found


def derive_role(draft: Draft, assignment: Assignment) -> list[Family]:
    with draft.noting(notes.of_deriving(assignment.id)):
        bodies = _Bodies(draft, assignment)
        found: list[Family] = []
        for family in _alike(assignment):
            found.extend(_derived(draft, family, bodies.of(family)))
        if sizes.refuse(draft, found):
            for family in found:
                family.owns = _owns(family.program)
        counts.check(draft, assignment)
        reactions.check(draft, assignment, found)
        return found


def _alike(assignment: Assignment) -> list[Family]:
    machines = sorted(assignment.bound)
    if not machines:
        return []
    first = assignment.bound[machines[0]]
    alike = all(bindings is first for bindings in assignment.bound.values())
    if alike and not any(_reading_providers(first)):
        return [Family(assignment=assignment, bindings=first, machines=machines)]
    groups: dict[Hashable, list[str]] = {}
    by_identity: dict[int, bool] = {}
    for machine in machines:
        bindings = assignment.bound[machine]
        deep = by_identity.get(id(bindings))
        if deep is None:
            deep = by_identity[id(bindings)] = any(_reading_providers(bindings))
        key = (id(bindings), _beside(assignment, machine) if deep else None)
        groups.setdefault(key, []).append(machine)
    return [
        Family(assignment=assignment, bindings=assignment.bound[several[0]], machines=several)
        for several in groups.values()
    ]


def _reading_providers(bindings: Bindings) -> Iterator[Assignment]:
    """The providers beside the reader whose exports read slots of their own."""
    for binding in bindings:
        for target in () if binding is None else binding.targets:
            provider = target.offer.assignment
            if target.machine is None and provider is not None and provider.export_slots:
                yield provider


def _beside(assignment: Assignment, machine: str) -> Hashable:
    """What else tells two entries apart: how the providers beside them are bound."""
    bound: dict[str, int] = {}
    edges: dict[str, list[str]] = {}
    level = [assignment]
    for _ in range(DEPTH_MAX + 1):
        below: list[Assignment] = []
        for one in level:
            if one.id not in edges:
                bindings = one.bound.get(machine, ())
                providers = list(_reading_providers(bindings))
                bound[one.id] = id(bindings)
                edges[one.id] = [provider.id for provider in providers]
                below += providers
        level = below
    circle = any(
        len(several) > 1 or several[0] in edges.get(several[0], ())
        for several in graph.components(sorted(edges), edges)
    )
    return frozenset(bound.items()), machine if circle else None


def _derived(draft: Draft, family: Family, body: CompiledBody) -> Iterator[Family]:
    """The family with its program; what lacks facts apart from the rest."""
    program, faults = derive.derive(draft, family, body)
    owns = _owns(program)
    waiting = [own for own in owns if own.kind in (OwnKind.PORT, OwnKind.FACT)]
    columns = [_states(draft, family, own) for own in waiting]
    groups: dict[tuple[FactState | None, ...], list[str]] = {}
    if not any(any(column) for column in columns):
        groups[(None,) * len(waiting)] = family.machines
    else:
        for machine, states in zip(family.machines, zip(*columns, strict=True), strict=True):
            groups.setdefault(states, []).append(machine)
    for states, machines in groups.items():
        lacking = {
            own: state for own, state in zip(waiting, states, strict=True) if state is not None
        }
        if not lacking:
            family.machines = machines
            family.body, family.program, family.owns = body, program, owns
            _report(draft, family, faults)
            yield family
            continue
        yield from _derived(
            draft,
            Family(
                assignment=family.assignment,
                bindings=family.bindings,
                machines=machines,
                states={**family.states, **lacking},
            ),
            body,
        )


def _owns(program: Program) -> tuple[Own, ...]:
    return tuple(sorted(set(owns_in(program)), key=_own_order))


def _report(draft: Draft, family: Family, faults: list[Fault]) -> None:
    for fault in faults:
        draft.rows.place(family.assignment.id, family.machines, fault)


def _states(draft: Draft, family: Family, own: Own) -> list[FactState | None]:
    """Why each machine has no value for it; None where it has."""
    if own.kind is OwnKind.PORT:
        name = f"{own.holder}/{own.name}"
        return [
            None if name in draft.ports[machine] else FactState.NONE for machine in family.machines
        ]
    return [fact_state(draft, machine, own) for machine in family.machines]


def fact_state(draft: Draft, machine: str, own: Own) -> FactState | None:
    value = draft.fact(machine, own.name)
    if value is None:
        return FactState.NONE
    if own.type is not None and not settings.is_of(value, own.type):
        scope_rows.ill_typed_fact(draft, machine, own)
        return FactState.WRONG
    return None


def owns_in(program: Program) -> Iterator[Own]:
    """Every value of the own machine that a program waits for."""
    for unit in program.units:
        for tree in (unit.fields, unit.env, unit.configs, unit.live):
            yield from owns_of(dict(tree))
        for contract in unit.dynamic.values():
            yield from owns_of(contract.template)
    trees = (program.resources, program.volumes, program.listens, program.requests, program.extras)
    for tree in (*trees, *program.requirements):
        yield from owns_of(dict(tree))


def owns_of(tree: Tree) -> list[Own]:
    """Those of one tree, in the order in which they stand there."""
    found: list[Own] = []
    waiting: list[Tree] = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            continue
        if terms.is_text(one):
            found += [part for part in one if isinstance(part, Own)]
        elif is_table(one):
            waiting += reversed(one.values())
        elif is_list(one):
            waiting += reversed(one)
        elif isinstance(one, Gap):
            waiting.append(one.template)
    return found


def _own_order(own: Own) -> tuple[str, str, str, str]:
    return own.kind.value, own.holder, own.name, own.where


class _Bodies:
    """What the function of a role makes of each set of members that its entries read."""

    def __init__(self, draft: Draft, assignment: Assignment) -> None:
        self._draft = draft
        self._assignment = assignment

    def of(self, family: Family) -> CompiledBody:
        assignment = self._assignment
        if not assignment.role.impl or assignment.failed:
            return assignment.body
        members = _members(family)
        if not any(members.values()):
            return assignment.body
        key = tuple(sorted(members.items()))
        if key not in assignment.by_members:
            with self._draft.noting(notes.of_members(assignment.id, key)):
                assignment.by_members[key] = self._evaluate(members)
        return assignment.by_members[key]

    def _evaluate(self, members: Mapping[str, tuple[str, ...]]) -> CompiledBody:
        """Units are of this call; provides and requirements of the one with empty sets."""
        assignment = self._assignment
        body = prepare.evaluate(self._draft, assignment, members)
        if body is None:
            return assignment.body
        compiled = self._draft.compile_body(assignment.role, body)
        prepare.check_body(self._draft, assignment, compiled)
        return CompiledBody(
            units=compiled.units,
            exports=assignment.body.exports,
            requirements=assignment.body.requirements,
            malformed=compiled.malformed,
        )


def _members(family: Family) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for slot, binding in zip(family.assignment.slots, family.bindings, strict=True):
        if slot.reach is Reach.ALL:
            found[slot.name] = tuple(
                sorted(
                    ANY if target.offer.free else (target.machine or family.machines[0])
                    for target in (() if binding is None else binding.targets)
                )
            )
    return found
