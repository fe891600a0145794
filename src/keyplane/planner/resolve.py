"""Round resolve: the values of each entry, a family at a time.

What goes into the key is kept apart from what does not; both are remembered by the values of the
own machine that they hang on, so that machines which differ in nothing share everything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from keyplane.documents.trees import is_list
from keyplane.model.module import Json
from keyplane.model.plan import Dynamic, HoleValue
from keyplane.planner import canonical, families, fill, terms
from keyplane.planner.draft import Draft
from keyplane.planner.fill import Values
from keyplane.planner.program import Family, Gap, Program, UnitProgram
from keyplane.planner.terms import NAME, Own, Parts

T = TypeVar("T")

_NO_VALUES: dict[str, Json] = {}
_NO_CONTENTS: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """What is made: in the key."""

    hash: str
    units: tuple[Mapping[str, Json], ...]
    """The fields of each unit."""
    parts: tuple[str, ...]
    """The hash of each unit's part."""
    resources: dict[str, Json]
    volumes: dict[str, Json]
    listens: dict[str, int]
    contents: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rest:
    """What is applied with no restart, and what is only told: out of the key."""

    configs: tuple[dict[str, str | HoleValue], ...]
    dynamic: tuple[dict[str, Dynamic], ...]
    live: tuple[dict[str, Json], ...]
    requirements: list[Json]
    extras: dict[str, Json]
    contents: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resolved:
    """A family's values, a column for each thing."""

    envs: tuple[list[dict[str, str | HoleValue]], ...]
    """By unit, then machine."""
    hashed: tuple[list[bytes], ...]
    """By unit, then machine: its env in canonical form, templates of variables included."""
    shown: tuple[list[bytes], ...]
    """The same without the templates."""
    constant: tuple[bool, ...]
    """By unit: whether its env is the same on all machines."""
    closures: list[Closure]
    rests: list[Rest]
    contents: Mapping[str, bytes]
    """By digest, of all of them."""


def resolve(draft: Draft, family: Family) -> Resolved:
    by_own = fill.columns(draft, family)
    envs: list[list[dict[str, str | HoleValue]]] = []
    hashed: list[list[bytes]] = []
    shown: list[list[bytes]] = []
    constant: list[bool] = []
    for unit in family.program.units:
        env = _envs(family, unit, by_own)
        envs.append(env)
        constant.append(_is_constant(unit))
        shown.append(_encoded(env))
        templates = _templates(unit)
        hashed.append(_hashed(env, templates, by_own) if templates else shown[-1])
    contents: dict[str, bytes] = {}
    return Resolved(
        envs=tuple(envs),
        hashed=tuple(hashed),
        shown=tuple(shown),
        constant=tuple(constant),
        closures=_closures(family, by_own, contents),
        rests=_rests(family, by_own, contents),
        contents=contents,
    )


def _is_constant(unit: UnitProgram) -> bool:
    gaps = [value for value in unit.env.values() if isinstance(value, Gap)]
    return (
        not any(families.owns_of(dict(unit.env)))
        and not any(families.owns_of([one.template for one in unit.dynamic.values()]))
        and all(gap.hole.machine is not None for gap in gaps)
    )


def _envs(
    family: Family, unit: UnitProgram, by_own: Mapping[Own, list[Json]]
) -> list[dict[str, str | HoleValue]]:
    """The env for each machine, variables in order."""
    base: dict[str, str | HoleValue] = {}
    varying: list[tuple[str, list[str | HoleValue]]] = []
    for name, value in unit.env.items():
        if isinstance(value, Gap):
            if value.hole.machine is not None and not any(families.owns_of(value.template)):
                base[name] = fill.gap(value, "", {})
                continue
            base[name] = ""
            varying.append((name, _gaps(family, value, by_own)))
        elif terms.is_text(value):
            base[name] = ""
            column: list[str | HoleValue] = [*fill.text_column(value, by_own)]
            varying.append((name, column))
        else:
            base[name] = value
    if not varying:
        return [base] * len(family.machines)
    envs = [base.copy() for _ in family.machines]
    for name, column in varying:
        for env, value in zip(envs, column, strict=True):
            env[name] = value
    return envs


