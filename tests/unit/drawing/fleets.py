"""Plans of fleets of any size, such as people run: a few services that many read, and sidecars."""

import hashlib
import random
from collections.abc import Sequence

from keyplane.drawing import Value
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.plan import Allocations, Edge, Entry, Plan, PlannedMachine, Unit

SERVICES = (
    "lobby", "mygame", "matchmaker", "chat", "inventory-api", "leaderboard", "billing", "web",
    "search", "mail-relay", "thumbnailer", "session-store", "audit", "admin-console",
)  # fmt: skip
STRANDS = (
    ("env",), ("env",), ("env",), ("config",), ("config", "env"), ("dynamic",), ("closure",),
    ("placement",), (),
)  # fmt: skip


def digest(text: str) -> str:
    return "sha256-" + hashlib.sha256(text.encode()).hexdigest()


def entry(name: str, module: str, *, listens: dict[str, int], units: Sequence[str]) -> Entry:
    return Entry(
        key=digest(name), closure=digest(module), module=module, version="1.4.2", dependencies=[],
        units={
            unit: Unit(digest=digest(unit), kind="process", env={}, config_data={}, dynamic={})
            for unit in units
        },
        requirements=[], resources={}, listens=listens, volumes={}, secrets=[], artifacts={},
        holes=[],
    )  # fmt: skip


def plan(
    entries: dict[str, Entry],
    edges: Sequence[Edge] = (),
    machines: Sequence[str] = (),
    diagnostics: Sequence[Diagnostic] = (),
    fleet: str = "arena",
) -> Plan:
    every = {*machines, *(name.rpartition("@")[2] for name in entries)}
    return Plan(
        format="keyplane.plan/1", fleet=fleet, generation=digest(fleet), entries=entries,
        allocations=Allocations(ports={}), edges=list(edges), exports={},
        machines={
            name: PlannedMachine(key=digest(name), address=f"10.0.0.{number}", rates={})
            for number, name in enumerate(sorted(every), 1)
        },
        diagnostics=list(diagnostics),
    )  # fmt: skip


def edge(consumer: str, slot: str, provider: str, provide: str = "main") -> Edge:
    return Edge(consumer=consumer, slot=slot, provider=provider, provide=provide, chosen="only")


def values(edges: Sequence[Edge], planes: Sequence[Sequence[str]]) -> dict[str, list[Value]]:
    """For each edge, one value on each of its planes."""
    found: dict[str, list[Value]] = {}
    for one, several in zip(edges, planes, strict=True):
        for plane in several:
            found.setdefault(one.consumer, []).append(
                Value(
                    name=f"server.{one.slot.upper()}_URL",
                    plane=plane,
                    sources=(f"{one.provider}/provides/{one.provide}/url",),
                )
            )
    return found


def fleet(count: int, machines: int, *, seed: int = 1) -> tuple[Plan, dict[str, list[Value]]]:
    """`count` entries: a tenth are read by many others, a fifth are sidecars of a neighbour."""
    draw = random.Random(seed)
    names = [f"node-{number}" for number in range(1, machines + 1)]
    made: dict[str, Entry] = {}
    edges: list[Edge] = []
    hubs: list[str] = []
    on: dict[str, list[str]] = {name: [] for name in names}
    for number in range(count):
        machine = names[number % machines if number < machines else draw.randrange(machines)]
        hub = len(hubs) < max(1, min(count // 10, 24))
        module = "postgres" if hub and number % 2 else "nats" if hub else draw.choice(SERVICES)
        role = "main" if draw.random() < 0.7 else "server"
        name = f"{module}-{number}:{role}@{machine}"
        listens = {"web": 20000 + number % 900} if draw.random() < 0.7 else {}
        units = ["migrate", "server"] if draw.random() < 0.2 else ["server"]
        made[name] = entry(name, module, listens=listens, units=units)
        if hub:
            hubs.append(name)
        else:
            for slot in draw.sample(("db", "bus", "files"), k=draw.randrange(0, 3)):
                provider = "external:s3" if slot == "files" else draw.choice(hubs)
                edges.append(edge(name, slot, provider, "database" if slot == "db" else "feed"))
            if on[machine] and draw.random() < 0.4:
                edges.append(edge(name, "near", draw.choice(on[machine]), "proxy"))
        on[machine].append(name)
    rows = [
        Diagnostic(code="slot-unbound", subject=name, message="nothing provides it")
        for name in sorted(made)[:: max(7, count // 9)]
    ]
    return plan(made, edges, names, rows), values(edges, [draw.choice(STRANDS) for _ in edges])
