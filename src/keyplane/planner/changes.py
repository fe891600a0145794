"""What may change in the documents of a fleet, and which of it a kept plan can follow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never

from keyplane.documents.evaluation import Evaluate
from keyplane.model.documents import Documents
from keyplane.model.fleet import FactSnapshot, Fleet
from keyplane.model.module import ExportVariant, Json, Module
from keyplane.planner import exact

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """An instance gives a setting another value. What is not there is not changed; so below."""

    instance: str
    role: str
    setting: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportValue:
    """A role's export has another value, in one of its variants."""

    module: str
    role: str
    provide: str
    export: str
    value: Json
    variant: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalValue:
    """An external's export has another value."""

    external: str
    export: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class FactValue:
    """A machine says something else; None: nothing any more."""

    machine: str
    fact: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocuments:
    """All documents anew, whatever changed in them."""

    documents: Documents
    evaluate: Evaluate | None = None
    """For the roles that a function computes; None: as before."""


Change = SettingValue | ExportValue | ExternalValue | FactValue | NewDocuments


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Where documents differ, if they differ in values only."""

    settings: frozenset[str] = frozenset()
    """`INSTANCE:ROLE`."""
    bodies: frozenset[tuple[str, str]] = frozenset()
    """Modules and roles that say something else in units, exports or requirements."""
    externals: frozenset[str] = frozenset()
    facts: frozenset[tuple[str, str]] = frozenset()
    """Machines and facts."""
    diagnostics: bool = False

    @property
    def none(self) -> bool:
        return self == _NO_DELTA


_NO_DELTA = Delta()
_NO_EXPORTS: Mapping[str, tuple[ExportVariant, ...]] = {}
_NO_FACTS: Mapping[str, Json] = {}


def applied(documents: Documents, change: Change) -> tuple[Documents, Delta | None]:
    """The documents after the change; no delta where more than values differs."""
    match change:
        case SettingValue():
            return _setting(documents, change)
        case ExportValue():
            return _export(documents, change)
        case ExternalValue():
            return _external(documents, change)
        case FactValue():
            return _fact(documents, change)
        case NewDocuments():
            return change.documents, between(documents, change.documents)
        case _:
            assert_never(change)


def _setting(documents: Documents, change: SettingValue) -> tuple[Documents, Delta]:
    fleet = documents.fleet
    instance = fleet.instances.get(change.instance) if fleet is not None else None
    if fleet is None or instance is None:
        return documents, _NO_DELTA
    given = {**instance.settings.get(change.role, {}), change.setting: change.value}
    changed = replace(instance, settings=_with(instance.settings, change.role, given))
    instances = _with(fleet.instances, change.instance, changed)
    delta = Delta(settings=frozenset({f"{change.instance}:{change.role}"}))
    return replace(documents, fleet=replace(fleet, instances=instances)), delta


def _export(documents: Documents, change: ExportValue) -> tuple[Documents, Delta]:
    module = documents.modules.get(change.module)
    role = module.roles.get(change.role) if module is not None else None
    if module is None or role is None:
        return documents, _NO_DELTA
    exports = role.body.exports.get(change.provide, _NO_EXPORTS)
    variants = exports.get(change.export, ())
    if not 0 <= change.variant < len(variants):
        return documents, _NO_DELTA
    said = list(variants)
    said[change.variant] = replace(said[change.variant], value=change.value)
    provides = _with(exports, change.export, tuple(said))
    body = replace(role.body, exports=_with(role.body.exports, change.provide, provides))
    roles = _with(module.roles, change.role, replace(role, body=body))
    modules = _with(documents.modules, change.module, replace(module, roles=roles))
    delta = Delta(bodies=frozenset({(change.module, change.role)}))
    return replace(documents, modules=modules), delta


def _external(documents: Documents, change: ExternalValue) -> tuple[Documents, Delta]:
    fleet = documents.fleet
    external = fleet.externals.get(change.external) if fleet is not None else None
    variants = external.exports.get(change.export) if external is not None else None
    if fleet is None or external is None or variants is None:
        return documents, _NO_DELTA
    said: tuple[ExportVariant, ...] = tuple(
        one if one.when else replace(one, value=change.value) for one in variants
    )
    changed = replace(external, exports=_with(external.exports, change.export, said))
    externals = _with(fleet.externals, change.external, changed)
    delta = Delta(externals=frozenset({change.external}))
    return replace(documents, fleet=replace(fleet, externals=externals)), delta


def _fact(documents: Documents, change: FactValue) -> tuple[Documents, Delta]:
    if documents.fleet is None or change.machine not in documents.fleet.machines:
        return documents, _NO_DELTA
    snapshot = documents.facts.get(change.machine)
    facts = dict(_NO_FACTS if snapshot is None else snapshot.facts)
    facts.pop(change.fact, None)
    if change.value is not None:
        facts[change.fact] = change.value
    changed = (
        FactSnapshot(machine=change.machine, facts=facts)
        if snapshot is None
        else replace(snapshot, facts=facts)
    )
    delta = Delta(facts=frozenset({(change.machine, change.fact)}))
    return replace(documents, facts=_with(documents.facts, change.machine, changed)), delta


def _with(table: Mapping[str, _Value], name: str, value: _Value) -> dict[str, _Value]:
    return {**table, name: value}


def between(old: Documents, new: Documents) -> Delta | None:
    """None where more than values differs."""
    was, fleet = old.fleet, new.fleet
    if was is None or fleet is None:
        return None
    for name in ("interfaces", "shipped", "artifacts", "broken", "dropped", "starlark"):
        if not exact.same(getattr(old, name), getattr(new, name)):
            return None
    if was.name != fleet.name or was.file != fleet.file or was.machines != fleet.machines:
        return None
    settings = _settings_between(was, fleet)
    bodies = _bodies_between(old.modules, new.modules)
    externals = _externals_between(was, fleet)
    facts = _facts_between(old, new)
    if settings is None or bodies is None or externals is None or facts is None:
        return None
    return Delta(
        settings=frozenset(settings),
        bodies=frozenset(bodies),
        externals=frozenset(externals),
        facts=frozenset(facts),
        diagnostics=old.diagnostics != new.diagnostics,
    )


def _settings_between(was: Fleet, fleet: Fleet) -> set[str] | None:
    if was.instances.keys() != fleet.instances.keys():
        return None
    found: set[str] = set()
    for name, instance in fleet.instances.items():
        before = was.instances[name]
        if before is instance:
            continue
        if not exact.same(before, replace(instance, settings=before.settings)):
            return None
        for role in before.settings.keys() | instance.settings.keys():
            if not exact.same(before.settings.get(role), instance.settings.get(role)):
                found.add(f"{name}:{role}")
    return found


def _bodies_between(
    was: Mapping[str, Module], modules: Mapping[str, Module]
) -> set[tuple[str, str]] | None:
    if was.keys() != modules.keys():
        return None
    found: set[tuple[str, str]] = set()
    for name, module in modules.items():
        before = was[name]
        if before is module:
            continue
        if before.roles.keys() != module.roles.keys():
            return None
        if not exact.same(before, replace(module, roles=before.roles)):
            return None
        for role_name, role in module.roles.items():
            old = before.roles[role_name]
            if not exact.same(old, replace(role, body=old.body)):
                return None
            if not exact.same(old.body, role.body):
                found.add((name, role_name))
    return found


def _externals_between(was: Fleet, fleet: Fleet) -> set[str] | None:
    if was.externals.keys() != fleet.externals.keys():
        return None
    return {
        name
        for name, external in fleet.externals.items()
        if not exact.same(was.externals[name], external)
    }


def _facts_between(old: Documents, new: Documents) -> set[tuple[str, str]] | None:
    assert new.fleet is not None
    if any(name not in new.fleet.machines for name in old.facts.keys() ^ new.facts.keys()):
        return None
    found: set[tuple[str, str]] = set()
    for name in old.facts.keys() | new.facts.keys():
        was, snapshot = old.facts.get(name), new.facts.get(name)
        if was is snapshot:
            continue
        before = _NO_FACTS if was is None else was.facts
        after = _NO_FACTS if snapshot is None else snapshot.facts
        found.update(
            (name, fact)
            for fact in before.keys() | after.keys()
            if not exact.same(before.get(fact), after.get(fact))
        )
    return found