def _gaps(family: Family, value: Gap, by_own: Mapping[Own, list[Json]]) -> list[str | HoleValue]:
    return [
        fill.gap(value, machine, {own: column[index] for own, column in by_own.items()})
        for index, machine in enumerate(family.machines)
    ]


def _templates(unit: UnitProgram) -> dict[str, Parts]:
    """The templates of variables: hashed with env, and shown in `dynamic` only."""
    return {
        name: contract.template
        for name, contract in unit.dynamic.items()
        if contract.template is not None and not is_path(name)
    }


def is_path(name: str) -> bool:
    """Whether a name of a dynamic map is a configData path; no variable has a slash."""
    return "/" in name


def _encoded(envs: Sequence[Mapping[str, Json]]) -> list[bytes]:
    encode = canonical.encode_plain
    if envs[0] is envs[-1]:
        return [encode(envs[0])] * len(envs)
    return [encode(env) for env in envs]


def _hashed(
    envs: Sequence[Mapping[str, Json]],
    templates: Mapping[str, Parts],
    by_own: Mapping[Own, list[Json]],
) -> list[bytes]:
    """The envs with the templates of variables."""
    found: list[bytes] = []
    for index, env in enumerate(envs):
        values = {own: column[index] for own, column in by_own.items()}
        shown = {name: {"template": fill.template(one, values)} for name, one in templates.items()}
        found.append(canonical.encode_plain({**env, **shown}))
    return found


def _closures(
    family: Family, by_own: Mapping[Own, list[Json]], contents: dict[str, bytes]
) -> list[Closure]:
    program = family.program
    owns = families.owns_of(
        [
            *(dict(unit.fields) for unit in program.units),
            dict(program.resources),
            dict(program.volumes),
            dict(program.listens),
        ]
    )

    def make(values: Values, _machine: str) -> Closure:
        made = _closure(family, program, values)
        contents.update(made.contents)
        return made

    return _remembered(family, by_own, owns, make)


def _rests(
    family: Family, by_own: Mapping[Own, list[Json]], contents: dict[str, bytes]
) -> list[Rest]:
    program = family.program
    owns = families.owns_of(
        [
            *(dict(unit.configs) for unit in program.units),
            *(dict(unit.live) for unit in program.units),
            *([one.template for one in unit.dynamic.values()] for unit in program.units),
            *(dict(tree) for tree in program.requirements),
            dict(program.extras),
        ]
    )
    if any(_names_machine(unit) for unit in program.units):
        owns.append(NAME)

    def make(values: Values, machine: str) -> Rest:
        made = _rest(program, values, machine)
        contents.update(made.contents)
        return made

    return _remembered(family, by_own, owns, make)


def _names_machine(unit: UnitProgram) -> bool:
    """Whether a contract or a hole of the unit names the own machine."""
    return any(
        live.machine is None for contract in unit.dynamic.values() for live in contract.lives
    ) or any(
        isinstance(value, Gap) and value.hole.machine is None for value in unit.configs.values()
    )


def _remembered(
    family: Family,
    by_own: Mapping[Own, list[Json]],
    owns: Iterable[Own],
    make: Callable[[Values, str], T],
) -> list[T]:
    """What `make` gives for each machine, made once for equal values."""
    wanted = list(dict.fromkeys(owns))
    if not wanted:
        return [make({}, family.machines[0])] * len(family.machines)
    columns = [by_own.get(own, family.machines) for own in wanted]
    keys: Iterable[object]
    if len(columns) == 1 and _are_plain(columns[0]):
        keys = columns[0]
    elif all(map(_are_plain, columns)):
        keys = zip(*columns, strict=True)
    else:
        keys = (tuple(map(_hashable, row)) for row in zip(*columns, strict=True))
    found: dict[object, T] = {}
    out: list[T] = []
    for index, key in enumerate(keys):
        made = found.get(key)
        if made is None:
            values = {own: column[index] for own, column in zip(wanted, columns, strict=True)}
            made = found[key] = make(values, family.machines[index])
        out.append(made)
    return out


