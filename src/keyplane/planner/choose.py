"""What one slot of one placement is bound to: bind, sibling, pin, only provider, implied.

Then which of the provider's placements it reads: those that are readable from its machine, by the
slot's reach. A choice that cannot be made is a fault, never a guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from keyplane.model.module import Module, Reach, Scope
from keyplane.planner import choose_rows
from keyplane.planner.draft import Assignment, Binding, Chosen, Draft, Offer, SlotSpec, Target
from keyplane.planner.rows import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How it came out. Free of the reader's machine where every machine like it chooses so."""

    binding: Binding | None = None
    faults: tuple[Fault, ...] = ()
    readable: tuple[Target, ...] = ()
    """All placements that could be read; `requires.count` counts them."""
    implied: tuple[Module, str, str] | None = None
    """The module, role and provide that have to be put beside the reader."""


def choose(draft: Draft, reader: Assignment, slot: SlotSpec, machine: str) -> Choice:
    return _Choosing(draft, reader, slot, machine).choice()


class _Choosing:
    """One slot of one placement, while its provider is looked for."""

    def __init__(self, draft: Draft, reader: Assignment, slot: SlotSpec, machine: str) -> None:
        self._draft = draft
        self._reader = reader
        self._slot = slot
        self._machine = machine

    def choice(self) -> Choice:
        reader, slot = self._reader, self._slot
        pin = None
        if slot.reach is not Reach.ALL:
            pin = self._draft.fleet.machines[self._machine].pins.get(slot.interface)
        said = reader.bind.get(slot.name)
        if said is not None:
            return self._bound(said, pin)
        siblings = [
            offer
            for offer in self._draft.offers_of(slot.interface, reader.instance)
            if offer.assignment is not reader and self._is_usable(offer)
        ]
        if siblings:
            return self._one_of(siblings, Chosen.SIBLING, None)
        usable = [
            offer
            for offer in self._draft.offers_at(slot.interface, self._machine)
            if self._is_usable(offer)
        ]
        if pin is not None:
            there = [offer for offer in usable if pin in self._placements(offer)]
            if not there:
                return Choice(faults=(choose_rows.pin(slot, pin, usable),))
            return self._one_of(there, Chosen.PIN, pin)
        if usable:
            return self._one_of(usable, Chosen.ONLY, None)
        return self._none()

    def _placements(self, offer: Offer) -> list[str]:
        """Where the offer stands, as far as its scope says. No entry answers itself."""
        provider, machine = offer.assignment, self._machine
        if provider is None:
            return []
        found = list(provider.machines)
        if offer.scope is Scope.MACHINE:
            found = [machine] if machine in provider.machines else []
        if provider is self._reader and self._slot.reach is not Reach.ALL and machine in found:
            found.remove(machine)
        return found

    def _is_usable(self, offer: Offer) -> bool:
        provider = offer.assignment
        if provider is None:
            return True
        if provider is self._reader:
            return bool(self._placements(offer))
        if offer.scope is Scope.MACHINE:
            return self._machine in provider.machines
        return bool(provider.machines)

    def _bound(self, said: str, pin: str | None) -> Choice:
        slot = self._slot
        offers = self._draft.offers_bound(slot.interface, said)
        if not offers:
            if _is_unplaced(self._draft, slot, said):
                return self._nothing(said)
            if _is_unread(self._draft, said):
                return Choice()
            return Choice(faults=(choose_rows.bad_bind(self._draft, self._reader, slot, said),))
        placed = [
            offer for offer in offers if offer.assignment is None or offer.assignment.machines
        ]
        narrowed = next(
            (
                pin
                for offer in placed
                if pin is not None
                and offer.assignment is not None
                and pin in offer.assignment.machines
            ),
            None,
        )
        return self._one_of(placed or offers, Chosen.BIND, narrowed)

    def _one_of(self, offers: Sequence[Offer], chosen: Chosen, narrowed: str | None) -> Choice:
        if self._slot.presence:
            return self._any_of(offers, chosen, narrowed)
        if len(offers) > 1:
            return Choice(faults=(choose_rows.ambiguous(self._reader, self._slot, offers),))
        return self._reach(offers[0], chosen, narrowed)

    def _reach(self, offer: Offer, chosen: Chosen, narrowed: str | None) -> Choice:
        reader, slot, machine = self._reader, self._slot, self._machine
        standing = self._placements(offer)
        readable = self._readable(offer, standing)
        if narrowed is not None and narrowed in standing and not offer.free:
            standing = [narrowed]
            readable = [target for target in readable if (target.machine or machine) == narrowed]
        if slot.reach is Reach.ALL:
            binding = Binding(tuple(readable), chosen) if readable else None
            return Choice(binding=binding, readable=tuple(readable))
        if offer.free and readable:
            return Choice(binding=Binding((readable[0],), chosen), readable=tuple(readable))
        if slot.reach is Reach.LOCAL:
            readable = [Target(offer, None)] if machine in standing else []
        if len(readable) == 1:
            return Choice(binding=Binding((readable[0],), chosen), readable=tuple(readable))
        if readable:
            fault = choose_rows.many(slot, offer, len(readable))
            return Choice(faults=(fault,), readable=tuple(readable))
        elsewhere = offer.assignment is not None and any(
            other != machine or offer.assignment is not reader
            for other in offer.assignment.machines
        )
        if (offer.scope is Scope.MACHINE and elsewhere) or (standing and slot.reach is Reach.ONE):
            return Choice(faults=(choose_rows.split(reader, slot, offer),))
        return self._nothing(offer.id, beside=bool(standing))

    def _readable(self, offer: Offer, standing: Sequence[str]) -> list[Target]:
        if offer.assignment is None:
            return [Target(offer, "")]
        if offer.free and standing:
            return [Target(offer, None if offer.scope is Scope.MACHINE else standing[0])]
        if offer.scope is Scope.MACHINE or not offer.routable(self._slot.reads):
            return [Target(offer, None)] if self._machine in standing else []
        return [Target(offer, other) for other in standing]

    def _any_of(self, offers: Sequence[Offer], chosen: Chosen, narrowed: str | None) -> Choice:
        """Of `requires`: the reader's own machine first, then by name."""
        machine = self._machine
        standing = [(offer, self._placements(offer)) for offer in offers]
        readable = [
            target
            for offer, placements in standing
            for target in self._readable(offer, placements)
            if narrowed is None
            or (machine if target.machine is None else target.machine) == narrowed
        ]
        readable.sort(key=lambda target: _by_nearness(target, machine))
        if readable:
            first = readable[0]
            if first.machine == machine:
                first = Target(first.offer, None)
            return Choice(binding=Binding((first,), chosen), readable=(first,))
        if any(placements for _, placements in standing) or any(
            offer.assignment is not None and offer.assignment.machines for offer in offers
        ):
            return Choice(faults=(choose_rows.split(self._reader, self._slot, offers[0]),))
        return self._nothing(offers[0].id)

    def _nothing(self, provider: str, *, beside: bool = False) -> Choice:
        if self._slot.reach is Reach.ALL:
            return Choice()
        fault = choose_rows.none(self._reader, self._slot, provider, beside=beside)
        return Choice(faults=(fault,))

    def _none(self) -> Choice:
        """No candidate: one module with machine scope is implied."""
        reader, slot = self._reader, self._slot
        found = self._draft.beside_modules(slot.interface)
        if len(found) > 1:
            return Choice(faults=(choose_rows.implied_ambiguous(reader, slot, found),))
        if found:
            module, role_name, _ = found[0]
            instance = self._draft.instances.get(module.name)
            if instance is not None and instance.module != module.name:
                return Choice(faults=(choose_rows.implied_taken(reader, slot, module, instance),))
            if f"{module.name}:{role_name}" != reader.id:
                return Choice(implied=found[0])
        if slot.reach is Reach.ALL:
            return Choice()
        return Choice(faults=(choose_rows.unbound(self._draft, reader, slot),))


