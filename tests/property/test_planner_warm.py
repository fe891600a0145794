"""A planner that stays gives what planning as a whole gives, whatever was edited on the way."""

import copy
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.documents import reading
from keyplane.documents.evaluation import Evaluate, EvaluationRequest, EvaluationResult
from keyplane.model.documents import Documents
from keyplane.model.module import Body
from keyplane.planner import PlanRequest, PlanResult, changes, plan
from keyplane.planner.changes import (
    Change,
    ExportValue,
    ExternalValue,
    FactValue,
    NewDocuments,
    SettingValue,
)
from keyplane.planner.warm import Planner
from tests.property.planner_fleets import (
    INTERFACES,
    MACHINES,
    outside,
    placements,
    richer,
    texts,
)
from tests.unit.documents.fleet_files import Files, no_starlark

Json = Any
EXAMPLES = 60
"""Some seconds: each example is a dozen plans of a dozen entries."""
VALUES = st.sampled_from(["one", "two", "three", 7, 1, True, None])


def read(tables: dict[str, Json]) -> Documents:
    files = {path: msgspec.json.encode(said).decode() for path, said in tables.items()}
    files["interfaces.toml"] = INTERFACES
    snapshots = {path: text.encode() for path, text in files.items() if path.startswith("facts/")}
    return reading.read(Files(files), snapshots, no_starlark).documents


@st.composite
def edited(draw: st.DrawFn, tables: dict[str, Json]) -> dict[str, Json]:
    """The tables after one edit."""
    tables = copy.deepcopy(tables)
    fleet = tables["fleet.json"]
    instance = fleet["instances"][draw(st.sampled_from(sorted(fleet["instances"])))]
    machine = draw(st.sampled_from(MACHINES))
    path = draw(st.sampled_from(sorted(name for name in tables if name.startswith("modules/"))))
    role = tables[path]["roles"]["main"]
    match draw(st.integers(0, 11)):
        case 0 | 1 | 2:
            value = draw(VALUES)
            instance["settings"] = {"main": {} if value is None else {"s": value}}
        case 3 | 4 | 5:
            facts = tables.setdefault(f"facts/{machine}.json", {"machine": machine, "facts": {}})
            facts["facts"][draw(st.sampled_from("fg"))] = draw(st.sampled_from(["x", "y", 4, True]))
        case 6:
            tables.pop(f"facts/{machine}.json", None)
        case 7 if "externals" in fleet:
            said = outside(draw(VALUES), draw(VALUES))
            fleet["externals"]["outside"]["exports"] = said
        case 8 if "provides" in role:
            url = role["provides"]["p"]["exports"]["url"]
            if "value" in url:
                url["value"] = draw(texts(role["uses"]))
        case 9 if "units" in role:
            role["units"]["side"]["env"]["C"] = draw(texts(role["uses"]))
        case 10:
            instance["placement"] = draw(placements())
        case 11:
            fleet["machines"][machine]["tags"] = draw(st.sampled_from([[], ["t"], ["k=1"]]))
        case _:
            instance["floor"] = {"main": draw(st.integers(0, 2))}
    return tables


@st.composite
def typed(draw: st.DrawFn, documents: Documents) -> Change:
    """A change of one value."""
    fleet = documents.fleet
    assert fleet is not None
    value = draw(VALUES)
    match draw(st.integers(0, 3)):
        case 0:
            instance = draw(st.sampled_from([*sorted(fleet.instances), "nobody"]))
            name = draw(st.sampled_from(["s", "s", "s", "nope"]))
            return SettingValue(instance=instance, role="main", setting=name, value=value)
        case 1:
            module = draw(st.sampled_from(sorted(documents.modules)))
            export = draw(st.sampled_from(["url", "n"]))
            text = draw(st.one_of(texts({"u": {}}), VALUES))
            return ExportValue(module=module, role="main", provide="p", export=export, value=text)
        case 2:
            export = draw(st.sampled_from(["url", "n"]))
            return ExternalValue(external="outside", export=export, value=value)
        case _:
            machine = draw(st.sampled_from([*MACHINES, "nowhere"]))
            fact = draw(st.sampled_from("fg"))
            return FactValue(
                machine=machine, fact=fact, value=draw(st.sampled_from(["x", 4, None]))
            )