def _are_plain(column: Sequence[Json]) -> bool:
    """Whether equal values of a column are the same value: not so `true` and `1`."""
    return set(map(type, column)) <= {str, int}


def _hashable(value: Json) -> object:
    return type(value).__name__, canonical.encode(value)


def _closure(family: Family, program: Program, values: Values) -> Closure:
    contents: dict[str, bytes] = {}
    units: list[dict[str, Json]] = []
    parts: list[str] = []
    shown: dict[str, Json] = {}
    for unit in program.units:
        fields = _ordered({name: fill.tree(item, values) for name, item in unit.fields.items()})
        units.append(fields)
        part = {"kind": unit.kind, **fields}
        shown[unit.name] = part
        digests = {
            name: program.artifacts[name] for name in unit.artifacts if name in program.artifacts
        }
        parts.append(canonical.digest_of({"fields": part, "artifacts": digests}))
    resources = {
        name: _resource(contents, tree, values) for name, tree in program.resources.items()
    }
    volumes = {name: fill.tree(tree, values) for name, tree in program.volumes.items()}
    listens = {name: fill.tree(tree, values) for name, tree in program.listens.items()}
    closure = canonical.digest_of(
        {
            "module": family.assignment.module.name,
            "units": shown,
            "resources": resources,
            "listens": listens,
            "volumes": volumes,
            "secrets": sorted(family.assignment.role.secrets),
            "artifacts": program.artifacts,
        }
    )
    return Closure(
        hash=closure,
        units=tuple(units),
        parts=tuple(parts),
        resources=resources,
        volumes=volumes,
        listens=listens,
        contents=contents or _NO_CONTENTS,
    )


def _resource(contents: dict[str, bytes], tree: terms.Tree, values: Values) -> dict[str, Json]:
    fields = _ordered(fill.tree(tree, values))
    if isinstance(fields.get("text"), str) and "digest" not in fields:
        content = fields["text"].encode()
        fields["digest"] = canonical.digest(content)
        contents[fields["digest"]] = content
    return fields


def _ordered(fields: dict[str, Json]) -> dict[str, Json]:
    return {
        key: canonical.in_order(value) if is_list(value) and key != "command" else value
        for key, value in fields.items()
    }


def _rest(program: Program, values: Values, machine: str) -> Rest:
    contents: dict[str, bytes] = {}
    configs: list[dict[str, str | HoleValue]] = []
    for unit in program.units:
        said: dict[str, str | HoleValue] = {}
        for path, value in unit.configs.items():
            if isinstance(value, str):
                said[path] = value
            elif isinstance(value, Gap):
                said[path] = fill.gap(value, machine, values)
            else:
                content = str(fill.text(value, values)).encode()
                digest = said[path] = canonical.digest(content)
                contents[digest] = content
        configs.append(said or _NO_VALUES)
    dynamic: tuple[dict[str, Dynamic], ...] = tuple(
        {name: fill.dynamic(one, machine, values) for name, one in unit.dynamic.items()}
        or _NO_VALUES
        for unit in program.units
    )
    live = tuple(fill.tree(dict(unit.live), values) for unit in program.units)
    extras = fill.tree(dict(program.extras), values)
    return Rest(
        configs=tuple(configs),
        dynamic=dynamic,
        live=live,
        requirements=canonical.in_order(
            [fill.tree(dict(tree), values) for tree in program.requirements]
        ),
        extras=extras,
        contents=contents or _NO_CONTENTS,
    )
