"""A fleet's files together: spellings, interfaces, the fleet, facts."""

import json

import pytest

from keyplane.documents import schema
from keyplane.model.fleet import Strategy
from tests.unit.documents.fleet_files import FLEET, paths, read, row, rows

MODULE = 'module = "solo"\nversion = "1"\n'


def test_two_spellings_are_no_document():
    """Neither is believed; the others are read."""
    documents = read({"fleet.toml": FLEET, "fleet.json": "{}", "modules/solo/module.toml": MODULE})
    assert rows(documents) == {("unreadable", "fleet.toml", "")}
    assert documents.fleet is None
    assert "solo" in documents.modules


def test_a_broken_module_is_named():
    """So that whoever uses it need not be told twice."""
    documents = read({"modules/solo/module.json": "{", "modules/other/module.toml": "="})
    assert documents.broken == {"solo", "other"}
    assert {one.code for one in documents.diagnostics} == {"unreadable"}


def test_the_same_in_json():
    """JSON is the same document."""
    one = read({"modules/solo/module.toml": MODULE})
    other = read({"modules/solo/module.json": '{"module": "solo", "version": "1"}'})
    assert one.modules["solo"].roles == other.modules["solo"].roles
    assert one.diagnostics == other.diagnostics == ()


def test_a_starlark_fault_is_a_row_with_its_place():
    """File, line, column and the line itself."""
    found = row(read({"modules/solo/module.star": "x = 1"}), "starlark")
    assert found.subject == "modules/solo/module.star"
    assert found.message == "modules/solo/module.star:1:2: refused: `x = 1`"


def test_a_directory_with_a_bad_name_is_a_row():
    """It cannot be a module."""
    documents = read({"modules/So_lo/module.toml": MODULE})
    assert ("wrong-type", "modules/So_lo/module.toml", "") in rows(documents)
    assert documents.modules == {}


def test_directories_without_a_document_are_no_modules():
    """A library may stand among them."""
    assert read({"modules/lib/x.star": "x = 1"}).diagnostics == ()


def test_one_interface_twice_with_the_same_content_is_fine():
    """Descriptions aside."""
    documents = read(
        {
            "interfaces.toml": '[a]\ndescription = "x"\n[a.exports]\nu = "string"\n',
            "modules/solo/module.toml": MODULE,
            "modules/solo/interfaces.toml": '[a.exports]\nu = "string"\n[b]\n',
        }
    )
    assert documents.diagnostics == ()
    assert list(documents.interfaces) == ["a", "b"]


def test_one_interface_twice_with_other_content_is_a_row():
    """On the second file, naming the first."""
    documents = read(
        {
            "interfaces.toml": '[a.exports]\nu = "string"\n',
            "modules/solo/module.toml": MODULE,
            "modules/solo/interfaces.toml": '[a.exports]\nu = "integer"\n',
        }
    )
    assert rows(documents) == {("wrong-type", "modules/solo/interfaces.toml", "a")}
    assert "interfaces.toml" in row(documents, "wrong-type").message


def test_a_whole_fleet_is_read():
    """Each field has its place in the model."""
    documents = read(
        {
            "fleet.toml": FLEET
            + """
            [machines.alpha]
            address = "10.0.0.3"
            tags = ["eu", "zone=a"]
            local = true
            [machines.alpha.reactions]
            debounce = { window = "10s" }
            [machines.alpha.pins]
            db = "beta"
            [machines.beta]
            address = "10.0.0.4"
            [instances.solo]
            module = "solo"
            settings.main.n = [1, { deep = true }]
            placement.count.main = { count = 2, tags = ["eu"], spread = "zone" }
            placement.every.other = {}
            bind.main.db = "external:s3"
            floor.main = 1
            onFact = "apply"
            policy.upgrade = "record"
            [externals.s3]
            interface = "object-store"
            exports.url = { value = "https://s3", lifecycle = "static" }
            """
        }
    )
    assert documents.diagnostics == ()
    fleet = documents.fleet
    assert fleet is not None
    alpha = fleet.machines["alpha"]
    assert (alpha.name, alpha.rates.debounce.burst, str(alpha.rates.debounce.window)) == (
        "alpha",
        3,
        "10s",
    )
    solo = fleet.instances["solo"]
    assert solo.placement["main"].strategy is Strategy.COUNT
    assert solo.placement["other"].machines is None
    assert solo.settings["main"]["n"] == [1, {"deep": True}]
    assert fleet.externals["s3"].exports["url"][0].value == "https://s3"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("machines.a = {}", "machines.a.address"),
        ("machines.a = { address = '' }", "machines.a.address"),
        (
            "machines.a = { address = 'x', reactions.debounce.burst = 0 }",
            "machines.a.reactions.debounce.burst",
        ),
        ("instances.a = {}", "instances.a.module"),
        (
            "instances.a = { module = 'm', placement.every.r = { machines = ['a'], tags = ['b'] } }",
            "instances.a.placement.every.r",
        ),
        (
            "instances.a = { module = 'm', placement.every.r = {}, placement.count.r = { count = 1 } }",
            "instances.a.placement.count.r",
        ),
        (
            "instances.a = { module = 'm', placement.count.r = {} }",
            "instances.a.placement.count.r.count",
        ),
        ("instances.a = { module = 'm', onFact = 'now' }", "instances.a.onFact"),
        ("instances.a = { module = 'm', settings.r.n = 2020-01-01 }", "instances.a.settings.r.n"),
        ("instances.a = 1", "instances.a"),
    ],
)
def test_a_bad_shape_in_the_fleet_is_one_row(text: str, path: str):
    """With the path where it is wrong."""
    assert paths(read({"fleet.toml": FLEET + text})) == {("wrong-type", path)}


