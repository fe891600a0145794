"""Why an entry has another key: which of its units are others, and which inputs of the key."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

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


@dataclass(slots=True)
class Moved:
    """The entries that have another key in a new plan; an edit may move tens of thousands."""

    names: list[str]
    units: list[list[str]]
    """Of each, the units that are others."""
    why: list[list[str]]
    """Of each, the inputs of its key that moved."""
    firsts: list[tuple[Pair, list[str], list[str]]]
    """One of all that moved alike: these share its two answers, which are still to be found."""

    def take(self, names: Sequence[str], units: list[str], why: list[str]) -> None:
        """Some that moved alike."""
        self.names += names
        self.units += repeat(units, len(names))
        self.why += repeat(why, len(names))


def sort_out(names: Sequence[str], old: Plan, new: Plan) -> tuple[Moved, list[str], list[str]]:
    """Which entries of the new plan moved, which are new, and which have the same key.

    Each is looked at once: to get at it takes most of the time.
    """
    moved, come, same = Moved([], [], [], []), list[str](), list[str]()
    is_known_alike = not _moved_machines(old, new)
    known: dict[_Mark, tuple[list[str], list[str]]] = {}
    their_units, their_why = list[str](), list[str]()
    needed, needs, units = None, None, tuple[tuple[str, bool], ...]()
    were, are = map(old.entries.get, names), map(new.entries.__getitem__, names)
    run = 0  # where those begin that moved as the last one
    for at, (was, entry) in enumerate(zip(were, are, strict=True)):
        if was is None or was.key == entry.key:
            moved.take(names[run:at], their_units, their_why)
            run = at + 1
            (come if was is None else same).append(names[at])
            continue
        before, after = was.units, entry.units
        is_alike = (  # mostly it moved as the one before it
            was.dependencies is needed
            and entry.dependencies is needs
            and was.closure == entry.closure
            and len(before) == len(after) == len(units)
        )
        if is_alike:
            for unit, has_same in units:
                made, now = before.get(unit), after.get(unit)
                if (
                    made is None
                    or now is None
                    or (made.digest == now.digest) is not has_same
                    or made.env != now.env
                    or made.dynamic
                    or now.dynamic
                ):
                    is_alike = False
                    break
        if not is_alike:
            moved.take(names[run:at], their_units, their_why)
            run = at
            mark = _mark(was, entry) if is_known_alike else None
            found = None if mark is None else known.get(mark)
            if found is None:
                found = list[str](), list[str]()
                moved.firsts.append(((names[at], was, entry), *found))
            (their_units, their_why), needed = found, None
            if mark is not None:
                known[mark] = found
                if not any(variables for _, _, variables in mark.units):
                    needed, needs = was.dependencies, entry.dependencies
                    units = tuple((unit, has_same) for unit, has_same, _ in mark.units)
    moved.take(names[run:], their_units, their_why)
    return moved, come, same


def find(moved: Moved, old: Plan, new: Plan, others: Collection[str]) -> tuple[Named, Named]:
    """Of each entry, the units that are others, and the inputs of its key that moved.

    `others` are in one of the plans only.
    """
    units = dict(zip(moved.names, moved.units, strict=True))
    causes = _Causes(old, new, {*units, *others} if others else units)
    for (name, was, entry), of_units, of_key in moved.firsts:
        of_units.extend(_moved_units(was, entry))
        of_key.extend(causes.reasons(name, was, entry))
    return units, dict(zip(moved.names, moved.why, strict=True))


class _Causes:
    def __init__(self, old: Plan, new: Plan, keyed: Container[str]) -> None:
        self._moved = keyed
        """The entries that have another key, or one in one of the plans only."""
        self._machines = _moved_machines(old, new)
        # By identities, as the entries of a role share what they have in common.
        self._needs: dict[tuple[int, int], list[str]] = {}
        self._closures: dict[tuple[int, int], list[str]] = {}

    def reasons(self, name: str, was: Entry, entry: Entry) -> list[str]:
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
            moved = set(was) ^ set(needs) | {need for need in needs if need in self._moved}
            found = self._needs[mark] = [f"dependency {need}" for need in moved]
        return found


class _Mark(NamedTuple):
    """How an entry moved, if its closure is the same and all is seen at a glance."""

    needed: int
    needs: int
    """By identity."""
    units: tuple[tuple[str, bool, tuple[str, ...]], ...]
    """Of each: whether it has the same digest, and the variables that have another value."""


def _mark(was: Entry, entry: Entry) -> _Mark | None:
    before, after = was.units, entry.units
    if was.closure != entry.closure or len(before) != len(after):
        return None
    units: list[tuple[str, bool, tuple[str, ...]]] = []
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
        units.append((unit, made.digest == now.digest, variables))
    return _Mark(id(was.dependencies), id(entry.dependencies), tuple(units))


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


def _moved_machines(old: Plan, new: Plan) -> set[str]:
    """Those that have another key, or are in one of the plans only."""
    if old.machines is new.machines:
        return set()
    names = old.machines.keys() | new.machines.keys()
    return {name for name in names if _machine_key(old, name) != _machine_key(new, name)}


def _machine_key(plan: Plan, machine: str) -> str | None:
    found = plan.machines.get(machine)
    return None if found is None else found.key
