"""Why an entry has another key: which of its units are others, and which inputs of the key."""

from collections.abc import Iterable, Mapping

from msgspec import UNSET

from keyplane.model.names import split_entry
from keyplane.model.plan import Entry, Plan, Unit

_UNIT_FIELDS = tuple(
    name
    for name in Unit.__struct_fields__
    if name
    not in {
        "digest", "env", "config_data", "dynamic", "health", "reload", "restart", "stop_timeout",
        "handover", "replaces", "stop_first", "secret_reactions",
    }
)  # fmt: skip
"""The fields of the closure."""
_ENCODED = dict(zip(Unit.__struct_fields__, Unit.__struct_encode_fields__, strict=True))


Pair = tuple[str, Entry, Entry]
"""An entry of two plans: its id, what it was and what it is."""
Named = dict[str, list[str]]


class Causes:
    """Why entries moved, for all that moved between two plans."""

    def __init__(self, old: Plan, new: Plan, moved: set[str]) -> None:
        self._moved = moved
        """The entries that have another key, or one in one of the plans only."""
        self._machines: set[str] = set()
        if old.machines is not new.machines:
            names = old.machines.keys() | new.machines.keys()
            self._machines = {
                name for name in names if _machine_key(old, name) != _machine_key(new, name)
            }
        # By identities, as the entries of a role share what they have in common.
        self._needs: dict[tuple[int, int], list[str]] = {}
        self._closures: dict[tuple[int, int], list[str]] = {}

    def of(self, pairs: Iterable[Pair]) -> tuple[Named, Named]:
        """For each: the units that are others, and the inputs of its key that moved.

        An edit may move tens of thousands of entries that answer alike: those share one answer.
        """
        names: list[str] = []
        units: list[list[str]] = []
        why: list[list[str]] = []
        answers: dict[object, tuple[list[str], list[str]]] = {}
        last: object = None
        moved, reasons = list[str](), list[str]()
        for name, was, entry in pairs:
            mark = None if self._machines else _mark(was, entry)
            if mark is None or mark != last:  # mostly it is that of the one before it
                found = answers.get(mark)
                if found is None:
                    found = _moved_units(was, entry), self._reasons(name, was, entry)
                    if mark is not None:
                        answers[mark] = found
                (moved, reasons), last = found, mark
            names.append(name)
            units.append(moved)
            why.append(reasons)
        return dict(zip(names, units, strict=True)), dict(zip(names, why, strict=True))

    def _reasons(self, name: str, was: Entry, entry: Entry) -> list[str]:
        found = self._dependencies(was.dependencies, entry.dependencies).copy()
        for unit in was.units.keys() | entry.units.keys():
            moved = _moved(_env(was.units.get(unit)), _env(entry.units.get(unit)))
            found += [f"env.{unit}.{variable}" for variable in moved]
        if was.closure != entry.closure:
            mark = id(was.closure), id(entry.closure)
            if mark not in self._closures:
                self._closures[mark] = sorted(set(_closure_reasons(was, entry)))
            found += self._closures[mark]
        if self._machines and split_entry(name)[2] in self._machines:
            found.append("machine")
        found.sort()
        return found

    def _dependencies(self, was: list[str], needs: list[str]) -> list[str]:
        mark = id(was), id(needs)
        found = self._needs.get(mark)
        if found is None:
            moved = set(was) ^ set(needs) | self._moved.intersection(needs)
            found = self._needs[mark] = [f"dependency {need}" for need in moved]
        return found


def _mark(was: Entry, entry: Entry) -> object:
    """Equal for entries that moved alike; None where that is not seen at a glance."""
    before, after = was.units, entry.units
    if was.closure != entry.closure or len(before) != len(after):
        return None
    mark: object = None
    for unit, made in before.items():
        now = after.get(unit)
        if now is None or made.dynamic or now.dynamic:
            return None
        env, others = made.env, now.env
        variables: tuple[str, ...] = ()
        if env != others:
            if len(env) != len(others):
                return None
            try:
                variables = tuple([one for one, value in env.items() if others[one] != value])
            except KeyError:
                return None
        mark = mark, unit, made.digest == now.digest, variables
    return mark, id(was.dependencies), id(entry.dependencies)


def _moved_units(old: Entry, new: Entry) -> list[str]:
    """The units that are to be made or started again."""
    return sorted(
        name
        for name in old.units.keys() | new.units.keys()
        if _digest(old, name) != _digest(new, name)
    )


def _digest(entry: Entry, unit: str) -> str | None:
    found = entry.units.get(unit)
    return None if found is None else found.digest


def _closure_reasons(was: Entry, entry: Entry) -> Iterable[str]:
    if was.module != entry.module:
        yield "closure.module"
    for plane in ("resources", "listens", "volumes", "artifacts"):
        for name in _moved(getattr(was, plane), getattr(entry, plane)):
            yield f"closure.{plane}.{name}"
    for name in set(was.secrets) ^ set(entry.secrets):
        yield f"closure.secrets.{name}"
    for name in was.units.keys() | entry.units.keys():
        old, new = was.units.get(name), entry.units.get(name)
        for field in _UNIT_FIELDS:
            value = UNSET if old is None else getattr(old, field)
            if value != (UNSET if new is None else getattr(new, field)):
                yield f"closure.{name}.{_ENCODED[field]}"


def _env(unit: Unit | None) -> Mapping[str, object]:
    """What is hashed as env: values, and the templates of variables with dynamic values."""
    if unit is None:
        return {}
    if not unit.dynamic:
        return unit.env
    found: dict[str, object] = dict(unit.env)
    for variable, contract in unit.dynamic.items():
        if "/" not in variable and contract.template is not UNSET:
            found[variable] = {"template": contract.template}
    return found


def _moved(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    if old.keys() == new.keys():
        return [name for name, value in old.items() if new[name] != value]
    missing = object()
    return [
        name for name in old.keys() | new.keys() if old.get(name, missing) != new.get(name, missing)
    ]


def _machine_key(plan: Plan, machine: str) -> str | None:
    found = plan.machines.get(machine)
    return None if found is None else found.key