def _is_unplaced(draft: Draft, slot: SlotSpec, said: str) -> bool:
    """Whether the bind names an instance whose module provides the interface, placed nowhere."""
    name = said.partition(":")[0]
    instance = draft.instances.get(name)
    module = draft.request.documents.modules.get(instance.module) if instance else None
    if module is None:
        return False
    return any(
        provide.interface == slot.interface
        for other, role in module.roles.items()
        if said in (name, f"{name}:{other}")
        for provide in role.provides.values()
    )


def _is_unread(draft: Draft, said: str) -> bool:
    """Whether the bind names what is written and could not be read, which is a row already."""
    if said.startswith("external:"):
        return draft.is_dropped(draft.fleet.file, "externals", said.removeprefix("external:"))
    name, colon, role = said.partition(":")
    instance = draft.instances.get(name)
    if instance is None:
        return draft.is_dropped(draft.fleet.file, "instances", name)
    module = draft.request.documents.modules.get(instance.module)
    if module is None:
        return True
    roles = (role,) if colon else (*module.roles, *_dropped_roles(draft, module))
    return any(draft.has_dropped(module.file, "roles", one, "provides") for one in roles)


def _dropped_roles(draft: Draft, module: Module) -> set[str]:
    dropped = draft.request.documents.dropped.get(module.file, ())
    return {place[1] if len(place) > 1 else "" for place in dropped if place[:1] == ("roles",)}


def _by_nearness(target: Target, machine: str) -> tuple[bool, str, str]:
    there = machine if target.machine is None else target.machine
    entry = f"{target.offer.id}@{there}" if there else target.offer.id
    return there != machine, entry, target.offer.provide
