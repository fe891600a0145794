"""Plans by what machines say of themselves: what they hang on, and what they hold."""

from keyplane.model.diagnostic import Severity
from keyplane.model.names import EntryId
from keyplane.rollout.withheld import withheld
from tests.unit.parts.fact_fleet import instance, known, named, planned, text

WIREGUARD = {"kernel.modules": ["wireguard"]}
NONE = {"kernel.modules": ["ext4"]}


def test_what_a_machine_said_counts_over_a_file_of_facts_fact_by_fact() -> None:
    """The file stands where the machine said nothing."""
    file = '{"machine": "alpha", "facts": {"cache.key": "old", "cpu.count": 1}}'
    files = text(named("cache", "alpha"), named("reader", "beta"), **{"facts__alpha.json": file})
    entry = EntryId("reader:main@beta")
    by_file = planned(files, known(alpha={"os.id": "debian"}))
    assert by_file.entries[entry].entry.units["one"].env == {"KEY": "old"}
    said = planned(files, known(alpha={"cache.key": "new"}))
    assert said.entries[entry].entry.units["one"].env == {"KEY": "new"}
    assert said.documents.facts["alpha"].facts["cpu.count"] == 1


def test_a_named_machine_that_does_not_fit_holds_its_own_entry_only() -> None:
    """It stops no apply; what runs already goes on as it runs."""
    files = text(named("vpn", "alpha", "beta"), named("plain", "alpha"))
    before = planned(files, known(alpha=WIREGUARD, beta=WIREGUARD))
    after = planned(files, known(alpha=NONE, beta=WIREGUARD), before)
    assert not after.refused
    assert sorted(after.entries) == ["plain:main@alpha", "vpn:node@beta"]
    [row] = [row for row in after.rows if row.code == "requirement-unmet"]
    assert row.severity is Severity.WARNING
    found = withheld(after.plan, before.entries.keys())
    assert list(found) == ["vpn:node@alpha"]
    assert "kernel.module.wireguard exists (it is false)" in found[EntryId("vpn:node@alpha")]
    assert withheld(after.plan, after.entries.keys()) == {}


def test_a_machine_that_never_said_anything_stops_no_apply_either() -> None:
    """Its entry waits for what it says."""
    found = planned(text(named("vpn", "alpha"), named("plain", "alpha")), {})
    assert not found.refused
    assert list(found.entries) == ["plain:main@alpha"]


def test_a_consumer_of_what_has_no_place_is_held_with_it() -> None:
    """Its row stems from the fact as well, through its provider."""
    needs = '[[roles.main.requirements]]\nsubject = "gpu"\npredicate = "exists"\n'
    files = text(named("cache", "alpha"), named("reader", "beta"), named("plain", "beta"))
    files["modules/cache/module.toml"] += needs.encode()
    before = planned(files, known(alpha={"gpu": True, "cache.key": "k"}))
    after = planned(files, known(alpha={"gpu": False, "cache.key": "k"}), before)
    assert not after.refused
    held = withheld(after.plan, before.entries.keys())
    assert sorted(held) == ["cache:main@alpha", "reader:main@beta"]


def test_what_is_wrong_with_the_documents_refuses_all_the_same() -> None:
    """Beside a row of facts too; and too few machines are no machine's fault."""
    files = text(named("vpn", "alpha"), instance("plain", "count { count = 4 }"))
    found = planned(files, known(alpha=NONE))
    assert found.refused
    severities = {row.code: row.severity for row in found.rows}
    assert severities["placement-short"] is Severity.ERROR
    assert severities["requirement-unmet"] is Severity.WARNING


def test_a_count_that_is_short_by_facts_keeps_the_members_that_lost_their_place() -> None:
    """Those that have one are sent as ever."""
    files = text(instance("vpn", "count { count = 3 }"))
    every = known(alpha=WIREGUARD, beta=WIREGUARD, gamma=WIREGUARD)
    before = planned(files, every)
    after = planned(files, known(alpha=NONE, beta=WIREGUARD, gamma=WIREGUARD), before)
    assert not after.refused
    assert list(withheld(after.plan, before.entries.keys())) == ["vpn:node@alpha"]


def test_a_hole_waits_for_its_fact_and_refuses_nothing() -> None:
    files = text(named("cache", "alpha"), named("reader", "beta"))
    found = planned(files, {})
    assert not found.refused
    assert withheld(found.plan, ()) == {
        EntryId("reader:main@beta"): ("it waits for the fact cache.key of alpha, which nobody says")
    }


def test_a_plan_tells_on_which_facts_it_hangs() -> None:
    """Its own, its providers' and those of requirements; of others it would not be another."""
    files = text(
        named("cache", "alpha"),
        named("reader", "beta"),
        instance("vpn", 'count { count = 1, machines = ["alpha", "gamma"] }'),
    )
    found = planned(files, {})
    assert {
        ("alpha", "cache.key"),
        ("alpha", "kernel.module.wireguard"),
        ("gamma", "kernel.module.wireguard"),
    } == found.facts
