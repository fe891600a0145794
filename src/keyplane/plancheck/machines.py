"""Whether the entries of a machine can stand there together: ports, paths, accounts, packages."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

from msgspec import UnsetType

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Entry, Plan
from keyplane.plancheck.rows import wrong

Json = Any

PORT, PATH = "plan-port", "plan-path"
ASSIGNED = range(20_000, 30_000)
PORT_MAX = 65_535
PROTOCOLS = 2
"""Tcp and udp: so many may share a fixed number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listen:
    entry: EntryId
    name: str
    number: int

    @property
    def label(self) -> str:
        return f"{self.entry.rpartition('@')[0]}/{self.name}"


def check(
    plan: Plan, waived: AbstractSet[EntryId], documents: Documents | None
) -> Iterable[Diagnostic]:
    entries = cast("Mapping[EntryId, Entry]", plan.entries)
    yield from _check_allocations(plan)
    yield from check_together(entries, waived, documents)


def check_together(
    entries: Mapping[EntryId, Entry],
    waived: AbstractSet[EntryId],
    documents: Documents | None,
) -> Iterable[Diagnostic]:
    """What each machine's entries hold of it, whether they are of one plan or of two."""
    listens: dict[MachineName, list[_Listen]] = {}
    holders: dict[tuple[MachineName, str], dict[EntryId, set[str]]] = {}
    for entry_id, entry in sorted(entries.items()):
        machine = split_entry(entry_id)[2]
        for name, number in sorted(entry.listens.items()):
            one = _Listen(entry=entry_id, name=name, number=number)
            listens.setdefault(machine, []).append(one)
        for what, content in _held(entry):
            by_entry = holders.setdefault((machine, what), {})
            by_entry.setdefault(entry_id, set()).add(content)
    for machine, held in sorted(listens.items()):
        yield from _check_ports(machine, held, entries, waived, documents)
    for (machine, what), by_entry in sorted(holders.items()):
        owners = sorted(by_entry)
        if len(owners) > 1 and not any(owner in waived for owner in owners):
            said = f"{what} of {machine} is held by {' and by '.join(owners)}."
            yield wrong(PATH, owners[1], what, said)
        for entry_id, contents in by_entry.items():
            if len(contents) > 1 and entry_id not in waived:
                said = f"{entry_id} puts several things at {what}."
                yield wrong(PATH, entry_id, what, said)


def _check_allocations(plan: Plan) -> Iterable[Diagnostic]:
    """Every listen is in the allocations under its number, and nothing else is."""
    wanted: dict[str, dict[str, int]] = {}
    for entry_id, entry in plan.entries.items():
        role, _, machine = entry_id.rpartition("@")
        for name, number in entry.listens.items():
            wanted.setdefault(machine, {})[f"{role}/{name}"] = number
    ports = plan.allocations.ports
    for machine in sorted(wanted.keys() | ports.keys()):
        if machine not in plan.machines:
            said = f"Ports are allocated on {machine}, which is no machine of the plan."
            yield wrong(PORT, "plan", f"allocations.ports.{machine}", said)
        listens, allocated = wanted.get(machine, {}), ports.get(machine, {})
        for label in sorted(listens.keys() | allocated.keys()):
            if listens.get(label) != allocated.get(label):
                said = (
                    f"{label} listens on {listens.get(label)} of {machine}, "
                    f"and {allocated.get(label)} is allocated."
                )
                yield wrong(PORT, f"{label.partition('/')[0]}@{machine}", "listens", said)


def _check_ports(
    machine: MachineName,
    held: list[_Listen],
    entries: Mapping[EntryId, Entry],
    waived: AbstractSet[EntryId],
    documents: Documents | None,
) -> Iterable[Diagnostic]:
    by_number: dict[int, list[_Listen]] = {}
    for one in held:
        by_number.setdefault(one.number, []).append(one)
        if not 0 < one.number <= PORT_MAX:
            said = f"{one.label} listens on {one.number}, which is no port."
            yield wrong(PORT, one.entry, f"listens.{one.name}", said)
    for number, sharers in sorted(by_number.items()):
        if len(sharers) == 1 or any(one.entry in waived for one in sharers):
            continue
        if not _may_share(sharers, entries, documents):
            labels = " and by ".join(one.label for one in sharers)
            said = f"Port {number} of {machine} is listened on by {labels}."
            yield wrong(PORT, sharers[1].entry, f"listens.{sharers[1].name}", said)


def _may_share(
    sharers: list[_Listen], entries: Mapping[EntryId, Entry], documents: Documents | None
) -> bool:
    """Whether one number for several listens is in order: fixed ones, of different protocols.

    A plan does not show protocols. Without the documents a number may stand twice, as a tcp and
    a udp port that the protocol fixes; one of the assigned range only within one entry.
    """
    if documents is not None:
        stated = [_fixed_protocol(one, entries, documents) for one in sharers]
        return None not in stated and len(set(stated)) == len(stated)
    if len(sharers) > PROTOCOLS:
        return False
    return sharers[0].number not in ASSIGNED or sharers[0].entry == sharers[1].entry


def _fixed_protocol(
    one: _Listen, entries: Mapping[EntryId, Entry], documents: Documents
) -> str | None:
    """None for a number that was assigned, or a listen that the documents do not know."""
    module = documents.modules.get(entries[one.entry].module)
    role = None if module is None else module.roles.get(split_entry(one.entry)[1])
    listen = None if role is None else role.listens.get(one.name)
    return None if listen is None or listen.port is None else listen.protocol


def _held(entry: Entry) -> Iterable[tuple[str, str]]:
    """What an entry has for itself on its machine, and what tells two of it apart."""
    for name, resource in entry.resources.items():
        match resource.get("type"):
            case "directory":
                yield f"path {_plain(resource.get('path'))}", "directory"
            case "file" | "archive":
                yield f"path {_plain(resource.get('path'))}", f"resource {name}"
            case "package" | "account" as kind:
                yield f"{kind} {resource.get('name') or name}", f"resource {name}"
            case _:
                pass
    for volume in entry.volumes.values():
        path = cast("dict[str, Json]", volume).get("path") if isinstance(volume, dict) else volume
        yield f"path {_plain(path)}", "directory"
    if not isinstance(entry.grants, UnsetType):
        for path in entry.grants.values():
            yield f"path {_plain(path)}", "grants"
    for unit in entry.units.values():
        for path, content in unit.config_data.items():
            yield f"path {_plain(path)}", f"configData {content}"
        for path, contract in unit.dynamic.items():
            if path.startswith("/"):
                yield f"path {_plain(path)}", f"configData {contract}"
        if isinstance(unit.unit, str):
            yield f"service {unit.unit}", "unit"
        elif isinstance(unit.file, str):
            yield f"service {unit.file.rpartition('/')[2]}", "unit"


def _plain(path: Json) -> str:
    """Without doubled slashes and dots that lead nowhere else."""
    return "/" + "/".join(part for part in str(path).split("/") if part not in ("", "."))
