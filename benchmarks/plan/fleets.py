"""Fleets of many machines and services, built from model values."""

from dataclasses import replace

from keyplane.model.documents import Documents
from keyplane.model.fleet import FactSnapshot, Fleet, Instance, Machine, Placement, Strategy
from keyplane.model.interface import Interface, ValueType
from keyplane.model.module import (
    Body,
    ExportVariant,
    Lifecycle,
    Listen,
    Module,
    Predicate,
    Provide,
    Reach,
    Requirement,
    Role,
    Scope,
    Setting,
    Slot,
    Unit,
    UnitKind,
)

BASES = 5
"""Services that the others read: each on one machine."""


def documents(machines: int, services: int) -> Documents:
    """`machines` × `services` entries, less the few machines on which a base does not stand.

    Each service has six values: two of them another service's address, one its own port, one its
    machine's address, one a setting, one fixed; of the last service a fact. All require a fact.
    """
    names = [f"m{number:05}" for number in range(machines)]
    interfaces = {
        f"base-{number}": Interface(
            name=f"base-{number}", exports={"url": ValueType.STRING, "port": ValueType.INTEGER}
        )
        for number in range(BASES)
    }
    modules: dict[str, Module] = {}
    instances: dict[str, Instance] = {}
    for number in range(services):
        name = f"service-{number:02}"
        base = number if number < BASES else None
        modules[name] = Module(
            name=name,
            version="1",
            file=f"modules/{name}/module.toml",
            roles={"main": _role(number, services)},
        )
        instances[name] = Instance(
            name=name,
            module=name,
            settings={"main": {"level": number}},
            placement={
                "main": Placement(
                    strategy=Strategy.EVERY, machines=None if base is None else (names[number],)
                )
            },
        )
    fleet = Fleet(
        name="bench",
        file="fleet.toml",
        machines={
            name: Machine(
                name=name, address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
            )
            for number, name in enumerate(names)
        },
        instances=instances,
    )
    return Documents(fleet=fleet, modules=modules, interfaces=interfaces, facts=_facts(names))


def singles(count: int, services: int) -> Documents:
    """So many instances, each on one machine, ten to a machine; and the bases that they read."""
    made = documents(max(count // 10, BASES + 1), services)
    fleet = made.fleet
    assert fleet is not None
    names = list(fleet.machines)
    instances = {name: fleet.instances[name] for name in list(fleet.instances)[:BASES]}
    for number in range(count):
        name = f"single-{number:05}"
        instances[name] = Instance(
            name=name,
            module=f"service-{BASES + number % (services - BASES):02}",
            settings={"main": {"level": number}},
            placement={
                "main": Placement(strategy=Strategy.EVERY, machines=(names[number % len(names)],))
            },
        )
    return replace(made, fleet=replace(fleet, instances=instances))


def mesh(machines: int) -> Documents:
    """A service on every machine, and a reader beside each that reads the set of all of them."""
    made = documents(machines, BASES + 1)
    fleet = made.fleet
    assert fleet is not None
    peer = replace(made.modules["service-00"], name="peer")
    plain = replace(made.modules["service-05"].roles["main"], uses={})
    unit = Unit(
        kind=UnitKind.PROCESS,
        fields={"command": ["read"]},
        env={"PEERS": "${results.peers.*.url}"},
    )
    reader = replace(
        plain,
        uses={"peers": Slot(interface="base-0", reach=Reach.ALL)},
        body=replace(plain.body, units={"main": unit}),
    )
    return replace(
        made,
        modules={
            "peer": replace(peer, file="modules/peer/module.toml"),
            "reader": replace(peer, name="reader", roles={"main": reader}),
        },
        fleet=replace(
            fleet,
            instances={
                name: Instance(
                    name=name,
                    module=name,
                    placement={"main": Placement(strategy=Strategy.EVERY)},
                )
                for name in ("peer", "reader")
            },
        ),
    )


def _role(number: int, services: int) -> Role:
    base = number < BASES
    first, second = (number + 1) % BASES, (number + 2) % BASES
    env = {
        "LEVEL": "${settings.level}",
        "MODE": "production",
        "PORT": "${alloc.ports.http}",
        "SELF": "${machine.address}",
    }
    uses = {}
    if number == services - 1:
        env["MODE"] = "${machine.facts.os.name}"
    if not base:
        env |= {"FIRST": "${results.first.url}", "SECOND": "tcp:${results.second.port}"}
        uses = {
            "first": Slot(interface=f"base-{first}"),
            "second": Slot(interface=f"base-{second}"),
        }
    return Role(
        settings={"level": Setting(type=ValueType.INTEGER, default=1, has_default=True, minimum=0)},
        uses=uses,
        listens={"http": Listen(protocol="tcp")},
        provides={"url": Provide(interface=f"base-{number}", scope=Scope.MESH)} if base else {},
        body=Body(
            units={
                "main": Unit(
                    kind=UnitKind.PROCESS,
                    fields={"command": ["serve", "--port", "${alloc.ports.http}", "--name", "x"]},
                    env=env,
                )
            },
            exports={
                "url": {
                    "url": (
                        ExportVariant(
                            lifecycle=Lifecycle.STATIC,
                            value="http://${machine.address}:${alloc.ports.http}/",
                        ),
                    ),
                    "port": (
                        ExportVariant(lifecycle=Lifecycle.STATIC, value="${alloc.ports.http}"),
                    ),
                }
            }
            if base
            else {},
            requirements=(Requirement(subject="os.id", predicate=Predicate.EXISTS),),
        ),
    )


FACTS = {"os.id": "debian", "os.name": "Debian"}


def _facts(names: list[str]) -> dict[str, FactSnapshot]:
    return {name: FactSnapshot(machine=name, facts=FACTS) for name in names}