def fresh(documents: Documents, evaluate: Evaluate, before: PlanResult) -> PlanResult:
    return plan(PlanRequest(documents=documents, evaluate=evaluate, previous=before.plan))


def assert_same(found: PlanResult, wanted: PlanResult) -> None:
    assert msgspec.json.encode(found.plan) == msgspec.json.encode(wanted.plan)
    assert found.contents == wanted.contents
    assert found.grants == wanted.grants
    assert found.machines == wanted.machines
    assert found.digests == wanted.digests


def frozen(result: PlanResult) -> bytes:
    return msgspec.json.encode(
        [result.plan, dict(result.contents), result.grants, result.machines, result.digests]
    )


def functions(documents: Documents) -> tuple[Documents, Evaluate]:
    """The same fleet with a function in place of the body of a module's role."""
    bodies: dict[str, Body] = {}
    modules = dict(documents.modules)
    for name in ("m2", "m1"):
        if name in modules:
            role = modules[name].roles["main"]
            bodies[name] = role.body
            roles = {"main": replace(role, impl=True, body=Body())}
            modules[name] = replace(modules[name], roles=roles)

    def evaluate(asked: EvaluationRequest) -> EvaluationResult:
        body = bodies[asked.module.name]
        told = {"TOLD": str(asked.settings), "SETS": str(dict(asked.members))}
        units = {name: replace(unit, env={**unit.env, **told}) for name, unit in body.units.items()}
        return EvaluationResult(body=replace(body, units=units))

    sources = {name: {"module.star": repr(body)} for name, body in bodies.items()}
    return replace(documents, modules=modules, starlark=sources), evaluate


def no_function(asked: EvaluationRequest) -> EvaluationResult:
    raise AssertionError(asked)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), richer(), st.booleans())
def test_edits_of_documents_are_planned_as_if_planned_anew(
    data: st.DataObject, tables: dict[str, Json], computed: bool
) -> None:
    """Settings, values, facts, texts, placements and tags, one edit or several at a time."""
    documents = read(tables)
    evaluate: Evaluate = no_function
    if computed:
        documents, evaluate = functions(documents)
    planner = Planner(PlanRequest(documents=documents, evaluate=evaluate))
    handed: list[tuple[PlanResult, bytes]] = []
    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.sampled_from([1, 1, 1, 2]))):
            tables = data.draw(edited(tables))
        documents = read(tables)
        if computed:
            documents, evaluate = functions(documents)
        before = planner.result
        handed.append((before, frozen(before)))
        found = planner.update(NewDocuments(documents=documents, evaluate=evaluate))
        assert found is planner.result
        assert_same(found, fresh(documents, evaluate, before))
    for result, was in handed:
        assert frozen(result) == was


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), richer(), st.booleans())
def test_changes_of_values_are_planned_as_if_planned_anew(
    data: st.DataObject, tables: dict[str, Json], computed: bool
) -> None:
    """Of settings, exports, externals and facts; entries that stay the same are the same things."""
    documents = read(tables)
    evaluate: Evaluate = no_function
    if computed:
        documents, evaluate = functions(documents)
    planner = Planner(PlanRequest(documents=documents, evaluate=evaluate))
    for _ in range(data.draw(st.integers(1, 6))):
        change = data.draw(typed(documents))
        documents, _ = changes.applied(documents, change)
        before = planner.result
        was = frozen(before)
        found = planner.update(change)
        assert_same(found, fresh(documents, evaluate, before))
        assert frozen(before) == was
