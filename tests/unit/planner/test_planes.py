"""Which plane a value travels on, and what is refused."""

import pytest

from keyplane.model import reaction
from keyplane.planner import compare
from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")
SRC = '[src.exports]\nst = "string"\npr = "string"\ndy = "string"\nn = "integer"\n'
SOURCE = (
    f.UNIT
    + """
[roles.main.settings]
value = { type = "string", default = "one" }
[roles.main.provides.src]
interface = "src"
scope = "mesh"
exports.st = { value = "${settings.value}", lifecycle = "static" }
exports.pr = { fact = "driver", lifecycle = "probed" }
exports.dy = { source = { published = true }, lifecycle = "dynamic" }
exports.n = { fact = "count", lifecycle = "probed" }
"""
)
REACTION = """
[roles.main.reactions."src.dy"]
reaction = "reload"
"""
FLEET = HERE + f.instance("sink", "sink", "alpha") + f.instance("source", "source", "beta")


def sink(unit: str, more: str = "") -> dict[str, str]:
    text = f"""
[roles.main.uses.src]
interface = "src"
{more}
[roles.main.units.main]
kind = "process"
command = ["run"]
{unit}
"""
    return {"sink": text, "source": SOURCE}


def plan(unit: str, more: str = "", **facts: object) -> f.Plan:
    files = f.facts("beta", **facts) if facts else None
    return f.plan_of(FLEET, sink(unit, more), SRC, files=files)


@pytest.mark.parametrize("export", ["pr", "dy"])
@pytest.mark.parametrize(
    "unit",
    [
        'user = "${results.src.EXPORT}"',
        'workingDirectory = "/x/${results.src.EXPORT}"',
        'reload = { command = ["x", "${results.src.EXPORT}"] }',
        'health = { http = "http://${results.src.EXPORT}/" }',
    ],
)
def test_probed_and_dynamic_values_are_refused_in_the_closure_and_in_live_fields(
    unit: str, export: str
) -> None:
    made = plan(unit.replace("EXPORT", export), REACTION, driver="tun")
    code = {"pr": "probed-in-closure", "dy": "dynamic-in-closure"}[export]
    row = f.row(made, code)
    assert row.subject == "sink:main"
    assert f"src.{export}" in row.message
    assert "sink:main@alpha" in row.message
    assert f"${{results.src.{export}}}" in str(f.said(made, "sink:main@alpha"))


@pytest.mark.parametrize("export", ["pr", "dy"])
def test_probed_and_dynamic_values_are_refused_in_resources_and_requests(export: str) -> None:
    resource = f'[roles.main.resources.x]\ntype = "file"\npath = "/x"\ntext = "${{results.src.{export}}}"\n'
    code = {"pr": "probed-in-closure", "dy": "dynamic-in-closure"}[export]
    assert f.row(plan("", resource + REACTION, driver="tun"), code).subject == "sink:main"
    asks = f'[roles.main.uses.other]\ninterface = "other"\nrequest.name = "${{results.src.{export}}}"\n'
    other = (
        f.UNIT
        + '[roles.main.provides.o]\ninterface = "other"\nscope = "mesh"\nexports.at = { value = "${consumer.request.name}", lifecycle = "static" }\n'
    )
    made = f.plan_of(
        FLEET + f.instance("o", "other", "beta"),
        {**sink('env.A = "${results.other.at}"', asks + REACTION), "other": other},
        SRC + '[other.request]\nname = "string"\n[other.exports]\nat = "string"\n',
        files=f.facts("beta", driver="tun"),
    )
    assert f.row(made, code).path == "uses.other.request.name"
    assert f.env(made, "sink:main@alpha") == {}


