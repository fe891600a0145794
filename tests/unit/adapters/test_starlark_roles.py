"""Roles that a Starlark function computes, from a directory to their bodies."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keyplane.adapters import directory
from keyplane.adapters.starlark.runner import Runner
from keyplane.documents.evaluation import EvaluationRequest, EvaluationResult
from keyplane.planner import PlanRequest, plan

INTERFACES = """
[db.request]
name = "string"
[db.exports]
dsn = "string"
[cache.exports]
url = "string"
"""
MODULE = """
def role(ctx):
{body}

def module():
    return {{
        "module": "solo",
        "version": "1",
        "roles": {{"main": {{
            "settings": {{"slots": {{"type": "integer", "default": 2}}, "max-n": {{"type": "integer"}}}},
            "uses": {{"db": {{"interface": "db"}}, "my-caches": {{"interface": "cache", "reach": "all"}}}},
            "listens": {{"game": {{"protocol": "udp"}}}},
            "secrets": {{"admin": {{}}}},
            "provides": {{"own": {{"interface": "db"}}}},
            "impl": role,
        }}}},
    }}
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


class Solo:
    """A fleet with one module, whose role's function has a given body."""

    def __init__(self, root: Path, runner: Runner) -> None:
        self.root = root
        self.runner = runner
        (root / "modules/solo").mkdir(parents=True)
        (root / "fleet.toml").write_text('fleet = "arena"\n')
        (root / "interfaces.toml").write_text(INTERFACES)

    def evaluate(self, body: str, members: Mapping[str, tuple[str, ...]] = {}) -> EvaluationResult:
        indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
        (self.root / "modules/solo/module.star").write_text(MODULE.format(body=indented))
        reading = directory.read(self.root, None, self.runner.run)
        documents = reading.documents
        assert documents.diagnostics == ()
        assert documents.modules["solo"].roles["main"].impl
        return reading.evaluate(
            EvaluationRequest(
                instance="solo",
                module=documents.modules["solo"],
                role="main",
                settings={"slots": 7, "max-n": 9},
                members=members,
                interfaces=documents.interfaces,
            )
        )

    def env(self, expressions: str, **more: Any) -> Mapping[str, Any]:
        text = f'return {{"units": {{"u": {{"kind": "process", "command": ["u"], "env": {{{expressions}}}}}}}}}'
        result = self.evaluate(text, **more)
        assert result.diagnostics == ()
        assert result.body is not None
        return result.body.units["u"].env


@pytest.fixture
def solo(tmp_path: Path, runner: Runner) -> Solo:
    return Solo(tmp_path, runner)


def test_context_reads_by_attribute_and_by_item(solo: Solo):
    """Settings are real values, everything else is its reference."""
    env = solo.env(
        """
        "A": ctx.settings.slots + 1, "B": ctx["settings"]["max-n"], "C": ctx.results.db.dsn,
        "D": ctx["results"]["db"]["dsn"] + "/x", "E": "%s-{}".format(ctx.alloc.ports["game"]) % ctx.machine.name,
        "F": ctx.secrets["admin"], "G": ctx.self.entry, "H": ctx.consumer.request["name"],
        "I": ctx.consumer.login, "J": ctx.machine.address,
        """
    )
    assert env == {
        "A": 8,
        "B": 9,
        "C": "${results.db.dsn}",
        "D": "${results.db.dsn}/x",
        "E": "${machine.name}-${alloc.ports.game}",
        "F": "${secrets.admin}",
        "G": "${self.entry}",
        "H": "${consumer.request.name}",
        "I": "${consumer.login}",
        "J": "${machine.address}",
    }


def test_facts_read_by_any_name(solo: Solo):
    """Dots are no hindrance, and a name may be computed."""
    env = solo.env(
        """
        "A": ctx.machine.facts["kernel.module.wireguard"], "B": ctx.machine.facts.cpu.count,
        "C": ctx["machine"]["facts"]["a" + "." + "b"],
        """
    )
    assert env == {
        "A": "${machine.facts.kernel.module.wireguard}",
        "B": "${machine.facts.cpu.count}",
        "C": "${machine.facts.a.b}",
    }


def test_a_slot_under_all_is_a_dict_by_machine(solo: Solo):
    """It can be counted and walked; its members read both ways."""
    env = solo.env(
        """
        "A": " ".join([m + "=" + c.url for m, c in ctx.results["my-caches"].items()]),
        "B": len(ctx.results["my-caches"]), "C": ctx.results["my-caches"]["beta"]["url"],
        """,
        members={"my-caches": ("beta", "alpha")},
    )
    assert env == {
        "A": "alpha=${results.my-caches.alpha.url} beta=${results.my-caches.beta.url}",
        "B": 2,
        "C": "${results.my-caches.beta.url}",
    }


