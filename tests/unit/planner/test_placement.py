"""On which machines a role stands."""

import pytest

from tests.unit.planner import fleets as f

SIX = f.machines("m1", "m2", "m3", "m4", "m5", "m6")
MODULES = {"solo": f.UNIT}


def solo(selection: str, strategy: str = "count", module: str = "solo") -> str:
    return f'[instances.solo]\nmodule = "{module}"\nplacement.{strategy}.main = {selection}\n'


def placed(made: f.Plan) -> list[str]:
    return [name.rpartition("@")[2] for name in made.entries]


def needs(severity: str = "require") -> dict[str, str]:
    return {
        "solo": f.UNIT
        + f'[[roles.main.requirements]]\nsubject = "x"\npredicate = "exists"\nseverity = "{severity}"\n'
    }


def test_count_takes_the_first_by_name() -> None:
    assert placed(f.plan_of(SIX + solo("{ count = 2 }"), MODULES)) == ["m1", "m2"]


def test_count_drops_from_the_end_of_its_order() -> None:
    before = f.plan_of(SIX + solo("{ count = 4 }"), MODULES)
    after = f.plan_of(SIX + solo("{ count = 2 }"), MODULES, previous=before)
    assert placed(after) == ["m1", "m2"]


def test_count_prefers_where_it_was_then_wants_met_then_names() -> None:
    wanted = f.facts("m5", x=True) | f.facts("m6", x=True)
    made = f.plan_of(SIX + solo("{ count = 1 }"), needs("want"), files=wanted)
    assert placed(made) == ["m5"]
    assert f.rows(made) == []
    before = f.plan_of(SIX + solo('{ count = 1, machines = ["m3"] }'), needs("want"))
    assert f.rows(before) == [("requirement-unmet", "solo:main@m3")]
    kept = f.plan_of(SIX + solo("{ count = 1 }"), needs("want"), files=wanted, previous=before)
    assert placed(kept) == ["m3"]


def test_count_spreads_over_the_values_of_a_tag() -> None:
    tags = {"m1": "z=a", "m2": "z=a", "m3": "z=a", "m4": "z=b", "m5": "z=b", "m6": "z=c"}
    fleet = f.machines(*tags, **{name: f'tags = ["{tag}"]' for name, tag in tags.items()})
    made = f.plan_of(fleet + solo('{ count = 4, spread = "z" }'), MODULES)
    assert placed(made) == ["m1", "m2", "m4", "m6"]


def test_count_that_finds_too_few_says_what_was_unmet_where() -> None:
    made = f.plan_of(SIX + solo("{ count = 2 }"), needs(), files=f.facts("m4", x=True))
    row = f.row(made, "placement-short")
    assert row.subject == "solo:main"
    assert placed(made) == ["m4"]
    assert "m1: x exists" in row.message


def test_every_on_a_named_machine_that_does_not_fit_is_a_row_and_no_entry() -> None:
    made = f.plan_of(
        SIX + solo('{ machines = ["m1", "m2"] }', "every"), needs(), files=f.facts("m2", x=True)
    )
    assert f.rows(made) == [("requirement-unmet", "solo:main@m1")]
    assert placed(made) == ["m2"]


def test_every_by_tag_passes_over_what_does_not_fit_without_a_row() -> None:
    fleet = f.machines("m1", "m2", m1='tags = ["a", "b"]', m2='tags = ["a"]')
    made = f.plan_of(fleet + solo('{ tags = ["b", "a"] }', "every"), MODULES)
    assert placed(made) == ["m1"]
    made = f.plan_of(fleet + solo('{ tags = ["a"] }', "every"), needs(), files=f.facts("m1", x=1))
    assert (placed(made), f.rows(made)) == (["m1"], [])


def test_a_role_without_placement_is_not_placed_without_a_row() -> None:
    made = f.plan_of(SIX + '[instances.solo]\nmodule = "solo"\n', MODULES)
    assert (made.entries, made.diagnostics) == ({}, [])


SOCKET = f.PROVIDER.replace(
    'lifecycle = "static"', 'lifecycle = "static", access = "machine-local"'
)


def test_count_goes_where_its_machine_local_provider_is() -> None:
    fleet = SIX + f.instance("db", "store", "m4") + solo("{ count = 1 }", module="app")
    made = f.plan_of(fleet, {"store": SOCKET, "app": f.READER}, f.STORE)
    assert sorted(made.entries) == ["db:main@m4", "solo:main@m4"]
    assert f.rows(made) == []


def test_a_provider_by_count_goes_where_its_placed_reader_is() -> None:
    fleet = SIX + f.instance("app", "app", "m5") + solo("{ count = 1 }", module="store")
    made = f.plan_of(fleet, {"store": SOCKET, "app": f.READER}, f.STORE)
    assert sorted(made.entries) == ["app:main@m5", "solo:main@m5"]
    assert f.rows(made) == []


@pytest.mark.parametrize("names", [("app", "db"), ("db", "app")])
@pytest.mark.parametrize("reach", ["one", "local"])
def test_two_roles_by_count_meet_where_both_fit(names: tuple[str, str], reach: str) -> None:
    reader, provider = names
    fleet = (
        SIX
        + f'[instances.{reader}]\nmodule = "app"\n'
        + 'placement.count.main = { count = 1, machines = ["m3", "m4"] }\n'
        + f'[instances.{provider}]\nmodule = "store"\nplacement.count.main = {{ count = 2 }}\n'
    )
    needed = f.READER.replace('interface = "store"', f'interface = "store"\nreach = "{reach}"')
    needed += '[[roles.main.requirements]]\nsubject = "x"\npredicate = "exists"\n'
    store = SOCKET if reach == "one" else f.PROVIDER
    made = f.plan_of(fleet, {"store": store, "app": needed}, f.STORE, files=f.facts("m4", x=True))
    assert sorted(made.entries) == sorted(
        [f"{reader}:main@m4", f"{provider}:main@m1", f"{provider}:main@m4"]
    )
    assert f.rows(made) == []


