"""Every plan that the planner makes passes the check, and is declared and rolled out."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.documents import reading
from keyplane.model.diagnostic import Severity
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId
from keyplane.plancheck.mixture import check_mixture
from keyplane.plancheck.plan import check
from keyplane.planner import PlanRequest, PlanResult, plan
from keyplane.rollout.mixture import mix, mix_edges
from keyplane.rollout.planned import MixedEntry
from keyplane.rollout.tiers import tiers
from tests.unit.documents.fleet_files import Files, no_starlark
from tests.unit.rollout.values import digest

MACHINES = ("alpha", "beta", "gamma")
INTERFACES = """
[database.request]
name = "string"
[database.exports]
dsn = "string"
[peer.exports]
address = "string"
"""

MESH: dict[str, Any] = {
    "module": "mesh",
    "version": "1",
    "roles": {
        "node": {
            "provides": {
                "peer": {
                    "interface": "peer",
                    "exports": {
                        "address": {"lifecycle": "dynamic", "source": {"file": "/run/address"}}
                    },
                }
            },
            "units": {"node": {"kind": "process", "command": ["mesh"]}},
        }
    },
}


def database(name: str) -> dict[str, Any]:
    return {
        "module": name,
        "version": "1",
        "roles": {
            "main": {
                "settings": {
                    "socket": {"type": "boolean", "default": False},
                    "ratio": {"type": "number", "default": 2.0},
                },
                "listens": {
                    "sql": {"protocol": "tcp"},
                    "mon": {"protocol": "udp", "port": 161 + (name == "pg-b")},
                },
                "volumes": {"data": {"path": "/var/lib/${self.instance}"}},
                "provides": {
                    "database": {
                        "interface": "database",
                        "scope": "mesh",
                        "grants": f"/etc/{name}.json",
                        "exports": {
                            "dsn": [
                                {
                                    "when": {"socket": True},
                                    "value": "pg:///${consumer.request.name}",
                                    "lifecycle": "static",
                                    "access": "machine-local",
                                },
                                {
                                    "value": "pg://${machine.address}:${alloc.ports.sql}/",
                                    "lifecycle": "static",
                                },
                            ]
                        },
                    }
                },
                "requirements": [
                    {"subject": "x", "predicate": "equals", "value": 1.5, "severity": "want"}
                ],
                "units": {
                    "server": {
                        "kind": "process",
                        "command": ["serve", "${settings.ratio}"],
                        "env": {"PORT": "${alloc.ports.sql}"},
                        "limits": {"memory": "256M"},
                    }
                },
            }
        },
    }


def web(name: str) -> dict[str, Any]:
    return {
        "module": name,
        "version": "1",
        "roles": {
            "main": {
                "uses": {
                    "db": {"interface": "database", "request": {"name": "x"}},
                    "mesh": {"interface": "peer"},
                },
                "reactions": {"mesh.address": {"reaction": "reload", "maxStaleness": "60s"}},
                "resources": {
                    "motd": {"type": "file", "path": "/etc/${self.instance}", "text": "hé"}
                },
                "units": {
                    "a": {
                        "kind": "process",
                        "command": ["web"],
                        "env": {"DSN": "${results.db.dsn}", "CPU": "${machine.facts.cpu}"},
                        "configData": {
                            f"/etc/{name}.json": {"text": "peer ${results.mesh.address}"}
                        },
                        "reload": {"signal": "HUP"},
                    },
                    "b": {"kind": "process", "command": ["side"], "env": {"WHO": "${self.entry}"}},
                },
            }
        },
    }


def placed(role: str, most: int) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(st.sampled_from(MACHINES), min_size=1, max_size=most, unique=True)
    return st.one_of(
        some.map(lambda machines: {"every": {role: {"machines": machines}}}),
        st.integers(1, most).map(lambda count: {"count": {role: {"count": count}}}),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Documents:
    """Databases, a mesh and services, bound and placed as chance has it; some of it wrong."""
    instances: dict[str, Any] = {}
    databases = draw(st.lists(st.sampled_from(["pg-a", "pg-b"]), min_size=1, unique=True))
    for name in databases:
        instances[name] = {
            "module": name,
            "settings": {"main": {"socket": draw(st.booleans()), "ratio": draw(st.floats(0, 9))}},
            "placement": draw(placed("main", 1)),
        }
    if draw(st.booleans()):
        instances["vpn"] = {"module": "mesh", "placement": {"every": {"node": {}}}}
    for name in draw(st.lists(st.sampled_from(["web-a", "web-b"]), unique=True)):
        bound = draw(st.sampled_from([*databases, *databases, None]))
        instances[name] = {"module": name, "placement": draw(placed("main", 3))}
        if bound is not None:
            instances[name]["bind"] = {"main": {"db": bound}}
    fleet = {
        "fleet": "arena",
        "machines": {name: {"address": f"10.0.0.{i}"} for i, name in enumerate(MACHINES)},
        "instances": instances,
    }
    facts = {"machine": "beta", "at": "2026-01-01T00:00:00Z", "facts": {"cpu": "x"}}
    files = {
        "fleet.json": json.dumps(fleet),
        "interfaces.toml": INTERFACES,
        **{f"modules/{n}/module.json": json.dumps(database(n)) for n in ("pg-a", "pg-b")},
        "modules/mesh/module.json": json.dumps(MESH),
        **{f"modules/{n}/module.json": json.dumps(web(n)) for n in ("web-a", "web-b")},
    }
    snapshots = {"facts/beta.json": json.dumps(facts).encode()}
    return reading.read(Files(files), snapshots, no_starlark).documents


def planned(documents: Documents) -> PlanResult:
    def none_is_computed(_request: object) -> Any:
        raise AssertionError("no role of these has a function")

    return plan(PlanRequest(documents=documents, evaluate=none_is_computed))


def mixed(result: PlanResult) -> dict[EntryId, MixedEntry]:
    return {
        EntryId(name): MixedEntry(
            entry=entry,
            grants={
                path: digest(content.decode())
                for path, content in result.grants.get(name, {}).items()
            },
        )
        for name, entry in result.plan.entries.items()
    }


@settings(deadline=None, max_examples=60)
@given(fleets())
def test_every_plan_passes_the_check(documents: Documents) -> None:
    result = planned(documents)
    assert check(result.plan, documents) == []
    assert check(result.plan) == []


@settings(deadline=None, max_examples=40)
@given(fleets(), fleets())
def test_every_mixture_of_two_plans_passes_the_check(one: Documents, other: Documents) -> None:
    """Where both plans are without error, so is each step from one to the other."""
    base, target = planned(one), planned(other)
    for result in (base, target):
        if any(row.severity is Severity.ERROR for row in result.plan.diagnostics):
            return
    old, new = mixed(base), mixed(target)
    steps = tiers(old, base.plan.edges, new, target.plan.edges)
    for sent in range(len(steps) + 1):
        entries = mix(old, new, steps, sent, {}).entries
        edges = mix_edges(base.plan.edges, target.plan.edges, steps, sent)
        assert check_mixture({name: e.entry for name, e in entries.items()}, edges, other) == []
