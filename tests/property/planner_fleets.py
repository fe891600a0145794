"""Fleets drawn at random: small, often wrong, and always readable."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from keyplane.documents import reading
from keyplane.documents.evaluation import Run
from keyplane.model.plan import Plan
from keyplane.planner import PlanRequest, PlanResult, plan
from tests.unit.documents.fleet_files import Files, no_starlark

Json = Any
MACHINES = ("alpha", "beta", "gamma", "delta")
INTERFACES = """
[a.request]
name = "string"
[a.exports]
url = "string"
n = "integer"
[b.exports]
url = "string"
n = "integer"
"""
UNORDERED = ("tags", "machines", "requirements", "claims")
"""Fields whose lists are sets."""
CIRCLE = (("m0", "i0", "i1", "b"), ("m1", "i1", "i0", "a"))
"""Two modules that read each other: module, its instance, the other instance and its interface."""
PLAIN = (
    "${settings.s}", "${machine.name}", "${machine.address}", "${alloc.ports.web}",
    "${self.entry}", "plain ", "$${x}",
)  # fmt: skip
ODD = ("${machine.facts.f}", "${settings.nope}", "${results.w.url}", "${consumer.login}", "${")
EXPORTED = (
    "${settings.s}", "${machine.address}", "${consumer.login}", "${machine.address}", "u",
    "${machine.facts.f}", "${results.u.url}",
)  # fmt: skip


def texts(uses: dict[str, Json]) -> st.SearchStrategy[str]:
    """Texts that read what the role may read, and now and then what it may not."""
    known = [st.sampled_from(PLAIN)] * 3
    if "u" in uses:
        read = ["${results.u.url}", "${results.u.n}", "${bound.u.address}"]
        known += [st.sampled_from(read)] * 3
    if "v" in uses:
        known += [st.sampled_from(["${results.v.*.url}", "${results.v.*.n}"])] * 2
        known.append(st.just("${results.v.alpha.n}"))
    odd = st.integers(0, 7).flatmap(
        lambda turn: st.sampled_from(PLAIN) if turn else st.sampled_from(ODD)
    )
    return st.lists(st.one_of(*known, odd), max_size=3).map("".join)


@st.composite
def exports(draw: st.DrawFn, kind: str) -> Json:
    lifecycle = draw(st.sampled_from([*["static"] * 4, "probed", "dynamic"]))
    said: dict[str, Json] = {"lifecycle": lifecycle}
    if lifecycle == "static":
        numbers = st.sampled_from(["${alloc.ports.web}", 7])
        strings = st.lists(st.sampled_from(EXPORTED), min_size=1, max_size=2).map("".join)
        said["value"] = draw(numbers if kind == "n" else strings)
    elif lifecycle == "probed":
        said["fact"] = draw(st.sampled_from(["f", "g"]))
    else:
        said["source"] = {"published": True}
    if not draw(st.integers(0, 2)):
        said["access"] = draw(st.sampled_from(["routable", "machine-local"]))
    return said


def units(a: str, b: str, c: str) -> dict[str, Json]:
    return {
        "main": {"kind": "process", "command": ["run"], "env": {"A": a, "B": b}},
        "side": {"kind": "process", "command": ["side"], "env": {"C": c}},
    }


@st.composite
def modules(draw: st.DrawFn, name: str, provides: str | None) -> Json:
    role: dict[str, Json] = {
        "settings": {"s": {"type": "string", "default": "one"}},
        "listens": {"web": {"protocol": "tcp"}},
        "uses": {},
        "reactions": {},
    }
    for slot, reach in (("u", st.sampled_from(["one", "one", "local"])), ("v", st.just("all"))):
        if draw(st.integers(0, 2)):
            interface = draw(st.sampled_from("ab"))
            role["uses"][slot] = {
                "interface": interface,
                "reach": draw(reach),
                "follow": draw(st.sampled_from(["key", "key", "values"])),
            }
            if interface == "a":
                asked = draw(st.sampled_from(["x", "${settings.s}"]))
                role["uses"][slot]["request"] = {"name": asked}
            if draw(st.booleans()):
                role["reactions"][f"{slot}.url"] = {"reaction": "restart", "maxStaleness": "5m"}
    if provides is not None:
        role["provides"] = {
            "p": {
                "interface": provides,
                "scope": draw(st.sampled_from(["mesh", "mesh", "mesh", "machine"])),
                "exports": {"url": draw(exports("url")), "n": draw(exports("n"))},
            }
        }
    if draw(st.integers(0, 7)):
        text = texts(role["uses"])
        role["units"] = units(draw(text), draw(text), draw(text))
        role["units"]["main"]["command"] += draw(st.lists(text, max_size=1))
        if not draw(st.integers(0, 3)):
            role["units"]["main"]["configData"] = {f"/etc/{name}": {"text": draw(text)}}
    if not draw(st.integers(0, 5)):
        role["requirements"] = [
            {
                "subject": draw(st.sampled_from(["f", "g"])),
                "predicate": draw(st.sampled_from(["exists", "absent"])),
                "severity": draw(st.sampled_from(["require", "want"])),
            }
        ]
    roles: dict[str, Json] = {"main": role}
    if not draw(st.integers(0, 2)):
        interface = draw(st.sampled_from([provides or "a", "a", "b"]))
        uses = {"u": {"interface": interface}}
        if interface == "a":
            uses["u"]["request"] = {"name": "aux"}
        env = {"D": draw(texts(uses))}
        roles["aux"] = {
            "settings": {"s": {"type": "string", "default": "aux"}},
            "listens": {"web": {"protocol": "tcp"}},
            "uses": uses,
            "units": {"aux": {"kind": "process", "command": ["aux"], "env": env}},
        }
    return {"module": name, "version": "1", "roles": roles}


@st.composite
def placements(draw: st.DrawFn, role: str = "main") -> Json:
    machines = draw(st.lists(st.sampled_from(MACHINES), min_size=1, unique=True))
    selection = draw(
        st.sampled_from([{}, {"machines": machines[:1]}, {"machines": machines}, {"tags": ["t"]}])
    )
    if draw(st.integers(0, 3)):
        return {"every": {role: selection}}
    return {"count": {role: {"count": draw(st.integers(1, 3)), **selection}}}


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Json]:
    """The documents by path; machines, instances and modules as tables."""
    offers = {"m0": "a", "m1": "b", "m2": None, "m3": draw(st.sampled_from(["a", "b", None, None]))}
    names = list(offers)
    documents: dict[str, Json] = {
        f"modules/{name}/module.json": draw(modules(name, offered))
        for name, offered in offers.items()
    }
    machines: dict[str, Json] = {}
    for number, name in enumerate(MACHINES):
        machines[name] = {"address": f"10.0.0.{number}", "tags": draw(st.sampled_from([[], ["t"]]))}
        if not draw(st.integers(0, 5)):
            machines[name]["pins"] = {draw(st.sampled_from("ab")): draw(st.sampled_from(MACHINES))}
        facts = draw(st.dictionaries(st.sampled_from("fg"), st.sampled_from(["x", 4, True, None])))
        if facts:
            documents[f"facts/{name}.json"] = {"machine": name, "facts": facts}
    instances: dict[str, Json] = {}
    for number in range(draw(st.integers(2, 5))):
        name = f"i{number}"
        instances[name] = {
            "module": names[number] if number < 2 else draw(st.sampled_from(names[2:])),
            "placement": draw(placements()),
            "settings": {"main": {"s": draw(st.sampled_from(["one", "two"]))}},
        }
        if "aux" in documents[f"modules/{instances[name]['module']}/module.json"]["roles"]:
            for strategy, roles in draw(placements("aux")).items():
                instances[name]["placement"].setdefault(strategy, {}).update(roles)
        if not draw(st.integers(0, 5)):
            bound = draw(st.sampled_from([f"i{other}" for other in range(5)]))
            instances[name]["bind"] = {"main": {"u": bound}}
    documents["fleet.json"] = {"fleet": "drawn", "machines": machines, "instances": instances}
    return documents


@st.composite
def richer(draw: st.DrawFn) -> dict[str, Json]:
    """Fleets with externals, files, claims, grants, and exports that read other slots."""
    tables = draw(fleets())
    fleet = tables["fleet.json"]
    for name, said in tables.items():
        if not name.startswith("modules/"):
            continue
        role = said["roles"]["main"]
        if draw(st.booleans()):
            role["resources"] = {
                "notes": {
                    "type": "file",
                    "path": draw(st.sampled_from(["/etc/notes", "/etc/${settings.s}"])),
                    "text": draw(texts(role["uses"])),
                }
            }
        if not draw(st.integers(0, 4)):
            role["claims"] = ["screen"]
        if "provides" in role and draw(st.booleans()):
            role["provides"]["p"]["grants"] = "/etc/grants.json"
        if "u" in role["uses"] and not draw(st.integers(0, 4)):
            role["uses"]["u"]["requires"] = {
                "count": {"predicate": "equals", "value": 1, "severity": "want"}
            }
    if not draw(st.integers(0, 2)):
        for name, instance, other, interface in CIRCLE:
            role = tables[f"modules/{name}/module.json"]["roles"]["main"]
            asked = {"request": {"name": "w"}} if interface == "a" else {}
            role["uses"]["w"] = {"interface": interface, **asked}
            role["provides"]["p"]["scope"] = "mesh"
            url = {"value": "http://${machine.address}/", "lifecycle": "static"}
            role["provides"]["p"]["exports"]["url"] = url
            role.setdefault("units", units("", "", ""))["main"]["env"]["W"] = "${results.w.url}"
            said = fleet["instances"][instance]
            said.setdefault("bind", {}).setdefault("main", {})["w"] = other
            where = [draw(st.sampled_from(MACHINES))]
            said["placement"] = {"every": {"main": {"machines": where}}}
    if draw(st.booleans()):
        fleet["externals"] = {"outside": {"interface": "b", "exports": outside("first", 1)}}
        for instance in fleet["instances"].values():
            if draw(st.booleans()):
                instance.setdefault("bind", {}).setdefault("main", {})["u"] = "external:outside"
    if not draw(st.integers(0, 3)):
        # Its entries may be implied as well as placed: it is called as its module is.
        fleet["instances"]["m0"] = fleet["instances"].pop("i0")
        for instance in fleet["instances"].values():
            for slots in instance.get("bind", {}).values():
                slots.update({slot: "m0" for slot, said in slots.items() if said == "i0"})
    return tables


def outside(url: Json, number: Json) -> Json:
    return {
        "url": {"lifecycle": "static", "value": url},
        "n": {"lifecycle": "static", "value": number},
    }


def planned(
    documents: dict[str, Json], previous: Plan | None = None, run: Run = no_starlark
) -> PlanResult:
    """Plan the documents. A text in place of a table is a document in Starlark."""
    files = {
        path: said if isinstance(said, str) else msgspec.json.encode(said).decode()
        for path, said in documents.items()
    }
    files["interfaces.toml"] = INTERFACES
    snapshots = {path: text.encode() for path, text in files.items() if path.startswith("facts/")}
    read = reading.read(Files(files), snapshots, run)
    return plan(PlanRequest(documents=read.documents, evaluate=read.evaluate, previous=previous))


def keys(result: PlanResult) -> dict[str, str]:
    return {name: entry.key for name, entry in result.plan.entries.items()}


def turned(value: Json, name: str = "") -> Json:
    """The same value with all that has no order written the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key], key) for key in reversed(value)}
    if isinstance(value, list):
        items = [turned(item) for item in value]
        return items[::-1] if name in UNORDERED else items
    return value
