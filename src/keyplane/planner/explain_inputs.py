"""An input of a key: what it was, what it is, and which sources of it moved."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from keyplane.documents.trees import is_table
from keyplane.model.module import Json
from keyplane.model.names import split_entry
from keyplane.model.plan import Entry, Plan, Unit
from keyplane.planner import explain_key
from keyplane.planner.compiled import CompiledUnit
from keyplane.planner.draft import Assignment
from keyplane.planner.explain_origins import Chain, Origins, Place
from keyplane.planner.program import Families, Family

_PLANES = ("resources", "listens", "volumes", "artifacts")
_FIELDS = {
    wire: name
    for name, wire in zip(Unit.__struct_fields__, Unit.__struct_encode_fields__, strict=True)
}


class Inputs:
    def __init__(self, families: Families, origins: Origins, old: Plan, new: Plan) -> None:
        self._families = families
        self._origins = origins
        self._old = old
        self._new = new

    def values(self, entry: str, reason: str) -> tuple[Json, Json]:
        """What an input other than a dependency was, and what it is."""
        was, now = self._old.entries[entry], self._new.entries[entry]
        if reason == "machine":
            machine = split_entry(entry)[2]
            return self._old.machines[machine].key, self._new.machines[machine].key
        if reason == "closure.module":
            return was.module, now.module
        kind, unit, name = reason.split(".", 2)
        if kind == "env":
            return (
                explain_key.env_of(was.units.get(unit)).get(name),
                explain_key.env_of(now.units.get(unit)).get(name),
            )
        if unit == "secrets" and (name in was.secrets) != (name in now.secrets):
            declared = "declared"
            return (
                declared if name in was.secrets else None,
                declared if name in now.secrets else None,
            )
        if unit in _PLANES:
            before, after = getattr(was, unit).get(name), getattr(now, unit).get(name)
            if before != after:
                return before, after
        return field(was, unit, name), field(now, unit, name)

    def sources(self, entry: str, reason: str, old: Json, new: Json) -> list[Chain]:
        found = self.place(entry)
        if found is None:
            return []
        family, place = found
        if reason == "machine":
            return [(f"machines.{place.machine}.platform",)]
        if reason == "closure.module":
            return [(f"instances.{place.assignment.instance}.module",)]
        kind, unit_name, name = reason.split(".", 2)
        unit = next((one for one in family.body.units if one.name == unit_name), None)
        compiled = place.assignment.compiled
        if kind == "env":
            tree = None if unit is None else unit.env.get(name)
            return self._origins.moved(place, tree, old, new, f"units.{unit_name}.env.{name}")
        if unit_name == "resources" and name in compiled.resources:
            tree = compiled.resources[name]
            shipped = _shipped(place.assignment, tree, old, new)
            return shipped or self._origins.moved(place, tree, old, new, f"resources.{name}")
        if unit_name == "volumes" and name in compiled.volumes:
            tree = {"path": compiled.volumes[name]}
            return self._origins.moved(place, tree, old, new, f"volumes.{name}")
        if unit_name == "artifacts" and name in self._new.entries[entry].artifacts:
            return [(f"modules/{place.assignment.module.name}: build of {name}",)]
        if unit_name == "listens" and name in place.assignment.role.listens:
            return [self._origins.port(place, name).chain]
        if unit_name in {*_PLANES, "secrets"} and unit is None:
            return [self._origins.module_text(place, f"{unit_name}.{name}")]
        return self._of_field(place, unit, f"units.{unit_name}", name, (old, new))

    def _of_field(
        self,
        place: Place,
        unit: CompiledUnit | None,
        path: str,
        name: str,
        values: tuple[Json, Json],
    ) -> list[Chain]:
        if name == "fileDigest" and unit is not None:
            return [(f"modules/{place.assignment.module.name}/{unit.fields.get('file')}",)]
        if name == "publish":
            # A port of the machine's is in front of each that the module says.
            old, new = (value if is_table(value) else {} for value in values)
            return [
                self._origins.port(place, listen).chain
                for listen in sorted(place.assignment.role.listens)
                if old.get(listen) != new.get(listen)
            ] or [self._origins.module_text(place, f"{path}.{name}")]
        tree = None if unit is None else unit.fields.get(name)
        return self._origins.moved(place, tree, *values, f"{path}.{name}")

    def place(self, entry: str) -> tuple[Family, Place] | None:
        role, _, machine = entry.rpartition("@")
        for family in self._families.get(role, ()):
            if machine in family.machines:
                return family, Place(assignment=family.assignment, machine=machine)
        return None


def field(entry: Entry, unit: str, name: str) -> Json:
    found = entry.units.get(unit)
    value: Any = None if found is None else getattr(found, _FIELDS.get(name, name), None)
    return None if value is UNSET else value


def _shipped(assignment: Assignment, tree: Mapping[str, Json], old: Json, new: Json) -> list[Chain]:
    """The shipped file of a resource of which nothing but the content moved."""
    file = tree.get("file")
    if not isinstance(file, str) or not is_table(old) or not is_table(new):
        return []
    same = {**old, "digest": ""} == {**new, "digest": ""}
    return [(f"modules/{assignment.module.name}/{file}",)] if same else []
