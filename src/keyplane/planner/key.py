"""Round key: the key of each entry and the digest of each unit, providers before readers.

Entries that depend on each other in a circle have one hash of the whole circle in place of each
other's keys. No invalidation pass exists: a provider's key is an input of its readers'.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from keyplane.planner import canonical, columns, graph
from keyplane.planner.draft import Assignment, Draft, Target
from keyplane.planner.program import Families, Family
from keyplane.planner.resolve import Resolved

_NONE = b"{}"
_HEAD = b'{"closure":"%b","dependencies":%b,"env":'
_KEYED = b'{"closure":"%b","dependencies":%b,"env":%b,"machine":"%b"}'
"""Digests need no escape, and the names come in order."""


@dataclass(slots=True, kw_only=True, eq=False)
class Keyed:
    """A family's keys, a column for each thing."""

    keys: list[str] = field(default_factory=list[str])
    digests: list[list[str]] = field(default_factory=list[list[str]])
    """By unit, then machine."""
    dependencies: list[list[str]] = field(default_factory=list[list[str]])


@dataclass(slots=True, kw_only=True, eq=False)
class _Row:
    """One entry of a circle, or of what might be one."""

    id: str
    family: Family
    resolved: Resolved
    index: int
    needs: dict[str, tuple[Assignment, str]]
    """Its providers, by entry: assignment and machine."""


class Group(NamedTuple):
    """Roles that are keyed together."""

    roles: list[str]
    circle: bool
    """Their entries may depend on each other."""


def groups(families: Families) -> list[Group]:
    """Each after those whose keys it needs."""
    edges = {name: _providers(name, several) for name, several in families.items()}
    return [
        Group(component, len(component) > 1 or component[0] in edges[component[0]])
        for component in graph.components(list(families), edges)
    ]


class Keying:
    def __init__(self, draft: Draft) -> None:
        self._machines = {
            name: canonical.digest_of({"name": name, "platform": machine.platform})
            for name, machine in draft.fleet.machines.items()
        }
        self._tails = {
            name: b',"machine":"%b"}' % machine.encode() for name, machine in self._machines.items()
        }
        self.keys: dict[str, dict[str, str]] = {}
        """By role, then machine."""

    def all(self, families: Families, resolved: Mapping[Family, Resolved]) -> dict[Family, Keyed]:
        found: dict[Family, Keyed] = {}
        for group in groups(families):
            several = [family for name in group.roles for family in families[name]]
            if group.circle:
                found |= self.circle(several, resolved)
                continue
            for family in several:
                found[family] = self.family(family, resolved[family])
                self.remember(family, found[family].keys)
        return found

    def family(self, family: Family, resolved: Resolved) -> Keyed:
        """The keys of entries that are in no circle, those of their providers being known."""
        names, deps = self._dependencies(family, family.program.targets)
        digests: list[list[str]] = []
        for number, unit in enumerate(family.program.units):
            unit_deps = deps
            if unit.targets != family.program.targets:
                _, unit_deps = self._dependencies(family, unit.targets)
            same = (
                resolved.constant[number]
                and columns.all_one(unit_deps)
                and columns.all_one(resolved.closures)
            )
            digests.append(
                _digests(
                    [closure.parts[number] for closure in resolved.closures],
                    unit_deps,
                    resolved.hashed[number],
                    same=same,
                )
            )
        keys = _keys(
            [closure.hash for closure in resolved.closures],
            deps,
            _env_of_entry(family, resolved),
            [self._tails[machine] for machine in family.machines],
        )
        return Keyed(keys=keys, digests=digests, dependencies=names)

    def remember(self, family: Family, keys: Sequence[str]) -> None:
        by_machine = self.keys.setdefault(family.assignment.id, {})
        by_machine.update(zip(family.machines, keys, strict=True))

    def _dependencies(
        self, family: Family, targets: Sequence[Target]
    ) -> tuple[list[list[str]], list[bytes]]:
        """For each machine, the providers' entries and the canonical map of their keys."""
        count = len(family.machines)
        if not targets:
            return [[]] * count, [_NONE] * count
        fixed = all(
            target.machine is not None and target.offer.assignment is not family.assignment
            for target in targets
        )
        if fixed:
            found = self._keyed(_entries(targets, "", ""))
            return [list(found)] * count, [canonical.encode_plain(found)] * count
        names: list[list[str]] = []
        maps: list[bytes] = []
        for machine in family.machines:
            own = f"{family.assignment.prefix}{machine}"
            found = self._keyed(_entries(targets, machine, own))
            names.append(list(found))
            maps.append(canonical.encode_plain(found))
        return names, maps

    def _keyed(self, entries: Mapping[str, tuple[Assignment, str]]) -> dict[str, str]:
        return {
            entry: self.keys[assignment.id][machine]
            for entry, (assignment, machine) in entries.items()
        }

    def circle(
        self, families: Sequence[Family], resolved: Mapping[Family, Resolved]
    ) -> dict[Family, Keyed]:
        """The keys of all entries of a group whose entries may depend on each other."""
        found: dict[Family, Keyed] = {}
        rows: dict[str, _Row] = {}
        for family in families:
            count, units = len(family.machines), len(family.program.units)
            found[family] = Keyed(
                keys=[""] * count,
                digests=[[""] * count for _ in range(units)],
                dependencies=[[]] * count,
            )
            for index, machine in enumerate(family.machines):
                entry = f"{family.assignment.prefix}{machine}"
                needs = _entries(family.program.targets, machine, entry)
                rows[entry] = _Row(
                    id=entry, family=family, resolved=resolved[family], index=index, needs=needs
                )
        names = sorted(rows)
        edges = {name: [need for need in rows[name].needs if need in rows] for name in names}
        for component in graph.components(names, edges):
            self._component([rows[name] for name in component], found)
        return found

    def _component(self, rows: Sequence[_Row], found: dict[Family, Keyed]) -> None:
        """Entries of one circle; a single entry is none."""
        members = {row.id for row in rows}
        outside = {
            row.id: self._keyed(
                {name: need for name, need in row.needs.items() if name not in members}
            )
            for row in rows
        }
        shared = ""
        if len(rows) > 1:
            pairs = [
                b"%b:%b" % (canonical.encode_plain(row.id), self._inputs(row, outside[row.id]))
                for row in sorted(rows, key=lambda row: row.id)
            ]
            shared = canonical.digest(b"{" + b",".join(pairs) + b"}")
        for row in rows:
            keys = outside[row.id] | {name: shared for name in row.needs if name in members}
            self._row(row, dict(sorted(keys.items())), found[row.family])
        for row in rows:
            machine = row.family.machines[row.index]
            by_machine = self.keys.setdefault(row.family.assignment.id, {})
            by_machine[machine] = found[row.family].keys[row.index]

    def _row(self, row: _Row, keys: dict[str, str], keyed: Keyed) -> None:
        family, index = row.family, row.index
        resolved = row.resolved
        machine = family.machines[index]
        closure = resolved.closures[index]
        for number, unit in enumerate(family.program.units):
            needs = _entries(unit.targets, machine, row.id)
            deps = canonical.encode_plain({name: keys[name] for name in needs})
            keyed.digests[number][index] = _digests(
                [closure.parts[number]], [deps], [resolved.hashed[number][index]], same=False
            )[0]
        keyed.keys[index] = canonical.digest(self._inputs(row, keys))
        keyed.dependencies[index] = list(keys)

    def _inputs(self, row: _Row, dependencies: Mapping[str, str]) -> bytes:
        """What a key is the hash of."""
        resolved = row.resolved
        env = _wrapped(
            [unit.name for unit in row.family.program.units],
            [column[row.index] for column in resolved.hashed],
        )
        return _KEYED % (
            resolved.closures[row.index].hash.encode(),
            canonical.encode_plain(dependencies),
            env,
            self._machines[row.family.machines[row.index]].encode(),
        )


