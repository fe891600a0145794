"""What is drawn for the planner has everything in it, and its spelling changes no byte."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from keyplane.adapters.starlark.runner import Runner
from keyplane.model.plan import Plan
from keyplane.planner import graph
from tests.property.planner_fleets import planned, richer

Json = Any
COMPUTED = ("units", "requirements")
"""What a function returns in place of the document, beside exports."""


def features(made: Plan, documents: dict[str, Json]) -> Iterator[str]:
    """What a fleet has of what a planner can get wrong."""
    for edge in made.edges:
        yield edge.chosen
        if edge.provider.startswith("external:"):
            yield "external"
    slots = Counter((edge.consumer, edge.slot) for edge in made.edges)
    if max(slots.values(), default=0) > 1:
        yield "a set of placements"
    for entry in made.entries.values():
        if entry.holes:
            yield "hole"
        if entry.resources:
            yield "resource"
        for unit in entry.units.values():
            for contract in unit.dynamic.values():
                yield "dynamic"
                if isinstance(contract.from_, list):
                    yield "several dynamic values"
                if contract.template is not msgspec.UNSET:
                    yield "template"
    edges = {name: list(entry.dependencies) for name, entry in made.entries.items()}
    if any(len(one) > 1 for one in graph.components(list(edges), edges)):
        yield "circle"
    for export in made.exports.values():
        yield f"{export.lifecycle} and {export.access}"
    for row in made.diagnostics:
        yield row.code
    for instance in documents["fleet.json"]["instances"].values():
        yield from (f"placed by {strategy}" for strategy in instance["placement"])


WANTED = {
    "bind", "sibling", "pin", "only", "implied", "external", "a set of placements", "hole",
    "resource", "dynamic", "several dynamic values", "template", "circle",
    "static and routable", "static and machine-local", "probed and routable",
    "dynamic and routable", "dynamic and machine-local", "placed by every", "placed by count",
    "placement-short", "requirement-unmet", "reach-one-many", "reach-one-none", "slot-unbound",
    "slot-ambiguous", "machine-local-split", "pin-not-provider", "dynamic-in-closure",
    "probed-in-closure", "reaction-missing", "reaction-unused", "unknown-reference",
    "claim-conflict", "resource-conflict",
}  # fmt: skip


def test_what_is_drawn_has_everything() -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=250,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(richer())
    def look(documents: dict[str, Json]) -> None:
        seen.update(set(features(planned(documents).plan, documents)))

    look()
    assert WANTED - seen.keys() == set()


def starlark(tree: Json) -> str:
    """A value as Starlark writes it."""
    match tree:
        case None | True | False:
            return str(tree)
        case dict():
            return "{" + ", ".join(f"{starlark(k)}: {starlark(v)}" for k, v in tree.items()) + "}"
        case list():
            return "[" + ", ".join(map(starlark, tree)) + "]"
        case _:
            return msgspec.json.encode(tree).decode()


def computed(module: Json) -> str:
    """The module with a function for each of its roles."""
    functions: list[str] = []
    roles: list[str] = []
    for name, role in module["roles"].items():
        body = {field: role[field] for field in COMPUTED if field in role}
        kept = {field: said for field, said in role.items() if field not in COMPUTED}
        if "provides" in role:
            body["provides"] = {
                provide: {"exports": said["exports"]} for provide, said in role["provides"].items()
            }
            kept["provides"] = {
                provide: {field: one for field, one in said.items() if field != "exports"}
                for provide, said in role["provides"].items()
            }
        functions.append(f"def {name}(ctx):\n    return {starlark(body)}\n")
        roles.append(f'"{name}": {starlark(kept)} | {{"impl": {name}}}')
    said = starlark({field: one for field, one in module.items() if field != "roles"})
    document = f'def module():\n    return {said} | {{"roles": {{{", ".join(roles)}}}}}\n'
    return "".join((*functions, document))


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def test_functions_give_what_tables_give(runner: Runner) -> None:
    """Byte for byte, but for the names of files in rows."""

    @settings(max_examples=25, deadline=None)
    @given(richer())
    def same(documents: dict[str, Json]) -> None:
        spelled = {
            path.replace("module.json", "module.star"): computed(said)
            for path, said in documents.items()
            if path.startswith("modules/")
        }
        rest = {path: said for path, said in documents.items() if not path.startswith("modules/")}
        rest["fleet.star"] = f"def fleet():\n    return {starlark(rest.pop('fleet.json'))}\n"
        found = msgspec.json.encode(planned({**rest, **spelled}, run=runner.run).plan)
        wanted = msgspec.json.encode(planned(documents).plan)
        for old, new in (("module.json", "module.star"), ("fleet.json", "fleet.star")):
            wanted = wanted.replace(old.encode(), new.encode())
        assert found == wanted

    same()
