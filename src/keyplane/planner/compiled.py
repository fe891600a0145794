"""A role with every string read: done once for each role of a module, whatever its instances.

Nothing is resolved here. Where a value stands decides its plane, so the trees are kept apart by
place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_list
from keyplane.model import duration
from keyplane.model.module import Body, ExportVariant, Json, Requirement, Role, Source, UnitKind
from keyplane.planner import canonical, terms
from keyplane.planner.terms import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledConfig:
    text: Tree
    file: str | None
    """Taken as it is; then `text` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledUnit:
    """A unit, by plane. Maps are in the order of their names."""

    name: str
    kind: UnitKind
    fields: Mapping[str, Tree]
    """The closure's."""
    env: Mapping[str, Tree]
    configs: Mapping[str, CompiledConfig]
    live: Mapping[str, Tree]
    """Applied with no restart: health, reload and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledVariant:
    authored: ExportVariant
    value: Tree
    source: Mapping[str, Tree] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledBody:
    """What the body of a role says: its own, or what its function computed."""

    units: tuple[CompiledUnit, ...]
    exports: Mapping[str, Mapping[str, tuple[CompiledVariant, ...]]]
    requirements: tuple[Mapping[str, Tree], ...]
    malformed: tuple[tuple[str, str], ...]
    """Path and message of each string that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRole:
    """What a role says apart from its body."""

    requests: Mapping[str, Mapping[str, Tree]]
    resources: Mapping[str, Mapping[str, Tree]]
    volumes: Mapping[str, Tree]
    grants: Mapping[str, Tree]
    """By provide: the path of its contributions."""
    seats: Mapping[str, Tree]
    malformed: tuple[tuple[str, str], ...]


def role_of(role: Role) -> CompiledRole:
    malformed: list[tuple[str, str]] = []

    def note(path: str, message: str) -> None:
        malformed.append((path, message))

    return CompiledRole(
        requests={
            slot: terms.read_tree(dict(uses.request), f"uses.{slot}.request", note)
            for slot, uses in sorted(role.uses.items())
        },
        resources={
            name: {
                "type": resource.type,
                **terms.read_tree(dict(resource.fields), f"resources.{name}", note),
            }
            for name, resource in sorted(role.resources.items())
        },
        volumes={
            name: terms.read_tree(volume.path, f"volumes.{name}.path", note)
            for name, volume in sorted(role.volumes.items())
        },
        grants={
            name: terms.read_tree(provide.grants, f"provides.{name}.grants", note)
            for name, provide in sorted(role.provides.items())
            if provide.grants is not None
        },
        seats={
            name: {
                "scope": seat.scope,
                "verbs": {
                    verb: {
                        "command": terms.read_tree(
                            list(said.command), f"seats.{name}.verbs.{verb}.command", note
                        )
                    }
                    for verb, said in sorted(seat.verbs.items())
                },
            }
            for name, seat in sorted(role.seats.items())
        },
        malformed=tuple(malformed),
    )


def body_of(role: Role, body: Body) -> CompiledBody:
    malformed: list[tuple[str, str]] = []

    def note(path: str, message: str) -> None:
        malformed.append((path, message))

    units: list[CompiledUnit] = []
    for name, unit in sorted(body.units.items()):
        path = f"units.{name}"
        units.append(
            CompiledUnit(
                name=name,
                kind=unit.kind,
                fields=terms.read_tree(_by_name(unit.fields), path, note),
                env={
                    variable: _text(terms.read_tree(value, f"{path}.env.{variable}", note))
                    for variable, value in sorted(unit.env.items())
                },
                configs={
                    at: CompiledConfig(
                        text=terms.read_tree(said.text or "", f"{path}.configData.{at}", note),
                        file=said.file,
                    )
                    for at, said in sorted(unit.config_data.items())
                },
                live=terms.read_tree(_by_name(unit.live), path, note),
            )
        )
    exports = {
        provide: {
            export: tuple(
                _variant(variant, f"provides.{provide}.exports.{export}", note)
                for variant in variants
            )
            for export, variants in sorted(said.items())
        }
        for provide, said in sorted(body.exports.items())
    }
    requirements = [
        terms.read_tree(_requirement(said), f"requirements[{index}]", note)
        for index, said in enumerate(body.requirements)
    ]
    requirements += [
        {"subject": f"capability.{name}", "predicate": "exists", "severity": "require"}
        for name in role.capabilities
    ]
    return CompiledBody(
        units=tuple(units),
        exports=exports,
        requirements=tuple(requirements),
        malformed=tuple(malformed),
    )


