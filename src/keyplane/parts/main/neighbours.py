"""Other fleets on this box: whether one holds what a fleet that is to be started here would take."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.linux import listeners
from keyplane.adapters.linux.state_root import entry_of
from keyplane.model.plan import Plan
from keyplane.parts import state_dir
from keyplane.parts.state_dir import StateDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A port that a machine of ours would take, held by a unit of another fleet."""

    machine: str
    address: str
    port: int
    fleet: Path
    """The other's directory."""
    entry: str
    """Its entry that holds the port."""


def clashes(state: StateDir, plan: Plan, machines: list[str]) -> Iterator[Clash]:
    """By machine and port. Of TCP, and of what this account may look into."""
    for machine in machines:
        address = plan.machines[machine].address
        ports = set(plan.allocations.ports.get(machine, {}).values())
        for port, mark in sorted(listeners.marked(ports, address)):
            parts = mark.parts
            if mark.is_relative_to(state.root) or state_dir.NAME not in parts:
                continue
            fleet = Path(*parts[: parts.index(state_dir.NAME)])
            yield Clash(
                machine=machine,
                address=address,
                port=port,
                fleet=fleet,
                entry=entry_of(parts[-3]) if len(parts) > 3 else str(mark),
            )
