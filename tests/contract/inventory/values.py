"""Plans and reports to keep: small ones, and ones that use every field."""

import hashlib
from collections.abc import Mapping

from keyplane.model.declaration import (
    EntryReport,
    EntryState,
    OfferNumber,
    Report,
    UnitReport,
    UnitState,
)
from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.plan import (
    FORMAT,
    Allocations,
    Dynamic,
    Edge,
    Entry,
    Export,
    Hole,
    HoleValue,
    Plan,
    PlannedMachine,
    Unit,
)
from keyplane.ports.inventory import Inventory, PlannedEntry, StoredPlan

ALPHA = MachineName("alpha")


def digest(text: str) -> Digest:
    return Digest(f"sha256-{hashlib.sha256(text.encode()).hexdigest()}")


def planned(value: str) -> PlannedEntry:
    unit = Unit(
        digest=digest(value),
        kind="process",
        env={"VALUE": value, "LATER": HoleValue(hole=Hole(fact="f", machine="alpha", type="int"))},
        config_data={"/etc/a": digest("a")},
        dynamic={"/etc/d": Dynamic(from_=["x.y", "z.w"], on_missing=None, max_staleness="1m")},
        command=["serve", "-v"],
        publish={"80": "80"},
        run_once=False,
    )
    entry = Entry(
        key=digest(f"key {value}"),
        closure=digest("closure"),
        module="mygame",
        version="1.0",
        dependencies=["maps:server@alpha"],
        units={"main": unit},
        requirements=[{"os": "linux", "count": 2}],
        resources={"/srv/x": {"type": "file", "digest": digest("x"), "deep": [1, 2.5, None]}},
        listens={"game": 20000},
        volumes={"data": "/var/lib/game"},
        secrets=["token"],
        artifacts={"code": digest("code")},
        holes=["main.env.LATER"],
    )
    return PlannedEntry(entry=entry, grants={"/etc/grants.json": digest("grants")})


def stored(
    generation: str, values: Mapping[str, str], *, contents: Mapping[str, bytes] | None = None
) -> StoredPlan:
    """A plan with an entry for each name; an entry with the same value is the same."""
    entries = {EntryId(f"{name}:server@alpha"): planned(value) for name, value in values.items()}
    plan = Plan(
        format=FORMAT,
        fleet="home",
        generation=digest(generation),
        entries={str(entry): each.entry for entry, each in entries.items()},
        allocations=Allocations(ports={"alpha": {"a:server/game": 20000}}),
        edges=[Edge(consumer="a:server", slot="maps", provider="m", provide="x", chosen="only")],
        exports={"m.x": Export(lifecycle="probed", access="routable", readers=["a:server"])},
        machines={"alpha": PlannedMachine(key="k", address="10.0.0.3", rates={"window": "30s"})},
        diagnostics=[
            Diagnostic(
                code="slot-unbound",
                severity=Severity.WARNING,
                subject="a:server",
                message="“maps” has no provider",
                resolution=("bind it", "assign one"),
            )
        ],
    )
    whole = contents if contents is not None else {digest("a"): b"\x00\xff a"}
    return StoredPlan(
        plan=plan,
        revision=1,
        entries=entries,
        contents={Digest(name): body for name, body in whole.items()},
    )


def report(*, sequence: int = 1, boot: str = "one", machine: str = "alpha") -> Report:
    unit = UnitReport(
        state=UnitState.BACKING_OFF,
        digest=digest("unit"),
        pid=12,
        start_ticks=34,
        restarts=2,
        last_exit="signal KILL",
        cause="it ended",
        log_tail=("last", "words"),
    )
    entry = EntryReport(
        state=EntryState.FAILED,
        key=digest("key"),
        units={UnitName("main"): unit},
        cause="unit main ended",
        notes=("without an account",),
    )
    return Report(
        machine=MachineName(machine),
        offer=OfferNumber(0, 3),
        settled=OfferNumber(0, 2),
        sequence=sequence,
        boot=boot,
        entries={EntryId(f"a:server@{machine}"): entry},
    )


async def record(inventory: Inventory, said: Report, *, received_ms: int) -> bool:
    """One report alone: whether it is the newest."""
    [is_newest] = await inventory.record_reports([said], received_ms=received_ms)
    return is_newest
