"""Which provider a slot comes to, and what is refused."""

import pytest

from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta", "gamma")
SOCKET = (
    f.UNIT
    + """
[roles.main.provides.store]
interface = "store"
exports.url = { value = "/run/store", lifecycle = "static" }
"""
)
"""Machine-scoped."""
LOCAL = f.PROVIDER.replace('lifecycle = "static"', 'lifecycle = "static", access = "machine-local"')
"""Mesh-scoped, and readable from its own machine only."""
MODULES = {"store": f.PROVIDER, "app": f.READER}


def bound(made: f.Plan, entry: str = "app:main@alpha") -> list[tuple[str, str]]:
    return [(edge.provider, edge.chosen) for edge in made.edges if edge.consumer == entry]


def test_the_only_provider_of_the_fleet_answers() -> None:
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, MODULES, f.STORE)
    assert bound(made) == [("db:main@beta", "only")]
    assert made.entries["app:main@alpha"].dependencies == ["db:main@beta"]
    assert f.rows(made) == []


def test_an_instance_that_is_placed_nowhere_is_no_candidate() -> None:
    fleet = HERE + f.instance("db", "store", "beta") + '[instances.idle]\nmodule = "store"\n'
    made = f.plan_of(fleet + f.instance("app", "app", "alpha"), MODULES, f.STORE)
    assert bound(made) == [("db:main@beta", "only")]


def test_an_external_is_a_candidate_among_the_others() -> None:
    external = '[externals.s3]\ninterface = "store"\nexports.url = { value = "https://x", lifecycle = "static" }\n'
    fleet = HERE + external + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, MODULES, f.STORE)
    assert bound(made) == [("external:s3", "only")]
    assert made.entries["app:main@alpha"].dependencies == []
    assert f.env(made, "app:main@alpha") == {"URL": "https://x"}
    both = f.plan_of(fleet + f.instance("db", "store", "beta"), MODULES, f.STORE)
    row = f.row(both, "slot-ambiguous")
    assert row.subject == "app:main"
    assert "db:main" in row.message
    assert "external:s3" in row.message
    assert 'instances.app.bind.main.store = "external:s3"' in " ".join(row.resolution)


def test_a_bind_chooses_an_external() -> None:
    external = '[externals.s3]\ninterface = "store"\nexports.url = { value = "https://${consumer.login}", lifecycle = "static" }\n'
    fleet = HERE + external + f.instance("db", "store", "beta")
    more = 'bind.main.store = "external:s3"'
    made = f.plan_of(fleet + f.instance("my-app", "app", "alpha", more=more), MODULES, f.STORE)
    assert bound(made, "my-app:main@alpha") == [("external:s3", "bind")]
    assert f.env(made, "my-app:main@alpha") == {"URL": "https://my_app"}


@pytest.mark.parametrize(
    ("says", "nobody"),
    [
        ('fact = "s3.url", lifecycle = "probed"', "fact `s3.url` is nobody's"),
        ('source = { file = "/run/url" }, lifecycle = "dynamic"', "no agent reads its `source`"),
        ('source = { published = true }, lifecycle = "dynamic"', "no agent reads its `source`"),
    ],
)
def test_an_external_gives_no_value_that_an_agent_would_have_to_say(says: str, nobody: str) -> None:
    """Its users would wait for ever; the row says how they need not."""
    external = f'[externals.s3]\ninterface = "store"\nexports.url = {{ {says} }}\n'
    fleet = HERE + external + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, MODULES, f.STORE)
    row = f.row(made, "unknown-reference")
    assert (row.severity, row.path) == ("error", "externals.s3.exports.url")
    assert nobody in row.message
    assert 'lifecycle = "static"' in row.resolution[0]


def test_a_bind_to_nothing_or_to_a_stranger_is_unbound_whatever_else_there_is() -> None:
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("idle", "idle", "beta")
    for said in ("nope", "idle", "external:nope", "db:other", "db:"):
        app = f.instance("app", "app", "alpha", more=f'bind.main.store = "{said}"')
        made = f.plan_of(fleet + app, {**MODULES, "idle": f.UNIT}, f.STORE)
        row = f.row(made, "slot-unbound")
        assert row.subject == "app:main"
        assert said in row.message
        assert bound(made) == []