def _providers(name: str, families: Sequence[Family]) -> list[str]:
    found: set[str] = set()
    for family in families:
        for target in family.program.targets:
            provider = target.offer.assignment
            assert provider is not None
            if provider.id == name and target.machine in (None, *_only(family.machines)):
                continue
            found.add(provider.id)
    return sorted(found)


def _only(machines: Sequence[str]) -> Sequence[str]:
    """The machine of a family of one: what it reads there is itself, and no dependency."""
    return machines if len(machines) == 1 else ()


def _entries(
    targets: Sequence[Target], machine: str, own: str
) -> dict[str, tuple[Assignment, str]]:
    """The providers' entries by name, without the reader itself."""
    found: dict[str, tuple[Assignment, str]] = {}
    for target in targets:
        assignment = target.offer.assignment
        assert assignment is not None
        where = machine if target.machine is None else target.machine
        entry = f"{assignment.prefix}{where}"
        if entry != own:
            found[entry] = assignment, where
    return dict(sorted(found.items())) if len(found) > 1 else found


def _digests(
    parts: Sequence[str], deps: Sequence[bytes], envs: Sequence[bytes], *, same: bool
) -> list[str]:
    if same:
        return _digests(parts[:1], deps[:1], envs[:1], same=False) * len(parts)
    return [
        "sha256-" + sha256(head + env + b"}").hexdigest()
        for head, env in zip(_heads(parts, deps), envs, strict=True)
    ]


def _keys(
    closures: Sequence[str], deps: Sequence[bytes], envs: Sequence[bytes], machines: Sequence[bytes]
) -> list[str]:
    return [
        "sha256-" + sha256(head + env + machine).hexdigest()
        for head, env, machine in zip(_heads(closures, deps), envs, machines, strict=True)
    ]


def _heads(closures: Sequence[str], deps: Sequence[bytes]) -> list[bytes]:
    """What is hashed before the env; the same bytes for the same two things."""
    if columns.all_one(deps):
        found = {one: _HEAD % (one.encode(), deps[0]) for one in set(closures)}
        return [found[one] for one in closures]
    return [_HEAD % (closure.encode(), dep) for closure, dep in zip(closures, deps, strict=True)]


def _env_of_entry(family: Family, resolved: Resolved) -> list[bytes]:
    names = [unit.name for unit in family.program.units]
    if not names:
        return [_NONE] * len(family.machines)
    if len(names) == 1:
        head = b'{"%b":' % names[0].encode()
        return [head + env + b"}" for env in resolved.hashed[0]]
    return [_wrapped(names, row) for row in zip(*resolved.hashed, strict=True)]


def _wrapped(names: Sequence[str], envs: Sequence[bytes]) -> bytes:
    """`{UNIT: env}` in canonical form; names need no escape and come in order."""
    pairs: Iterator[bytes] = (
        b'"%b":%b' % (name.encode(), env) for name, env in zip(names, envs, strict=True)
    )
    return b"{" + b",".join(pairs) + b"}"
