"""What of a target is not to be sent, as facts stand: it waits, or goes on as it runs.

Error rows of documents keep a plan from becoming a target. So those that a target has are of facts,
and hold what they are about and nothing else.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Edge, Entry, HoleValue, Plan

Withheld = Mapping[EntryId, str]
"""By entry: why, as a clause for people."""

TOO_FEW = "placement-short"
"""Some members of a role have no place; the others are as good as ever."""


def withheld(plan: Plan, base: Collection[EntryId]) -> dict[EntryId, str]:
    """Entries of the plan that wait for a fact, and of the base that the plan has no place for."""
    found: dict[EntryId, str] = {}
    errors = [row for row in plan.diagnostics if row.severity is Severity.ERROR]
    roles = _by_role((*map(EntryId, plan.entries), *base)) if errors else {}
    for row in errors:
        for entry in roles.get(row.subject, [EntryId(row.subject)]):
            is_there = entry in plan.entries
            if (is_there and row.code != TOO_FEW) or (not is_there and entry in base):
                found.setdefault(entry, row.message)
    for name, entry in plan.entries.items():
        if entry.holes:
            found[EntryId(name)] = " and ".join(_waits(entry))
    return found


def with_consumers(found: Withheld, edges: Iterable[Edge]) -> dict[EntryId, str]:
    """And all that uses them, where there is no order by which those would wait."""
    users: dict[str, list[EntryId]] = {}
    for edge in edges:
        users.setdefault(edge.provider, []).append(EntryId(edge.consumer))
    whole = dict(found)
    waiting = list(found)
    while waiting:
        provider = waiting.pop()
        for user in users.get(provider, ()):
            if user not in whole:
                whole[user] = f"{provider} has to go before it"
                waiting.append(user)
    return whole


def _by_role(entries: Iterable[EntryId]) -> dict[str, list[EntryId]]:
    found: dict[str, list[EntryId]] = {}
    for entry in sorted(set(entries)):
        instance, role, _ = split_entry(entry)
        found.setdefault(f"{instance}:{role}", []).append(entry)
    return found


def _waits(entry: Entry) -> Iterator[str]:
    """The facts that it waits for, each once."""
    facts = {
        (value.hole.fact, value.hole.machine)
        for unit in entry.units.values()
        for values in (unit.env, unit.config_data)
        for value in values.values()
        if isinstance(value, HoleValue)
    }
    for fact, machine in sorted(facts):
        yield f"it waits for the fact {fact} of {machine}, which nobody says"


def is_of(row: Diagnostic, entry: EntryId) -> bool:
    """Whether a row is about an entry, or about its role."""
    return row.subject in (entry, ":".join(split_entry(entry)[:2]))
