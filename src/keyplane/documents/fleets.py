"""The fleet's document: machines, instances, externals."""

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

from keyplane.documents.exports import EXPORTS
from keyplane.documents.modules import POLICY
from keyplane.documents.rows import Path, Rows
from keyplane.documents.shapes import (
    ADDRESS,
    ANYTHING,
    BROKEN,
    FILLED,
    FLAG,
    NAME,
    TEXT,
    TIME,
    Broken,
    Choice,
    Schema,
    Whole,
)
from keyplane.documents.tables import (
    DESCRIPTION,
    Field,
    ListOf,
    MapOf,
    Table,
    at_most_one,
    needed,
    raw,
)
from keyplane.model.fleet import (
    Debounce,
    External,
    Fleet,
    Instance,
    Machine,
    OnFact,
    Placement,
    Rates,
    RestartBudget,
    Strategy,
)
from keyplane.model.module import Json

N = TypeVar("N", Machine, Instance, External)

RATES: Table[Rates] = Table(
    "a machine's reactions",
    {
        "debounce": Field(
            Table(
                "a debounce",
                {"window": Field(TIME, "window"), "burst": Field(Whole(1), "burst")},
                Debounce,
            ),
            "debounce",
        ),
        "restartBudget": Field(
            Table(
                "a restart budget",
                {"perUnit": Field(Whole(0), "per_unit"), "window": Field(TIME, "window")},
                RestartBudget,
            ),
            "restart_budget",
        ),
    },
    Rates,
)


def _machine(**given: Json) -> Machine:
    return Machine(name="", **given)


_MACHINE: Table[Machine] = Table(
    "a machine",
    {
        "address": needed(ADDRESS, "address"),
        "tags": Field(ListOf(FILLED), "tags"),
        "reactions": Field(RATES, "rates"),
        "pins": Field(MapOf(TEXT), "pins"),
        "platform": Field(FILLED, "platform"),
        "local": Field(FLAG, "local"),
        "exec": Field(FLAG, "exec"),
        **DESCRIPTION,
    },
    _machine,
)

_WHERE = {"machines": Field(ListOf(TEXT), "machines"), "tags": Field(ListOf(FILLED), "tags")}
_NOT_BOTH = (at_most_one("machines", "tags"),)


def _every(**given: Json) -> Placement:
    return Placement(strategy=Strategy.EVERY, **given)


def _count(**given: Json) -> Placement:
    return Placement(strategy=Strategy.COUNT, **given)


_STRATEGIES: Mapping[str, MapOf[Placement]] = {
    "every": MapOf(
        Table(
            "a selection",
            _WHERE,
            _every,
            _NOT_BOTH,
            dict.fromkeys(("count", "spread"), "it belongs to placement.count"),
        )
    ),
    "count": MapOf(
        Table(
            "a selection with a count",
            {
                "count": needed(Whole(0), "count"),
                **_WHERE,
                "spread": Field(FILLED, "spread"),
            },
            _count,
            _NOT_BOTH,
        )
    ),
}


_PLACEMENT: Table[dict[str, Json]] = Table(
    "a placement",
    {name: Field(shape, name) for name, shape in _STRATEGIES.items()},
    raw,
)


class _Placements:
    """By role. One role under two strategies is placed by neither."""

    def read(self, value: Json, path: Path, rows: Rows) -> dict[str, Placement] | Broken:
        found = _PLACEMENT.read(value, path, rows)
        if found is BROKEN:
            return BROKEN
        every: dict[str, Placement] = found.get("every", {})
        count: dict[str, Placement] = found.get("count", {})
        for role in every.keys() & count.keys():
            rows.wrong(
                (*path, "count", role),
                f"the role `{role}` is placed by every and by count",
                "keep one of them",
            )
        return {
            role: placement
            for role, placement in {**every, **count}.items()
            if role not in every.keys() & count.keys()
        }

    def schema(self) -> Schema:
        return _PLACEMENT.schema()


def _instance(**given: Json) -> Instance:
    return Instance(name="", **given)


_BY_ROLE = "settings stand by role: write settings.ROLE.NAME"
_INSTANCE: Table[Instance] = Table(
    "an instance",
    {
        "module": needed(TEXT, "module"),
        "settings": Field(MapOf(MapOf(ANYTHING, instead=_BY_ROLE)), "settings"),
        "placement": Field(_Placements(), "placement"),
        "bind": Field(MapOf(MapOf(TEXT)), "bind"),
        "floor": Field(MapOf(Whole(0)), "floor"),
        "onFact": Field(Choice(OnFact), "on_fact"),
        "policy": Field(POLICY, "policy"),
        **DESCRIPTION,
    },
    _instance,
)


def _external(**given: Json) -> External:
    return External(name="", **given)


_EXTERNAL: Table[External] = Table(
    "an external",
    {
        "interface": needed(TEXT, "interface"),
        "exports": Field(EXPORTS, "exports"),
        **DESCRIPTION,
    },
    _external,
)


FLEET: Table[dict[str, Json]] = Table(
    "a fleet",
    {
        "fleet": needed(NAME, "name"),
        **DESCRIPTION,
        "machines": Field(MapOf(_MACHINE), "machines"),
        "instances": Field(MapOf(_INSTANCE), "instances"),
        "externals": Field(MapOf(_EXTERNAL), "externals"),
    },
    raw,
)


def read(tree: dict[str, Json], rows: Rows) -> Fleet | None:
    """The fleet. One whose name is broken is kept as it is written: no entry depends on it."""
    kept = {
        name: Field(one.shape, one.attribute) if one.needed else one
        for name, one in FLEET.fields.items()
    }
    if "fleet" not in tree and not rows.was_dropped(("fleet",)):
        rows.wrong(("fleet",), "`fleet` is missing: a fleet needs its name", "add fleet")
    given = Table("a fleet", kept, raw).given(tree, (), rows)
    if given is BROKEN:
        return None
    machines = _named(given.get("machines", {}))
    _check_addresses(machines, rows)
    return Fleet(
        name=written if isinstance(written := tree.get("fleet"), str) else "",
        file=rows.file,
        machines=machines,
        instances=_named(given.get("instances", {})),
        externals=_named(given.get("externals", {})),
    )


def _check_addresses(machines: Mapping[str, Machine], rows: Rows) -> None:
    """Ports are assigned by machine: of two on one computer with one address, they would meet."""
    taken: dict[str, str] = {}
    for name, machine in sorted(machines.items()):
        other = taken.setdefault(machine.address, name) if machine.local else name
        if other != name:
            rows.wrong(
                ("machines", name, "address"),
                f"{name} and {other} are local machines with the same address, {machine.address}: "
                "what listens on one would hold the port of the other",
                f"give {name} an address of its own, such as another one of 127.77.0.0/16",
            )


def _named(found: Mapping[str, N]) -> dict[str, N]:
    """Each with the key that it stands under as its name."""
    return {name: dataclasses.replace(one, name=name) for name, one in found.items()}
