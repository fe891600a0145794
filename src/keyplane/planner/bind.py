"""Round bind: each slot of each entry to its provider, and what that puts beside it.

Machines on which the same providers stand, with the same pins, bind alike: the choice is made
once for all of them. What each machine offers was worked out before.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from keyplane.model.module import Reach
from keyplane.planner import choose, implied, room
from keyplane.planner.choose import Choice
from keyplane.planner.draft import (
    Assignment,
    Binding,
    Bindings,
    Chosen,
    Draft,
    SlotSpec,
    Target,
)
from keyplane.planner.require import Requirements
from keyplane.planner.room import EDGES_MAX
from keyplane.planner.rows import ENTRY, MACHINE, Fault


def bind(draft: Draft) -> None:
    binder = _Binder(draft)
    for assignment in list(draft.assignments.values()):
        binder.bind(assignment, assignment.machines)
    while binder.waiting:
        assignment, machine = binder.waiting.pop()
        binder.bind(assignment, (machine,))
    implied.forget(draft)
    draft.assignments = dict(sorted(draft.assignments.items(), key=lambda item: item[1].prefix))
    draft.lookup = _bound


def _bound(assignment: Assignment, slot: SlotSpec, machine: str) -> Binding | None:
    bindings = assignment.bound.get(machine)
    return None if bindings is None else bindings[slot.index]


class _Binder:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.waiting: list[tuple[Assignment, str]] = []
        """Implied entries whose own slots are not bound yet."""
        self._likeness = _likeness(draft)
        self._alike: dict[Bindings, Bindings] = {}
        self._requirements: dict[str, Requirements] = {}

    def bind(self, reader: Assignment, machines: Iterable[str]) -> None:
        if not reader.slots:
            for machine in machines:
                reader.bound[machine] = ()
            return
        answers_itself = any(
            offer.assignment is reader
            for slot in reader.slots
            if slot.reach is not Reach.ALL  # a member of a set may be the reader
            for offer in self.draft.offers.get(slot.interface, [])
        )
        by_likeness: dict[object, list[str]] = {}
        for machine in machines:
            likeness = machine if answers_itself else self._likeness[machine]
            by_likeness.setdefault(likeness, []).append(machine)
        found = self._choose(reader, by_likeness.values())
        if found is None:
            nothing = self._intern([None] * len(reader.slots))
            reader.bound.update(dict.fromkeys(machines, nothing))
            return
        for choices, alike in zip(found, by_likeness.values(), strict=True):
            self._bind_alike(reader, choices, alike)

    def _choose(
        self, reader: Assignment, several: Collection[list[str]]
    ) -> list[list[Choice]] | None:
        """The choices for the slots, for each of several kinds of machines; None: too many."""
        found: list[list[Choice]] = []
        edges = dict.fromkeys((slot.name for slot in reader.slots), 0)
        free = EDGES_MAX - self.draft.room.edges
        for alike in several:
            choices: list[Choice] = []
            for slot in reader.slots:
                choice = choose.choose(self.draft, reader, slot, alike[0])
                count = 1 if choice.implied is not None else 0
                if choice.binding is not None:
                    count = len(choice.binding.targets)
                readable = () if slot.count is None else choice.readable
                edges[slot.name] += max(len(alike) * count, len(readable))
                choices.append(replace(choice, readable=readable))
            if sum(edges.values()) > free:
                room.refuse_edges(self.draft.rows, reader.id, edges, sum(map(len, several)))
                return None
            found.append(choices)
        self.draft.room.take_edges(sum(edges.values()))
        return found

    def _bind_alike(
        self, reader: Assignment, choices: Sequence[Choice], machines: list[str]
    ) -> None:
        parted: list[tuple[SlotSpec, Choice]] = []
        for slot, choice in zip(reader.slots, choices, strict=True):
            for fault in choice.faults:
                self.draft.rows.place(reader.id, machines, fault)
            if slot.count is not None:
                self.draft.counted.setdefault((reader.id, slot.index), {}).update(
                    dict.fromkeys(machines, choice.readable)
                )
            if choice.implied is not None:
                parted.append((slot, choice))
        bindings = self._intern([choice.binding for choice in choices])
        for machine in machines:
            reader.bound[machine] = bindings
        for slot, choice in parted:
            self._imply(reader, slot, choice, machines)

    def _intern(self, found: list[Binding | None]) -> Bindings:
        bindings = tuple(found)
        return self._alike.setdefault(bindings, bindings)

    def _imply(
        self, reader: Assignment, slot: SlotSpec, choice: Choice, machines: list[str]
    ) -> None:
        """Put the implied provider beside each of the entries whose machine it fits."""
        assert choice.implied is not None
        module, role_name, provide = choice.implied
        beside = self._implied(f"{module.name}:{role_name}", choice)
        offer = next((one for one in beside.offers if one.provide == provide), None)
        if offer is None:
            return
        binding = Binding((Target(offer, None),), Chosen.IMPLIED)
        left_out = 0
        for machine in machines:
            unmet = self._requirements[beside.id].judge(machine).needed
            for one in unmet:
                fault = Fault(
                    code="requirement-unmet",
                    path="requires" if slot.presence else f"uses.{slot.name}",
                    message=f"slot {slot.name} of {ENTRY} needs {beside.id} beside it, which "
                    f"requires {one} of {MACHINE}",
                    resolution=(f"mend {MACHINE}, or place {reader.id} elsewhere",),
                    alone=True,
                )
                self.draft.rows.place(reader.id, (machine,), fault)
            if unmet:
                continue
            comes = machine not in beside.implied and machine not in beside.machines
            if comes and not self.draft.room.take_entries(beside.role, 1):
                left_out += 1
                continue
            bindings = list(reader.bound[machine])
            bindings[slot.index] = binding
            reader.bound[machine] = self._intern(bindings)
            if slot.count is not None:
                self.draft.counted[reader.id, slot.index][machine] = binding.targets
            if comes:
                beside.implied.add(machine)
                self.waiting.append((beside, machine))
        if left_out:
            room.refuse_placement(self.draft.rows, beside.id, "", beside.role, left_out)

    def _implied(self, name: str, choice: Choice) -> Assignment:
        assert choice.implied is not None
        module, role_name, _ = choice.implied
        found = implied.would_be(self.draft, module, role_name)
        self.draft.assignments[name] = found
        if name not in self._requirements:
            self._requirements[name] = Requirements(self.draft, found)
        return found


def _likeness(draft: Draft) -> dict[str, tuple[int, ...]]:
    """By machine: which providers stand there, and what it pins. Alike machines bind alike."""
    standing: dict[str, list[int]] = {name: [] for name in draft.fleet.machines}
    for number, assignment in enumerate(draft.assignments.values()):
        if assignment.offers:
            for machine in assignment.machines:
                standing[machine].append(number)
    pins: dict[tuple[tuple[str, str, bool], ...], int] = {}
    found: dict[str, tuple[int, ...]] = {}
    for name, machine in draft.fleet.machines.items():
        pinned = tuple((what, at, at == name) for what, at in sorted(machine.pins.items()))
        found[name] = (pins.setdefault(pinned, len(pins)), *standing[name])
    return found
