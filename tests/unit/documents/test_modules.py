"""Modules: what is read, and every problem at once."""

import signal

import pytest

from keyplane.documents import signals
from keyplane.model.module import (
    Access,
    ConfigData,
    Lifecycle,
    OnMissing,
    Predicate,
    Reach,
    ReactionKind,
    UnitKind,
)
from tests.unit.documents.fleet_files import of_module, paths, read, row, rows

FULL = """
description = "the game server"
[roles.server.settings]
slots    = { type = "integer", default = 32, minimum = 1 }
[roles.server.uses.caches]
interface = "nix-binary-cache"
reach     = "all"
follow    = "values"
requires.count = { predicate = "in-bounds", bounds = ">= 1", severity = "want" }
[roles.server.reactions."mesh.address"]
reaction     = "restart"
onMissing    = { default = "x" }
maxStaleness = "5m"
[roles.server.listens]
game = { protocol = "udp" }
[roles.server.units.gameserver]
kind    = "process"
command = ["python3", 5, "${settings.slots}"]
archive = "code"
env     = { PORT = 1, ON = true, "odd name" = "x" }
configData."/etc/maps.json" = { text = "{}" }
reload  = { signal = "HUP" }
stopTimeout = "10s"
limits = { memory = "256M", tasks = 100 }
[roles.server.units.migrate]
kind = "job"
runOnce = true
image = "web"
publish.game = 8080
mounts."/in" = "volume:data"
[roles.server.units.nightly]
kind = "job"
command = ["x"]
schedule = "*-*-* 03:00:00"
whileStopped = "gameserver"
[[roles.server.requirements]]
subject   = "kernel.module.wireguard"
predicate = "exists"
[roles.server.provides.own]
interface = "own"
scope = "mesh"
credentials = true
[[roles.server.provides.own.exports.dsn]]
when      = { slots = 3 }
value     = "x"
lifecycle = "static"
access    = "routable"
[[roles.server.provides.own.exports.dsn]]
fact = "a.b"
lifecycle = "probed"
[roles.server.provides.own.exports.live]
source = { command = ["x"], every = "10s" }
lifecycle = "dynamic"
[roles.server.resources.motd]
type = "file"
path = "/etc/motd"
text = "hello"
[roles.server.seats.boss]
verbs.hail = { command = ["x"] }
[roles.bare]
requires = ["shell"]
[policy]
upgrade = "first"
settle = "10s"
[build.archives.code]
directory = "src"
[build.upstream.base]
image = "registry.example.net:5000/library/postgres:15"
"""


def test_a_whole_module_is_read():
    """Every kind of part has its place in the model."""
    documents = read(
        {
            "modules/solo/module.toml": f'module = "solo"\nversion = "1"\n{FULL}',
            "modules/solo/src/a": "a",
        }
    )
    assert documents.diagnostics == ()
    module = documents.modules["solo"]
    role = module.roles["server"]
    assert role.uses["caches"].reach is Reach.ALL
    assert role.uses["caches"].count is not None
    assert role.uses["caches"].count.bounds == ">= 1"
    reaction = role.reactions["mesh.address"]
    assert (reaction.reaction, reaction.on_missing, reaction.default) == (
        ReactionKind.RESTART,
        OnMissing.DEFAULT,
        "x",
    )
    unit = role.body.units["gameserver"]
    assert unit.kind is UnitKind.PROCESS
    assert unit.fields == {
        "command": ["python3", 5, "${settings.slots}"],
        "archive": "code",
        "limits": {"memory": "256M", "tasks": 100},
    }
    assert unit.live == {"reload": {"signal": "HUP"}, "stopTimeout": "10s"}
    assert unit.config_data == {"/etc/maps.json": ConfigData(text="{}")}
    assert role.body.units["migrate"].fields["publish"] == {"game": 8080}
    assert role.body.requirements[0].predicate is Predicate.EXISTS
    first, second = role.body.exports["own"]["dsn"]
    assert (first.access, second.lifecycle, second.fact) == (
        Access.ROUTABLE,
        Lifecycle.PROBED,
        "a.b",
    )
    assert role.seats["boss"].scope == "machine"
    assert module.roles["bare"].requires == ("shell",)
    assert documents.artifacts["solo", "code"] == "sha256-modules/solo/src"
    assert documents.artifacts["solo", "base"].startswith("sha256-")


