"""A function that comes to its limits again and again: told soon, and in the same words however."""

import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.adapters import directory
from keyplane.documents.evaluation import Call, Fault, Value
from keyplane.documents.reading import Reading
from keyplane.model.plan import Plan
from keyplane.planner import PlanRequest, plan
from keyplane.planner.changes import SettingValue, applied
from keyplane.planner.warm import Planner
from tests.unit.planner import fleets as f

NAMES = ("app-a", "app-b", "app-c", "app-d")
SETTING = {"x": {"type": "string", "default": "fine"}}
DOCUMENT = {"module": "app", "version": "1", "roles": {"main": {"settings": SETTING}}}
UNIT = {"kind": "process", "command": ["run"], "env": {"X": "${settings.x}"}}


class Functions:
    """Runs as a Starlark module would, whose function never ends where `x` is `loop`."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, call: Call) -> Value | Fault:
        if call.role is None:
            return Value(tree=DOCUMENT, impls=("main",))
        self.calls += 1
        if '"loop' in json.dumps(call.context):
            return Fault(
                message="takes more than 2 s of processor time",
                file=call.file, line=2, column=1, source="", spent=True,
            )  # fmt: skip
        return Value(tree={"units": {"main": UNIT}})


def read(run: Callable[[Call], Value | Fault], *values: str) -> Reading:
    fleet = 'fleet = "arena"\n' + f.machines("alpha")
    for name, value in zip(NAMES, values, strict=True):
        fleet += f.instance(name, "app", more=f'settings.main.x = "{value}"\n')
    text = {"fleet.toml": fleet, "modules/app/module.star": "def module():\n    pass\n"}
    return directory.documents_of({path: said.encode() for path, said in text.items()}, run)


def planned(*values: str) -> tuple[Plan, int]:
    """The plan, and how often a role's function was called for it."""
    run = Functions()
    reading = read(run, *values)
    found = plan(PlanRequest(documents=reading.documents, evaluate=reading.evaluate)).plan
    return found, run.calls


def test_a_function_without_an_end_is_called_for_no_more_than_two_instances() -> None:
    found, calls = planned(*["loop"] * 4)
    assert calls == 2
    spent = "modules/app/module.star:2:1: takes more than 2 s of processor time"
    left = "was not called for {}, as it came to a limit for app-a:main and app-b:main"
    assert [row.message.partition(" (for ")[0] for row in found.diagnostics] == [
        spent,
        spent,
        f"the function of main {left.format('app-c:main')}",
        f"the function of main {left.format('app-d:main')}",
    ]
    assert {row.code for row in found.diagnostics} == {"starlark"}


def test_one_instance_that_spends_it_all_keeps_nothing_from_the_others() -> None:
    found, calls = planned("fine", "loop", "fine", "loop")
    assert calls == 2 + 1 + 2 + 1  # each of those that end is asked in two spellings
    assert all(found.entries[f"{name}:main@alpha"].units for name in ("app-a", "app-c"))
    assert len(found.diagnostics) == 2


@given(edits=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["fine", "loop", "ok"]))))
@settings(max_examples=60, deadline=None)
def test_a_planner_that_stays_says_what_a_new_one_says(edits: list[tuple[str, str]]) -> None:
    reading = read(Functions(), *["fine"] * 4)
    request = PlanRequest(documents=reading.documents, evaluate=reading.evaluate)
    planner = Planner(request)
    for name, value in edits:
        change = SettingValue(instance=name, role="main", setting="x", value=value)
        before = planner.result.plan
        documents, _ = applied(request.documents, change)
        request = replace(request, documents=documents, previous=before)
        made = planner.update(change).plan
        assert msgspec.json.encode(made) == msgspec.json.encode(plan(request).plan)


def test_after_eight_calls_without_an_end_no_function_is_called() -> None:
    """Of how many modules they are does not matter."""
    run = Functions()
    fleet = 'fleet = "arena"\n' + f.machines("alpha")
    names = [f"app-{letter}" for letter in "abcdef"]
    text = {}
    for name in names:
        text[f"modules/{name}/module.star"] = "def module():\n    pass\n"
        for turn in "12":
            more = f.instance(f"{name}-{turn}", name, more='settings.main.x = "loop"\n')
            fleet += more
    text["fleet.toml"] = fleet

    def named(call: Call) -> Value | Fault:
        found = run(call)
        if call.role is None:
            module = call.file.split("/")[1]
            return Value(tree={**DOCUMENT, "module": module}, impls=("main",))
        return found

    reading = directory.documents_of({path: said.encode() for path, said in text.items()}, named)
    found = plan(PlanRequest(documents=reading.documents, evaluate=reading.evaluate)).plan
    assert run.calls == 8
    left = [row.message for row in found.diagnostics if "was not called" in row.message]
    others = ", ".join(f"{name}-{turn}:main" for name in names[:4] for turn in "12")
    others = others.removesuffix(", app-d-2:main") + " and app-d-2:main"
    assert left == [
        f"the function of main was not called for {name}-{turn}:main, as those of others came to "
        f"a limit for {others}"
        for name in names[4:]
        for turn in "12"
    ]
