"""Why a key moved, back to what a person changed; and what a key is made of."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from keyplane.adapters import directory
from keyplane.model.plan import Plan
from keyplane.planner import PlanRequest, canonical, explain_key, explain_moves, plan
from keyplane.planner.explain_origins import Leaf, read_along
from tests.unit.planner import fleets as f
from tests.unit.planner.test_limits import chain

FLEET = (
    f.machines("alpha", "beta")
    + f.instance("pg", "postgres", "alpha", more='settings.main.listen = "tcp"')
    + f.instance("game", "game", "beta", more='settings.main.database = "eu"')
    + f.instance("front", "front", "alpha")
)
INTERFACES = """
[database]
request.name = "string"
exports.dsn = "string"
exports.seen = "string"
[web.exports]
url = "string"
"""
POSTGRES = """
[roles.main.settings]
listen = { type = "string", default = "socket" }
[roles.main.listens]
sql = { protocol = "tcp" }
[roles.main.provides.db]
interface = "database"
scope = "mesh"
exports.seen = { fact = "seen", lifecycle = "probed" }
[[roles.main.provides.db.exports.dsn]]
when = { listen = "tcp" }
value = "pg://${consumer.login}@${machine.address}:${alloc.ports.sql}/${consumer.request.name}"
lifecycle = "static"
[[roles.main.provides.db.exports.dsn]]
value = "pg:///${consumer.request.name}"
lifecycle = "static"
access = "routable"
[roles.main.units.server]
kind = "process"
command = ["postgres"]
env = { PG_LISTEN = "${settings.listen}" }
"""
GAME = """
[roles.main.settings]
database = { type = "string" }
slots = { type = "integer", default = 32 }
key = { type = "string", default = "k" }
[roles.main.uses.db]
interface = "database"
request.name = "${settings.database}"
[roles.main.listens]
web = { protocol = "tcp" }
[roles.main.provides.web]
interface = "web"
scope = "mesh"
exports.url = { value = "http://${machine.address}:${alloc.ports.web}", lifecycle = "static" }
[roles.main.units.game]
kind = "process"
command = ["game", "--slots", "${settings.slots}"]
env = { DSN = "${results.db.dsn}", SEEN = "${results.db.seen}", API_TOKEN = "x-${settings.key}" }
[roles.main.units.side]
kind = "process"
command = ["side"]
[roles.main.resources.motd]
type = "file"
path = "/etc/motd"
file = "motd"
"""
FRONT = """
[roles.main.uses.game]
interface = "web"
[roles.main.units.proxy]
kind = "process"
command = ["proxy"]
env = { UP = "${results.game.url}" }
"""
MODULES = {"postgres": POSTGRES, "game": GAME, "front": FRONT}
GAME_ENTRY = "game:main@beta"


def request(
    fleet: str = FLEET,
    modules: Mapping[str, str] = MODULES,
    *,
    files: Mapping[str, str] | None = None,
    previous: Plan | None = None,
) -> PlanRequest:
    text = {
        "fleet.toml": f'fleet = "x"\n{fleet}',
        "interfaces.toml": INTERFACES,
        "modules/game/motd": "hello",
        **(files or {}),
    }
    for name, said in modules.items():
        text[f"modules/{name}/module.toml"] = f'module = "{name}"\nversion = "1"\n{said}'
    read = directory.documents_of(
        {path: said.encode() for path, said in text.items()}, f.no_starlark
    )
    return PlanRequest(documents=read.documents, evaluate=read.evaluate, previous=previous)


def moves(entry: str = GAME_ENTRY, **changes: Any) -> Any:
    """What the change did to the entry, as JSON has it."""
    old = plan(request()).plan
    asked = request(**changes, previous=old)
    found = explain_moves.moves(asked, old, plan(asked).plan, entry)
    return None if found is None else msgspec.json.decode(msgspec.json.encode(found))


def moved(entry: str = GAME_ENTRY, **changes: Any) -> dict[str, Any]:
    return {one["input"]: one for one in moves(entry, **changes)["moved"]}


def test_a_provider_s_key_is_followed_to_the_setting_that_moved_it() -> None:
    found = moved(fleet=FLEET.replace('"tcp"', '"both"'), modules={
        **MODULES, "postgres": POSTGRES.replace('when = { listen = "tcp" }\n', "").replace(
            POSTGRES[POSTGRES.index('[[roles.main.provides.db.exports.dsn]]\nvalue = "pg:///'):
                     POSTGRES.index("[roles.main.units")], ""),
    })  # fmt: skip
    assert found.keys() == {"dependency pg:main@alpha"}
    one = found["dependency pg:main@alpha"]
    assert one["from"] == [["env.server.PG_LISTEN", "settings.main.listen"]]
    assert one["units"] == ["game"]
    assert one["old"] != one["new"]


def test_causes_are_followed_through_any_number_of_providers() -> None:
    found = moved("front:main@alpha", fleet=FLEET.replace('"eu"', '"us"'))
    assert found.keys() == {f"dependency {GAME_ENTRY}"}
    assert found[f"dependency {GAME_ENTRY}"]["from"] == [
        [
            "env.game.DSN", "pg:main@alpha/provides/db/dsn", "uses.db.request.name",
            "settings.main.database",
        ]
    ]  # fmt: skip
    assert found[f"dependency {GAME_ENTRY}"]["units"] == ["proxy"]


def test_of_the_sources_of_a_value_only_those_that_moved_are_named() -> None:
    found = moved(fleet=FLEET.replace("10.0.0.1", "10.0.9.9"))
    assert found.keys() == {"env.game.DSN"}
    assert found["env.game.DSN"] == {
        "input": "env.game.DSN",
        "old": "pg://game@10.0.0.1:20000/eu",
        "new": "pg://game@10.0.9.9:20000/eu",
        "from": [["pg:main@alpha/provides/db/dsn", "machines.alpha.address"]],
        "units": ["game"],
    }


def test_a_variant_that_another_setting_chooses_is_put_down_to_that_setting() -> None:
    found = moved(fleet=FLEET.replace('"tcp"', '"socket"'))
    assert found["env.game.DSN"]["from"] == [
        ["pg:main@alpha/provides/db/dsn", "settings.main.listen"]
    ]


def test_a_slot_that_is_bound_elsewhere_says_so() -> None:
    found = moved(
        fleet=FLEET.replace('["alpha"]', '["beta"]', 1).replace("['alpha']", "['beta']", 1)
    )
    said = ["uses.db: pg:main@alpha → pg:main@beta"]
    assert found["env.game.DSN"]["from"] == [said]
    assert found["dependency pg:main@beta"]["from"] == [said]
    assert found["dependency pg:main@beta"]["old"] is None
    assert found["dependency pg:main@alpha"]["from"] == [["pg:main@alpha is gone"]]
    assert found["dependency pg:main@alpha"]["units"] == ["game"]


def test_what_the_module_itself_says_otherwise_is_named_by_file_and_path() -> None:
    modules = {**MODULES, "game": GAME.replace('"--slots"', '"--seats"').replace('"side"]', '"s"]')}
    found = moved(modules=modules)
    assert found["closure.game.command"]["from"] == [
        ["modules/game/module.toml: roles.main.units.game.command"]
    ]
    assert found["closure.game.command"]["units"] == ["game"]
    assert found["closure.side.command"]["units"] == ["side"]


def test_a_fact_that_came_is_where_a_hole_s_value_comes_from() -> None:
    found = moved(files={"facts/alpha.json": '{"machine": "alpha", "facts": {"seen": "yes"}}'})
    assert found["env.game.SEEN"]["from"] == [
        ["pg:main@alpha/provides/db/seen", "facts.alpha.seen"]
    ]
    assert found["env.game.SEEN"]["new"] == "yes"


def test_shipped_content_moves_a_resource_and_restarts_nothing() -> None:
    found = moved(files={"modules/game/motd": "bye"})
    assert found["closure.resources.motd"]["from"] == [["modules/game/motd"]]
    assert found["closure.resources.motd"]["units"] == []


def test_a_platform_moves_the_machine_s_key() -> None:
    fleet = FLEET.replace('10.0.0.2"', '10.0.0.2"\nplatform = "linux/arm64"')
    assert moved(fleet=fleet)["machine"]["from"] == [["machines.beta.platform"]]


def test_no_secret_is_shown_in_clear() -> None:
    fleet = FLEET.replace('database = "eu"', 'database = "eu"\nsettings.main.key = "hunter2"')
    found = moved(fleet=fleet)
    assert found["env.game.API_TOKEN"]["old"] == "(hidden)"
    assert found["env.game.API_TOKEN"]["new"] == "(hidden)"
    assert found["env.game.API_TOKEN"]["from"] == [["settings.main.key"]]
    modules = {**MODULES, "game": GAME.replace('"side"]', '"side", "ftp://me:hunter2@x"]')}
    assert "hunter2" not in str(moves(modules=modules))
    assert "ftp://me:(hidden)@x" in str(moves(modules=modules))
    inputs = explain_key.inputs(plan(request(fleet)).plan, GAME_ENTRY)
    assert "hunter2" not in str(inputs)


def test_what_became_of_an_entry_is_said_plainly() -> None:
    def since(entry: str = GAME_ENTRY, **changes: Any) -> Any:
        found = moves(entry, **changes)
        return found["since"], found["elsewhere"]

    apart = FLEET.replace("placement.every.main = { machines = ['beta'] }", "")
    away = FLEET.replace("{ machines = ['beta'] }", "{ machines = ['alpha'] }")
    live = {**MODULES, "game": GAME.replace('"side"]', '"side"]\nstopTimeout = "9s"')}
    config = 'configData."/a" = { text = "x" }\n[roles.main.resources'
    reload = {**MODULES, "game": GAME.replace("[roles.main.resources", config)}
    assert since() == ("unchanged", None)
    assert since(fleet=apart) == ("gone", None)
    assert since(fleet=away) == ("gone", "alpha")
    assert since("game:main@alpha", fleet=away) == ("new", "beta")
    assert since(modules=live) == ("rewired", None)
    assert since(modules=reload) == ("reloaded", None)
    assert since(fleet=FLEET.replace('"eu"', '"us"')) == ("changed", None)
    assert moves("nope", fleet=FLEET) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("length", "slots"), [(31, 2), (200, 1)])
def test_sources_behind_any_number_of_exports_are_looked_for_in_bounded_time(
    length: int, slots: int
) -> None:
    fleet, modules, interfaces = chain(length, slots=slots)
    last = f"m{length - 1}"
    short = re.sub(r'value = "[^"]*"', 'value = "x"', modules[last])
    files = {"interfaces.toml": interfaces}
    old = plan(request(fleet, {**modules, last: short}, files=files)).plan
    asked = request(fleet, modules, files=files)
    found = explain_moves.moves(asked, old, plan(asked).plan, "app:main@alpha")
    assert found is not None
    assert [one.old for one in found.moved if one.input == "env.main.A"] == ["x"]


def test_a_circle_is_not_gone_round_for_ever() -> None:
    interfaces = '[a.exports]\nv = "string"\n[b.exports]\nv = "string"\n'
    module = """
