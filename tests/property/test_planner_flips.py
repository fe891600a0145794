"""One byte of anything that an entry declares: a difference that names just that input."""

import string
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from keyplane.model.plan import Plan
from keyplane.planner import compare
from tests.unit.planner.fleets import plan_of

ENTRY = "app:main@alpha"
LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class Input:
    """Something declared, the words that stand for it, and how a difference names it."""

    value: str
    named: str
    unit_moves: bool = True


INPUTS = {
    "COMMAND": Input("argument", "closure.server.command"),
    "ENVIRONMENT": Input("variable", "env.server.TOLD"),
    "SETTING_IN_COMMAND": Input("seta", "closure.server.command"),
    "SETTING_IN_ENV": Input("setb", "env.server.SET"),
    "ACCOUNT": Input("someone", "closure.server.user"),
    "PLACE": Input("where", "closure.server.workingDirectory"),
    "RESOURCE": Input("content", "closure.resources.note", unit_moves=False),
    "RESOURCE_PATH": Input("note", "closure.resources.note", unit_moves=False),
    "SHIPPED": Input("shippedbytes", "closure.resources.shipped", unit_moves=False),
    "VOLUME": Input("vol", "closure.volumes.data", unit_moves=False),
    "ARCHIVED": Input("codebytes", "closure.artifacts.code"),
    "CONFIG_TEXT": Input("configtext", "reload"),
    "CONFIG_FILE": Input("configfile", "reload"),
    "STOP": Input("command-to-reload", "rewire"),
}

MODULE = """
[roles.main.settings]
a = {{ type = "string" }}
b = {{ type = "string" }}
unread = {{ type = "string", default = "x" }}
[roles.main.resources.note]
type = "file"
path = "/srv/{RESOURCE_PATH}"
text = "{RESOURCE}"
[roles.main.resources.shipped]
type = "file"
path = "/srv/shipped.file"
file = "shipped"
[roles.main.volumes.data]
path = "/var/{VOLUME}"
[roles.main.units.server]
kind = "process"
archive = "code"
user = "{ACCOUNT}"
workingDirectory = "/srv/{PLACE}"
command = ["run", "{COMMAND}", "${{settings.a}}"]
env = {{ TOLD = "{ENVIRONMENT}", SET = "${{settings.b}}" }}
configData."/etc/app.text" = {{ text = "{CONFIG_TEXT}" }}
configData."/etc/app.file" = {{ file = "config" }}
reload = {{ command = ["{STOP}"] }}
[build.archives.code]
directory = "src"
"""
FLEET = """
[machines.alpha]
address = "10.0.0.1"
[instances.app]
module = "app"
settings.main.a = "{SETTING_IN_COMMAND}"
settings.main.b = "{SETTING_IN_ENV}"
placement.every.main = {{}}
[instances.other]
module = "other"
placement.every.main = {{}}
"""
OTHER = '[roles.main.units.one]\nkind = "process"\ncommand = ["other"]\n'


def planned(values: dict[str, str]) -> Plan:
    return plan_of(
        FLEET.format(**values),
        {"app": MODULE.format(**values), "other": OTHER},
        files={
            "modules/app/shipped": values["SHIPPED"],
            "modules/app/config": values["CONFIG_FILE"],
            "modules/app/src/code": values["ARCHIVED"],
        },
    )


@st.composite
def flips(draw: st.DrawFn) -> tuple[str, str]:
    """An input, and its value with one byte of it another."""
    name = draw(st.sampled_from(sorted(INPUTS)))
    value = INPUTS[name].value
    at = draw(st.integers(0, len(value) - 1))
    letter = draw(st.sampled_from([each for each in LETTERS if each != value[at]]))
    return name, value[:at] + letter + value[at + 1 :]


@given(flips())
def test_one_byte_of_a_declared_input_is_a_difference_that_names_it(flip: tuple[str, str]) -> None:
    """And no other entry moves."""
    name, flipped = flip
    told = INPUTS[name]
    before = {each: one.value for each, one in INPUTS.items()}
    diff = compare.diff(planned(before), planned({**before, name: flipped}))
    assert [entry for entry in diff.untouched if entry.startswith("other")] == ["other:main@alpha"]
    if told.named in ("reload", "rewire"):
        assert getattr(diff, told.named) == [ENTRY]
        assert diff.activate == []
        return
    assert diff.activate == diff.deactivate == [ENTRY]
    assert diff.why[ENTRY] == [told.named]
    assert diff.units.get(ENTRY, []) == (["server"] if told.unit_moves else [])