def test_every_problem_is_a_row_and_the_rest_is_kept():
    """One broken part hides nothing else."""
    documents = of_module(
        """
        colour = "red"
        [roles.main]
        lisens = {}
        [roles.main.settings.n]
        type = "int"
        [roles.main.units.good]
        kind = "process"
        command = ["x"]
        stopTimeout = "010s"
        [roles.main.units.bad]
        kind = "process"
        [roles.main.units.Odd]
        kind = "process"
        command = ["x"]
        """
    )
    assert paths(documents) == {
        ("unknown-field", "colour"),
        ("unknown-field", "roles.main.lisens"),
        ("wrong-type", "roles.main.settings.n.type"),
        ("wrong-type", "roles.main.units.good.stopTimeout"),
        ("wrong-type", "roles.main.units.bad.command"),
        ("wrong-type", "roles.main.units.Odd"),
    }
    assert list(documents.modules["solo"].roles["main"].body.units) == ["good"]


@pytest.mark.parametrize(
    ("unit", "field", "holder"),
    [
        ('kind = "process"\ncommand = ["x"]\nimage = "a"', "image", "kind = container"),
        ('kind = "process"\ncommand = ["x"]\nrunOnce = true', "runOnce", "kind = job"),
        ('kind = "container"\nimage = "a"\nuser = "b"', "user", "kind = process or job"),
        ('kind = "container"\nimage = "a"\narchive = "a"', "archive", "kind = process or job"),
        ('kind = "service"\nunit = "a.service"\ncommand = ["x"]', "command", "kind = process"),
        ('kind = "job"\nrunOnce = true\nimage = "a"\nnix = "b"', "nix", "a process"),
        ('kind = "job"\nrunOnce = true\ncommand = ["x"]\nmounts = {}', "mounts", "container"),
    ],
)
def test_a_field_of_another_kind_names_the_kind(unit: str, field: str, holder: str):
    """It is `unknown-field`, and says who has it."""
    found = row(of_module(f"[roles.main.units.u]\n{unit}\n"), "unknown-field")
    assert found.path == f"roles.main.units.u.{field}"
    assert holder in found.message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('roles.main.units.u = { kind = "daemon" }', "roles.main.units.u.kind"),
        ("roles.main.units.u = { command = ['x'] }", "roles.main.units.u.kind"),
        ("roles.main.units.u = { kind = 'service' }", "roles.main.units.u"),
        ("roles.main.units.u = { kind = 'job', command = ['x'] }", "roles.main.units.u"),
        ("roles.main.units.u = { kind = 'container' }", "roles.main.units.u.image"),
        ("roles.main.listens.a = { port = 25 }", "roles.main.listens.a.protocol"),
        ("roles.main.listens.a = { protocol = 'tcp', port = 1.0 }", "roles.main.listens.a.port"),
        ("roles.main.listens.a = { protocol = 'tcp', port = true }", "roles.main.listens.a.port"),
        ("roles.main.listens.a = { protocol = 'tcp', port = 65536 }", "roles.main.listens.a.port"),
        ("roles.main.uses.a = {}", "roles.main.uses.a.interface"),
        ("roles.main.settings.a = {}", "roles.main.settings.a.type"),
        (
            "roles.main.settings.a = { type = 'string', pattern = '(' }",
            "roles.main.settings.a.pattern",
        ),
        ("roles.main.settings.a = { type = 'string', minimum = 1 }", "roles.main.settings.a"),
        ("roles.main.settings.a_b = { type = 'string' }", "roles.main.settings.a_b"),
        (
            "roles.main.settings.a = { type = 'string', default = 2020-01-01 }",
            "roles.main.settings.a.default",
        ),
        ("roles.main.reactions.'a.b' = { reaction = 'jump' }", "roles.main.reactions.a.b.reaction"),
        (
            "roles.main.reactions.'a.b' = { reaction = 'live', maxStaleness = '0s' }",
            "roles.main.reactions.a.b.maxStaleness",
        ),
        (
            "roles.main.requirements = [{ subject = 'a', predicate = 'equals' }]",
            "roles.main.requirements.0.value",
        ),
        (
            "roles.main.requirements = [{ subject = 'a', predicate = 'in-bounds', bounds = 'two' }]",
            "roles.main.requirements.0.bounds",
        ),
        (
            "roles.main.provides.p = { interface = 'i', exports.e = { value = 'x' } }",
            "roles.main.provides.p.exports.e.lifecycle",
        ),
        (
            "roles.main.provides.p = { interface = 'i', exports.e = { lifecycle = 'static' } }",
            "roles.main.provides.p.exports.e.value",
        ),
        (
            "roles.main.provides.p = { interface = 'i', exports.e = { lifecycle = 'dynamic', source = {} } }",
            "roles.main.provides.p.exports.e.source",
        ),
        ("roles.main.resources.r = { type = 'file', path = '/a' }", "roles.main.resources.r"),
        ("roles.main.volumes.v = { path = 'a/../../b' }", "roles.main.volumes.v.path"),
        ("roles.main.reads = ['a']", "roles.main.reads.0"),
        (
            "build.upstream.a = { image = 'registry.example.net:5000/postgres' }",
            "build.upstream.a.image",
        ),
        (
            "build.bundles.a = { toolchain = 'x', command = ['x'], output = 'o' }",
            "build.bundles.a.toolchain",
        ),
        ("build.nix.a = {}", "build.nix.a"),
        ("policy.settle = 10", "policy.settle"),
        ("roles = 1", "roles"),
        ("roles.main = 1", "roles.main"),
    ],
)
def test_a_bad_shape_is_one_row_with_its_path(text: str, path: str):
    """What is missing is `wrong-type` at the place where it is missing."""
    assert paths(of_module(text)) == {("wrong-type", path)}


