"""A sound plan, written by hand and hashed here by the contract, and how to break it."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec

from keyplane.model.plan import Plan

Tree = dict[str, Any]
RATES = {"debounce": {"window": "30s", "burst": 3}, "restartBudget": {"perUnit": 5}}
LIVE = {"digest", "env", "configData", "dynamic", "health", "reload", "restart"}


def hashed(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256-" + hashlib.sha256(text.encode()).hexdigest()


def unit(**fields: Any) -> Tree:
    given = {
        "digest": "",
        "kind": "process",
        "command": ["serve"],
        "env": {},
        "configData": {},
        "dynamic": {},
    }
    return given | fields


def entry(**fields: Any) -> Tree:
    given: Tree = {
        "key": "",
        "closure": "",
        "module": "m",
        "version": "1",
        "dependencies": [],
        "units": {"main": unit()},
        "requirements": [],
        "resources": {},
        "listens": {},
        "volumes": {},
        "secrets": [],
        "artifacts": {},
        "holes": [],
    }
    return given | fields


def edge(consumer: str, slot: str, provider: str, provide: str) -> Tree:
    return {
        "consumer": consumer,
        "slot": slot,
        "provider": provider,
        "provide": provide,
        "chosen": "only",
    }


def export(lifecycle: str, access: str, *readers: str) -> Tree:
    return {"lifecycle": lifecycle, "access": access, "readers": list(readers)}


def machine(name: str) -> Tree:
    key = hashed({"name": name, "platform": "linux/amd64"})
    return {"key": key, "address": "10.0.0.1", "rates": RATES}


PEER = "vpn:node@alpha/provides/peer/address"
WEB = "web:main@alpha"


def arena() -> Tree:
    """A database, a mesh, a service that uses both, and two that use each other."""
    hole = {"hole": {"fact": "cpu.model", "machine": "alpha", "type": "string"}}
    web = unit(
        env={"DSN": "postgres://x", "CPU": hole},
        configData={"/etc/web.json": hashed("web.json")},
        dynamic={
            "PEER": {
                "from": PEER,
                "transport": "bus",
                "reaction": "restart",
                "onMissing": "keep-last",
                "maxStaleness": "5m",
                "template": "tcp://${results.mesh.address}",
            }
        },
        archive="code",
        health={"tcp": "h:1"},
        reload={"signal": "HUP"},
    )
    return {
        "format": "keyplane.plan/1",
        "fleet": "arena",
        "generation": "",
        "entries": {
            "pg:main@alpha": entry(
                units={"server": unit(env={"PGPORT": "20000"})},
                resources={"conf": {"type": "file", "path": "/etc/pg", "text": "x", "digest": "d"}},
                listens={"sql": 20000},
                volumes={"data": {"path": "/var/lib/pg"}},
                grants={"database": "/etc/grants.json"},
            ),
            "ping:main@alpha": entry(dependencies=["pg:main@alpha", "pong:main@beta"]),
            "pong:main@beta": entry(dependencies=["ping:main@alpha"]),
            "vpn:node@alpha": entry(listens={"wg": 51820}),
            WEB: entry(
                dependencies=["pg:main@alpha"],
                units={"web": web, "side": unit(env={"A": "1"})},
                requirements=[{"predicate": "exists", "severity": "require", "subject": "a"}],
                artifacts={"code": hashed("code")},
                holes=["web.CPU"],
            ),
        },
        "allocations": {
            "ports": {"alpha": {"pg:main/sql": 20000, "vpn:node/wg": 51820}, "beta": {}}
        },
        "edges": [
            edge("ping:main@alpha", "b", "pong:main@beta", "p"),
            edge("ping:main@alpha", "db", "pg:main@alpha", "database"),
            edge("pong:main@beta", "a", "ping:main@alpha", "p"),
            edge(WEB, "db", "pg:main@alpha", "database"),
            edge(WEB, "mail", "external:mail", "smtp"),
            edge(WEB, "mesh", "vpn:node@alpha", "peer"),
        ],
        "exports": {
            "external:mail/provides/smtp/host": export("static", "routable", WEB),
            "pg:main/provides/database/dsn": export(
                "static", "machine-local", "ping:main@alpha", WEB
            ),
            "ping:main/provides/p/x": export("static", "routable", "pong:main@beta"),
            "pong:main/provides/p/x": export("static", "routable", "ping:main@alpha"),
            "vpn:node/provides/peer/address": export("dynamic", "machine-local", WEB),
        },
        "machines": {"alpha": machine("alpha"), "beta": machine("beta")},
        "diagnostics": [],
    }


def sealed(tree: Tree, *, order: bool = True) -> Tree:
    """With every hash what the contract says it is; the units of `web` read no provider but one."""
    if order:
        tree["edges"].sort(key=lambda one: json.dumps(one, sort_keys=True))
    envs: dict[str, Tree] = {}
    for name, one in tree["entries"].items():
        envs[name] = {unit_name: _env(said) for unit_name, said in one["units"].items()}
        one["closure"] = hashed(
            {
                "module": one["module"],
                "units": {unit_name: _made(said) for unit_name, said in one["units"].items()},
                **{
                    field: one[field]
                    for field in ("resources", "listens", "volumes", "secrets", "artifacts")
                },
            }
        )
    _key(tree, envs)
    tree["generation"] = _generation(tree)
    return tree


def _made(said: Tree) -> Tree:
    return {name: value for name, value in said.items() if name not in LIVE}


def _env(said: Tree) -> Tree:
    templates = {
        name: {"template": one["template"]}
        for name, one in said["dynamic"].items()
        if "template" in one and not name.startswith("/")
    }
    return said["env"] | templates


def _key(tree: Tree, envs: dict[str, Tree]) -> None:
    """The two of the circle have each other's hash of both; all else is keyed in order of use."""
    circle = ("ping:main@alpha", "pong:main@beta")
    entries = tree["entries"]

    def of_machine(name: str) -> str:
        return tree["machines"].get(name.rpartition("@")[2], {"key": ""})["key"]

    def keys(name: str, *, outside: bool = False) -> dict[str, str]:
        return {
            need: shared if need in circle and name in circle else entries[need]["key"]
            for need in entries[name]["dependencies"]
            if need in entries and not (outside and need in circle)
        }

    shared = ""
    for name in sorted(entries, key=lambda one: (one in circle, one != "pg:main@alpha", one)):
        if name in circle and not shared:
            shared = hashed(
                {
                    one: {
                        "closure": entries[one]["closure"],
                        "env": envs[one],
                        "machine": of_machine(one),
                        "dependencies": keys(one, outside=True),
                    }
                    for one in circle
                    if one in entries
                }
            )
        one = entries[name]
        for unit_name, said in one["units"].items():
            artifacts = (
                {said["archive"]: one["artifacts"][said["archive"]]} if "archive" in said else {}
            )
            said["digest"] = hashed(
                {
                    "closure": hashed({"fields": _made(said), "artifacts": artifacts}),
                    "env": envs[name][unit_name],
                    "dependencies": {} if unit_name == "side" else keys(name),
                }
            )
        one["key"] = hashed(
            {
                "closure": one["closure"],
                "env": envs[name],
                "machine": of_machine(name),
                "dependencies": keys(name),
            }
        )


