"""`requires.count` of a slot: how many placements can be read, once the members are settled.

It passes or makes a row, and never changes the answer.
"""

from keyplane.model.diagnostic import Severity
from keyplane.model.module import CountRequirement, Json, RequirementSeverity
from keyplane.planner import predicates
from keyplane.planner.draft import Assignment, Draft, SlotSpec, Target
from keyplane.planner.rows import ENTRY, Fault
from keyplane.planner.scope import Scope
from keyplane.planner.terms import Lost


def check(draft: Draft, assignment: Assignment) -> None:
    for slot in assignment.slots:
        if slot.count is None:
            continue
        alike: dict[str | int, tuple[tuple[Target, ...], list[str]]] = {}
        for machine, readable in draft.counted.get((assignment.id, slot.index), {}).items():
            beside = any(target.machine is None for target in readable)
            key = machine if beside else id(readable)
            alike.setdefault(key, (readable, []))[1].append(machine)
        for readable, machines in alike.values():
            scope = Scope.at(draft, assignment, machines[0])
            sound = _sound(scope, slot, readable)
            requirement = _requirement(slot.count)
            if not predicates.met(requirement, sound):
                fault = _fault(assignment, slot, sound, requirement)
                draft.rows.place(assignment.id, machines, fault)


def _sound(scope: Scope, slot: SlotSpec, readable: tuple[Target, ...]) -> int:
    """How many of the placements have exports without an error."""
    return sum(
        all(
            not offer_export.wrong
            and not any(isinstance(part, Lost) for part in scope.export(slot, target, name).parts)
            for name, offer_export in target.offer.exports.items()
            if not slot.reads or name in slot.reads
        )
        and not (slot.reads - target.offer.exports.keys())
        for target in readable
    )


def _requirement(count: CountRequirement) -> dict[str, Json]:
    return {
        "subject": "count",
        "predicate": count.predicate.value,
        "value": count.value,
        "values": None if count.values is None else list(count.values),
        "bounds": count.bounds,
    }


def _fault(
    assignment: Assignment, slot: SlotSpec, sound: int, requirement: dict[str, Json]
) -> Fault:
    assert slot.count is not None
    said = {key: value for key, value in requirement.items() if value is not None}
    wanted = slot.count.severity is RequirementSeverity.WANT
    return Fault(
        code="count-out-of-bounds",
        path=f"uses.{slot.name}.requires.count",
        message=f"slot {slot.name} of {ENTRY} can read {sound} "
        f"{'placement' if sound == 1 else 'placements'} of {slot.interface}; "
        f"{'wanted' if wanted else 'required'}: {predicates.describe(said)}",
        resolution=(
            f"place more or fewer providers of {slot.interface}",
            f"or change uses.{slot.name}.requires.count of module {assignment.module.name}",
        ),
        severity=Severity.WARNING if wanted else Severity.ERROR,
        alone=True,
    )