def test_a_provider_by_count_takes_more_machines_than_its_reader_has() -> None:
    fleet = SIX + f.instance("app", "app", "m5") + solo("{ count = 2 }", module="store")
    made = f.plan_of(fleet, {"store": SOCKET, "app": f.READER}, f.STORE)
    assert sorted(made.entries) == ["app:main@m5", "solo:main@m1", "solo:main@m5"]
    assert f.rows(made) == []


def test_roles_that_wait_for_each_other_are_not_placed() -> None:
    def waits(mine: str, other: str) -> str:
        return (
            f.UNIT
            + f"""
[roles.main.uses.other]
interface = "{other}"
[[roles.main.requirements]]
subject = "x.${{results.other.url}}"
predicate = "exists"
[roles.main.provides.mine]
interface = "{mine}"
scope = "mesh"
exports.url = {{ value = "u", lifecycle = "static" }}
"""
        )

    interfaces = '[a.exports]\nurl = "string"\n[b.exports]\nurl = "string"\n'
    fleet = SIX + f.instance("one", "one", "m1") + f.instance("two", "two", "m2")
    made = f.plan_of(fleet, {"one": waits("a", "b"), "two": waits("b", "a")}, interfaces)
    row = f.row(made, "circular-placement")
    assert "one:main" in row.message
    assert "two:main" in row.message
    assert 'or let what one reads of the other be read from anywhere: access = "routable"' in (
        row.resolution
    )
    assert made.entries == {}


def test_a_requirement_reads_the_value_of_a_provider() -> None:
    reader = (
        f.READER
        + '[[roles.main.requirements]]\nsubject = "can.${results.store.url}"\npredicate = "exists"\n'
    )
    static = f.PROVIDER.replace("http://${machine.address}/", "fly")
    fleet = SIX + f.instance("app", "app") + f.instance("db", "store", "m1")
    made = f.plan_of(
        fleet, {"store": static, "app": reader}, f.STORE, files=f.facts("m3", can__fly=True)
    )
    assert sorted(made.entries) == ["app:main@m3", "db:main@m1"]
    assert made.entries["app:main@m3"].requirements == [
        {"subject": "can.fly", "predicate": "exists", "severity": "require"}
    ]


def test_a_floor_above_the_members_is_a_warning() -> None:
    fleet = SIX + solo("{ count = 2 }") + "floor.main = 3\n"
    row = f.row(f.plan_of(fleet, MODULES), "unhealthy-floor")
    assert (row.severity, row.subject) == ("warning", "solo:main")
    assert "2 members" in row.message
    assert f.rows(f.plan_of(fleet.replace("= 3", "= 2"), MODULES)) == []


def test_a_floor_of_a_role_that_stands_nowhere_says_so() -> None:
    """Nothing of it could be stopped."""
    fleet = SIX + solo("{ count = 0 }") + "floor.main = 1\n"
    row = f.row(f.plan_of(fleet, MODULES), "unhealthy-floor")
    assert row.message.endswith("it has no members: it stands on no machine")


@pytest.mark.parametrize(
    ("code", "fleet"),
    [
        ("unknown-module", '[instances.x]\nmodule = "solos"\n'),
        ("unknown-role", '[instances.x]\nmodule = "solo"\nplacement.every.mian = {}\n'),
        ("unknown-role", '[instances.x]\nmodule = "solo"\nsettings.mian.a = 1\n'),
        (
            "unknown-machine",
            '[instances.x]\nmodule = "solo"\nplacement.every.main = { machines = ["m9"] }\n',
        ),
        ("unknown-setting", '[instances.x]\nmodule = "solo"\nsettings.main.a = 1\n'),
    ],
)
def test_what_the_fleet_names_has_to_be_there(code: str, fleet: str) -> None:
    assert [row.code for row in f.plan_of(SIX + fleet, MODULES).diagnostics] == [code]


def test_a_snapshot_of_a_strange_machine_is_a_row() -> None:
    made = f.plan_of(SIX, MODULES, files=f.facts("m9", x=1))
    assert f.rows(made) == [("unknown-machine", "facts/m9.json")]


def test_nothing_new_is_placed_by_count_on_a_cordoned_machine() -> None:
    """What is there stays; and `every` asks nothing of it."""
    before = f.plan_of(SIX + solo("{ count = 2 }"), MODULES)
    more = SIX + solo("{ count = 3 }")
    after = f.plan_of(more, MODULES, previous=before, cordoned={"m1": False, "m3": False})
    assert placed(after) == ["m1", "m2", "m4"]
    all_of_them = f.plan_of(SIX + solo("{}", "every"), MODULES, cordoned={"m1": False, "m3": True})
    assert len(placed(all_of_them)) == 6


def test_what_is_placed_by_count_leaves_a_drained_machine() -> None:
    """And where too few others fit, that is said."""
    before = f.plan_of(SIX + solo("{ count = 2 }"), MODULES)
    fleet = SIX + solo("{ count = 2 }")
    assert placed(f.plan_of(fleet, MODULES, previous=before, cordoned={"m1": True})) == ["m2", "m3"]
    two = '{ count = 2, machines = ["m1", "m2"] }'
    row = f.row(f.plan_of(SIX + solo(two), MODULES, cordoned={"m1": True}), "placement-short")
    assert "m1: is drained" in row.message
