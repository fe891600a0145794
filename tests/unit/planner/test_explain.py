"""One entry, value by value."""

from typing import Any

import msgspec

from keyplane.adapters import directory
from keyplane.planner import PlanRequest, explain
from tests.unit.planner import fleets as f

FLEET = (
    f.machines("alpha", "beta") + f.instance("app", "app", "alpha") + f.instance("db", "db", "beta")
)
DB = (
    f.UNIT
    + """
[roles.main.provides.db]
interface = "db"
scope = "mesh"
exports.url = { value = "http://${machine.address}", lifecycle = "static" }
exports.id = { fact = "id", lifecycle = "probed" }
exports.up = { source = { published = true }, lifecycle = "dynamic" }
"""
)
APP = """
[roles.main.settings]
n = { type = "integer", default = 3 }
[roles.main.uses.db]
interface = "db"
[roles.main.reactions."db.up"]
reaction = "live"
[roles.main.units.main]
kind = "process"
command = ["run", "-n", "${settings.n}", "plain"]
env = { PLAIN = "x", ID = "<${results.db.id}>", UP = "${results.db.up}/${settings.n}" }
configData."/etc/a" = { file = "a.conf" }
health = { tcp = "${machine.address}:1" }
[roles.main.resources.r]
type = "file"
path = "/r"
text = "${results.db.url}"
"""
INTERFACES = '[db.exports]\nurl = "string"\nid = "string"\nup = "string"\n'


def explained(entry: str) -> list[dict[str, Any]] | None:
    text = {
        "fleet.toml": f'fleet = "x"\n{FLEET}',
        "interfaces.toml": INTERFACES,
        "modules/db/module.toml": f'module = "db"\nversion = "1"\n{DB}',
        "modules/app/module.toml": f'module = "app"\nversion = "1"\n{APP}',
        "modules/app/a.conf": "a",
    }
    read = directory.documents_of(
        {path: said.encode() for path, said in text.items()}, f.no_starlark
    )
    found = explain.explain(PlanRequest(documents=read.documents, evaluate=read.evaluate), entry)
    return None if found is None else msgspec.to_builtins(found)


def test_there_is_a_row_for_each_value_with_a_reference_and_each_shipped_file() -> None:
    rows = explained("app:main@alpha")
    assert rows is not None
    by_name = {row["name"]: row for row in rows}
    assert by_name.keys() == {
        "command", "ID", "UP", "/etc/a", "health.tcp", "resources.r.text",
    }  # fmt: skip
    assert by_name["command"] == {
        "unit": "main", "name": "command", "plane": "closure", "lifecycle": "static",
        "from": "settings.n", "value": "3", "cost": "re-make",
    }  # fmt: skip
    assert by_name["UP"]["plane"] == "dynamic"
    assert by_name["UP"]["value"] is None
    assert by_name["UP"]["from"] == ["db:main@beta/provides/db/up", "settings.n"]
    assert by_name["ID"]["value"]["hole"]["fact"] == "id"
    assert by_name["/etc/a"]["from"] == "a.conf"
    assert by_name["resources.r.text"]["unit"] is None
    assert by_name["resources.r.text"]["value"] == "http://10.0.0.2"


def test_an_entry_that_is_not_there_has_no_rows_to_give() -> None:
    for entry in ("app:main@beta", "nope", "a:b@c", "@", ":@"):
        assert explained(entry) is None
