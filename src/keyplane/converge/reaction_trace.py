"""A trace of dynamic values, as the bytes of a JSON document: what `keyplane react` replays.

Decides what a trace may say, and nothing of what comes of it. Values are what a unit would be
given, so numbers, booleans and lists become text as in an environment. A reference of a template
is what stands there as `${results.…}`. Events that are not in order are put in order. Entries
of several machines are replayed each on its own machine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keyplane.converge.reaction_state import News
from keyplane.documents import fleets, reactions, text
from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import BROKEN, FILLED, TEXT, TIME, VALUE, Broken, Flag, Schema, Shape
from keyplane.documents.tables import Field, ListOf, MapOf, Table, exactly_one, needed
from keyplane.documents.text import Unreadable
from keyplane.documents.trees import is_list
from keyplane.model import reaction as contracts
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.duration import Duration
from keyplane.model.fleet import Rates
from keyplane.model.module import Json, OnMissing, ReactionKind
from keyplane.model.reaction import Contract, Contracts, Parts, as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    at_ms: int
    news: News


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    contracts: Contracts
    until_ms: int
    rates: Rates = field(default_factory=Rates)
    initial: Mapping[str, str] = field(default_factory=dict[str, str])
    events: tuple[Heard, ...] = ()
    """By time."""


def read(data: bytes, *, file: str) -> Trace | tuple[Diagnostic, ...]:
    """The trace, or all that is wrong with it."""
    tree = text.parse(data, spelling="json")
    if isinstance(tree, Unreadable):
        return (Diagnostic(code="unreadable", subject=file, path="", message=tree.message),)
    rows = Rows(file)
    text.sweep(tree, rows)
    found = _TRACE.read(tree, (), rows)
    return tuple(rows.found) if found is BROKEN or rows.found else found


def _any_key(name: str) -> str | None:
    del name
    return None


class _Text:
    """A value as a unit is given it."""

    def read(self, value: Json, path: Path, rows: Rows) -> str | Broken:
        found = VALUE.read(value, path, rows)
        return BROKEN if found is BROKEN else as_text(found)

    def schema(self) -> Schema:
        return VALUE.schema()


class _Sources:
    """One export, or a list of them."""

    _list = ListOf(FILLED, least=1)

    def read(self, value: Json, path: Path, rows: Rows) -> tuple[str, ...] | Broken:
        if is_list(value):
            return self._list.read(value, path, rows)
        one = FILLED.read(value, path, rows)
        return BROKEN if one is BROKEN else (one,)

    def schema(self) -> Schema:
        return {"anyOf": [FILLED.schema(), self._list.schema()]}


class _Contract:
    """A contract as a plan has it under `dynamic`."""

    def __init__(self, table: Shape[dict[str, Json]]) -> None:
        self._table = table

    def read(self, value: Json, path: Path, rows: Rows) -> Contract | Broken:
        given = self._table.read(value, path, rows)
        if given is BROKEN:
            return BROKEN
        sources: tuple[str, ...] = given["sources"]
        parts = contracts.joined(len(sources))
        if "template" in given:
            filled = contracts.parts_of(given["template"], len(sources))
            if filled is None:
                rows.wrong(
                    (*path, "template"),
                    f"{show(given['template'])} has not as many references as `from`, which has "
                    f"{len(sources)}",
                    "write each as ${results.SLOT.EXPORT}",
                )
                return BROKEN
            parts = filled
        return _contract(sources, parts, given)

    def schema(self) -> Schema:
        return self._table.schema()


def _contract(sources: tuple[str, ...], parts: Parts, given: Mapping[str, Json]) -> Contract:
    reaction: ReactionKind = given["reaction"]
    on_missing, default = given.get("on_missing", (OnMissing.KEEP_LAST, None))
    staleness: Duration | None = given.get("max_staleness")
    return Contract(
        sources=sources,
        parts=parts,
        reaction=reaction,
        on_missing=on_missing,
        default=as_text(default) if on_missing is OnMissing.DEFAULT else None,
        max_staleness_ms=None if staleness is None else staleness.milliseconds,
    )


def _given(**given: Json) -> dict[str, Json]:
    return given


def _event(*, at: Duration, export: str, value: str | None = None) -> Heard:
    return Heard(at_ms=at.milliseconds, news=News(export=export, value=value))


def _trace(
    *, contracts: Contracts, until: Duration, events: Iterable[Heard] = (), **given: Json
) -> Trace:
    return Trace(
        contracts=contracts,
        until_ms=until.milliseconds,
        events=tuple(sorted(events, key=lambda heard: heard.at_ms)),
        **given,
    )


_RATES = "how fast a machine reacts is said under `rates`"

_DYNAMIC = _Contract(
    Table(
        "a dynamic value",
        {
            "from": needed(_Sources(), "sources"),
            "transport": Field(TEXT, ""),
            "reaction": needed(reactions.REACTION.fields["reaction"].shape, "reaction"),
            "onMissing": reactions.REACTION.fields["onMissing"],
            "maxStaleness": reactions.REACTION.fields["maxStaleness"],
            "template": Field(TEXT, "template"),
        },
        _given,
        elsewhere=dict.fromkeys(reactions.REACTION.elsewhere, _RATES),
    )
)

_EVENT = Table(
    "an event",
    {
        "at": needed(TIME, "at"),
        "export": needed(FILLED, "export"),
        "value": Field(_Text(), "value"),
        "missing": Field(Flag(only=True), ""),
    },
    _event,
    (exactly_one("value", "missing"),),
)

_BY_UNIT = MapOf(MapOf(_DYNAMIC, key=_any_key), key=_any_key)

_TRACE: Table[Trace] = Table(
    "a trace",
    {
        "rates": Field(fleets.RATES, "rates"),
        "entries": needed(MapOf(_BY_UNIT, key=_any_key), "contracts"),
        "initial": Field(MapOf(_Text(), key=_any_key), "initial"),
        "events": Field(ListOf(_EVENT), "events"),
        "until": needed(TIME, "until"),
    },
    _trace,
)
