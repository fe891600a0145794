"""What may be declared in the middle of a rollout."""

import msgspec

from keyplane.model.names import EntryId
from keyplane.model.plan import Edge, Entry
from keyplane.plancheck.mixture import check_mixture
from tests.unit.plancheck.values import sound


def mixture() -> tuple[dict[EntryId, Entry], list[Edge]]:
    plan = sound()
    return {EntryId(name): entry for name, entry in plan.entries.items()}, plan.edges


def test_a_whole_plan_is_a_sound_mixture():
    """Before the first step and after the last nothing is mixed."""
    assert check_mixture(*mixture()) == []


def test_a_provider_may_have_another_key():
    """Until its own step a consumer is of the plan in which the provider was another."""
    entries, edges = mixture()
    pg = EntryId("pg:main@alpha")
    entries[pg] = msgspec.structs.replace(entries[pg], key="sha256-other")
    assert check_mixture(entries, edges) == []


def test_a_provider_has_to_be_there():
    """No step may take away what somebody still uses."""
    entries, edges = mixture()
    del entries[EntryId("pg:main@alpha")]
    rows = check_mixture(entries, edges)
    assert {(row.code, row.subject, row.path) for row in rows} == {
        ("plan-edge", "ping:main@alpha", "uses.db"),
        ("plan-edge", "web:main@alpha", "uses.db"),
    }


def test_two_entries_of_two_plans_cannot_hold_one_thing():
    """A new entry that takes over a port or a path waits until the old one has gone."""
    entries, edges = mixture()
    entries[EntryId("new:main@alpha")] = entries[EntryId("pg:main@alpha")]
    rows = check_mixture(entries, edges)
    assert {row.code for row in rows} == {"plan-port", "plan-path"}
    assert all("new:main" in row.message and "pg:main" in row.message for row in rows)
