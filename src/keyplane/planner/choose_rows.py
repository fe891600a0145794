"""The faults of binding: each says what there is to choose from, and the line that chooses."""

from collections.abc import Collection, Sequence

from keyplane.model.fleet import Instance
from keyplane.model.module import Module, Reach
from keyplane.planner.draft import Assignment, Draft, Offer, SlotSpec
from keyplane.planner.rows import ENTRY, MACHINE, Fault, did_you_mean, listed


def _path(slot: SlotSpec) -> str:
    return "requires" if slot.presence else f"uses.{slot.name}"


def _bind_line(reader: Assignment, slot: SlotSpec, value: str) -> str:
    return f'write instances.{reader.instance}.bind.{reader.role_name}.{slot.name} = "{value}"'


def pin(slot: SlotSpec, target: str, usable: Sequence[Offer]) -> Fault:
    offers = [offer for offer in usable if offer.assignment is not None]
    where = "; ".join(
        f"{offer.id} provides it on {', '.join(offer.assignment.machines)}"
        for offer in offers
        if offer.assignment is not None
    )
    return Fault(
        code="pin-not-provider",
        path=_path(slot),
        message=f"machine {MACHINE} pins {slot.interface} to {target}, where nothing provides it "
        f"for slot {slot.name} of {ENTRY}" + (f" ({where})" if where else ""),
        resolution=(
            f"change machines.{MACHINE}.pins.{slot.interface}, or remove it",
            f"or place a provider of {slot.interface} on {target}",
        ),
        alone=True,
    )


def ambiguous(reader: Assignment, slot: SlotSpec, offers: Sequence[Offer]) -> Fault:
    names = [offer.id for offer in offers]
    holders = [offer.assignment.instance if offer.assignment else offer.id for offer in offers]
    if len(set(names)) == 1:
        provides = listed(offer.provide for offer in offers)
        return Fault(
            code="slot-ambiguous",
            path=_path(slot),
            message=f"slot {slot.name} of {reader.id} could take any of the provides {provides} "
            f"of {names[0]}: each is of interface {slot.interface}, and no bind tells them apart",
            resolution=(
                f"give the provides of module {_module(offers[0])} interfaces of their own",
                f'or bind another instance: bind.{reader.role_name}.{slot.name} = "INSTANCE"',
            ),
        )
    return Fault(
        code="slot-ambiguous",
        path=_path(slot),
        message=f"slot {slot.name} of {reader.id} has {len(offers)} providers of {slot.interface} "
        f"to choose from: {listed(set(names))}",
        resolution=tuple(
            _bind_line(reader, slot, holder if holders.count(holder) == 1 else name)
            for name, holder in sorted(dict(zip(names, holders, strict=True)).items())
        ),
    )


def bad_bind(draft: Draft, reader: Assignment, slot: SlotSpec, said: str) -> Fault:
    instance = said.partition(":")[0]
    known = sorted(
        {
            offer.assignment.instance if offer.assignment else offer.id
            for offer in draft.offers.get(slot.interface, [])
        }
    )
    if said.startswith("external:"):
        there = said.removeprefix("external:") in draft.fleet.externals
    else:
        there = instance in draft.instances
    why = f"does not provide {slot.interface}" if there else "does not exist"
    return Fault(
        code="slot-unbound",
        path=f"bind.{slot.name}",
        message=f"slot {slot.name} of {reader.id} is bound to `{said}`, which {why}; "
        f"{_modules_told(slot, _modules_that_could(draft, slot))}",
        resolution=did_you_mean(said, known, f"providers of {slot.interface}"),
    )


def many(slot: SlotSpec, offer: Offer, count: int) -> Fault:
    return Fault(
        code="reach-one-many",
        path=_path(slot),
        message=f'slot {slot.name} of {ENTRY} has reach = "{slot.reach.value}" and can read '
        f"{count} placements of {offer.id}; it must be one",
        resolution=(
            f'say uses.{slot.name}.reach = "all" (a set by machine) or "local" (the one beside)',
            f'or pin it: machines.MACHINE.pins.{slot.interface} = "MACHINE"',
            f"or place {offer.id} once",
        ),
        alone=True,
    )


