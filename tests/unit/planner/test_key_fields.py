"""Every field of the documents, and whether an edit of it moves the key.

A field that is left out of the key has its reason beside it. A field that this list does not know
fails the test, so that nobody adds one without deciding.
"""

from dataclasses import fields

import pytest

from keyplane.model import fleet, interface, module
from tests.unit.planner import fleets as f

FLEET = """
[machines.alpha]
address = "10.0.0.1"
tags = ["t"]
[machines.alpha.pins]
db = "alpha"
[machines.alpha.reactions]
debounce = { window = "30s", burst = 3 }
restartBudget = { perUnit = 5, window = "1h" }
[machines.beta]
address = "10.0.0.2"
[instances.app]
module = "app"
settings.main.n = 1
placement.every.main = { machines = ["alpha"] }
bind.main.out = "external:out"
bind.main.db = "db"
floor.main = 1
onFact = "hold"
policy.upgrade = "first"
[instances.db]
module = "db"
placement.every.main = { machines = ["alpha"] }
[instances.counted]
module = "db"
placement.count.main = { count = 1, tags = ["t"] }
[externals.out]
interface = "out"
exports.url = { value = "https://out", lifecycle = "static", access = "routable" }
"""
INTERFACES = """
[db.request]
name = "string"
[db.exports]
url = "string"
up = "string"
[out.exports]
url = "string"
"""
DB = """
module = "db"
version = "1"
[roles.main.settings]
mode = { type = "string", default = "a" }
[roles.main.units.main]
kind = "process"
command = ["db"]
[roles.main.provides.db]
interface = "db"
scope = "mesh"
follow = "values"
credentials = false
grants = "/etc/grants"
[[roles.main.provides.db.exports.url]]
when = { mode = "a" }
value = "${consumer.request.name}"
lifecycle = "static"
access = "routable"
[roles.main.provides.db.exports.up]
source = { command = ["up"], every = "10s" }
lifecycle = "dynamic"
"""
APP = """
module = "app"
version = "1"
[roles.main]
claims = ["display"]
capabilities = ["kvm"]
requires = ["db"]
reads = ["app:main/scores"]
[roles.main.settings]
n = { type = "integer", default = 1, minimum = 0, maximum = 9, enum = [1, 2, 3] }
p = { type = "string", default = "x", pattern = "x|y" }
[roles.main.uses.db]
interface = "db"
request = { name = "asked" }
reach = "one"
follow = "values"
requires.count = { predicate = "in-bounds", bounds = ">= 1", severity = "want" }
[roles.main.uses.out]
interface = "out"
[roles.main.reactions."db.up"]
reaction = "restart"
onMissing = "keep-last"
maxStaleness = "5m"
[roles.main.listens]
web = { protocol = "tcp", port = 80 }
free = { protocol = "tcp" }
[roles.main.resources.r]
type = "directory"
path = "/r"
[roles.main.volumes.v]
path = "/v"
[roles.main.secrets.s]
length = 16
[roles.main.state.scores]
history = 1
[roles.main.zone]
name = "z.example"
listen = "web"
[roles.main.seats.seat]
scope = "machine"
verbs.look = { command = ["look"] }
[[roles.main.requirements]]
subject = "f"
predicate = "exists"
severity = "want"
[roles.main.units.main]
kind = "process"
command = ["app", "${settings.n}", "${settings.p}"]
user = "me"
archive = "code"
env = { URL = "${results.db.url}", UP = "${results.db.up}", OUT = "${results.out.url}", AT = "${machine.address}", FREE = "${alloc.ports.free}" }
configData."/etc/x" = { text = "1" }
restart = "always"
[policy]
upgrade = "first"
maxUnavailable = 1
settle = "10s"
onFailure = "stop"
[build]
shared = ["libs"]
[build.archives.code]
directory = "src"
"""
FILES = {
    "fleet": 'fleet = "arena"\n' + FLEET,
    "interfaces": INTERFACES,
    "db": DB,
    "app": APP,
    "src": "print()",
}

