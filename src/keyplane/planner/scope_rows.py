"""The faults of resolving: references that name nothing where they stand."""

from collections.abc import Iterable

from keyplane.documents.references import Reference
from keyplane.planner import settings
from keyplane.planner.draft import Draft, Offer, SlotSpec, Target
from keyplane.planner.looks import DEPTH_MAX
from keyplane.planner.rows import ENTRY, Fault
from keyplane.planner.terms import Own


def cut_off(
    draft: Draft,
    target: Target,
    export: str,
    active: Iterable[tuple[str, str, str, str]],
    *,
    circle: bool,
) -> None:
    """An export that is read through itself, or through too many others."""
    path = f"provides.{target.offer.provide}.exports.{export}"
    around = " -> ".join(f"{role}/{provide}/{name}" for role, provide, name, _ in sorted(active))
    if circle:
        what = f"refers to itself: {around}"
        way = "let one export of the circle be a value of its own"
    else:
        what = f"is read through more than {DEPTH_MAX} other exports"
        way = "read what it is made of from where it is"
    draft.rows.add(
        "unknown-reference", target.offer.id, path, f"{path} of {target.offer.id} {what}", way
    )


def too_long(draft: Draft, role: str, what: str, most: int) -> None:
    """A text that its references would blow up."""
    draft.rows.add(
        "wrong-type",
        role,
        "",
        f"{what} of {role} may have {most} characters with the references filled in, and has more",
        "ship what is so long as a file",
    )


def dynamic(draft: Draft, target: Target, reference: Reference) -> None:
    """A dynamic value in the value of an export."""
    offer = target.offer
    draft.rows.add(
        "dynamic-in-closure",
        offer.id,
        f"provides.{offer.provide}.exports",
        f"{'.'.join(reference.path)} (dynamic) is in the value of an export of "
        f"provides.{offer.provide} of {offer.id}",
        "let the reader bind the dynamic export itself",
        'have its provider publish the value as a fact (lifecycle = "probed")',
    )


def ill_typed_fact(draft: Draft, machine: str, own: Own) -> None:
    """A fact of another type than its export."""
    assert own.type is not None
    shown, kind = settings.show(draft.fact(machine, own.name)), own.type.value
    draft.rows.add(
        "wrong-type",
        f"{own.holder}@{machine}",
        own.where,
        f"fact {own.name} of machine {machine} is {shown}; {own.where} of {own.holder} says type "
        f"{kind}",
        f"let the machine publish {own.name} as {kind}, or change the interface",
    )


def no_member(reference: Reference, slot: SlotSpec, wanted: str, members: Iterable[str]) -> Fault:
    return Fault(
        code="unknown-reference",
        path=f"uses.{slot.name}",
        message=f"{reference} of {ENTRY} names nothing: no placement on `{wanted}` is among the "
        f"members of slot {slot.name} ({', '.join(members) or 'there is none'})",
        resolution=(f"write ${{results.{slot.name}.*.{reference.path[-1]}}} for all of them",),
    )


def no_address(reference: Reference, slot: str, offer: Offer) -> Fault:
    return Fault(
        code="unknown-reference",
        path=f"uses.{slot}",
        message=f"{reference} of {ENTRY} names nothing: {offer.id} is on no machine in particular",
        resolution=(f"read an export of {slot} in its place",),
    )


def no_credentials(reference: Reference, slot: str, offer: Offer) -> Fault:
    return Fault(
        code="unknown-reference",
        path=f"uses.{slot}",
        message=f"{reference} of {ENTRY} names nothing: {offer.id} gives no credentials with "
        f"provides.{offer.provide}",
        resolution=(f"say credentials = true in provides.{offer.provide}",),
    )
