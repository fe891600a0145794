"""What references stand for, and how values are written."""

import pytest

from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")
ONE = HERE + f.instance("my-app", "app", "alpha")


def app(env: str, more: str = "") -> dict[str, str]:
    return {"app": f"{f.UNIT}env = {{ {env} }}\n{more}"}


def values(env: str, more: str = "", fleet: str = ONE) -> dict[str, str]:
    made = f.plan_of(fleet, app(env, more))
    assert f.rows(made) == []
    return f.env(made, "my-app:main@alpha")


def test_self_and_machine() -> None:
    found = values(
        'A = "${self.instance}", B = "${self.role}", C = "<${self.entry}>", '
        'D = "${machine.name}=${machine.address}"'
    )
    assert found == {"A": "my-app", "B": "main", "C": "<my-app:main@alpha>", "D": "alpha=10.0.0.1"}


def test_a_doubled_dollar_writes_a_literal_reference() -> None:
    assert values('A = "$${settings.x} $$ $ {} $"') == {"A": "${settings.x} $$ $ {} $"}


def test_what_was_written_in_is_not_looked_at_again() -> None:
    settings = '[roles.main.settings]\nx = { type = "string", default = "${machine.name} $${" }\n'
    assert values('A = "${settings.x}|"', settings) == {"A": "${machine.name} $${|"}


def test_values_are_written_as_json_writes_them_and_lists_with_blanks() -> None:
    settings = """
[roles.main.settings]
i = { type = "integer", default = 7 }
f = { type = "number", default = 2.0 }
g = { type = "number", default = 0.25 }
b = { type = "boolean", default = false }
l = { type = "list", default = ["a", "b c"] }
"""
    found = values(
        'I = "${settings.i}", F = "${settings.f}", G = "${settings.g}", B = "${settings.b}", L = "${settings.l}", M = "[${settings.l}]"',
        settings,
    )
    assert found == {"I": "7", "F": "2", "G": "0.25", "B": "false", "L": "a b c", "M": "[a b c]"}


def test_a_list_in_a_variable_or_a_reload_command_is_one_text() -> None:
    settings = '[roles.main.settings]\nl = { type = "list", default = ["p", "q"] }\n'
    more = 'reload = { command = ["kick", "${settings.l}", 5] }\n'
    made = f.plan_of(
        ONE, app('L = ["a", "b"], R = ["${settings.l}", "b"], N = []', more + settings)
    )
    assert f.rows(made) == []
    assert f.env(made, "my-app:main@alpha") == {"L": "a b", "R": "p q b", "N": ""}
    assert f.said(made, "my-app:main@alpha")["reload"] == {"command": ["kick", "p q", "5"]}


@pytest.mark.parametrize(
    "reference",
    [
        "${settings.x", "${}", "${settings}", "${machine.color}", "${self.name}", "${machine.facts}",
        "${secrets.x}", "${state.x}", "${reads.a.b.c}", "${credentials.x}", "${bound.x.address}",
        "${alloc.port.x}", "${consumer.instance}", "${ settings.x }", "${machine.facts.}",
    ],
)  # fmt: skip
def test_a_reference_that_names_nothing_is_a_row_and_left_out_of_env(reference: str) -> None:
    made = f.plan_of(
        ONE, {"app": f.UNIT.replace('"run"', f'"run", "{reference}"') + f'env.A = "{reference}"\n'}
    )
    assert {row.code for row in made.diagnostics} == {"unknown-reference"}
    assert f.env(made, "my-app:main@alpha") == {}
    assert made.entries["my-app:main@alpha"].units["main"].command == ["run", reference]


def test_a_shipped_file_is_not_scanned() -> None:
    made = f.result_of(
        ONE,
        {"app": f.UNIT + 'configData."/etc/x" = { file = "x.conf" }\n'},
        files={"modules/app/x.conf": "${nothing}"},
    )
    digest = made.plan.entries["my-app:main@alpha"].units["main"].config_data["/etc/x"]
    assert made.contents[str(digest)] == b"${nothing}"
    assert f.rows(made.plan) == []