def test_an_export_that_reads_a_probed_value_is_probed_and_a_dynamic_one_is_refused() -> None:
    relay = (
        f.UNIT
        + """
[roles.main.uses.src]
interface = "src"
[roles.main.provides.relay]
interface = "relay"
scope = "mesh"
exports.pr = { value = "<${results.src.pr}>", lifecycle = "static" }
exports.dy = { value = "<${results.src.dy}>", lifecycle = "static" }
"""
    )
    reader = (
        f.UNIT.replace('"run"', '"run", "${results.r.pr}"')
        + 'env = { P = "${results.r.pr}", D = "${results.r.dy}" }\n[roles.main.uses.r]\ninterface = "relay"\n'
    )
    fleet = HERE + f.instance("source", "source", "beta") + f.instance("relay", "relay", "alpha")
    made = f.plan_of(
        fleet + f.instance("reader", "reader", "alpha"),
        {"source": SOURCE, "relay": relay, "reader": reader},
        SRC + '[relay.exports]\npr = "string"\ndy = "string"\n',
        files=f.facts("beta", driver="tun"),
    )
    assert sorted(f.rows(made)) == [
        ("dynamic-in-closure", "relay:main"),
        ("probed-in-closure", "reader:main"),
    ]
    assert f.env(made, "reader:main@alpha") == {"P": "<tun>"}
    assert made.exports["relay:main/provides/relay/pr"].lifecycle == "probed"


def test_a_circle_of_exports_names_nothing() -> None:
    def mirror(mine: str, other: str) -> str:
        return (
            f.READER.replace('"store"', f'"{other}"')
            + f"""
[roles.main.provides.mine]
interface = "{mine}"
scope = "mesh"
exports.url = {{ value = "x${{results.store.url}}", lifecycle = "static" }}
"""
        )

    fleet = HERE + f.instance("one", "one", "alpha") + f.instance("two", "two", "beta")
    interfaces = '[a.exports]\nurl = "string"\n[b.exports]\nurl = "string"\n'
    made = f.plan_of(fleet, {"one": mirror("a", "b"), "two": mirror("b", "a")}, interfaces)
    assert {row.code for row in made.diagnostics} == {"unknown-reference"}
    assert f.env(made, "one:main@alpha") == {}


def test_a_probed_value_comes_from_the_snapshot_of_its_provider() -> None:
    made = plan('env = { D = "${results.src.pr}", N = "${results.src.n}" }', driver="tun", count=4)
    assert f.env(made, "sink:main@alpha") == {"D": "tun", "N": "4"}
    assert f.rows(made) == []
    assert made.entries["sink:main@alpha"].dependencies == ["source:main@beta"]


def test_a_missing_fact_is_a_hole_with_the_text_around_it() -> None:
    made = plan('env = { D = "<${results.src.pr}:${results.src.n}>", N = "${results.src.n}" }')
    assert f.env(made, "sink:main@alpha") == {
        "D": {
            "hole": {
                "fact": "driver",
                "machine": "beta",
                "type": "string",
                "template": "<${results.src.pr}:${results.src.n}>",
            }
        },
        "N": {"hole": {"fact": "count", "machine": "beta", "type": "integer"}},
    }
    assert made.entries["sink:main@alpha"].holes == ["main.D", "main.N"]
    assert [row.severity for row in made.diagnostics] == ["info", "info"]
    assert {row.code for row in made.diagnostics} == {"hole"}


def test_a_hole_in_config_is_the_same_object_under_its_path() -> None:
    made = plan('configData."/etc/x" = { text = "d=${results.src.pr}" }')
    assert f.said(made, "sink:main@alpha")["configData"] == {
        "/etc/x": {
            "hole": {
                "fact": "driver", "machine": "beta", "type": "string",
                "template": "d=${results.src.pr}",
            }
        }
    }  # fmt: skip
    assert made.entries["sink:main@alpha"].holes == ["main./etc/x"]


def test_a_null_fact_has_no_value_and_false_is_one() -> None:
    made = plan('env.D = "${machine.facts.x.y}"', driver="t")
    assert f.env(made, "sink:main@alpha")["D"]["hole"] == {
        "fact": "x.y", "machine": "alpha", "type": "string",
    }  # fmt: skip
    reads = sink('env.D = "${machine.facts.x.y}"')
    null = f.plan_of(FLEET, reads, SRC, files=f.facts("alpha", x__y=None))
    assert f.rows(null) == [("hole", "sink:main@alpha")]
    # It may have had one and been withdrawn: nobody can tell by the snapshot.
    assert null.diagnostics[0].message.endswith(
        "waits for fact x.y of its own machine, which has no value"
    )
    false = f.plan_of(FLEET, reads, SRC, files=f.facts("alpha", x__y=False))
    assert (f.env(false, "sink:main@alpha"), f.rows(false)) == ({"D": "false"}, [])


def test_a_fact_of_another_type_than_its_export_is_a_row_of_its_provider() -> None:
    made = plan('env.N = "${results.src.n}"', count="many")
    row = f.row(made, "wrong-type")
    assert row.subject == "source:main@beta"
    assert "many" in row.message
    assert f.env(made, "sink:main@alpha") == {}


