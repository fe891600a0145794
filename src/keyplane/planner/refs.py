"""Whether a reference names something, as far as the role itself can tell.

What depends on how a placement is bound is judged where the reference is resolved.
"""

from collections.abc import Collection, Iterator

from keyplane.documents.references import Reference
from keyplane.documents.rows import like
from keyplane.model.module import Reach, Role
from keyplane.planner import terms
from keyplane.planner.draft import ANY, Assignment, Draft
from keyplane.planner.rows import did_you_mean
from keyplane.planner.terms import Tree

_SELF = ("instance", "role", "entry")
_FORMS = {
    "settings": ("NAME",),
    "results": ("SLOT.EXPORT",),
    "alloc": ("ports.LISTEN",),
    "machine": ("name", "address", "facts.NAME"),
    "bound": ("SLOT.address",),
    "credentials": ("SLOT",),
    "state": ("BUCKET",),
    "reads": ("INSTANCE.ROLE.BUCKET",),
    "secrets": ("NAME",),
    "self": _SELF,
}
"""What a reference may be, by its first word."""
_CONSUMER = ("instance", "role", "machine", "login", "request.NAME")

Problem = tuple[str, tuple[str, ...]]
"""What is wrong, and ways to mend it."""


def problems(
    draft: Draft, assignment: Assignment, tree: Tree, path: str, export_of: str | None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Path, message and resolutions of each reference of a tree that names nothing."""
    for at, parts in terms.texts_in(tree, path):
        for part in parts:
            if isinstance(part, Reference):
                found = problem(draft, assignment.role, part, export_of)
                if found is not None and not _is_dropped(draft, assignment, part, export_of):
                    yield at, found[0], found[1]


def problem(
    draft: Draft, role: Role, reference: Reference, export_of: str | None
) -> Problem | None:
    """`export_of` is the interface where the reference stands in an export; else None."""
    match reference.root, reference.path:
        case "settings", (name,):
            return _among(reference, name, role.settings, "settings of the role")
        case "results", path:
            return _result(draft, role, reference, path)
        case "alloc", ("ports", name):
            return _among(reference, name, role.listens, "listens of the role")
        case "machine", ("name",) | ("address",):
            return None
        case "machine", ("facts", *words) if any(words):
            return None
        case "bound", (slot, "address"):
            return _bound(role, reference, slot)
        case "credentials", (slot,):
            return _among(reference, slot, role.uses, "slots of the role")
        case "state", (name,):
            return _among(reference, name, role.state, "buckets of the role")
        case "reads", (instance, role_name, bucket):
            known = [read.replace(":", ".").replace("/", ".") for read in role.reads]
            return _among(reference, f"{instance}.{role_name}.{bucket}", known, "reads of the role")
        case "secrets", (name,):
            return _among(reference, name, role.secrets, "secrets of the role")
        case "self", (name,):
            return _among(reference, name, _SELF, "words after `self.`")
        case "consumer", path:
            return _consumer(draft, reference, path, export_of)
        case _:
            return f"{reference} names nothing", _ways(reference, export_of)


def _ways(reference: Reference, export_of: str | None) -> tuple[str, ...]:
    """By its first word, if that is one; else by what it may be."""
    if reference.root in _FORMS:
        forms = [f"{reference.root}.{form}" for form in _FORMS[reference.root]]
        near = like(".".join((reference.root, *reference.path)), forms) or forms[0]
        others = [form for form in forms if form != near]
        return (f"write ${{{near}}}", *(f"or ${{{form}}}" for form in others))
    roots = (*_FORMS, "consumer") if export_of is not None else _FORMS
    return did_you_mean(reference.root, roots, "what a reference may begin with")


def _is_dropped(
    draft: Draft, assignment: Assignment, reference: Reference, export_of: str | None
) -> bool:
    """Whether what it names is written and could not be read: there is a row of that."""
    match reference.root, reference.path:
        case ("settings" | "state" | "secrets") as table, (name,):
            return assignment.is_dropped(draft, table, name)
        case "alloc", ("ports", name):
            return assignment.is_dropped(draft, "listens", name)
        case "reads", _:
            return assignment.is_dropped(draft, "reads")
        case "results", (slot, *between, export):
            used = assignment.role.uses.get(slot)
            if used is None:
                return assignment.is_dropped(draft, "uses", slot)
            return draft.is_interface_dropped(used.interface, "exports", export) or any(
                draft.is_dropped(draft.fleet.file, "machines", machine) for machine in between
            )
        case "bound" | "credentials", (slot, *_):
            return assignment.is_dropped(draft, "uses", slot)
        case "consumer", ("request", name) if export_of is not None:
            return draft.is_interface_dropped(export_of, "request", name)
        case _:
            return False


def external_problem(draft: Draft, reference: Reference, interface: str) -> Problem | None:
    """In the exports of an external only its consumer is known."""
    if reference.root == "consumer":
        return _consumer(draft, reference, reference.path, interface)
    return (
        f"{reference} names nothing in the exports of an external",
        ("an external's exports may read ${consumer.…} only",),
    )


def _result(
    draft: Draft, role: Role, reference: Reference, path: tuple[str, ...]
) -> Problem | None:
    slot = role.uses.get(path[0]) if path else None
    if slot is None:
        return _among(reference, path[0] if path else "", role.uses, "slots of the role")
    interface = draft.interfaces.get(slot.interface)
    if interface is None:
        return None
    export = path[-1]
    if slot.reach is Reach.ALL:
        if len(path) != 3:
            return (
                f"{reference} names nothing: slot `{path[0]}` (reach all) is a set by machine",
                (
                    f"write ${{results.{path[0]}.*.EXPORT}} for all of them",
                    f"or ${{results.{path[0]}.MACHINE.EXPORT}} for one",
                ),
            )
        if path[1] not in {"*", ANY} and path[1] not in draft.fleet.machines:
            return (
                f"{reference} names nothing: there is no machine `{path[1]}`",
                did_you_mean(path[1], draft.fleet.machines, "machines of the fleet"),
            )
    elif len(path) != 2:
        return (
            f'{reference} names nothing: slot `{path[0]}` has reach = "{slot.reach.value}"',
            (f'write ${{results.{path[0]}.EXPORT}}, or say reach = "all"',),
        )
    return _among(reference, export, interface.exports, f"exports of `{slot.interface}`")


def _bound(role: Role, reference: Reference, slot: str) -> Problem | None:
    found = role.uses.get(slot)
    if found is not None and found.reach is Reach.ALL:
        return (
            f"{reference} names nothing: slot `{slot}` is a set by machine",
            ("`bound` is of slots that reach one placement",),
        )
    return _among(reference, slot, (*role.uses, *role.requires), "slots of the role")


def _consumer(
    draft: Draft, reference: Reference, path: tuple[str, ...], export_of: str | None
) -> Problem | None:
    if export_of is None:
        return (
            f"{reference} names nothing here: a consumer is known in exports only",
            ("move it into the value of an export",),
        )
    match path:
        case ("request", name):
            interface = draft.interfaces.get(export_of)
            known = () if interface is None else interface.request
            return _among(reference, name, known, f"request fields of `{export_of}`")
        case ("instance",) | ("role",) | ("machine",) | ("login",):
            return None
        case _:
            word = path[0] if path else ""
            return f"{reference} names nothing", did_you_mean(
                word, _CONSUMER, "words after `consumer.`"
            )


def _among(reference: Reference, name: str, known: Collection[str], what: str) -> Problem | None:
    if name in known:
        return None
    return f"{reference} names nothing", did_you_mean(name, known, what)