@pytest.mark.parametrize(
    "image",
    ["postgres:15", "r.example.net/a/b:1", "r.example.net:5000/a@sha256:" + "0" * 64],
)
def test_an_upstream_with_tag_or_digest_is_fine(image: str):
    """A port of the registry is no tag."""
    assert of_module(f"build.upstream.a = {{ image = '{image}' }}").diagnostics == ()


def test_a_reaction_in_nested_tables_is_told_its_spelling():
    """Reaction paths are one dotted key."""
    found = row(
        of_module('[roles.main.reactions.mesh.address]\nreaction = "live"\n'), "unknown-field"
    )
    assert found.path == "roles.main.reactions.mesh.address"
    assert found.resolution == ('write reactions."mesh.address"',)


def test_a_window_in_a_reaction_says_whose_rates_are():
    """An author cannot know how busy a machine is."""
    text = "roles.main.reactions.'a.b' = { reaction = 'live', window = '30s' }"
    assert "machines.NAME.reactions" in row(of_module(text), "unknown-field").message


def test_a_reaction_without_a_word_is_kept():
    """`reaction` has no default; whether one is needed depends on the value's plane."""
    documents = of_module("roles.main.reactions.'a.b' = { onMissing = 'stop' }")
    assert documents.diagnostics == ()
    assert documents.modules["solo"].roles["main"].reactions["a.b"].reaction is None


def test_impl_is_for_starlark():
    """A plain document cannot hold a function."""
    assert "Starlark" in row(of_module("roles.main.impl = true"), "unknown-field").message


def test_the_name_must_be_the_directory_s():
    """The module is kept under its directory's name, so that nothing else goes wrong."""
    documents = read({"modules/solo/module.toml": 'module = "duo"\nversion = "1"\n'})
    assert rows(documents) == {("wrong-type", "modules/solo/module.toml", "module")}
    assert documents.modules["solo"].name == "solo"


def test_a_module_without_a_version_is_kept():
    """The row says it."""
    documents = read({"modules/solo/module.toml": 'module = "solo"\n'})
    assert rows(documents) == {("wrong-type", "modules/solo/module.toml", "version")}
    assert "solo" in documents.modules


@pytest.mark.parametrize("file", ["gone.json", "../x", "/etc/passwd"])
def test_a_file_that_cannot_be_shipped_is_a_row(file: str):
    """Missing is `unreadable`; one that leads out is no path in the module."""
    text = f"""
    [roles.main.units.u]
    kind = "process"
    command = ["x"]
    configData."/etc/x" = {{ file = "{file}" }}
    """
    (found,) = of_module(text).diagnostics
    assert found.path == "roles.main.units.u.configData./etc/x.file"
    assert found.code == "unreadable"


def test_shipped_files_are_read():
    """Of units, services and resources alike."""
    documents = read(
        {
            "modules/solo/module.toml": """
            module = "solo"
            version = "1"
            [roles.main.units.u]
            kind = "service"
            file = "x.service"
            configData."/etc/x" = { file = "etc/x" }
            [roles.main.resources.r]
            type = "file"
            path = "/etc/y"
            file = "y"
            """,
            "modules/solo/x.service": "unit",
            "modules/solo/etc/x": "x",
            "modules/solo/y": b"\xff",
        }
    )
    assert documents.diagnostics == ()
    assert documents.shipped == {
        ("solo", "x.service"): b"unit",
        ("solo", "etc/x"): b"x",
        ("solo", "y"): b"\xff",
    }


