"""No tree of JSON values makes the readers of documents raise, however it was broken."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from keyplane.documents.evaluation import EvaluationRequest, EvaluationResult
from keyplane.planner import PlanRequest, plan
from tests.unit.documents.fleet_files import read

MODULE: dict[str, Any] = {
    "module": "solo",
    "version": "1",
    "roles": {
        "main": {
            "settings": {"n": {"type": "integer", "default": 1, "minimum": 0}},
            "uses": {
                "db": {
                    "interface": "db",
                    "request": {"a": 1},
                    "requires": {"count": {"predicate": "in-bounds", "bounds": ">= 1"}},
                }
            },
            "provides": {
                "p": {
                    "interface": "i",
                    "exports": {
                        "e": [
                            {"when": {"n": 1}, "lifecycle": "static", "value": "x"},
                            {"lifecycle": "dynamic", "source": {"command": ["x"], "every": "1s"}},
                        ]
                    },
                }
            },
            "reactions": {
                "db.dsn": {"reaction": "restart", "onMissing": {"default": 1}, "maxStaleness": "1s"}
            },
            "listens": {"game": {"protocol": "udp", "port": 1}},
            "units": {
                "u": {
                    "kind": "process",
                    "command": ["x"],
                    "env": {"A": 1, "B": "${results.db.dsn}", "C": "${secrets.s}"},
                    "configData": {"/a": {"text": "x"}, "/b": {"file": "b"}},
                    "health": {"http": "x", "interval": "1s"},
                    "reload": {"signal": "HUP"},
                },
                "c": {
                    "kind": "container",
                    "image": "i",
                    "publish": {"game": 1},
                    "mounts": {"/a": "b"},
                },
                "j": {"kind": "job", "command": ["x"], "schedule": "x", "whileStopped": "c"},
                "s": {"kind": "service", "file": "x.service"},
            },
            "requirements": [{"subject": "a", "predicate": "one-of", "values": [1]}],
            "resources": {
                "r": {"type": "file", "path": "/a", "text": "x", "mode": "0644"},
                "h": {"type": "hosts", "entries": {}},
            },
            "seats": {"s": {"verbs": {"v": {"command": ["x"]}}}},
            "zone": {"name": "a", "listen": "b"},
            "reads": ["a:b/c"],
            "secrets": {"s": {"length": 8}},
        }
    },
    "policy": {"upgrade": "first", "settle": "1s"},
    "build": {
        "archives": {"a": {"directory": "src"}},
        "images": {"i": {"dockerfile": "D"}},
        "bundles": {"b": {"toolchain": "solo/b", "command": ["x"], "output": "o"}},
        "nix": {"n": {"path": "/nix"}},
        "upstream": {"u": {"image": "a:1"}},
        "shared": ["x"],
    },
}
FLEET: dict[str, Any] = {
    "fleet": "arena",
    "machines": {
        "alpha": {
            "address": "x",
            "tags": ["a"],
            "reactions": {"debounce": {"window": "1s", "burst": 1}},
            "pins": {"i": "beta"},
        }
    },
    "instances": {
        "solo": {
            "module": "solo",
            "settings": {"main": {"n": 1}},
            "placement": {"every": {"main": {"machines": ["alpha"]}}, "count": {"o": {"count": 1}}},
            "bind": {"main": {"db": "x"}},
            "floor": {"main": 1},
        }
    },
    "externals": {"e": {"interface": "i", "exports": {"u": {"lifecycle": "static", "value": "x"}}}},
}
FACTS: dict[str, Any] = {"machine": "alpha", "at": "x", "facts": {"a": 1}}
INTERFACES = '[db.exports]\ndsn = "string"\n'

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.sampled_from(["${", "30s", "process", "static", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of a tree."""
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    return [path, *(below for key, one in items for below in places(one, (*path, key)))]


def replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


@st.composite
def broken(draw: st.DrawFn, tree: dict[str, Any]) -> str:
    """The document with one to three values replaced by others."""
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(tree)))
        tree = replaced(tree, path, draw(ANYTHING))
        if not isinstance(tree, dict):
            break
    return json.dumps(tree)


def nothing_computed(request: EvaluationRequest) -> EvaluationResult:
    raise AssertionError(request.role)


@settings(max_examples=300, deadline=None)
@given(module=broken(MODULE), fleet=broken(FLEET), facts=broken(FACTS))
@example(
    module=json.dumps(replaced(MODULE, ("roles", "main", "units", "u", "kind"), "daemon")),
    fleet=json.dumps(FLEET),
    facts=json.dumps(FACTS),
)
def test_no_document_raises(module: str, fleet: str, facts: str):
    """Trouble is rows, each on a file that is there, and reading twice says the same.

    Nothing is left out of a file that has no row: planning says nothing more of that, and comes
    to a plan whatever was left out.
    """
    files = {
        "fleet.json": fleet,
        "interfaces.toml": INTERFACES,
        "modules/solo/module.json": module,
        "modules/solo/b": "b",
        "facts/alpha.json": facts,
    }
    files_read: dict[str, str | bytes] = {**files}
    documents = read(files_read)
    assert {row.subject for row in documents.diagnostics} <= files.keys()
    assert documents.dropped.keys() <= {row.subject for row in documents.diagnostics}
    assert documents == read(files_read)
    made = plan(PlanRequest(documents=documents, evaluate=nothing_computed)).plan
    assert set(documents.diagnostics) <= set(made.diagnostics)
