"""Other fleets on this box: whether one holds what a fleet that is to be started here would take."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keyplane.adapters.linux import listeners
from keyplane.adapters.linux.socket_tables import TCP, UDP, Protocol
from keyplane.adapters.linux.state_root import entry_of
from keyplane.model.documents import Documents
from keyplane.model.names import EntryId, split_entry
from keyplane.model.plan import Plan
from keyplane.parts import planning, state_dir
from keyplane.parts.state_dir import StateDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A port that a machine of ours would take, held by a unit of another fleet."""

    machine: str
    address: str
    port: str
    """Such as `port 53 of UDP`."""
    fleet: Path
    """The other's directory."""
    entry: str
    """Its entry that holds the port."""


def clashes(
    state: StateDir, plan: Plan, documents: Documents, machines: list[str]
) -> Iterator[Clash]:
    """By machine, protocol and port. Of what this account may look into."""
    for machine in machines:
        address = plan.machines[machine].address
        for protocol, ports in _ports(plan, documents, machine).items():
            for port, mark in sorted(listeners.marked(ports, address, protocol)):
                parts = mark.parts
                if mark.is_relative_to(state.root) or state_dir.NAME not in parts:
                    continue
                yield Clash(
                    machine=machine,
                    address=address,
                    port=f"port {port}" if protocol is TCP else f"port {port} of UDP",
                    fleet=Path(*parts[: parts.index(state_dir.NAME)]),
                    entry=entry_of(parts[-3]) if len(parts) > 3 else str(mark),
                )


def _ports(plan: Plan, documents: Documents, machine: str) -> dict[Protocol, frozenset[int]]:
    found: dict[Protocol, set[int]] = {TCP: set(), UDP: set()}
    for name, entry in plan.entries.items():
        if split_entry(EntryId(name))[2] == machine and entry.listens:
            udp = planning.udp_listens(documents, EntryId(name), entry)
            for listen, port in entry.listens.items():
                found[UDP if listen in udp else TCP].add(port)
    return {protocol: frozenset(ports) for protocol, ports in found.items()}