def test_buckets_secrets_and_credentials_are_names_and_paths() -> None:
    more = """
[roles.main.state.scores]
[roles.main.secrets.admin]
"""
    reads = (
        f.UNIT
        + 'env.A = "${reads.my-app.main.scores}"\n[roles.main]\nreads = ["my-app:main/scores"]\n'
    )
    reads = (
        '[roles.main]\nreads = ["my-app:main/scores"]\n'
        + f.UNIT
        + 'env.A = "${reads.my-app.main.scores}"\n'
    )
    fleet = ONE + f.instance("reader", "reader", "beta")
    made = f.plan_of(
        fleet, {**app('S = "${state.scores}", P = "${secrets.admin}"', more), "reader": reads}
    )
    assert f.rows(made) == []
    found = f.env(made, "my-app:main@alpha")
    assert found == {"S": "my-app_main_scores", "P": "/run/keyplane/my-app/main/secrets/admin"}
    assert f.env(made, "reader:main@beta") == {"A": "my-app_main_scores"}
    wrong = reads.replace("/scores", "/scoers").replace("main.scores", "main.scoers")
    made = f.plan_of(fleet, {**app("", more), "reader": wrong})
    assert {row.code for row in made.diagnostics} == {"unknown-reference"}


def test_credentials_are_there_where_the_provide_gives_them() -> None:
    gives = f.PROVIDER.replace('scope = "mesh"', 'scope = "mesh"\ncredentials = true')
    reader = f.READER.replace("${results.store.url}", "${credentials.store}")
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": gives, "app": reader}, f.STORE)
    assert f.env(made, "app:main@alpha") == {"URL": "/run/keyplane/app/main/credentials/store"}
    assert made.entries["app:main@alpha"].credentials == {
        "store": "/run/keyplane/app/main/credentials/store"
    }
    made = f.plan_of(fleet, {"store": f.PROVIDER, "app": reader}, f.STORE)
    assert f.row(made, "unknown-reference").subject == "app:main"


def test_requests_keep_types_and_have_to_be_whole() -> None:
    interfaces = '[s.request]\nsize = "integer"\nname = "string"\n[s.exports]\nout = "string"\n'
    server = (
        f.UNIT
        + '[roles.main.provides.s]\ninterface = "s"\nscope = "mesh"\nexports.out = { value = "${consumer.request.size}/${consumer.request.name}/${consumer.machine}/${consumer.role}", lifecycle = "static" }\n'
    )

    def plan(request: str) -> f.Plan:
        client = (
            f.UNIT
            + f'env.OUT = "${{results.s.out}}"\n[roles.main.settings]\nn = {{ type = "integer", default = 3 }}\n[roles.main.uses.s]\ninterface = "s"\nrequest = {{ {request} }}\n'
        )
        fleet = HERE + f.instance("server", "server", "beta") + f.instance("client", "client")
        return f.plan_of(fleet, {"server": server, "client": client}, interfaces)

    made = plan('size = "${settings.n}", name = "on-${machine.name}"')
    assert f.env(made, "client:main@alpha") == {"OUT": "3/on-alpha/alpha/main"}
    assert f.env(made, "client:main@beta") == {"OUT": "3/on-beta/beta/main"}
    for wrong in (
        "size = 1",
        'size = "1", name = "x"',
        'size = 1, name = "${settings.n}"',
        'size = 1, name = "x", more = 1',
        'size = 1.0, name = "x"',
    ):
        assert f.row(plan(wrong), "request-invalid").subject == "client:main"


def test_exports_are_judged_by_the_interface() -> None:
    fleet = HERE + f.instance("db", "store", "beta")

    def row(exports: str, code: str) -> str:
        text = f.UNIT + f'[roles.main.provides.store]\ninterface = "store"\n{exports}'
        return f.row(f.plan_of(fleet, {"store": text}, f.STORE), code).path

    assert row("", "export-missing") == "provides.store.exports.url"
    more = 'exports.url = { value = "x", lifecycle = "static" }\nexports.uri = { value = "x", lifecycle = "static" }\n'
    assert row(more, "export-undeclared") == "provides.store.exports.uri"
    never = '[[roles.main.provides.store.exports.url]]\nwhen = { x = 1 }\nvalue = "x"\nlifecycle = "static"\n[roles.main.settings]\nx = { type = "integer", default = 2 }\n'
    assert row(never, "export-missing") == "provides.store.exports.url"
    number = 'exports.url = { value = 5, lifecycle = "static" }\n'
    assert row(number, "wrong-type") == "provides.store.exports.url.value"


def test_a_variant_is_chosen_by_strict_equality() -> None:
    text = (
        f.UNIT
        + """
[roles.main.settings]
x = { type = "boolean", default = true }
[roles.main.provides.store]
interface = "store"
scope = "mesh"
[[roles.main.provides.store.exports.url]]
when = { x = 1 }
value = "one"
lifecycle = "static"
[[roles.main.provides.store.exports.url]]
when = { x = true }
value = "true"
lifecycle = "static"
"""
    )
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    made = f.plan_of(fleet, {"store": text, "app": f.READER}, f.STORE)
    assert f.env(made, "app:main@alpha") == {"URL": "true"}