def test_the_body_has_exports_and_requirements(solo: Solo):
    """A function returns what a plain document would say."""
    result = solo.evaluate(
        """
        return {
            "provides": {"own": {"exports": {"dsn": {"value": "x" + ctx.machine.address, "lifecycle": "static"}}}},
            "requirements": ({"subject": "a", "predicate": "exists"},),
        }
        """
    )
    assert result.diagnostics == ()
    assert result.body is not None
    assert result.body.exports["own"]["dsn"][0].value == "x${machine.address}"
    assert [one.subject for one in result.body.requirements] == ["a"]


@pytest.mark.parametrize(
    "expression",
    [
        "len(ctx.results.db.dsn)",
        "ctx.results.db.dsn[2:]",
        "'results' in ctx.results.db.dsn",
        "ctx.results.db.dsn == '${results.db.dsn}'",
        "ctx.results.db.dsn < ctx.machine.name",
        "ctx.machine.name < ctx.results.db.dsn",
        "sorted([ctx.results.db.dsn, ctx.machine.name])[0]",
        "ctx.machine.name.upper()",
        "ctx.results.db.dsn.replace('.', '_')",
        "len(ctx.machine.facts['a.b'])",
        "ctx.machine.facts['a.b'].split('.')[0]",
    ],
)
def test_looking_into_a_reference_is_a_row(solo: Solo, expression: str):
    """The place in the result is named, and there is no body."""
    result = solo.evaluate(
        f'return {{"units": {{"u": {{"kind": "process", "command": ["u"], "env": {{"A": str({expression})}}}}}}}}'
    )
    (row,) = result.diagnostics
    assert (row.code, row.subject) == ("starlark", "modules/solo/module.star")
    assert row.path == "roles.main.units.u.env.A"
    assert "solo:main" in row.message
    assert result.body is None


def test_a_failing_function_is_a_row_with_its_place(solo: Solo):
    """Columns are those of the text as written, though it runs rewritten."""
    result = solo.evaluate('return {"a": ctx["settings"]["slots"], "b": ctx["nope"]}')
    (row,) = result.diagnostics
    assert row.code == "starlark"
    assert "modules/solo/module.star:3:49" in row.message
    assert 'ctx["nope"]' in row.message


def test_reading_faults_of_a_body_are_rows_on_the_file(solo: Solo):
    """What is broken is dropped, and the rest kept."""
    result = solo.evaluate(
        """
        return {
            "units": {"u": {"kind": "process", "comand": ["u"]}, "v": {"kind": "service", "unit": "v.service"}},
            "provides": {"owm": {"exports": {}}},
            "listens": {},
        }
        """
    )
    assert {(row.code, row.path) for row in result.diagnostics} == {
        ("unknown-field", "roles.main.units.u.comand"),
        ("wrong-type", "roles.main.units.u.command"),
        ("unknown-field", "roles.main.provides.owm"),
        ("unknown-field", "roles.main.listens"),
    }
    assert result.body is not None
    assert list(result.body.units) == ["v"]


def test_files_of_a_computed_body_are_shipped(solo: Solo):
    """One that is not there is a row."""
    (solo.root / "modules/solo/a.txt").write_text("hello")
    text = """
    return {"units": {"u": {"kind": "process", "command": ["u"], "configData": {"/a": {"file": "a.txt"}, "/b": {"file": "b.txt"}}}}}
    """
    result = solo.evaluate(text)
    assert result.shipped == {"a.txt": b"hello"}
    (row,) = result.diagnostics
    assert (row.code, row.path) == ("unreadable", "roles.main.units.u.configData./b.file")


def test_exports_that_only_the_call_for_a_set_reads_are_in_the_plan(
    tmp_path: Path, runner: Runner
) -> None:
    files = {
        "fleet.toml": """
fleet = "arena"
[machines.alpha]
address = "10.0.0.1"
[instances.app]
module = "app"
placement.every.main = {}
[instances.store]
module = "store"
placement.every.main = {}
""",
        "interfaces.toml": '[cache.exports]\nurl = "string"\n',
        "modules/store/module.toml": """
module = "store"
version = "1"
[roles.main.units.main]
kind = "process"
command = ["store"]
[roles.main.provides.cache]
interface = "cache"
scope = "mesh"
exports.url = { value = "http://x", lifecycle = "static" }
""",
        "modules/app/module.star": """
def role(ctx):
    caches = ctx.results.caches
    env = {"AT_" + name.upper(): caches[name].url for name in caches}
    return {"units": {"main": {"kind": "process", "command": ["app"], "env": env}}}

def module():
    uses = {"caches": {"interface": "cache", "reach": "all"}}
    return {"module": "app", "version": "1", "roles": {"main": {"uses": uses, "impl": role}}}
""",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    reading = directory.read(tmp_path, None, runner.run)
    made = plan(PlanRequest(documents=reading.documents, evaluate=reading.evaluate)).plan
    assert made.diagnostics == []
    assert made.entries["app:main@alpha"].units["main"].env == {"AT_ALPHA": "http://x"}
    exports = {name: export.readers for name, export in made.exports.items()}
    assert exports == {"store:main/provides/cache/url": ["app:main@alpha"]}