IN = {
    # The machine, the module and what is resolved into the closure or env.
    "Machine.address": ("fleet", "10.0.0.1", "10.0.0.9"),
    "Machine.platform": ("fleet", "[machines.alpha]\n", '[machines.alpha]\nplatform = "x/y"\n'),
    "Fleet.externals": ("fleet", "https://out", "https://in"),
    "External.exports": ("fleet", "https://out", "https://in"),
    "Instance.module": ("fleet", 'module = "app"', 'module = "app2"'),
    "Instance.settings": ("fleet", "settings.main.n = 1", "settings.main.n = 2"),
    "Module.name": ("fleet", 'module = "app"', 'module = "app2"'),
    "Module.build": ("src", "print()", "quit()"),
    "Build.archives": ("src", "print()", "quit()"),
    "Module.roles": ("app", '"app", "${', '"application", "${'),
    "Role.settings": ("app", 'default = "x"', 'default = "y"'),
    "Setting.default": ("app", 'default = "x"', 'default = "y"'),
    "Role.uses": ("app", '"asked"', '"other"'),
    "Slot.request": ("app", '"asked"', '"other"'),
    "Slot.follow": ("app", 'follow = "values"', 'follow = "key"'),
    "Provide.follow": ("app+db", 'follow = "values"\n', ""),
    "ExportVariant.value": ("db", '"${consumer.request.name}"', '"fixed"'),
    "ExportVariant.lifecycle": ("fleet", '"https://out", lifecycle = "static"', '"https://in", lifecycle = "static"'),
    "ExportVariant.when": ("db", 'when = { mode = "a" }\nvalue = "${consumer.request.name}"', 'when = { mode = "b" }\nvalue = "no"\nlifecycle = "static"\n[[roles.main.provides.db.exports.url]]\nvalue = "other"'),
    "Role.listens": ("app", "port = 80", "port = 81"),
    "Listen.port": ("app", "port = 80", "port = 81"),
    "Role.resources": ("app", 'path = "/r"', 'path = "/q"'),
    "Resource.type": ("app", 'type = "directory"\npath = "/r"', 'type = "package"\nname = "r"'),
    "Resource.fields": ("app", 'path = "/r"', 'path = "/q"'),
    "Role.volumes": ("app", 'path = "/v"', 'path = "/w"'),
    "Volume.path": ("app", 'path = "/v"', 'path = "/w"'),
    "Role.secrets": ("app", "[roles.main.secrets.s]", "[roles.main.secrets.t]"),
    "Role.body": ("app", '"app", "${', '"application", "${'),
    "Body.units": ("app", '"app", "${', '"application", "${'),
    "Body.exports": ("db", '"${consumer.request.name}"', '"fixed"'),
    "Unit.kind": ("app", 'kind = "process"\ncommand', 'kind = "job"\nrunOnce = true\ncommand'),
    "Unit.fields": ("app", 'user = "me"', 'user = "you"'),
    "Unit.env": ("app", 'AT = "', 'AT = "at '),
}  # fmt: skip
BINDS = "by what it chooses: the provider's values and key are in the key, the choice is not"
PLACES = "it decides where the entry stands; where it does, it is the same entry"
JUDGES = "it judges a value and does not change it"
LIVE = "applied live: a restart would cost more than it says"
OUT = {
    "Fleet.name": ("fleet", '"arena"', '"other"', "entries of a renamed fleet are the same"),
    "Fleet.instances": ("fleet", "", '[instances.more]\nmodule = "db"\nplacement.every.main = { machines = ["beta"] }\n', "others' instances"),
    "Fleet.machines": ("fleet", "", '[machines.more]\naddress = "10.0.0.7"\n', "other machines"),
    "Machine.tags": ("fleet", 'tags = ["t"]', 'tags = ["t", "u"]', PLACES),
    "Machine.pins": ("fleet", 'db = "alpha"', 'out = "alpha"', BINDS),
    "Machine.rates": ("fleet", 'window = "30s"', 'window = "5s"', "tuning a rate restarts nothing"),
    "Debounce.window": ("fleet", 'window = "30s"', 'window = "5s"', "as rates"),
    "Debounce.burst": ("fleet", "burst = 3", "burst = 9", "as rates"),
    "Rates.debounce": ("fleet", "burst = 3", "burst = 9", "as rates"),
    "Rates.restart_budget": ("fleet", "perUnit = 5", "perUnit = 9", "as rates"),
    "RestartBudget.per_unit": ("fleet", "perUnit = 5", "perUnit = 9", "as rates"),
    "RestartBudget.window": ("fleet", 'window = "1h"', 'window = "2h"', "as rates"),
    "Machine.local": ("fleet", "[machines.alpha]\n", "[machines.alpha]\nlocal = true\n", "who runs the agent"),
    "Machine.exec": ("fleet", "[machines.alpha]\n", "[machines.alpha]\nexec = true\n", "what people may do"),
    "Instance.placement": ("fleet", 'placement.every.main = { machines = ["alpha"] }\nbind', 'placement.every.main = { machines = ["alpha", "beta"] }\nbind', PLACES),
    "Placement.strategy": ("fleet", "placement.count.main = { count = 1, tags", "placement.every.main = { tags", PLACES),
    "Placement.machines": ("fleet", 'placement.every.main = { machines = ["alpha"] }\nbind', 'placement.every.main = { machines = ["alpha", "beta"] }\nbind', PLACES),
    "Placement.tags": ("fleet", 'count = 1, tags = ["t"]', "count = 1", PLACES),
    "Placement.count": ("fleet", "count = 1, ", "count = 1, ", PLACES),
    "Placement.spread": ("fleet", "count = 1, ", 'count = 1, spread = "z", ', PLACES),
    "Instance.bind": ("fleet", 'bind.main.out = "external:out"\n', "", BINDS),
    "Instance.floor": ("fleet", "floor.main = 1", "floor.main = 0", "how a rollout goes"),
    "Instance.on_fact": ("fleet", '"hold"', '"apply"', "how a rollout goes"),
    "Instance.policy": ("fleet", 'policy.upgrade = "first"', 'policy.upgrade = "record"', "how a rollout goes"),
    "Module.version": ("app", 'version = "1"', 'version = "2"', "a name for what the closure already says"),
    "Module.policy": ("app", '"10s"', '"20s"', "how a rollout goes"),
    "Policy.upgrade": ("app", 'upgrade = "first"', 'upgrade = "together"', "how a rollout goes"),
    "Policy.max_unavailable": ("app", "maxUnavailable = 1", "maxUnavailable = 2", "how a rollout goes"),
    "Policy.settle": ("app", '"10s"', '"20s"', "how a rollout goes"),
    "Policy.deadline": ("app", '"10s"', '"10s"\ndeadline = "1m"', "how a rollout goes"),
    "Policy.on_failure": ("app", '"stop"\n[build]', '"rollback"\n[build]', "how a rollout goes"),
    "Build.shared": ("app", '["libs"]', '["lib"]', "when a build is asked; the artifact's digest is in the key"),
    "Setting.type": ("app", 'p = { type = "string"', 'p = { type = "string"', JUDGES),
    "Setting.enum": ("app", "[1, 2, 3]", "[1, 2]", JUDGES),
    "Setting.minimum": ("app", "minimum = 0", "minimum = 1", JUDGES),
    "Setting.maximum": ("app", "maximum = 9", "maximum = 8", JUDGES),
    "Setting.pattern": ("app", '"x|y"', '"x"', JUDGES),
    "Interface.request": ("interfaces", 'name = "string"', 'name = "string"', JUDGES),
    "Interface.exports": ("interfaces", '[out.exports]\nurl = "string"', '[out.exports]\nurl = "string"', JUDGES),
    "Slot.interface": ("app", 'requires = ["db"]', "requires = []", BINDS),
    "Slot.reach": ("app", 'reach = "one"', 'reach = "local"', BINDS),
    "Slot.count": ("app", '">= 1"', '">= 0"', JUDGES),
    "CountRequirement.predicate": ("app", 'predicate = "in-bounds", bounds = ">= 1"', 'predicate = "equals", value = 1', JUDGES),
    "CountRequirement.severity": ("app", '">= 1", severity = "want"', '">= 1", severity = "require"', JUDGES),
    "CountRequirement.bounds": ("app", '">= 1"', '">= 0"', JUDGES),
    "CountRequirement.value": ("app", 'predicate = "in-bounds", bounds = ">= 1"', 'predicate = "equals", value = 1', JUDGES),
    "CountRequirement.values": ("app", 'predicate = "in-bounds", bounds = ">= 1"', 'predicate = "one-of", values = [1]', JUDGES),
    "Role.provides": ("db", 'grants = "/etc/grants"\n', "", "consumers have what they read in theirs"),
    "Provide.interface": ("db", 'grants = "/etc/grants"\n', "", BINDS),
    "Provide.scope": ("db", 'scope = "mesh"\n', 'scope = "machine"\n', BINDS),
    "Provide.credentials": ("db", "credentials = false", "credentials = true", LIVE),
    "Provide.grants": ("db", "/etc/grants", "/etc/others", LIVE),
    "External.interface": ("fleet", "", '[externals.more]\ninterface = "db"\nexports.url = { value = "x", lifecycle = "static" }\nexports.up = { value = "x", lifecycle = "static" }\n', BINDS),
    "ExportVariant.access": ("db", 'access = "routable"', 'access = "machine-local"', BINDS),
    "ExportVariant.source": ("db", '["up"]', '["down"]', LIVE),
    "Source.command": ("db", '["up"]', '["down"]', LIVE),
    "Source.every": ("db", '"10s"', '"20s"', LIVE),
    "Source.file": ("db", '{ command = ["up"], every = "10s" }', '{ file = "/up" }', LIVE),
    "Source.published": ("db", '{ command = ["up"], every = "10s" }', "{ published = true }", LIVE),
    "Role.reactions": ("app", 'reaction = "restart"', 'reaction = "reload"', LIVE),
    "Reaction.reaction": ("app", 'reaction = "restart"', 'reaction = "reload"', LIVE),
    "Reaction.on_missing": ("app", '"keep-last"', '"stop"', LIVE),
    "Reaction.default": ("app", '"keep-last"', '{ default = "x" }', LIVE),
    "Reaction.max_staleness": ("app", '"5m"', '"6m"', LIVE),
    "Listen.protocol": ("app", 'free = { protocol = "tcp" }', 'free = { protocol = "udp" }', "the number is in the key"),
    "Role.requires": ("app", 'requires = ["db"]', "requires = []", "presence only, no value is read"),
    "Role.claims": ("app", '["display"]', '["screen"]', "it keeps others away"),
    "Role.capabilities": ("app", '["kvm"]', "[]", PLACES),
    "Secret.length": ("app", "length = 16", "length = 32", LIVE),
    "Secret.owner": ("app", "length = 16", 'length = 16\nowner = "acc"\n[roles.other.resources.acc]\ntype = "account"\nname = "acc"', LIVE),
    "Role.state": ("app", "history = 1", "history = 2", LIVE),
    "Bucket.history": ("app", "history = 1", "history = 2", LIVE),
    "Role.reads": ("app", 'reads = ["app:main/scores"]\n', "", LIVE),
    "Role.zone": ("app", '"z.example"', '"y.example"', LIVE),
    "Zone.name": ("app", '"z.example"', '"y.example"', LIVE),
    "Zone.listen": ("app", 'listen = "web"', 'listen = "free"', LIVE),
    "Role.seats": ("app", '["look"]', '["see"]', LIVE),
    "Seat.scope": ("app", 'scope = "machine"', 'scope = "fleet"', LIVE),
    "Seat.verbs": ("app", '["look"]', '["see"]', LIVE),
    "Verb.command": ("app", '["look"]', '["see"]', LIVE),
    "Body.requirements": ("app", 'subject = "f"', 'subject = "g"', PLACES),
    "Requirement.subject": ("app", 'subject = "f"', 'subject = "g"', PLACES),
    "Requirement.predicate": ("app", 'predicate = "exists"', 'predicate = "absent"', PLACES),
    "Requirement.severity": ("app", 'predicate = "exists"\nseverity = "want"', 'predicate = "absent"', PLACES),
    "Requirement.value": ("app", 'predicate = "exists"', 'predicate = "equals"\nvalue = 1', PLACES),
    "Requirement.values": ("app", 'predicate = "exists"', 'predicate = "one-of"\nvalues = [1]', PLACES),
    "Requirement.pattern": ("app", 'predicate = "exists"', 'predicate = "matches"\npattern = "x"', PLACES),
    "Requirement.bounds": ("app", 'predicate = "exists"', 'predicate = "in-bounds"\nbounds = "> 1"', PLACES),
    "Unit.config_data": ("app", 'text = "1"', 'text = "2"', "compared on its own: it reloads"),
    "ConfigData.text": ("app", 'text = "1"', 'text = "2"', "compared on its own: it reloads"),
    "ConfigData.file": ("app", '{ text = "1" }', '{ file = "src/main" }', "compared on its own: it reloads"),
    "Unit.live": ("app", '"always"', '"no"', LIVE),
    "Role.impl": ("app", "", "", "what the function computes is the role's body"),
}  # fmt: skip
NOT_EDITED = {
    "Fleet.file", "Module.file", "Machine.name", "Instance.name", "External.name", "Interface.name",
    "Setting.has_default", "ExportVariant.fact", "FactSnapshot.machine", "FactSnapshot.facts",
    "FactSnapshot.at", "Build.images", "Build.upstream", "Build.bundles", "Build.nix",
}  # fmt: skip
"""Names that make another thing of it, and fields whose edit is another test's: facts and probed
values (test_planes), artifacts of other kinds (their digests come in like an archive's)."""