def test_an_export_that_is_a_fact_has_its_export_s_type() -> None:
    own = SOURCE.replace(
        '{ fact = "count", lifecycle = "probed" }',
        '{ value = "${machine.facts.count}", lifecycle = "static" }',
    )
    modules = {**sink('env.N = "${results.src.n}"'), "source": own}
    made = f.plan_of(FLEET, modules, SRC, files=f.facts("beta", count=4))
    assert (f.env(made, "sink:main@alpha"), f.rows(made)) == ({"N": "4"}, [])
    assert made.exports["source:main/provides/src/n"].lifecycle == "probed"
    made = f.plan_of(FLEET, modules, SRC, files=f.facts("beta", count="four"))
    assert f.row(made, "wrong-type").subject == "source:main@beta"


def test_machines_without_the_fact_have_holes_and_the_others_values() -> None:
    fleet = HERE + f.instance("sink", "sink") + f.instance("source", "source", "beta")
    made = f.plan_of(
        fleet, sink('env.D = "<${machine.facts.d}>"'), SRC, files=f.facts("alpha", d=1.5)
    )
    assert f.env(made, "sink:main@alpha") == {"D": "<1.5>"}
    assert f.env(made, "sink:main@beta")["D"]["hole"]["machine"] == "beta"
    assert f.rows(made) == [("hole", "sink:main@beta")]


def test_two_dynamic_references_in_one_value_take_the_stricter_of_both() -> None:
    interfaces = SRC + '[two.exports]\nat = "string"\n'
    two = (
        f.UNIT
        + '[roles.main.provides.two]\ninterface = "two"\nscope = "mesh"\nexports.at = { source = { published = true }, lifecycle = "dynamic" }\n'
    )
    more = """
[roles.main.uses.two]
interface = "two"
[roles.main.reactions."src.dy"]
reaction = "live"
onMissing = { default = "x" }
maxStaleness = "2m"
[roles.main.reactions."two.at"]
reaction = "restart"
onMissing = "keep-last"
maxStaleness = "90s"
"""
    made = f.plan_of(
        FLEET + f.instance("two", "two", "alpha"),
        {
            **sink('env.URL = "${results.two.at}/${results.src.dy}/${results.two.at}"', more),
            "two": two,
        },
        interfaces,
    )
    assert f.said(made, "sink:main@alpha")["dynamic"] == {
        "URL": {
            "from": ["two:main@alpha/provides/two/at", "source:main@beta/provides/src/dy"],
            "transport": "bus",
            "reaction": "restart",
            "onMissing": "keep-last",
            "maxStaleness": "90s",
            "template": "${results.two.at}/${results.src.dy}/${results.two.at}",
        }
    }


def test_static_parts_of_a_dynamic_text_are_filled_in_and_make_a_dependency() -> None:
    made = plan('env.URL = "http://${results.src.dy}/${results.src.st}"', REACTION)
    assert f.said(made, "sink:main@alpha")["dynamic"]["URL"]["template"] == (
        "http://${results.src.dy}/one"
    )
    assert made.entries["sink:main@alpha"].dependencies == ["source:main@beta"]
    alone = plan('env.URL = "${results.src.dy}"', REACTION)
    assert alone.entries["sink:main@alpha"].dependencies == []
    assert "template" not in f.said(alone, "sink:main@alpha")["dynamic"]["URL"]


def test_a_dynamic_set_names_each_member() -> None:
    text = sink('env.ALL = "${results.src.*.dy}"', REACTION)
    text["sink"] = text["sink"].replace('interface = "src"', 'interface = "src"\nreach = "all"')
    fleet = HERE + f.instance("sink", "sink", "alpha") + f.instance("source", "source")
    made = f.plan_of(fleet, text, SRC)
    assert f.said(made, "sink:main@alpha")["dynamic"]["ALL"] == {
        "from": [f"source:main@{name}/provides/src/dy" for name in ("alpha", "beta")],
        "transport": "bus",
        "reaction": "reload",
        "onMissing": "keep-last",
    }
    text["sink"] = text["sink"].replace("${results.src.*.dy}", "[${results.src.*.dy}]")
    made = f.plan_of(fleet, text, SRC)
    assert f.said(made, "sink:main@alpha")["dynamic"]["ALL"]["template"] == (
        "[${results.src.alpha.dy} ${results.src.beta.dy}]"
    )