def places(role: CompiledRole, body: CompiledBody) -> Iterator[tuple[str, Tree]]:
    """Every tree apart from the exports, and its path from the role."""
    for slot, request in role.requests.items():
        yield f"uses.{slot}.request", request
    for name, resource in role.resources.items():
        yield f"resources.{name}", resource
    for name, volume in role.volumes.items():
        yield f"volumes.{name}.path", volume
    for name, grants in role.grants.items():
        yield f"provides.{name}.grants", grants
    for name, seat in role.seats.items():
        yield f"seats.{name}", seat
    for unit in body.units:
        yield f"units.{unit.name}", unit.fields
        yield f"units.{unit.name}.env", unit.env
        for at, config in unit.configs.items():
            yield f"units.{unit.name}.configData.{at}", config.text
        yield f"units.{unit.name}", unit.live
    for index, requirement in enumerate(body.requirements):
        yield f"requirements[{index}]", requirement


def slots_read(tree: Tree) -> Iterator[tuple[str, str]]:
    """Slot and export of each `${results.…}`, whatever its reach."""
    for reference in terms.references_in(tree):
        if reference.root == "results" and len(reference.path) in {2, 3}:
            yield reference.path[0], reference.path[-1]


def slots_asked(tree: Tree) -> Iterator[str]:
    """The slots that have to be bound before the tree can be resolved."""
    for reference in terms.references_in(tree):
        if _asks_slot(reference):
            yield reference.path[0]


def _asks_slot(reference: Reference) -> bool:
    return reference.root in {"results", "bound", "credentials"} and bool(reference.path)


def _text(value: Tree) -> Tree:
    """A list as one text, its items parted by a space."""
    if not is_list(value):
        return value
    parts: list[terms.Part] = []
    for item in value:
        if parts:
            parts.append(" ")
        parts += item if terms.is_text(item) else [canonical.text(item)]
    joined = terms.joined(tuple(parts)) or ("",)
    return joined[0] if len(joined) == 1 and isinstance(joined[0], str) else joined


def _by_name(table: Mapping[str, Json]) -> dict[str, Json]:
    return dict(sorted(table.items()))


def _variant(variant: ExportVariant, path: str, note: terms.Noted) -> CompiledVariant:
    return CompiledVariant(
        authored=variant,
        value=terms.read_tree(variant.value, f"{path}.value", note),
        source=None
        if variant.source is None
        else terms.read_tree(_source(variant.source), f"{path}.source", note),
    )


def _source(source: Source) -> dict[str, Json]:
    if source.file is not None:
        return {"file": source.file}
    if source.command is not None:
        said: dict[str, Json] = {"command": list(source.command)}
        if source.every is not None:
            said["every"] = duration.print_ms(source.every.milliseconds)
        return said
    return {"published": True}


def _requirement(said: Requirement) -> dict[str, Json]:
    tree: dict[str, Json] = {
        "subject": said.subject,
        "predicate": said.predicate.value,
        "severity": said.severity.value,
    }
    if said.value is not None:
        tree["value"] = said.value
    if said.values is not None:
        tree["values"] = said.values if isinstance(said.values, str) else list(said.values)
    if said.pattern is not None:
        tree["pattern"] = said.pattern
    if said.bounds is not None:
        tree["bounds"] = said.bounds
    return tree