def test_a_wrong_bind_names_the_modules_that_provide_the_interface() -> None:
    fleet = f.machines("alpha") + f.instance("app", "app", "alpha", more='bind.main.store = "x"')
    made = f.plan_of(fleet, {"app": f.READER, "depot": f.PROVIDER}, f.STORE)
    assert "depot" in f.row(made, "slot-unbound").message


def test_a_bind_to_an_instance_that_is_placed_nowhere_reaches_none() -> None:
    fleet = HERE + '[instances.db]\nmodule = "store"\n'
    app = f.instance("app", "app", "alpha", more='bind.main.store = "db"')
    made = f.plan_of(fleet + app, MODULES, f.STORE)
    assert f.rows(made) == [("reach-one-none", "app:main@alpha")]


def test_a_bind_of_a_slot_that_is_not_there_is_a_row() -> None:
    fleet = HERE + f.instance("db", "store", "beta")
    app = f.instance("app", "app", "alpha", more='bind.main.stoer = "db"')
    made = f.plan_of(fleet + app, MODULES, f.STORE)
    row = f.row(made, "unknown-reference")
    assert "stoer" in row.message
    assert "store" in " ".join(row.resolution)


def test_a_bind_to_a_machine_scoped_provide_elsewhere_is_a_split() -> None:
    fleet = HERE + f.instance("db", "store", "beta")
    app = f.instance("app", "app", "alpha", "beta", more='bind.main.store = "db"')
    made = f.plan_of(fleet + app, {"store": SOCKET, "app": f.READER}, f.STORE)
    assert f.rows(made) == [("machine-local-split", "app:main@alpha")]
    assert bound(made, "app:main@beta") == [("db:main@beta", "bind")]


def test_a_pin_narrows_a_bound_instance_that_is_there_and_is_no_matter_elsewhere() -> None:
    pinned = f.machines("alpha", "beta", "gamma", alpha='pins.store = "gamma"')
    fleet = pinned + f.instance("db", "store", "beta", "gamma")
    app = f.instance("app", "app", "alpha", more='bind.main.store = "db"')
    made = f.plan_of(fleet + app, MODULES, f.STORE)
    assert bound(made) == [("db:main@gamma", "bind")]
    elsewhere = pinned + f.instance("db", "store", "beta") + app
    assert bound(f.plan_of(elsewhere, MODULES, f.STORE)) == [("db:main@beta", "bind")]


def test_a_pin_of_what_nobody_knows_is_always_a_row() -> None:
    pinned = f.machines("alpha", alpha='pins.store = "nowhere"\npins.nothing = "alpha"')
    made = f.plan_of(pinned, {}, f.STORE)
    assert f.rows(made) == [
        ("unknown-interface", "fleet.toml"),
        ("unknown-machine", "fleet.toml"),
    ]