def _generation(tree: Tree) -> str:
    def on(machine_name: str, name: str) -> bool:
        return name.rpartition("@")[2] == machine_name

    return hashed(
        {
            name: hashed(
                {
                    "entries": {k: hashed(v) for k, v in tree["entries"].items() if on(name, k)},
                    "allocations": tree["allocations"]["ports"].get(name, {}),
                    "edges": [one for one in tree["edges"] if on(name, one["consumer"])],
                    "exports": {
                        k: [v["lifecycle"], v["access"]]
                        for k, v in tree["exports"].items()
                        if any(on(name, reader) for reader in v["readers"])
                    },
                    "address": said["address"],
                    "rates": said["rates"],
                }
            )
            for name, said in tree["machines"].items()
        }
    )


def read(tree: Tree) -> Plan:
    return msgspec.convert(tree, Plan)


def sound() -> Plan:
    return read(sealed(arena()))


def broken(change: Callable[[Tree], object], *, order: bool = True) -> Plan:
    """The plan after a change, hashed anew: wrong in nothing but what was changed."""
    tree = arena()
    change(tree)
    return read(sealed(tree, order=order))


def tampered(change: Callable[[Tree], object]) -> Plan:
    """The plan after a change by which its hashes are no longer right."""
    tree = sealed(arena())
    change(tree)
    return read(tree)