def test_a_bundle_moves_with_its_toolchain():
    """All that was compiled in it is made anew."""

    def digest(command: str) -> str:
        files = {
            "modules/solo/module.toml": 'module = "solo"\nversion = "1"\n[build.bundles.b]\ntoolchain = "tools/cc"\ncommand = ["make"]\noutput = "out"\n',
            "modules/tools/module.toml": f'module = "tools"\nversion = "1"\n[build.bundles.cc]\ntoolchain = "tools/cc"\ncommand = ["{command}"]\noutput = "out"\n',
        }
        return read(files).artifacts["solo", "b"]

    assert digest("a") != digest("b")
    assert digest("a") == digest("a")


def test_a_description_may_stand_on_any_named_table():
    """A table of a path, a zone and a policy are such."""
    found = of_module(
        """
        policy.description = "a"
        [roles.main.listens]
        dns = { protocol = "udp", description = "b" }
        [roles.main]
        zone = { name = "x", listen = "dns", description = "c" }
        [roles.main.units.u]
        kind = "process"
        command = ["x"]
        configData."/x" = { text = "", description = "d" }
        """
    )
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    "key", ['env = { "A\\u0000" = "x" }', 'configData = { "/\\u0000" = { text = "" } }']
)
def test_a_key_with_a_nul_is_a_row(key: str):
    """No process could be given it."""
    found = of_module(f'[roles.main.units.u]\nkind = "process"\ncommand = ["x"]\n{key}\n')
    assert [one.code for one in found.diagnostics] == ["wrong-type"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("pattern", "fine"),
    [("[[a]", True), ("(?a)(?u)x", False), ("(", False), ("x{99999999999}", False)],
)
def test_no_pattern_raises_or_warns(pattern: str, fine: bool):
    """What is none is a row."""
    found = of_module(f"[roles.main.settings]\ns = {{ type = 'string', pattern = '{pattern}' }}\n")
    assert [one.code for one in found.diagnostics] == ([] if fine else ["wrong-type"])


def test_problems_without_end_are_cut():
    """A file of garbage is not printed whole."""
    documents = of_module("\n".join(f"x{n} = 1" for n in range(2_000)))
    assert len(documents.diagnostics) == 501


def of_reload(text: str) -> list[str]:
    """What is said of a reload by that signal."""
    found = of_module(
        f"[roles.main.units.u]\nkind = 'process'\ncommand = ['x']\nreload = {{ signal = '{text}' }}\n"
    )
    assert all(one.code == "wrong-type" for one in found.diagnostics)
    return [one.message for one in found.diagnostics]


def test_every_signal_of_linux_is_one():
    """By the names that the machine's driver takes, and no others."""
    known = {each.name.removeprefix("SIG") for each in signal.Signals}
    aliases = {
        name.removeprefix("SIG")
        for name in dir(signal)
        if isinstance(getattr(signal, name), signal.Signals)
    }
    assert known <= aliases == set(signals.NAMES)
    for each in signals.NAMES:
        assert of_reload(each) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SIGHUP", '"SIGHUP" is no signal: write `HUP`'),
        ("hup", '"hup" is no signal: write `HUP`'),
        ("HUPP", '"HUPP" is no signal: write `HUP`'),
        ("reload", '"reload" is no signal, such as HUP, USR1 or TERM'),
        ("1", '"1" is no signal, such as HUP, USR1 or TERM'),
    ],
)
def test_a_signal_that_no_machine_could_send_is_a_row(text: str, said: str):
    assert of_reload(text) == [said]


def test_a_signal_may_be_a_reference():
    assert of_reload("${settings.signal}") == []


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("description = 3", ('write "3", in quotes',)),
        ("description = true", ('write "true", in quotes',)),
        ("description = []", ()),
        ("roles = 3", ("write a table, in { }",)),
        ("[roles.main]\nlistens.web = 3", ("write a table, in { }",)),
        ("[roles.main]\nlistens = 3", ("write a table, in { }",)),
        ("[roles.main.units.u]\nkind = 'proces'", ("write `process`",)),
        (
            "[roles.main.units.u]\nkind = 'job'\ncommand = ['x']\nrunOnce = 'yes'",
            ("write true or false, without quotes",),
        ),
    ],
)
def test_what_is_of_another_type_says_what_to_write(text: str, ways: tuple[str, ...]):
    assert of_module(text).diagnostics[0].resolution == ways