@pytest.mark.parametrize(
    "address",
    ["10.0.0.3", "::1", "fe80::1%eth0", "::ffff:10.0.0.3", "alpha", "Alpha.example.net.", "my_host", "3com"],
)  # fmt: skip
def test_a_machine_is_at_an_address_or_a_host(address: str) -> None:
    documents = read({"fleet.toml": FLEET + f"machines.alpha.address = '{address}'"})
    assert rows(documents) == set()


@pytest.mark.parametrize(
    "address",
    ["bad host", "10.0.0.300", "10.0.0", "10.0.0.03", "10.0.0.3:80", "[::1]", "http://alpha", "-a", "a..b",
     "al\u00e4", "a\n", "12", "${machine.name}", "a" * 64, ("a" * 60 + ".") * 5, ":::"],
)  # fmt: skip
def test_what_is_neither_address_nor_host_is_a_row(address: str) -> None:
    """The machine stays there for whatever names it: one mistake, one row."""
    fleet = json.dumps({"fleet": "f", "machines": {"alpha": {"address": address}}})
    documents = read({"fleet.json": fleet})
    assert rows(documents) == {("wrong-type", "fleet.json", "machines.alpha.address")}
    assert "neither an IP address" in documents.diagnostics[0].message


def test_local_machines_with_one_address_are_a_row_and_others_may_share_it() -> None:
    """Others may stand behind one address, each on a computer of its own."""
    machine = '[machines.{}]\naddress = "127.77.0.1"\nlocal = {}\n'
    apart = "".join(machine.format(*each) for each in (("a", "true"), ("b", "false")))
    assert read({"fleet.toml": FLEET + apart}).diagnostics == ()
    documents = read({"fleet.toml": FLEET + apart + machine.format("c", "true")})
    assert rows(documents) == {("wrong-type", "fleet.toml", "machines.c.address")}
    assert "c and a are local machines" in row(documents, "wrong-type").message


def test_a_fleet_with_no_name_keeps_its_entries():
    """No key depends on it."""
    documents = read({"fleet.toml": "machines.a.address = 'x'"})
    assert paths(documents) == {("wrong-type", "fleet")}
    assert documents.fleet is not None
    assert list(documents.fleet.machines) == ["a"]


def test_facts_are_read():
    """Null stays: it says that nothing was published."""
    documents = read(
        {
            "fleet.toml": FLEET + "machines.alpha.address = 'x'",
            "facts/alpha.json": '{"machine": "alpha", "at": "2026-01-01T00:00:00Z", "facts": {"a.b": null, "c": [1]}}',
        }
    )
    assert documents.diagnostics == ()
    assert documents.facts["alpha"].facts == {"a.b": None, "c": [1]}


@pytest.mark.parametrize(
    ("file", "text", "code", "path"),
    [
        ("facts/beta.json", '{"machine": "beta", "facts": {}}', "unknown-machine", "machine"),
        ("facts/alpha.json", '{"machine": "beta", "facts": {}}', "wrong-type", "machine"),
        ("facts/alpha.json", '{"machine": "alpha"}', "wrong-type", "facts"),
        ("facts/alpha.json", '{"machine": "alpha", "facts": {"a": 1, "a": 2}}', "unreadable", ""),
        ("facts/alpha.json", '{"machine": "alpha", "facts": {}, "x": 1}', "unknown-field", "x"),
    ],
)
def test_a_bad_snapshot_is_a_row(file: str, text: str, code: str, path: str):
    """On its file."""
    documents = read({"fleet.toml": FLEET + "machines.alpha.address = 'x'", file: text})
    assert rows(documents) == {(code, file, path)}


def test_every_kind_has_a_schema():
    """Which knows its fields."""
    found = schema.of("fleet")
    assert found is not None
    assert set(found["properties"]) == {
        "fleet",
        "description",
        "machines",
        "instances",
        "externals",
    }
    assert all(schema.of(kind) for kind in schema.KINDS)
    assert schema.of("nope") is None
