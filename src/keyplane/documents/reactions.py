"""Reactions: what a consumer does when a dynamic value changes.

Whether the path names something is the planner's. How fast a machine reacts is the machine's.
"""

from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import BROKEN, TIME, VALUE, Broken, Choice, Schema
from keyplane.documents.tables import DESCRIPTION, Field, MapOf, Table
from keyplane.documents.trees import is_table
from keyplane.model.module import Json, OnMissing, Reaction, ReactionKind

_WORDS = ("keep-last", "stop")
_RATES = "how fast a machine reacts is the machine's: machines.NAME.reactions"


class _OnMissing:
    """A word, or a table with the default."""

    def read(self, value: Json, path: Path, rows: Rows) -> tuple[OnMissing, Json] | Broken:
        if isinstance(value, str) and value in _WORDS:
            return OnMissing(value), None
        if is_table(value) and "default" in value:
            for name in value:
                if name != "default":
                    rows.unknown((*path, name), "onMissing", ("default",))
            found = VALUE.read(value["default"], (*path, "default"), rows)
            return BROKEN if found is BROKEN else (OnMissing.DEFAULT, found)
        rows.wrong(path, f"{show(value)} is none of keep-last, stop, {{default = VALUE}}")
        return BROKEN

    def schema(self) -> Schema:
        return {
            "type": ["string", "object"],
            "if": {"type": "string"},
            "then": {"enum": list(_WORDS)},
            "properties": {"default": VALUE.schema()},
            "required": ["default"],
            "additionalProperties": False,
        }


def _reaction(
    *,
    reaction: ReactionKind | None = None,
    on_missing: tuple[OnMissing, Json] = (OnMissing.KEEP_LAST, None),
    **given: Json,
) -> Reaction:
    return Reaction(reaction=reaction, on_missing=on_missing[0], default=on_missing[1], **given)


REACTION: Table[Reaction] = Table(
    "a reaction",
    {
        "reaction": Field(Choice(ReactionKind), "reaction"),
        "onMissing": Field(_OnMissing(), "on_missing"),
        "maxStaleness": Field(TIME, "max_staleness"),
        **DESCRIPTION,
    },
    _reaction,
    elsewhere=dict.fromkeys(("window", "burst", "debounce", "restartBudget", "perUnit"), _RATES),
)


class _Reactions:
    """By `SLOT.EXPORT` in one dotted key. Written as nested tables, it is refused with the way."""

    def read(self, value: Json, path: Path, rows: Rows) -> dict[str, Reaction] | Broken:
        found = MapOf(_Nested(), key=_any_key).read(value, path, rows)
        return found if found is BROKEN else dict(found)

    def schema(self) -> Schema:
        return MapOf(REACTION, key=_any_key).schema()


class _Nested:
    def read(self, value: Json, path: Path, rows: Rows) -> Reaction | Broken:
        if (
            is_table(value)
            and value
            and all(
                is_table(below) and name not in REACTION.fields for name, below in value.items()
            )
        ):
            for name in value:
                rows.add(
                    "unknown-field",
                    (*path, name),
                    f"`{name}` is no field of a reaction: its path is one dotted key",
                    f'write reactions."{path[-1]}.{name}"',
                )
                rows.drop((*path[:-1], f"{path[-1]}.{name}"), value[name])
            return BROKEN
        return REACTION.read(value, path, rows)

    def schema(self) -> Schema:
        return REACTION.schema()


def _any_key(name: str) -> str | None:
    del name
    return None


REACTIONS = _Reactions()