def test_a_pin_to_another_machine_never_takes_the_provider_beside() -> None:
    pinned = f.machines("alpha", "beta", alpha='pins.store = "beta"')
    fleet = pinned + f.instance("db", "store", "alpha", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": SOCKET, "app": f.READER}, f.STORE)
    row = f.row(made, "pin-not-provider")
    assert row.subject == "app:main@alpha"
    assert bound(made) == []


def test_two_provides_of_one_role_are_ambiguous_and_no_bind_helps() -> None:
    two = (
        f.PROVIDER
        + """
[roles.main.provides.other]
interface = "store"
scope = "mesh"
exports.url = { value = "x", lifecycle = "static" }
"""
    )
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": two, "app": f.READER}, f.STORE)
    row = f.row(made, "slot-ambiguous")
    assert "other" in row.message
    assert "store" in row.message


def test_where_nothing_could_provide_it_the_one_way_out_is_no_alternative() -> None:
    fleet = f.machines("alpha") + f.instance("app", "app", "alpha")
    (alone,) = f.row(f.plan_of(fleet, {"app": f.READER}, f.STORE), "slot-unbound").resolution
    assert alone.startswith("name one outside: externals.NAME.interface")
    some = f.row(f.plan_of(fleet, {"app": f.READER, "depot": f.PROVIDER}, f.STORE), "slot-unbound")
    assert [way.split()[0] for way in some.resolution] == ["assign", "or"]


def test_a_module_that_is_not_there_is_said_to_be_made_where() -> None:
    """Its directory may be there, with a document that is named otherwise."""
    made = f.plan_of(f.machines("alpha") + f.instance("app", "ap", "alpha"), {"app": f.READER})
    ways = f.row(made, "unknown-module").resolution
    assert ways[0] == "write `app`"
    assert ways[-1] == "or make it: its document is modules/ap/module.toml"


def test_no_entry_answers_its_own_slot() -> None:
    both = f.PROVIDER + '[roles.main.uses.peer]\ninterface = "store"\n'
    both = both.replace(
        'command = ["run"]', 'command = ["run"]\nenv = { PEER = "${results.peer.url}" }'
    )
    alone = f.plan_of(HERE + f.instance("db", "store", "alpha"), {"store": both}, f.STORE)
    assert ("slot-unbound", "db:main") in f.rows(alone)
    pair = f.plan_of(HERE + f.instance("db", "store", "alpha", "beta"), {"store": both}, f.STORE)
    assert f.env(pair, "db:main@alpha") == {"PEER": "http://10.0.0.2/"}
    assert f.env(pair, "db:main@beta") == {"PEER": "http://10.0.0.1/"}
    keys = {entry.key for entry in pair.entries.values()}
    assert len(keys) == 2


def test_under_all_an_entry_is_a_member_and_no_dependency_of_itself() -> None:
    mesh = f.PROVIDER + '[roles.main.uses.peers]\ninterface = "store"\nreach = "all"\n'
    mesh = mesh.replace(
        'command = ["run"]', 'command = ["run"]\nenv = { PEERS = "${results.peers.*.url}" }'
    )
    made = f.plan_of(HERE + f.instance("db", "store"), {"store": mesh}, f.STORE)
    assert f.env(made, "db:main@beta") == {
        "PEERS": "http://10.0.0.1/ http://10.0.0.2/ http://10.0.0.3/"
    }
    assert made.entries["db:main@beta"].dependencies == ["db:main@alpha", "db:main@gamma"]
    assert ("db:main@beta", "only") in bound(made, "db:main@beta")


def test_local_takes_the_placement_beside_or_none() -> None:
    local = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "local"')
    fleet = HERE + f.instance("db", "store", "alpha", "beta") + f.instance("app", "app")
    made = f.plan_of(fleet, {"store": f.PROVIDER, "app": local}, f.STORE)
    assert bound(made) == [("db:main@alpha", "only")]
    assert bound(made, "app:main@beta") == [("db:main@beta", "only")]
    assert f.rows(made) == [("reach-one-none", "app:main@gamma")]
    keys = [made.entries[name].key for name in ("app:main@alpha", "app:main@beta")]
    assert keys[0] != keys[1]


def test_a_socket_on_six_machines_is_one_readable_placement_for_each_reader() -> None:
    fleet = HERE + f.instance("db", "store") + f.instance("app", "app", "alpha", "beta")
    made = f.plan_of(fleet, {"store": LOCAL, "app": f.READER}, f.STORE)
    assert bound(made, "app:main@beta") == [("db:main@beta", "only")]
    assert f.rows(made) == []


def test_a_slot_is_readable_where_what_it_reads_is() -> None:
    two = (
        f.UNIT
        + """
[roles.main.provides.store]
interface = "store"
scope = "mesh"
exports.url = { value = "u", lifecycle = "static" }
exports.socket = { value = "s", lifecycle = "static", access = "machine-local" }
"""
    )
    interfaces = '[store.exports]\nurl = "string"\nsocket = "string"\n'
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    assert f.rows(f.plan_of(fleet, {"store": two, "app": f.READER}, interfaces)) == []
    nothing = f.UNIT + '[roles.main.uses.store]\ninterface = "store"\n'
    made = f.plan_of(fleet, {"store": two, "app": nothing}, interfaces)
    assert f.rows(made) == [("machine-local-split", "app:main@alpha")]


def test_requires_makes_an_edge_and_no_dependency_beside_first_then_by_name() -> None:
    needs = f.UNIT.replace(
        "[roles.main.units", '[roles.main]\nrequires = ["store"]\n[roles.main.units', 1
    )
    fleet = HERE + f.instance("da", "store", "beta") + f.instance("db", "store", "gamma")
    made = f.plan_of(fleet + f.instance("app", "app"), {"store": f.PROVIDER, "app": needs}, f.STORE)
    assert bound(made) == [("da:main@beta", "only")]
    assert bound(made, "app:main@gamma") == [("db:main@gamma", "only")]
    assert made.entries["app:main@alpha"].dependencies == []
    assert {edge.slot for edge in made.edges} == {"store"}
    assert f.rows(made) == []
    chosen = f.instance("app", "app", "alpha", more='bind.main.store = "db"')
    made = f.plan_of(fleet + chosen, {"store": f.PROVIDER, "app": needs}, f.STORE)
    assert bound(made) == [("db:main@gamma", "bind")]


def test_a_provider_with_no_units_is_one_placement_free_capability() -> None:
    free = f.PROVIDER.replace(f.UNIT, "").replace("http://${machine.address}/", "http://free/")
    every = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"')
    every = every.replace("results.store.url", "results.store.any.url")
    local = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "local"')
    for reader in (f.READER, local, every):
        fleet = (
            HERE + f.instance("db", "store", "beta", "gamma") + f.instance("app", "app", "alpha")
        )
        made = f.plan_of(fleet, {"store": free, "app": reader}, f.STORE)
        assert f.rows(made) == []
        assert bound(made) == [("db:main@beta", "only")]
        assert f.env(made, "app:main@alpha") == {"URL": "http://free/"}
        assert made.entries["db:main@beta"].units == {}


def test_a_provider_with_no_units_has_no_machine_in_its_exports() -> None:
    free = f.PROVIDER.replace(f.UNIT, "")
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": free, "app": f.READER}, f.STORE)
    row = f.row(made, "unknown-reference")
    assert row.subject == "db:main"
    assert "${machine.address}" in row.message
    assert f.env(made, "app:main@alpha") == {}


def test_under_all_nothing_is_an_empty_set_and_no_row() -> None:
    every = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"')
    every = every.replace("results.store.url", "results.store.*.url")
    made = f.plan_of(HERE + f.instance("app", "app", "alpha"), {"app": every}, f.STORE)
    assert f.rows(made) == []
    assert f.env(made, "app:main@alpha") == {"URL": ""}


def test_under_all_two_instances_are_ambiguous_too() -> None:
    every = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"')
    every = every.replace("results.store.url", "results.store.*.url")
    fleet = HERE + f.instance("da", "store", "beta") + f.instance("db", "store", "gamma")
    made = f.plan_of(
        fleet + f.instance("app", "app", "alpha"), {"store": f.PROVIDER, "app": every}, f.STORE
    )
    assert f.rows(made) == [("slot-ambiguous", "app:main")]


def test_a_reference_to_a_machine_that_is_no_member_names_nothing() -> None:
    every = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"')
    every = every.replace("results.store.url", "results.store.gamma.url")
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": f.PROVIDER, "app": every}, f.STORE)
    row = f.row(made, "unknown-reference")
    assert "gamma" in row.message
    assert f.env(made, "app:main@alpha") == {}


def test_a_role_fault_is_one_row_and_a_placement_s_is_one_for_each() -> None:
    fleet = HERE + f.instance("da", "store", "beta") + f.instance("db", "store", "gamma")
    made = f.plan_of(fleet + f.instance("app", "app"), MODULES, f.STORE)
    assert f.rows(made) == [("slot-ambiguous", "app:main")]
    fleet = HERE + f.instance("db", "store", "alpha", "beta") + f.instance("app", "app")
    made = f.plan_of(fleet, MODULES, f.STORE)
    assert f.rows(made) == [
        ("reach-one-many", f"app:main@{name}") for name in ("alpha", "beta", "gamma")
    ]


def test_an_instance_that_is_placed_nowhere_is_what_to_place() -> None:
    """And not one more beside it."""
    fleet = f.machines("alpha") + f.instance("app", "app", "alpha")
    fleet += '[instances.depot-eu]\nmodule = "depot"\n'
    made = f.plan_of(fleet, {"app": f.READER, "depot": f.PROVIDER}, f.STORE)
    assert f.row(made, "slot-unbound").resolution[0] == (
        'place depot-eu: instances.depot-eu.placement.every.main = { machines = ["MACHINE"] }'
    )


def test_an_export_that_is_not_given_is_told_with_its_interface() -> None:
    provider = f.PROVIDER.replace("exports.url = ", "exports.uri = ")
    fleet = f.machines("alpha") + f.instance("depot", "depot", "alpha")
    made = f.plan_of(fleet, {"depot": provider}, f.STORE)
    assert "`url`, which its interface `store` declares" in f.row(made, "export-missing").message