@pytest.mark.parametrize(
    ("rule", "value", "words"),
    [
        ('type = "integer"', "1.0", ["1.0", "integer"]),
        ('type = "list"', "[1]", ["[1]", "list"]),
        ('type = "number", maximum = 2.5', "3", ["3", "2.5"]),
        ('type = "string", pattern = "b+"', '"ac"', ["ac", "b+"]),
        ('type = "list", pattern = "b+"', '["ab", "ac"]', ["ac", "each", "b+"]),
        ('type = "boolean", enum = [true]', "false", ["false", "true"]),
    ],
)
def test_a_setting_that_breaks_its_rule_names_value_and_rule(
    rule: str, value: str, words: list[str]
) -> None:
    fleet = ONE + f"settings.main.x = {value}\n"
    made = f.plan_of(
        fleet, app('X = "${settings.x}"', f"[roles.main.settings]\nx = {{ {rule} }}\n")
    )
    row = f.row(made, "setting-invalid")
    assert row.subject == "my-app:main"
    assert all(word in row.message for word in words)
    assert f.env(made, "my-app:main@alpha") == {}


def test_a_pattern_searches_anywhere() -> None:
    settings = '[roles.main.settings]\nx = { type = "string", pattern = "b+", default = "abbc" }\n'
    assert values('X = "${settings.x}"', settings) == {"X": "abbc"}


def test_a_default_that_breaks_its_own_rule_is_a_fault_of_the_module() -> None:
    settings = '[roles.main.settings]\nx = { type = "integer", default = 0, minimum = 1 }\n'
    row = f.row(f.plan_of(ONE, app("", settings)), "setting-invalid")
    assert row.subject == "modules/app/module.toml"
    assert f.rows(f.plan_of(HERE, app("", settings))) == []


def test_a_missing_setting_is_a_row_and_a_command_keeps_its_reference() -> None:
    text = (
        f.UNIT.replace('"run"', '"run", "${settings.x}"')
        + '[roles.main.settings]\nx = { type = "string" }\n'
    )
    made = f.plan_of(ONE, {"app": text})
    assert f.row(made, "setting-missing").subject == "my-app:main"
    assert made.entries["my-app:main@alpha"].units["main"].command == ["run", "${settings.x}"]


@pytest.mark.parametrize(
    ("env", "warned"),
    [
        ('DB_PASSWORD = "x"', True),
        ("DB_PASSWORD = 71", True),
        ("USE_TOKEN = true", False),
        ('API_TOKEN = ""', False),
        ('API_TOKEN = "${secrets.t}"', False),
        ('TOKEN_FILE = "x"', False),
        ('URL = "postgres://me:hunter2@db/x"', True),
        ('URL = "postgres://me:${machine.name}@db/x"', False),
        ('URL = "postgres://me@db:5432/x"', False),
    ],
)
def test_a_secret_in_clear_is_a_warning_that_does_not_repeat_it(env: str, warned: bool) -> None:
    made = f.plan_of(ONE, app(env, "[roles.main.secrets.t]\n"))
    assert [row.code for row in made.diagnostics] == (["secret-in-clear"] if warned else [])
    for row in made.diagnostics:
        assert row.severity == "warning"
        assert "hunter2" not in str(row)


@pytest.mark.parametrize(
    "more",
    [
        'archive = "x"\n', 'nix = "x"\n', 'mounts."/d" = "volume:x"\n', "publish.x = 80\n",
        '[roles.main.units.j]\nkind = "job"\nimage = "i"\nschedule = "daily"\nwhileStopped = "x"\n[build.images.i]\ndockerfile = "D"\n',
        '[roles.main.secrets.s]\nowner = "x"\n', '[roles.main.zone]\nname = "z.example"\nlisten = "x"\n',
        '[roles.main.resources.r]\ntype = "archive"\narchive = "x"\npath = "/x"\n',
    ],
)  # fmt: skip
def test_what_a_role_names_has_to_be_there(more: str) -> None:
    kind = "container" if more.startswith(("mounts", "publish")) else "process"
    unit = f.UNIT.replace("process", kind)
    image = '[build.upstream.base]\nimage = "r/base:1"\n' if kind == "container" else ""
    base = 'image = "base"\n' if kind == "container" else ""
    row = f.row(f.plan_of(ONE, {"app": unit + base + more + image}), "unknown-reference")
    assert row.subject == "my-app:main"
    assert "`x`" in row.message


