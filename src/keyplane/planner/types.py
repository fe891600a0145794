"""Which type a value has before it is known: by what it is written as, or by what it refers to."""

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_list
from keyplane.model.interface import ValueType
from keyplane.model.module import Json
from keyplane.planner import terms
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.terms import Tree


def of_tree(
    draft: Draft, assignment: Assignment | None, tree: Tree, request: str | None
) -> ValueType | None:
    """The type; None where nothing can be said. `request` is the interface in an export."""
    if terms.is_text(tree):
        if len(tree) == 1 and isinstance(tree[0], Reference):
            return _of_reference(draft, assignment, tree[0], request)
        return ValueType.STRING
    return of_value(tree)


def of_value(value: Json) -> ValueType | None:
    if isinstance(value, str):
        return ValueType.STRING
    if isinstance(value, bool):
        return ValueType.BOOLEAN
    if isinstance(value, int):
        return ValueType.INTEGER
    if isinstance(value, float):
        return ValueType.NUMBER
    if is_list(value):
        return ValueType.LIST
    return None


def fits(found: ValueType | None, wanted: ValueType) -> bool:
    return (
        found is None
        or found is wanted
        or (found is ValueType.INTEGER and wanted is ValueType.NUMBER)
    )


def _of_reference(
    draft: Draft, assignment: Assignment | None, reference: Reference, request: str | None
) -> ValueType | None:
    match reference.root, reference.path:
        case "settings", (name,) if assignment is not None:
            setting = assignment.role.settings.get(name)
            return None if setting is None else setting.type
        case "alloc", ("ports", _):
            return ValueType.INTEGER
        case "machine", ("facts", *_):
            return None
        case "results", (_, "*", _):
            return ValueType.STRING
        case "results", (slot, *_, export) if assignment is not None:
            uses = assignment.role.uses.get(slot)
            interface = None if uses is None else draft.interfaces.get(uses.interface)
            return None if interface is None else interface.exports.get(export)
        case "consumer", ("request", name) if request is not None:
            interface = draft.interfaces.get(request)
            return None if interface is None else interface.request.get(name)
        case _:
            return ValueType.STRING