def test_a_reaction_is_unused_only_where_no_entry_has_the_value_dynamic() -> None:
    read = plan('env.D = "${results.src.pr}"', REACTION, driver="t")
    row = f.row(read, "reaction-unused")
    assert row.severity == "error"
    static = REACTION.replace("src.dy", "src.st")
    row = f.row(plan('env.D = "${results.src.st}"', static), "reaction-unused")
    assert row.severity == "warning"
    unbound = f.plan_of(HERE + f.instance("sink", "sink", "alpha"), sink("", REACTION), SRC)
    assert [row.code for row in unbound.diagnostics] == ["slot-unbound"]


def test_a_secret_s_reaction_defaults_to_restart_and_has_to_be_of_a_secret_that_is_read() -> None:
    secrets = "[roles.main.secrets.admin]\nlength = 16\n"
    made = plan('env.PW_FILE = "${secrets.admin}"', secrets)
    assert f.rows(made) == []
    assert f.said(made, "sink:main@alpha")["secretReactions"] == {"admin": "restart"}
    assert made.entries["sink:main@alpha"].secrets == ["admin"]
    live = secrets + '[roles.main.reactions."secrets.admin"]\nreaction = "reload"\n'
    made = plan('env.PW_FILE = "${secrets.admin}"', live)
    assert f.said(made, "sink:main@alpha")["secretReactions"] == {"admin": "reload"}
    assert f.rows(plan("", live)) == [("reaction-unused", "sink:main")]
    unknown = live.replace('"secrets.admin"', '"secrets.admni"')
    assert [row.code for row in plan("", unknown).diagnostics] == ["reaction-unknown"]


def test_bound_address_is_static_and_no_dependency() -> None:
    made = plan('env.AT = "${bound.src.address}"')
    assert f.env(made, "sink:main@alpha") == {"AT": "10.0.0.2"}
    assert made.entries["sink:main@alpha"].dependencies == []


def test_follow_values_may_be_said_by_the_provider_for_its_consumers() -> None:
    follows = SOURCE.replace('scope = "mesh"', 'scope = "mesh"\nfollow = "values"')
    modules = {**sink('env.S = "${results.src.st}"'), "source": follows}
    made = f.plan_of(FLEET, modules, SRC)
    assert made.entries["sink:main@alpha"].dependencies == []
    strict = sink('env.S = "${results.src.st}"')["sink"].replace(
        'interface = "src"', 'interface = "src"\nfollow = "key"'
    )
    made = f.plan_of(FLEET, {**modules, "sink": strict}, SRC)
    assert made.entries["sink:main@alpha"].dependencies == ["source:main@beta"]


def test_values_read_in_resources_depend_and_restart_no_unit() -> None:
    resource = '[roles.main.resources.x]\ntype = "file"\npath = "/x"\ntext = "${results.src.st}"\n'
    old = plan("", resource)
    fleet = FLEET.replace("[instances.source]", '[instances.source]\nsettings.main.value = "two"')
    new = f.plan_of(fleet, sink("", resource), SRC)
    diff = compare.diff(old, new)
    assert old.entries["sink:main@alpha"].dependencies == ["source:main@beta"]
    assert diff.why["sink:main@alpha"] == ["closure.resources.x"]
    assert diff.units["sink:main@alpha"] == []
    assert new.entries["sink:main@alpha"].resources["x"]["text"] == "two"


def test_what_only_reads_like_a_dynamic_reference_stays_as_it_is() -> None:
    """Whether it was escaped, or a value says so."""
    text = 'env.D = "$${results.src.dy} ${results.src.st} $${x}: ${results.src.dy}"'
    fleet = FLEET.replace(
        "[instances.source]", "[instances.source]\nsettings.main.value = \"'${results.src.dy}'\""
    )
    made = f.plan_of(fleet, sink(text, REACTION), SRC)
    assert f.rows(made) == []
    contract = made.entries["sink:main@alpha"].units["main"].dynamic["D"]
    assert contract.template == "$${results.src.dy} '$${results.src.dy}' ${x}: ${results.src.dy}"
    parts = reaction.parts_of(contract.template, 1)
    assert parts == ("${results.src.dy} '${results.src.dy}' ${x}: ", 0)
