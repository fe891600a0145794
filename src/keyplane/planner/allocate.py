"""Round allocate: the number of each listen of a machine.

A number that the protocol fixes is a claim. The others are assigned from a range, lowest first in
the order of names, and kept as long as their listen exists. A freed number rests for one plan.
"""

from collections.abc import Mapping

from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.rows import Fault

FIRST, LAST = 20_000, 29_999

_Listens = tuple[tuple[str, str, int | None], ...]
"""Name in the allocations, protocol and fixed number of each, in order of assignment."""


def allocate(draft: Draft) -> None:
    listens: dict[str, list[Assignment]] = {name: [] for name in draft.fleet.machines}
    ordered = sorted(
        (one for one in draft.assignments.values() if one.role.listens),
        key=lambda one: (one.instance, one.role_name),
    )
    for assignment in ordered:
        for machine in assignment.bound:
            listens[machine].append(assignment)
    previous = draft.request.previous
    before = {} if previous is None else previous.allocations.ports
    shapes: dict[tuple[str, ...], _Listens] = {}
    numbered: dict[object, _Numbered] = {}
    for machine, assignments in listens.items():
        shape = tuple(assignment.id for assignment in assignments)
        if shape not in shapes:
            shapes[shape] = _listens(assignments)
        held = before.get(machine, {})
        key = shape, tuple(sorted(held.items()))
        if key not in numbered:
            numbered[key] = _Numbered(shapes[shape], held)
        found = numbered[key]
        draft.ports[machine] = found.ports
        for role, fault in found.faults:
            draft.rows.place(role, (machine,), fault)


def _listens(assignments: list[Assignment]) -> _Listens:
    return tuple(
        (f"{assignment.id}/{name}", listen.protocol, listen.port)
        for assignment in assignments
        for name, listen in sorted(assignment.role.listens.items())
    )


class _Numbered:
    """The numbers of one machine; of all machines with the same listens and the same past."""

    def __init__(self, listens: _Listens, held: Mapping[str, int]) -> None:
        self.faults: list[tuple[str, Fault]] = []
        ports: dict[str, int] = {}
        fixed = self._fixed(listens, ports)
        kept: set[int] = set()
        for name, _, port in listens:
            number = held.get(name)
            if port is not None or number is None or not FIRST <= number <= LAST:
                continue
            if number not in fixed and number not in kept:
                ports[name] = number
                kept.add(number)
        taken = fixed | kept
        freed = {number for name, number in held.items() if ports.get(name) != number}
        following = FIRST
        for name, _, port in listens:
            if port is not None or name in ports:
                continue
            while following in taken or following in freed:
                following += 1
            if following > LAST:
                self._full(name)
                continue
            ports[name] = following
            taken.add(following)
        self.ports = dict(sorted(ports.items()))

    def _fixed(self, listens: _Listens, ports: dict[str, int]) -> set[int]:
        holders: dict[tuple[str, int], str] = {}
        for name, protocol, port in listens:
            if port is None:
                continue
            ports[name] = port
            first = holders.setdefault((protocol, port), name)
            if first != name:
                self._claimed(name, first, protocol, port)
        return set(ports.values())

    def _claimed(self, name: str, first: str, protocol: str, port: int) -> None:
        role, _, listen = name.partition("/")
        fault = Fault(
            code="port-claimed",
            path=f"listens.{listen}",
            message=f"port {port}/{protocol} is claimed by {name}, and held by {first} on the same "
            "machine",
            resolution=(
                f"place {role} on another machine than {first.partition('/')[0]}",
                "or let one of them have a port assigned: leave `port` out",
            ),
            alone=True,
        )
        self.faults.append((role, fault))

    def _full(self, name: str) -> None:
        role, _, listen = name.partition("/")
        fault = Fault(
            code="placement-short",
            path=f"listens.{listen}",
            message=f"no port from {FIRST} to {LAST} is left for {name}",
            resolution=(f"place {role} on a machine with fewer listens",),
            alone=True,
        )
        self.faults.append((role, fault))
