"""What is singular on a machine has one holder: claims, paths, packages, accounts, service units.

The second holder is refused, naming both. Fixed ports are of the same kind, and judged where
ports are allocated.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from keyplane.planner import columns, notes
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.program import Families, Family
from keyplane.planner.resolve import Closure, Resolved, Rest
from keyplane.planner.rows import MACHINE, Fault


class _Holding(NamedTuple):
    """One thing that is held, and where the role says so."""

    kind: str
    name: str
    path: str
    content: str
    """Two units of one entry may share a file of the same content."""


_Holder = tuple[Assignment, tuple[_Holding, ...]]
Standing = dict[str, dict[str, _Holder]]
"""By machine, then role: what its entries hold."""


def check(draft: Draft, families: Families, resolved: Mapping[Family, Resolved]) -> Standing:
    standing: Standing = {}
    for several in families.values():
        for family in several:
            stand(family, resolved[family], standing)
    with draft.noting(notes.CONFLICTS):
        judge(draft, standing)
    return standing


def stand(family: Family, resolved: Resolved, standing: Standing) -> bool:
    """Note what the entries of a family hold; whether that is anything new.

    Those that hold the same share it.
    """
    held = columns.by_pair(
        resolved.closures,
        resolved.rests,
        lambda closure, rest: tuple(_holdings(family, closure, rest)),
    )
    role = family.assignment.id
    if not any(held) and not any(role in standing.get(name, ()) for name in family.machines):
        return False
    news = False
    for machine, holdings in zip(family.machines, held, strict=True):
        its = standing.setdefault(machine, {})
        before = its.get(role)
        news = news or (() if before is None else before[1]) != holdings
        if holdings:
            its[role] = family.assignment, holdings
        else:
            its.pop(role, None)
    return news


def judge(draft: Draft, standing: Standing) -> None:
    """A fault for each thing that has two holders, of the later one by name."""
    judged: dict[tuple[int, ...], list[tuple[str, Fault]]] = {}
    for machine, its in standing.items():
        holders = sorted(its.values(), key=lambda holder: holder[0].prefix)
        mark = tuple([id(holdings) for _, holdings in holders])
        if mark not in judged:
            judged[mark] = list(_faults(holders))
        for role, fault in judged[mark]:
            draft.rows.place(role, (machine,), fault)


def _holdings(family: Family, closure: Closure, rest: Rest) -> Iterator[_Holding]:
    directories: set[str] = set()
    for name in family.assignment.role.claims:
        yield _Holding("claim", name, "claims", "")
    for name, resource in closure.resources.items():
        where = f"resources.{name}"
        match resource.get("type"):
            case "file" | "directory" | "archive":
                path = normal(str(resource.get("path", "")))
                if resource["type"] == "directory":
                    directories.add(path)
                yield _Holding("path", path, where, where)
            case "package" | "account" as kind:
                yield _Holding(kind, str(resource.get("name") or name), where, where)
            case _:
                continue
    for name, volume in closure.volumes.items():
        where, path = f"volumes.{name}", normal(str(volume["path"]))
        if path not in directories:  # else the same entry says who owns it
            yield _Holding("path", path, where, where)
    for unit, said, fields in zip(family.program.units, rest.configs, closure.units, strict=True):
        where = f"units.{unit.name}"
        paths = {**said, **{name: "" for name in unit.dynamic if "/" in name}}
        for path, content in paths.items():
            yield _Holding("path", normal(path), f"{where}.configData.{path}", str(content))
        if unit.kind == "service":
            named = fields.get("unit") or fields.get("file")
            if isinstance(named, str):
                yield _Holding("service unit", named.rpartition("/")[2], where, where)
    for name, path in rest.extras.get("grants", {}).items():
        where = f"provides.{name}.grants"
        yield _Holding("path", normal(path), where, where)


def normal(path: str) -> str:
    """The path without what makes no difference."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def _faults(
    holders: list[_Holder],
) -> Iterator[tuple[str, Fault]]:
    first: dict[tuple[str, str], tuple[Assignment, _Holding]] = {}
    for assignment, holdings in holders:
        for holding in holdings:
            held = first.setdefault((holding.kind, holding.name), (assignment, holding))
            if held[1] is holding:
                continue
            if held[0] is assignment and held[1].content == holding.content:
                continue
            yield assignment.id, _fault(assignment, holding, held[0], held[1])


def _fault(assignment: Assignment, holding: _Holding, holder: Assignment, held: _Holding) -> Fault:
    claim = holding.kind == "claim"
    what = f"{holding.kind} {holding.name}"
    ways = (
        f"place {assignment.id} on another machine than {holder.id}",
        *(() if claim else ("or let one of them name another",)),
    )
    if holder is assignment:
        ways = (f"let one of {held.path} and {holding.path} name another",)
    return Fault(
        code="claim-conflict" if claim else "resource-conflict",
        path=holding.path,
        message=f"{what} of machine {MACHINE} is held by {holder.id} ({held.path}) and asked for "
        f"by {assignment.id} ({holding.path}); it has one holder",
        resolution=ways,
        alone=True,
    )
