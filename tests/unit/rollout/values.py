"""Short ways to write plans and reports for tests of rollouts."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from keyplane.model.declaration import (
    NO_OFFER,
    EntryReport,
    EntryState,
    OfferNumber,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.names import Digest, EntryId, MachineName, UnitName, split_entry
from keyplane.model.plan import Edge, Entry, Unit
from keyplane.rollout.planned import MixedEntry, Planned


def digest(text: str) -> Digest:
    return Digest("sha256-" + hashlib.sha256(text.encode()).hexdigest())


def unit(name: str = "one", **fields: Any) -> Unit:
    given: dict[str, Any] = {
        "digest": digest(name),
        "kind": "process",
        "env": {},
        "config_data": {},
        "dynamic": {},
        "command": ["serve"],
    }
    return Unit(**(given | fields))


def planned(
    key: str = "1",
    *,
    module: str = "app",
    grants: Mapping[str, Digest] | None = None,
    **fields: Any,
) -> MixedEntry:
    """An entry with one unit `main`, whose digest moves with the key."""
    given: dict[str, Any] = {
        "key": digest(key),
        "closure": digest("closure"),
        "module": module,
        "version": "1",
        "dependencies": [],
        "units": {"main": unit(key)},
        "requirements": [],
        "resources": {},
        "listens": {},
        "volumes": {},
        "secrets": [],
        "artifacts": {},
        "holes": [],
    }
    return MixedEntry(entry=Entry(**(given | fields)), grants=grants or {})


def plan(**entries: MixedEntry) -> dict[EntryId, Planned]:
    """`pg_alpha=…` is `pg:main@alpha`."""
    found: dict[EntryId, Planned] = {}
    for name, entry in entries.items():
        instance, machine = name.split("_")
        found[EntryId(f"{instance}:main@{machine}")] = entry
    return found


def edges(*ends: str) -> list[Edge]:
    """`"web_alpha pg_beta"`: web on alpha uses pg on beta."""
    found: list[Edge] = []
    for one in ends:
        consumer, provider = ("{}:main@{}".format(*name.split("_")) for name in one.split())
        found.append(
            Edge(consumer=consumer, slot="s", provider=provider, provide="p", chosen="only")
        )
    return found


def said(
    key: str,
    state: EntryState = EntryState.HEALTHY,
    *,
    pid: int | None = 1,
    unit_state: UnitState | None = None,
    **fields: Any,
) -> EntryReport:
    """What a machine says of an entry that `planned(key)` made."""
    healthy = UnitState.HEALTHY if state is EntryState.HEALTHY else UnitState.STARTING
    shown = unit_state or (UnitState.FAILED if state is EntryState.FAILED else healthy)
    unit_report = UnitReport(state=shown, digest=digest(key), pid=pid, start_ticks=pid, **fields)
    return EntryReport(state=state, key=digest(key), units={UnitName("main"): unit_report})


def report(
    machine: str,
    number: int,
    sequence: int,
    *,
    settled: int | None = None,
    boot: str = "b1",
    **entries: EntryReport,
) -> Report:
    """`pg=said("1")` is the entry pg:main on that machine."""
    return Report(
        machine=MachineName(machine),
        offer=OfferNumber(1, number) if number else NO_OFFER,
        settled=OfferNumber(1, number if settled is None else settled),
        sequence=sequence,
        boot=boot,
        entries={EntryId(f"{name}:main@{machine}"): one for name, one in entries.items()},
    )


def names(entries: Iterable[EntryId]) -> list[str]:
    """`pg:main@alpha` as `pg_alpha`."""
    return [f"{instance}_{machine}" for instance, _, machine in map(split_entry, entries)]


def renumbered(one: Report, sequence: int) -> Report:
    return replace(one, sequence=sequence)
