"""What enters the key, and what does not."""

import json

from keyplane.planner import compare
from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta", "gamma")
PAIR = '[a.exports]\nurl = "string"\n[b.exports]\nurl = "string"\n'


def ring(mine: str, other: str, follow: str = "key") -> str:
    return f"""
[roles.main.uses.other]
interface = "{other}"
follow = "{follow}"
[roles.main.units.main]
kind = "process"
command = ["{mine}"]
env = {{ OTHER = "${{results.other.url}}" }}
[roles.main.provides.mine]
interface = "{mine}"
scope = "mesh"
exports.url = {{ value = "{mine}://${{machine.address}}", lifecycle = "static" }}
"""


def test_a_slot_that_follows_values_is_no_edge_of_a_circle() -> None:
    fleet = HERE + f.instance("one", "one", "alpha") + f.instance("two", "two", "beta")
    old = f.plan_of(fleet, {"one": ring("a", "b"), "two": ring("b", "a", "values")}, PAIR)
    assert old.entries["two:main@beta"].dependencies == []
    changed = ring("b", "a", "values").replace('command = ["b"]', 'command = ["bb"]')
    new = f.plan_of(fleet, {"one": ring("a", "b"), "two": changed}, PAIR)
    assert compare.diff(old, new).activate == ["one:main@alpha", "two:main@beta"]
    changed = ring("a", "b").replace('command = ["a"]', 'command = ["aa"]')
    new = f.plan_of(fleet, {"one": changed, "two": ring("b", "a", "values")}, PAIR)
    assert compare.diff(old, new).activate == ["one:main@alpha"]


def test_a_circle_reaches_its_readers_and_is_not_reached_by_them() -> None:
    tail = (
        f.UNIT.replace('"run"', '"run"')
        + 'env.A = "${results.x.url}"\n[roles.main.uses.x]\ninterface = "a"\n'
    )
    fleet = HERE + "".join(
        f.instance(name, name, where)
        for name, where in (("one", "alpha"), ("two", "beta"), ("tail", "gamma"))
    )
    modules = {"one": ring("a", "b"), "two": ring("b", "a"), "tail": tail}
    old = f.plan_of(fleet, modules, PAIR)
    two = ring("b", "a").replace('command = ["b"]', 'command = ["bb"]')
    moved = compare.diff(old, f.plan_of(fleet, {**modules, "two": two}, PAIR))
    assert moved.activate == ["one:main@alpha", "tail:main@gamma", "two:main@beta"]
    tail = compare.diff(
        old, f.plan_of(fleet, {**modules, "tail": tail.replace('"run"', '"go"')}, PAIR)
    )
    assert tail.activate == ["tail:main@gamma"]


def test_roles_in_a_circle_whose_entries_are_in_none_keep_keys_apart() -> None:
    """A chain over machines by pins: the roles refer to each other, the entries do not."""
    chain = f.PROVIDER + '[roles.main.uses.next]\ninterface = "store"\n'
    chain = chain.replace(
        'command = ["run"]', 'command = ["run"]\nenv = { NEXT = "${results.next.url}" }'
    )
    fleet = f.machines(
        "alpha",
        "beta",
        "gamma",
        alpha='pins.store = "beta"',
        beta='pins.store = "gamma"',
        gamma='pins.store = "gamma"',
    )
    made = f.plan_of(fleet + f.instance("db", "store"), {"store": chain}, f.STORE)
    assert f.env(made, "db:main@alpha") == {"NEXT": "http://10.0.0.2/"}
    assert made.entries["db:main@beta"].dependencies == ["db:main@gamma"]
    assert [row.code for row in made.diagnostics] == ["pin-not-provider"]
    assert len({entry.key for entry in made.entries.values()}) == 3


def test_two_units_with_one_env_variable_each_keep_digests_apart() -> None:
    unit = "".join(
        f'[roles.main.units.{name}]\nkind = "process"\ncommand = ["x"]\nenv.A = "${{settings.{name}}}"\n'
        for name in ("a", "b")
    )
    text = (
        unit
        + '[roles.main.settings]\na = { type = "string", default = "1" }\nb = { type = "string", default = "1" }\n'
    )
    fleet = HERE + f.instance("solo", "solo", "alpha")
    old = f.plan_of(fleet, {"solo": text})
    new = f.plan_of(fleet + 'settings.main.a = "2"\n', {"solo": text})
    found = compare.diff(old, new)
    assert found.units == {"solo:main@alpha": ["a"]}
    assert found.why == {"solo:main@alpha": ["env.a.A"]}


def test_grants_tell_what_consumers_on_any_machine_ask() -> None:
    interfaces = '[db.request]\nname = "string"\n[db.exports]\nurl = "string"\n'
    server = (
        f.UNIT
        + '[roles.main.provides.db]\ninterface = "db"\nscope = "mesh"\ngrants = "/etc/grants.json"\nexports.url = { value = "x", lifecycle = "static" }\n'
    )
    client = (
        f.UNIT + '[roles.main.uses.db]\ninterface = "db"\nrequest.name = "on-${machine.name}"\n'
    )
    fleet = (
        HERE + f.instance("pg", "server", "alpha") + f.instance("my-app", "client", "beta", "gamma")
    )
    made = f.result_of(fleet, {"server": server, "client": client}, interfaces)
    content = made.grants["pg:main@alpha"]["/etc/grants.json"]
    assert json.loads(content) == {
        "consumers": [
            {
                "instance": "my-app", "role": "main", "machine": machine, "login": "my_app",
                "slot": "db", "request": {"name": f"on-{machine}"},
            }
            for machine in ("beta", "gamma")
        ]
    }  # fmt: skip
    named = {"server": server.replace("/etc/grants", "/etc/${self.instance}/${machine.name}")}
    two = HERE + f.instance("a", "server", "alpha") + f.instance("b", "server", "alpha")
    assert f.result_of(two, named, interfaces).grants == {
        f"{name}:main@alpha": {f"/etc/{name}/alpha.json": b'{"consumers":[]}'} for name in "ab"
    }
    alone = f.result_of(HERE + f.instance("pg", "server", "alpha"), {"server": server}, interfaces)
    assert alone.grants == {"pg:main@alpha": {"/etc/grants.json": b'{"consumers":[]}'}}
    assert alone.plan.entries["pg:main@alpha"].key == made.plan.entries["pg:main@alpha"].key
