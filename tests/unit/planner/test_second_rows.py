"""One fault is one row: who names what could not be read is not told that it is not there."""

import pytest

from tests.unit.planner.fleets import instance, machines, result_of, rows

INTERFACES = """
[store.request]
name = "string"
[store.exports]
url = "string"
"""
WEB = """
[roles.main.settings]
slots = { type = "integer", default = 1 }
[roles.main.uses.db]
interface = "store"
request   = { name = "x" }
[roles.main.reactions."secrets.admin"]
reaction = "restart"
[roles.main.listens]
http = { protocol = "tcp" }
[roles.main.volumes.data]
path = "/var/lib/web"
[roles.main.secrets.admin]
owner = "web"
[roles.main.state.scores]
history = 1
[roles.main.resources.account]
type = "account"
name = "web"
[roles.main.units.main]
kind    = "process"
archive = "code"
command = ["web", "${settings.slots}", "${alloc.ports.http}"]
env     = { URL = "${results.db.url}", ADMIN = "${secrets.admin}", SCORES = "${state.scores}" }
[roles.main.units.front]
kind    = "container"
image   = "front"
publish = { http = 80 }
mounts  = { "/data" = "volume:data" }
[roles.main.units.nightly]
kind         = "job"
command      = ["tidy"]
schedule     = "*-*-* 03:00:00"
whileStopped = "front"
[build.archives.code]
directory = "src"
[build.upstream.front]
image = "registry.example.net/front:1"
"""
STORE = """
[roles.main.provides.store]
interface = "store"
scope     = "mesh"
[roles.main.provides.store.exports.url]
value     = "${consumer.request.name}"
lifecycle = "static"
[roles.main.units.main]
kind    = "process"
command = ["store"]
"""
FLEET = (
    machines("alpha")
    + instance("store", "store", "alpha")
    + instance("web", "web", "alpha", more='bind.main.db = "store"\nsettings.main.slots = 2')
)


def found(fleet: str = FLEET, web: str = WEB, store: str = STORE, interfaces: str = INTERFACES):
    made = result_of(
        fleet,
        {"web": web, "store": store},
        interfaces,
        files={"modules/web/src/server": "x"},
    )
    return rows(made.plan)


def test_the_fleet_is_sound():
    """Or the rest would show nothing."""
    assert found() == []


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('slots = { type = "integer", default = 1 }', 'slots = { type = "whole", default = 1 }'),
        ('interface = "store"\nrequest', "interface = 5\nrequest"),
        ('request   = { name = "x" }', "request   = 5"),
        ('reaction = "restart"', 'reaction = "reboot"'),
        ('http = { protocol = "tcp" }', 'http = { protocol = "sctp" }'),
        ('path = "/var/lib/web"', 'path = "var/lib/web"'),
        ('owner = "web"', "owner = 5"),
        ("history = 1", "history = 0"),
        ('type = "account"', 'type = "user"'),
        ('command = ["web",', 'command = [["web"],'),
        ('image   = "front"', "image   = 5"),
        ('directory = "src"', "directory = 5"),
        ('image = "registry.example.net/front:1"', 'image = "registry.example.net/front"'),
        ("[roles.main.listens]", "[roles.main.listen]"),
        ("[roles.main.volumes.data]", "[roles.main.volume.data]"),
    ],
)
def test_of_a_module(said: str, instead: str):
    """Its settings, slots, listens, artifacts and so on, and what it misspells."""
    assert WEB.count(said) == 1
    (row,) = found(web=WEB.replace(said, instead))
    assert row[0] in ("wrong-type", "unknown-field")
    assert row[1] == "modules/web/module.toml"


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("[roles.main.provides.store]\n", '[roles.main.provides.store]\nscope2 = "mesh"\n'),
        ('scope     = "mesh"', 'scope     = ["mesh"]\ninterface2 = "x"'),
        ('lifecycle = "static"', 'lifecycle = "sometimes"'),
        ('interface = "store"', "interface = 5"),
        ("[roles.main.provides.store", "[roles.main.provide.store"),
    ],
)
def test_of_a_provider(said: str, instead: str):
    """Whoever is bound to it, and reads it, is told nothing."""
    said_rows = found(store=STORE.replace(said, instead))
    assert said_rows
    assert {subject for _, subject in said_rows} == {"modules/store/module.toml"}


@pytest.mark.parametrize(
    "interfaces",
    [
        INTERFACES.replace('url = "string"', 'url = "text"'),
        INTERFACES.replace('name = "string"', 'name = "text"'),
        INTERFACES.replace("[store.exports]", "[store.export]"),
        "store = 5\n",
        "[store\n",
    ],
)
def test_of_an_interface(interfaces: str):
    """Nor whoever gives it or asks for it."""
    (row,) = found(interfaces=interfaces)
    assert row[1] == "interfaces.toml"


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('address = "10.0.0.1"', "address = 5"),
        ('module = "store"', "module = 5"),
    ],
)
def test_of_the_fleet(said: str, instead: str):
    """Its machines and instances."""
    assert FLEET.count(said) == 1
    fleet = FLEET.replace(said, instead)
    (row,) = found(fleet=fleet)
    assert row == ("wrong-type", "fleet.toml")


def test_what_is_nowhere_is_still_told():
    """Beside a broken name, another one that nobody wrote."""
    web = WEB.replace('{ type = "integer", default = 1 }', '{ type = "whole" }').replace(
        '"${alloc.ports.http}"', '"${settings.slotz}"'
    )
    assert found(web=web) == [
        ("wrong-type", "modules/web/module.toml"),
        ("unknown-reference", "web:main"),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "${secrets.admin}",
        "${results.db}",
        "${results.}",
        "${results.db.a.b.c}",
        "${secrets.}",
        "${",
    ],
)
def test_of_a_unit(said: str):
    """Whatever stands in one that could not be read."""
    web = WEB.replace('["web", "${settings.slots}"', f'["web", "{said}"').replace(
        'kind    = "process"', 'kind    = "daemon"'
    )
    assert found(web=web) == [("wrong-type", "modules/web/module.toml")]


def test_a_reaction_is_unused_if_no_broken_unit_reads_its_value():
    """Only where the value stands in what could not be read, nothing is said."""
    web = WEB.replace('command      = ["tidy"]', "command      = 5").replace(
        'ADMIN = "${secrets.admin}", ', ""
    )
    assert ("reaction-unused", "web:main") in found(web=web)