def split(reader: Assignment, slot: SlotSpec, offer: Offer) -> Fault:
    there = ", ".join(offer.assignment.machines) if offer.assignment is not None else ""
    return Fault(
        code="machine-local-split",
        path=_path(slot),
        message=f"slot {slot.name} of {ENTRY} reads {offer.id}, whose provides.{offer.provide} is "
        f"machine-local: it can be read on {there} only, and not on {MACHINE}",
        resolution=(
            f"place {reader.id} and {offer.id} on the same machine",
            f'or let {offer.id} give exports with access = "routable"',
        ),
        alone=True,
    )


def none(reader: Assignment, slot: SlotSpec, provider: str, *, beside: bool) -> Fault:
    why = (
        "which is placed elsewhere and not beside it"
        if beside
        else "which is placed on no other machine"
        if provider == reader.id
        else "which has none"
    )
    return Fault(
        code="reach-one-none",
        path=_path(slot),
        message=f'slot {slot.name} of {ENTRY} (reach = "{slot.reach.value}") needs a placement '
        f"of {provider}, {why}",
        resolution=(
            f"place {provider} on the machine of {ENTRY}"
            if slot.reach is Reach.LOCAL
            else f"place {provider} somewhere",
        ),
        alone=True,
    )


def unbound(draft: Draft, reader: Assignment, slot: SlotSpec) -> Fault:
    modules = _modules_that_could(draft, slot)
    outside = f'name one outside: externals.NAME.interface = "{slot.interface}"'
    return Fault(
        code="slot-unbound",
        path=_path(slot),
        message=f"slot {slot.name} of {reader.id}: nothing in the fleet provides "
        f"{slot.interface}; {_modules_told(slot, modules)}",
        resolution=(
            *(_way_to_stand(draft, module, role) for module, role in sorted(modules.items())),
            f"{'or ' if modules else ''}{outside}",
        ),
    )


def _way_to_stand(draft: Draft, module: str, role: str) -> str:
    """An instance that is placed nowhere needs a place, and no other instance beside it."""
    where = f'{role} = {{ machines = ["MACHINE"] }}'
    for name, instance in sorted(draft.instances.items()):
        if instance.module == module and role not in instance.placement:
            return f"place {name}: instances.{name}.placement.every.{where}"
    return f'assign {module}: instances.NAME = {{ module = "{module}", placement.every.{where} }}'


def _modules_that_could(draft: Draft, slot: SlotSpec) -> dict[str, str]:
    """The modules of the catalogue that provide the slot's interface, each with such a role."""
    return {
        name: role_name
        for name, module in draft.request.documents.modules.items()
        for role_name, role in module.roles.items()
        for provide in role.provides.values()
        if provide.interface == slot.interface
    }


def _modules_told(slot: SlotSpec, modules: Collection[str]) -> str:
    if modules:
        return f"modules of the catalogue that provide {slot.interface}: {listed(modules)}"
    return f"no module of the catalogue provides {slot.interface}"


def implied_ambiguous(
    reader: Assignment,
    slot: SlotSpec,
    found: Sequence[tuple[Module, str, str]],
) -> Fault:
    names = [f"{module.name}:{role}/{provide}" for module, role, provide in found]
    return Fault(
        code="slot-ambiguous",
        path=_path(slot),
        message=f"slot {slot.name} of {reader.id}: nothing beside it provides {slot.interface}, "
        f"and {len(found)} could be put there: {listed(names)}",
        resolution=tuple(
            f'place one: instances.{module.name} = {{ module = "{module.name}", '
            f'placement.every.{role} = {{ machines = ["{MACHINE}"] }} }}'
            for module, role, _ in found
        ),
    )


def implied_taken(reader: Assignment, slot: SlotSpec, module: Module, instance: Instance) -> Fault:
    return Fault(
        code="slot-ambiguous",
        path=_path(slot),
        message=f"slot {slot.name} of {reader.id} would put {module.name} beside it, but instance "
        f"{instance.name} is of module {instance.module}",
        resolution=(
            f"rename instance {instance.name}",
            f"or place an instance of {module.name}",
            f'and write bind.{reader.role_name}.{slot.name} = "INSTANCE"',
        ),
    )


def _module(offer: Offer) -> str:
    return offer.assignment.module.name if offer.assignment is not None else offer.id