[roles.main.uses.other]
interface = "{needs}"
[roles.main.provides.mine]
interface = "{gives}"
scope = "mesh"
exports.v = {{ value = "http://${{machine.address}}", lifecycle = "static" }}
[roles.main.units.main]
kind = "process"
command = ["run", "${{results.other.v}}", "{word}"]
"""
    fleet = f.machines("alpha") + f.instance("a", "a", "alpha") + f.instance("b", "b", "alpha")

    def asked(word: str) -> PlanRequest:
        modules = {
            "a": module.format(needs="b", gives="a", word=word),
            "b": module.format(needs="a", gives="b", word="same"),
        }
        return request(fleet, modules, files={"interfaces.toml": interfaces})

    old, new = plan(asked("one")).plan, plan(asked("two")).plan
    text = ["closure.main.command", "modules/a/module.toml: roles.main.units.main.command"]
    found = explain_moves.moves(asked("two"), old, new, "b:main@alpha")
    assert found is not None
    assert [(one.input, [list(chain) for chain in one.from_]) for one in found.moved] == [
        ("dependency a:main@alpha", [text])
    ]
    around = explain_moves.moves(asked("two"), old, new, "a:main@alpha")
    assert around is not None
    assert [one.input for one in around.moved] == [
        "closure.main.command",
        "dependency b:main@alpha",
    ]
    assert around.moved[1].from_ == [("b:main@alpha is in a circle with a:main@alpha",)]
    for name in ("a:main@alpha", "b:main@alpha"):
        assert_key_is_hash_of_inputs(new, name)


def test_the_key_is_the_hash_of_the_inputs_that_are_shown() -> None:
    made = plan(request(modules={**MODULES, "game": GAME.replace("API_TOKEN", "API")})).plan
    for name in made.entries:
        assert_key_is_hash_of_inputs(made, name)


def assert_key_is_hash_of_inputs(made: Plan, entry: str) -> None:
    shown = msgspec.to_builtins(explain_key.inputs(made, entry))
    key = shown.pop("key")
    assert key == "sha256-" + hashlib.sha256(canonical.encode(shown)).hexdigest()
    assert key == made.entries[entry].key


def test_an_old_text_is_read_along_the_template_of_the_new_one() -> None:
    a, b = Leaf(("a",), "1"), Leaf(("b",), "22")
    assert read_along("x=1,y=22", ["x=", a, ",y=", b]) == ["1", "22"]
    assert read_along("x=,y=", ["x=", a, ",y=", b]) == ["", ""]
    assert read_along("a/b/c.txt", [a, "/", b, ".txt"]) == ["a", "b/c"]
    assert read_along("134", [a, b]) == ["1", "34"]
    assert read_along("z=1", ["x=", a]) is None
    assert read_along("x=1", ["x=", a, "!"]) is None
