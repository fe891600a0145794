"""Whether every edge leads somewhere, and every value that an entry reads can be read there."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Edge, Plan
from keyplane.plancheck.rows import wrong

EDGE, EXPORT = "plan-edge", "plan-export"
EXTERNAL = "external:"

Slots = dict[tuple[str, str, str], dict[str, list[str]]]
"""The providers of each slot that leads from a consumer to a provide of a holder."""


def check(plan: Plan, waived: AbstractSet[EntryId]) -> Iterable[Diagnostic]:
    yield from check_ends(plan.entries.keys(), plan.edges)
    used: dict[str, set[str]] = {}
    slots: Slots = {}
    for edge in plan.edges:
        used.setdefault(edge.consumer, set()).add(edge.provider)
        holder = _holder(edge.provider)
        leading = slots.setdefault((edge.consumer, holder, edge.provide), {})
        leading.setdefault(edge.slot, []).append(edge.provider)
    for entry_id, entry in sorted(plan.entries.items()):
        for provider in entry.dependencies:
            if provider not in used.get(entry_id, set()):
                said = f"{entry_id} depends on {provider}, and no edge says that it uses it."
                yield wrong(EDGE, entry_id, "dependencies", said)
    for export_id in sorted(plan.exports):
        yield from _check_export(plan, export_id, slots, waived)


def check_ends(entries: AbstractSet[str], edges: Iterable[Edge]) -> Iterable[Diagnostic]:
    """Whether both ends of every edge are there; of a provider, whatever its key."""
    for edge in edges:
        if edge.consumer not in entries:
            said = f"{edge.consumer}, which uses {edge.provider}, is not there."
            yield wrong(EDGE, edge.consumer, f"uses.{edge.slot}", said)
        if edge.provider not in entries and not edge.provider.startswith(EXTERNAL):
            said = f"{edge.consumer} uses {edge.provider}, which is not there."
            yield wrong(EDGE, edge.consumer, f"uses.{edge.slot}", said)


def _check_export(
    plan: Plan,
    export_id: str,
    slots: Slots,
    waived: AbstractSet[EntryId],
) -> Iterable[Diagnostic]:
    export = plan.exports[export_id]
    holder, _, rest = export_id.partition("/provides/")
    provide, _, name = rest.partition("/")
    if not (holder and provide and name):
        said = f"{export_id} is not HOLDER/provides/PROVIDE/EXPORT."
        yield wrong(EXPORT, export_id, "", said)
        return
    if export.lifecycle not in ("static", "probed", "dynamic"):
        said = f"{export.lifecycle} is no lifecycle."
        yield wrong(EXPORT, export_id, "lifecycle", said)
    if export.access not in ("routable", "machine-local"):
        yield wrong(EXPORT, export_id, "access", f"{export.access} is no access.")
    for reader in export.readers:
        if reader not in plan.entries:
            yield wrong(EXPORT, export_id, "readers", f"{reader}, which reads it, is not there.")
            continue
        if reader in waived:
            continue
        leading = slots.get((reader, holder, provide), {})
        if not leading:
            said = f"{reader} reads {export_id}, and no edge leads there."
            yield wrong(EXPORT, export_id, "readers", said)
        elif export.access == "machine-local":
            yield from _check_reach(plan, export_id, reader, leading)


def _check_reach(
    plan: Plan, export_id: str, reader: str, leading: dict[str, list[str]]
) -> Iterable[Diagnostic]:
    """Whether a machine-local export can be read by one slot at least.

    Where several lead to one provide, a plan does not say which of them reads which export.
    """
    apart = [
        [provider for provider in providers if not _within_reach(plan, reader, provider)]
        for providers in leading.values()
    ]
    if all(apart):
        for provider in sorted({provider for providers in apart for provider in providers}):
            said = f"{reader} reads {export_id} of {provider}, on another machine."
            yield wrong(EXPORT, export_id, "access", said)


def _within_reach(plan: Plan, reader: str, provider: str) -> bool:
    """Whether a machine-local value of the provider is readable; one without units is everywhere."""
    if provider.startswith(EXTERNAL) or provider not in plan.entries:
        return True
    if not plan.entries[provider].units:
        return True
    return split_entry(reader)[2] == split_entry(provider)[2]


def _holder(provider: str) -> str:
    return provider if provider.startswith(EXTERNAL) else provider.rpartition("@")[0]
