"""Round read: from the documents to the assignments that are to be placed.

Problems of reading come along as rows; problems between documents become rows here.
"""

from keyplane.model.fleet import External, Instance, Machine
from keyplane.model.module import Module
from keyplane.planner import clear, externals, notes, prepare, settings, terms
from keyplane.planner.draft import Assignment, Draft, Offer
from keyplane.planner.rows import did_you_mean


def read(draft: Draft) -> None:
    documents = draft.request.documents
    for name in sorted(documents.facts.keys() - draft.fleet.machines.keys()):
        if _is_dropped(draft, "machines", name):
            continue
        draft.rows.add(
            "unknown-machine",
            f"facts/{name}.json",
            "machine",
            f"there is a snapshot of `{name}`, which is no machine of the fleet",
            *did_you_mean(name, draft.fleet.machines, "machines of the fleet"),
        )
    for machine in draft.fleet.machines.values():
        _read_pins(draft, machine)
    for name, instance in sorted(draft.fleet.instances.items()):
        module = documents.modules.get(instance.module)
        if module is not None:
            _read_instance(draft, instance, module)
        elif instance.module not in documents.broken:
            draft.rows.add(
                "unknown-module",
                draft.fleet.file,
                f"instances.{name}.module",
                f"instance {name}: there is no module `{instance.module}`",
                *did_you_mean(instance.module, documents.modules, "modules of the catalogue"),
                f"or make it: its document is modules/{instance.module}/module.toml",
            )


def evaluate(draft: Draft) -> None:
    """Settle the settings of each assignment, evaluate it, and gather what is offered."""
    for assignment in draft.assignments.values():
        evaluate_role(draft, assignment)
        for offer in assignment.offers:
            draft.add_offer(offer)
    for _, external in sorted(draft.fleet.externals.items()):
        offer = read_external(draft, external)
        if offer is not None:
            draft.add_offer(offer)


def evaluate_role(draft: Draft, assignment: Assignment) -> None:
    with draft.noting(notes.of_role(assignment.id)):
        settings.resolve(draft, assignment)
        prepare.prepare(draft, assignment)


def read_external(draft: Draft, external: External) -> Offer | None:
    with draft.noting(notes.of_external(external.name)):
        for name, variants in sorted(external.exports.items()):
            path = f"externals.{external.name}.exports.{name}.value"
            for variant in variants:
                tree = terms.read_tree(variant.value, path, lambda _path, _message: None)
                clear.check_tree(draft.rows, draft.fleet.file, path, tree)
        return externals.of_external(draft, external)


def assign(
    draft: Draft, instance_name: str, module: Module, role_name: str, *, placed: bool
) -> Assignment:
    """A new assignment, not evaluated yet."""
    instance = draft.fleet.instances.get(instance_name)
    placement = instance.placement.get(role_name) if instance is not None and placed else None
    return Assignment(
        id=f"{instance_name}:{role_name}",
        instance=instance_name,
        role_name=role_name,
        module=module,
        role=module.roles[role_name],
        placement=placement,
        bind=instance.bind.get(role_name, {}) if instance is not None else {},
    )


def _is_dropped(draft: Draft, *path: str) -> bool:
    return draft.is_dropped(draft.fleet.file, *path)


def _read_pins(draft: Draft, machine: Machine) -> None:
    for interface, target in sorted(machine.pins.items()):
        path = f"machines.{machine.name}.pins.{interface}"
        if interface not in draft.interfaces and not draft.is_interface_dropped(interface):
            draft.rows.add(
                "unknown-interface",
                draft.fleet.file,
                path,
                f"machine {machine.name} pins `{interface}`, which is no interface",
                *did_you_mean(interface, draft.interfaces, "interfaces"),
            )
        if target not in draft.fleet.machines and not _is_dropped(draft, "machines", target):
            draft.rows.add(
                "unknown-machine",
                draft.fleet.file,
                path,
                f"machine {machine.name} pins {interface} to `{target}`, which is no machine",
                *did_you_mean(target, draft.fleet.machines, "machines of the fleet"),
            )


def _read_instance(draft: Draft, instance: Instance, module: Module) -> None:
    for section, table in (
        ("settings", instance.settings),
        ("placement", instance.placement),
        ("bind", instance.bind),
        ("floor", instance.floor),
    ):
        for role in sorted(table.keys() - module.roles.keys()):
            if draft.is_dropped(module.file, "roles", role):
                continue
            strategy = instance.placement[role].strategy.value if section == "placement" else ""
            path = ".".join(
                part for part in ("instances", instance.name, section, strategy, role) if part
            )
            draft.rows.add(
                "unknown-role",
                draft.fleet.file,
                path,
                f"{path}: module {module.name} has no role `{role}`",
                *did_you_mean(role, module.roles, f"roles of {module.name}"),
            )
    for role in sorted(module.roles):
        if role in instance.placement:
            assignment = assign(draft, instance.name, module, role, placed=True)
            draft.assignments[assignment.id] = assignment
            _read_placement(draft, assignment)
        elif role in instance.settings:
            unplaced = assign(draft, instance.name, module, role, placed=False)
            settings.check_given(draft, unplaced, instance.settings[role])
        for slot in sorted(instance.bind.get(role, {})):
            known = [*module.roles[role].uses, *module.roles[role].requires]
            if slot not in known and not any(
                draft.is_dropped(module.file, "roles", role, *place)
                for place in (("uses", slot), ("requires",))
            ):
                draft.rows.add(
                    "unknown-reference",
                    f"{instance.name}:{role}",
                    f"bind.{slot}",
                    f"bind.{role}.{slot} of instance {instance.name} binds a slot that role "
                    f"{role} of {module.name} does not have",
                    *did_you_mean(slot, known, "slots of the role"),
                )


def _read_placement(draft: Draft, assignment: Assignment) -> None:
    placement = assignment.placement
    for name in (placement.machines or ()) if placement is not None else ():
        if name not in draft.fleet.machines and not _is_dropped(draft, "machines", name):
            assert placement is not None
            draft.rows.add(
                "unknown-machine",
                assignment.id,
                f"placement.{placement.strategy.value}.{assignment.role_name}.machines",
                f"{assignment.id} is placed on `{name}`, which is no machine of the fleet",
                *did_you_mean(name, draft.fleet.machines, "machines of the fleet"),
            )