def authored() -> set[str]:
    found: set[str] = set()
    for source in (module, fleet, interface):
        for name, kind in vars(source).items():
            if getattr(kind, "__module__", "") == source.__name__ and hasattr(
                kind, "__dataclass_fields__"
            ):
                found |= {f"{name}.{one.name}" for one in fields(kind)}
    return found


def key_of(files: dict[str, str]) -> str:
    made = f.result_of(
        "",
        {},
        files["interfaces"],
        files={
            "fleet.toml": files["fleet"],
            "modules/db/module.toml": files["db"],
            "modules/app/module.toml": files["app"],
            "modules/app2/module.toml": files["app"].replace('module = "app"', 'module = "app2"'),
            "modules/app/src/main": files["src"],
            "modules/app2/src/main": files["src"],
            "facts/alpha.json": '{"machine": "alpha", "facts": {"capability.kvm": true}}',
            "facts/beta.json": '{"machine": "beta", "facts": {"capability.kvm": true}}',
        },
    )
    return made.plan.entries["app:main@alpha"].key


def edited(where: str, before: str, after: str) -> dict[str, str]:
    files = dict(FILES)
    for name in where.split("+"):
        if before:
            assert files[name].count(before) >= 1, (name, before)
            files[name] = files[name].replace(before, after, 1)
        else:
            files[name] += after
    return files


def test_every_field_is_decided_upon() -> None:
    decided = IN.keys() | OUT.keys() | NOT_EDITED
    assert authored() - decided == set()
    assert decided - authored() == set()


@pytest.mark.parametrize("field", IN)
def test_an_edit_that_enters_the_key_moves_it(field: str) -> None:
    assert key_of(edited(*IN[field])) != key_of(FILES)


@pytest.mark.parametrize("field", OUT)
def test_an_edit_that_is_left_out_moves_nothing(field: str) -> None:
    where, before, after, reason = OUT[field]
    assert reason
    assert key_of(edited(where, before, after)) == key_of(FILES)
