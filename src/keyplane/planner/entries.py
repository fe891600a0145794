"""The entries of a plan, and the digest of each: what machines are hashed by.

The bytes under a digest are put together from what was encoded once for all entries that share
it. They are the same as those of encoding each entry by itself, which takes ten times as long.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET

from keyplane.model import plan
from keyplane.planner import canonical, columns
from keyplane.planner.key import Keyed
from keyplane.planner.program import Family
from keyplane.planner.resolve import Closure, Resolved, Rest

_UNSPELLED = {
    "workingDirectory": "working_directory",
    "fileDigest": "file_digest",
    "runOnce": "run_once",
    "whileStopped": "while_stopped",
    "stopTimeout": "stop_timeout",
    "stopFirst": "stop_first",
    "secretReactions": "secret_reactions",
}
_MAKE: Any = msgspec.structs.replace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """A family's entries, a column for each thing."""

    ids: list[str]
    entries: list[plan.Entry]
    digests: list[str]
    """The hash of each entry's canonical JSON: of all that the plan says of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Proto:
    """An entry and its units with everything but what differs from machine to machine."""

    entry: plan.Entry
    units: tuple[plan.Unit, ...]
    pieces: tuple[bytes, ...]
    """The bytes around dependencies, key, and each unit's digest and env."""


def make(family: Family, resolved: Resolved, keyed: Keyed) -> Made:
    ids = [f"{family.assignment.prefix}{machine}" for machine in family.machines]
    protos = _protos(family, resolved)
    made = [
        [
            _MAKE(proto.units[number], digest=digest, env=env)
            for proto, digest, env in zip(protos, digests, resolved.envs[number], strict=True)
        ]
        for number, digests in enumerate(keyed.digests)
    ]
    names = [unit.name for unit in family.program.units]
    units: list[dict[str, plan.Unit]]
    if len(names) == 1:
        units = [{names[0]: unit} for unit in made[0]]
    elif names:
        units = [dict(zip(names, row, strict=True)) for row in zip(*made, strict=True)]
    else:
        units = [{}] * len(ids)
    entries = [
        _MAKE(proto.entry, key=key, dependencies=needs, units=its)
        for proto, key, needs, its in zip(
            protos, keyed.keys, keyed.dependencies, units, strict=True
        )
    ]
    return Made(
        ids=ids,
        entries=entries,
        digests=_digests(protos, resolved, keyed),
    )


def _protos(family: Family, resolved: Resolved) -> list[_Proto]:
    return columns.by_pair(
        resolved.closures,
        resolved.rests,
        lambda closure, rest: _proto(family, closure, rest),
    )


def _proto(family: Family, closure: Closure, rest: Rest) -> _Proto:
    program, assignment = family.program, family.assignment
    units: list[plan.Unit] = []
    for number, unit in enumerate(program.units):
        fields: dict[str, Any] = {
            _UNSPELLED.get(name, name): value
            for name, value in (*closure.units[number].items(), *rest.live[number].items())
        }
        units.append(
            plan.Unit(
                digest="",
                kind=unit.kind,
                env={},
                config_data=rest.configs[number],
                dynamic=rest.dynamic[number],
                **fields,
            )
        )
    entry = plan.Entry(
        key="",
        closure=closure.hash,
        module=assignment.module.name,
        version=assignment.module.version,
        dependencies=[],
        units={},
        requirements=rest.requirements,
        resources=closure.resources,
        listens=closure.listens,
        volumes=closure.volumes,
        secrets=sorted(assignment.role.secrets),
        artifacts=dict(program.artifacts),
        holes=sorted(name for unit in program.units for name in unit.holes),
        **rest.extras,
    )
    names = [unit.name for unit in program.units]
    return _Proto(
        entry=entry,
        units=tuple(units),
        pieces=_pieces(entry, dict(zip(names, units, strict=True))),
    )


def _pieces(entry: plan.Entry, units: dict[str, plan.Unit]) -> tuple[bytes, ...]:
    """The canonical bytes, parted where dependencies, key, digests and envs go."""
    pieces = [b"{"]
    for number, (name, value) in enumerate(_fields(entry)):
        pieces[-1] += b'%b"%b":' % (b"," if number else b"", name.encode())
        if name == "dependencies":
            pieces.append(b"")
        elif name == "key":
            pieces[-1] += b'"'
            pieces.append(b'"')
        elif name == "units":
            pieces[-1] += b"{"
            for turn, (unit_name, unit) in enumerate(units.items()):
                pieces[-1] += b'%b"%b":{' % (b"," if turn else b"", unit_name.encode())
                for place, (field, said) in enumerate(_fields(unit)):
                    pieces[-1] += b'%b"%b":' % (b"," if place else b"", field.encode())
                    if field == "env":
                        pieces.append(b"")
                    elif field == "digest":
                        pieces[-1] += b'"'
                        pieces.append(b'"')
                    else:
                        pieces[-1] += canonical.encode(msgspec.to_builtins(said))
                pieces[-1] += b"}"
            pieces[-1] += b"}"
        else:
            pieces[-1] += canonical.encode(msgspec.to_builtins(value))
    pieces[-1] += b"}"
    return tuple(pieces)


def _fields(struct: msgspec.Struct) -> list[tuple[str, Any]]:
    """The fields that are encoded, by their names on the wire."""
    spelled = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    values = [(wire, getattr(struct, name)) for name, wire in spelled]
    return sorted(
        ((wire, value) for wire, value in values if value is not UNSET), key=lambda pair: pair[0]
    )


def _digests(protos: Sequence[_Proto], resolved: Resolved, keyed: Keyed) -> list[str]:
    needs: dict[int, bytes] = {}
    for one in keyed.dependencies:
        if id(one) not in needs:
            needs[id(one)] = canonical.encode_plain(one)
    filling: list[Iterable[bytes]] = [
        [needs[id(one)] for one in keyed.dependencies],
        [one.encode() for one in keyed.keys],
    ]
    for digests, shown in zip(keyed.digests, resolved.shown, strict=True):
        filling += [[one.encode() for one in digests], shown]
    rows: list[Iterable[bytes]] = []
    for number, column in enumerate(filling):
        rows += [_piece(protos, number), column]
    rows.append(_piece(protos, len(filling)))
    return ["sha256-" + sha256(b"".join(row)).hexdigest() for row in zip(*rows, strict=False)]


def _piece(protos: Sequence[_Proto], number: int) -> Iterable[bytes]:
    if columns.all_one(protos):
        return itertools.repeat(protos[0].pieces[number])
    return [proto.pieces[number] for proto in protos]