@pytest.mark.parametrize("at", ["alpha", "beta"])
def test_a_list_of_references_is_written_into_what_reads_it(at: str) -> None:
    """Whether it comes from the export itself or back from the request; a lost one is left out."""
    fleet = (
        f.machines("alpha", "beta")
        + f.instance("src", "src", "beta")
        + f.instance("my-app", "app", at)
    )
    said = """
[roles.main.provides.src]
interface = "src"
scope = "mesh"
exports.own = { value = ["a", "${machine.name}", "${consumer.login}"], lifecycle = "static" }
exports.back = { value = "${consumer.request.words}", lifecycle = "static" }
exports.lost = { value = ["${machine.name}", "${nope}"], lifecycle = "static" }
[roles.main.units.main]
kind = "process"
command = ["src"]
"""
    use = """
[roles.main.uses.src]
interface = "src"
request = { words = ["b", "${machine.name}"] }
"""
    own = 'OWN = "[${results.src.own}]", BACK = "${results.src.back}", LOST = "${results.src.lost}"'
    interfaces = (
        '[src]\nrequest.words = "list"\nexports = { own = "list", back = "list", lost = "list" }\n'
    )
    made = f.plan_of(fleet, {"src": said, **app(own, use)}, interfaces)
    assert f.rows(made) == [("unknown-reference", "src:main")]
    assert f.env(made, f"my-app:main@{at}") == {"OWN": "[a beta my_app]", "BACK": f"b {at}"}


@pytest.mark.parametrize("operand", ['pattern = "${settings.p}"', 'bounds = "${settings.p}"'])
@pytest.mark.parametrize("text", ["(?a)(?u)x", "(", "[[a]", "nan", ">= nan"])
def test_an_operand_that_comes_out_as_none_is_unmet(operand: str, text: str) -> None:
    predicate = "matches" if operand.startswith("pattern") else "in-bounds"
    more = f"""
[roles.main.settings]
p = {{ type = "string", default = "{text}" }}
[[roles.main.requirements]]
subject = "n"
predicate = "{predicate}"
{operand}
severity = "want"
"""
    made = f.plan_of(ONE, app("", more), files=f.facts("alpha", n=5))
    assert f.rows(made) == [("requirement-unmet", "my-app:main@alpha")]


@pytest.mark.parametrize(
    ("bounds", "value", "met"),
    [
        (">= -5", 0, True),
        (">= -5, < -1.5", -2, True),
        ("> -5", -5, False),
        (">= 1e3", 999.5, False),
        (">= 9007199254740993", 9007199254740992, False),
        ("< 1.10", "1.9", True),
    ],
)
def test_bounds_are_numbers_of_any_sign_or_versions(bounds: str, value: object, met: bool) -> None:
    more = f"""
[[roles.main.requirements]]
subject = "n"
predicate = "in-bounds"
bounds = "{bounds}"
severity = "want"
"""
    made = f.plan_of(ONE, app("", more), files=f.facts("alpha", n=value))
    assert (f.rows(made) == []) is met


def test_a_broken_default_is_told_even_where_it_is_not_used() -> None:
    settings = '[roles.main.settings]\nn = { type = "integer", default = "x" }\n'
    made = f.plan_of(ONE + "settings.main.n = 5\n", app('N = "${settings.n}"', settings))
    assert f.rows(made) == [("setting-invalid", "modules/app/module.toml")]
    assert f.env(made, "my-app:main@alpha") == {"N": "5"}


@pytest.mark.parametrize(
    ("wrong", "ways"),
    [
        ("machine.adress", ["machine.address", "machine.name", "machine.facts.NAME"]),
        ("machine", ["machine.name", "machine.address", "machine.facts.NAME"]),
        ("alloc.port.web", ["alloc.ports.LISTEN"]),
        ("bound.store.port", ["bound.SLOT.address"]),
        ("settings", ["settings.NAME"]),
    ],
)
def test_a_reference_that_begins_right_is_told_how_it_goes_on(wrong: str, ways: list[str]) -> None:
    """And not to begin as it does."""
    unit = f'[roles.main.units.u]\nkind = "process"\ncommand = ["run"]\nenv.X = "${{{wrong}}}"\n'
    made = f.plan_of(f.machines("alpha") + f.instance("app", "app", "alpha"), {"app": unit})
    first, *others = f.row(made, "unknown-reference").resolution
    assert first == f"write ${{{ways[0]}}}"
    assert others == [f"or ${{{way}}}" for way in ways[1:]]
