"""One entry value by value: its plane, its lifecycle, where it is from, what a change costs."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from keyplane.documents.references import Reference
from keyplane.model.module import Json, Lifecycle
from keyplane.model.names import split_entry
from keyplane.planner import canonical, derive, rounds, terms
from keyplane.planner.compiled import CompiledBody
from keyplane.planner.draft import Assignment, Draft, Target
from keyplane.planner.looks import Term, strongest
from keyplane.planner.request import PlanRequest
from keyplane.planner.scope import Scope
from keyplane.planner.terms import Hole, Parts, Tree


class Plane(StrEnum):
    CLOSURE = "closure"
    ENV = "env"
    CONFIG = "config"
    DYNAMIC = "dynamic"
    PLACEMENT = "placement"


_INDEX = re.compile(r"\[[0-9]+\]")
"""Words of a command are values of one field."""
COSTS = {
    Plane.CLOSURE: "re-make",
    Plane.ENV: "restart",
    Plane.CONFIG: "reload",
    Plane.DYNAMIC: "react",
    Plane.PLACEMENT: "re-place",
}


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One value of an entry."""

    unit: str | None
    """None: of the entry itself."""
    name: str
    plane: Plane
    lifecycle: str
    from_: str | list[str] = msgspec.field(name="from")
    """An export, a reference, or a shipped file; a list where the value has several."""
    value: Json
    """None for a dynamic value."""
    cost: str


def explain(request: PlanRequest, entry: str) -> list[Explained] | None:
    """A row for each value with a reference and each shipped file; None: there is no such entry."""
    found = rounds.derived(request)
    if found is None or "@" not in entry or ":" not in entry.rpartition("@")[0]:
        return None
    draft, families = found
    instance, role, machine = split_entry(entry)
    assignment = draft.assignments.get(f"{instance}:{role}")
    family = next(
        (one for one in families.get(f"{instance}:{role}", ()) if machine in one.machines),
        None,
    )
    if assignment is None or family is None:
        return None
    return list(_Explaining(draft, assignment, machine).rows(family.body))


def explain_all(request: PlanRequest, only: str | None = None) -> dict[str, list[Explained]]:
    """The rows of every entry, or of those of one machine."""
    found = rounds.derived(request)
    if found is None:
        return {}
    draft, families = found
    return {
        f"{role}@{machine}": list(_Explaining(draft, assignment, machine).rows(family.body))
        for role, assignment in draft.assignments.items()
        for family in families.get(role, ())
        for machine in family.machines
        if only in (None, machine)
    }


class _Explaining:
    def __init__(self, draft: Draft, assignment: Assignment, machine: str) -> None:
        self._draft = draft
        self._assignment = assignment
        self._machine = machine
        self._scope = Scope.at(draft, assignment, machine)

    def rows(self, body: CompiledBody) -> Iterator[Explained]:
        for unit in body.units:
            yield from self._fields(unit.name, Plane.CLOSURE, unit.fields)
            file = unit.fields.get("file")
            if isinstance(file, str):
                yield self._shipped(unit.name, "file", Plane.CLOSURE, file)
            for name, tree in unit.env.items():
                yield from self._values(unit.name, name, Plane.ENV, tree)
            for path, config in unit.configs.items():
                if config.file is not None:
                    yield self._shipped(unit.name, path, Plane.CONFIG, config.file)
                else:
                    yield from self._values(unit.name, path, Plane.CONFIG, config.text)
            yield from self._fields(unit.name, Plane.CONFIG, unit.live)
        for name, resource in self._assignment.compiled.resources.items():
            yield from self._values(None, f"resources.{name}", Plane.CLOSURE, resource)
            file = resource.get("file")
            if isinstance(file, str):
                yield self._shipped(None, f"resources.{name}.file", Plane.CLOSURE, file)
        for name, volume in self._assignment.compiled.volumes.items():
            yield from self._values(None, f"volumes.{name}.path", Plane.CLOSURE, volume)
        for tree in body.requirements:
            yield from self._values(None, "requirements", Plane.PLACEMENT, tree)

    def _fields(self, unit: str, plane: Plane, fields: Mapping[str, Tree]) -> Iterator[Explained]:
        for name, tree in fields.items():
            yield from self._values(unit, name, plane, tree)

    def _values(self, unit: str | None, name: str, plane: Plane, tree: Tree) -> Iterator[Explained]:
        for at, parts in terms.texts_in(tree, name):
            looked = [
                (part, self._scope.look(part)) for part in parts if isinstance(part, Reference)
            ]
            if not looked:
                continue
            lifecycle = strongest([term.lifecycle for _, term in looked])
            dynamic = lifecycle is Lifecycle.DYNAMIC
            on = Plane.DYNAMIC if dynamic and plane in (Plane.ENV, Plane.CONFIG) else plane
            sources = [self._source(reference, term) for reference, term in looked]
            flat = [one for several in sources for one in several]
            yield Explained(
                unit=unit,
                name=_INDEX.sub("", at),
                plane=on,
                lifecycle=lifecycle.value,
                from_=flat[0] if len(flat) == 1 else flat,
                value=None if dynamic else self._value(parts, text=_is_text(on, at)),
                cost=COSTS[on],
            )

    def _value(self, parts: Parts, *, text: bool) -> Json:
        filled = self._scope.fill(parts, lambda _reference, term: term.parts, text=text)
        if not terms.is_text(filled):
            return filled
        holes = [part for part in filled if isinstance(part, Hole)]
        if holes:
            hole = {
                "fact": holes[0].fact,
                "machine": holes[0].machine or self._machine,
                "type": holes[0].type,
            }
            if len(filled) > 1:
                hole["template"] = terms.written(filled)
            return {"hole": hole}
        return terms.written(filled)

    def _source(self, reference: Reference, term: Term) -> list[str]:
        if reference.root != "results" or not term.targets:
            return [reference.text]
        return [self._export(target, reference.path[-1]) for target in term.targets]

    def _export(self, target: Target, export: str) -> str:
        offer = target.offer
        where = "" if offer.assignment is None else f"@{target.machine or self._machine}"
        return f"{offer.id}{where}/provides/{offer.provide}/{export}"

    def _shipped(self, unit: str | None, name: str, plane: Plane, file: str) -> Explained:
        content = self._draft.file(self._assignment.module.name, file)
        return Explained(
            unit=unit,
            name=name,
            plane=plane,
            lifecycle=Lifecycle.STATIC.value,
            from_=file,
            value=None if content is None else canonical.digest(content),
            cost=COSTS[plane],
        )


def _is_text(plane: Plane, path: str) -> bool:
    """Whether what stands there is a string whatever it refers to, as it is in the plan."""
    match plane:
        case Plane.ENV | Plane.CONFIG:
            return True
        case Plane.CLOSURE:
            field = _INDEX.sub("", path).partition(".")[0]
            return field in derive.TEXT_FIELDS or field == "volumes" or path.endswith(".text")
        case Plane.DYNAMIC | Plane.PLACEMENT:
            return False
