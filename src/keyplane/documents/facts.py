"""A machine's fact snapshot, as a file."""

from keyplane.documents.rows import Rows, show
from keyplane.documents.shapes import ANYTHING, BROKEN, NAME, TEXT
from keyplane.documents.tables import Field, MapOf, Table, needed
from keyplane.model.fleet import FactSnapshot
from keyplane.model.module import Json


def _any_key(name: str) -> str | None:
    del name
    return None


FACTS: Table[FactSnapshot] = Table(
    "a fact snapshot",
    {
        "machine": needed(NAME, "machine"),
        "at": Field(TEXT, "at"),
        "facts": needed(MapOf(ANYTHING, key=_any_key), "facts"),
    },
    FactSnapshot,
)


def read(tree: dict[str, Json], *, name: str, rows: Rows) -> FactSnapshot | None:
    """The snapshot in file `name.json`; None where it says too little or names another machine."""
    found = FACTS.read(tree, (), rows)
    if found is BROKEN:
        return None
    if found.machine != name:
        rows.wrong(
            ("machine",),
            f"the snapshot is of {show(found.machine)}, and its file is named {show(name)}",
            f"name the file {found.machine}.json",
        )
        return None
    return found
