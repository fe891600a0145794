"""JSON Schemas of the documents, from the same tables that read them."""

from typing import Final

from keyplane.documents import facts, fleets, interfaces, modules
from keyplane.documents.shapes import Schema

KINDS: Final = ("facts", "fleet", "interfaces", "module")


def of(kind: str) -> Schema | None:
    """The schema of one kind of document, or None if there is no such kind.

    It says the shapes of fields. What holds between fields is judged on reading alone.
    """
    match kind:
        case "fleet":
            found = fleets.FLEET.schema()
        case "module":
            found = modules.table().schema()
        case "interfaces":
            found = interfaces.INTERFACES.schema()
        case "facts":
            found = facts.FACTS.schema()
        case _:
            return None
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Keyplane {kind} document",
        **found,
    }
