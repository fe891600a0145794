"""What people edit without an editor: a setting, an assignment, a pin; as changes of the fleet's text.

Each edit becomes the values that are put and removed, by their path in the fleet's document, or
the reason why it cannot be. `rewriting` brings those into the text. What the planner finds wrong
with the result is told by its rows, not here.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keyplane.model.documents import Documents
from keyplane.model.fleet import Fleet, Instance, Placement, Strategy
from keyplane.model.module import Module

Json = Any


@dataclass(frozen=True, slots=True)
class Put:
    path: tuple[str, ...]
    value: Json


@dataclass(frozen=True, slots=True)
class Remove:
    """With the tables around it that hold nothing else, up to the instance or machine."""

    path: tuple[str, ...]


Step = Put | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    steps: tuple[Step, ...]
    will: str = ""
    """What it is to change, for a person who has not said yes yet."""
    said: str
    """What it changed; without steps, why there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Refused:
    message: str


def set_value(documents: Documents, place: str, text: str) -> Edit | Refused:
    """`INSTANCE[.ROLE].SETTING`, and its value as it is typed."""
    match place.split("."):
        case [name, setting]:
            role = None
        case [name, role, setting]:
            pass
        case _:
            return Refused(f"`{place}` is no INSTANCE[.ROLE].SETTING")
    found = _instance(documents, name)
    if isinstance(found, Refused):
        return found
    if role is None:
        chosen = _role_with(documents, found, setting)
        if isinstance(chosen, Refused):
            return chosen
        role = chosen
    value = _value(_type_of(documents, found, role, setting), text)
    if isinstance(value, Refused):
        return Refused(f"{found.name}.{role}.{setting}: {value.message}")
    before = found.settings.get(role, {})
    at = f"{found.name}.{role}.{setting}"
    will, said = f"{at} will be {_shown(value)}", f"{at} = {_shown(value)}"
    if setting in before:
        if _alike(before[setting], value):
            return Edit(steps=(), said=f"{said} already")
        will += f" (is {_shown(before[setting])})"
        said += f" (was {_shown(before[setting])})"
    path = ("instances", found.name, "settings", role, setting)
    return Edit(steps=(Put(path, value),), will=will, said=said)


def assign(documents: Documents, named: str, machine: str) -> Edit | Refused:
    """`INSTANCE[:ROLE]`, to a machine. A module without an instance gets one of its name."""
    name, _, role = named.partition(":")
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    if (missing := _no_machine(fleet, machine)) is not None:
        return missing
    new: tuple[Step, ...] = ()
    if name not in fleet.instances and name in documents.modules:
        new = (Put(("instances", name, "module"), name),)
        found: Instance | Refused = Instance(name=name, module=name)
    else:
        found = _instance(documents, name)
    if isinstance(found, Refused):
        return found
    chosen = _role(documents, found, role, "assign", machine)
    if isinstance(chosen, Refused):
        return chosen
    at = f"{name}:{chosen}"
    placement = found.placement.get(chosen)
    path = ("instances", name, "placement", "every", chosen)
    if placement is None:
        return _assigned((*new, Put(path, {"machines": [machine]})), at, machine)
    if (other := _not_by_name(fleet, name, chosen, placement)) is not None:
        is_there = _selects(fleet, placement, machine) and placement.strategy is Strategy.EVERY
        if is_there:
            return Edit(steps=(), said=f"{at} is on {machine} already: {other}")
        return Refused(f"{at} cannot be assigned by name: {other}")
    machines = placement.machines or ()
    if machine in machines:
        return Edit(steps=(), said=f"{at} is assigned to {machine} already")
    return _assigned((Put((*path, "machines"), [*machines, machine]),), at, machine)


def _assigned(steps: tuple[Step, ...], at: str, machine: str) -> Edit:
    return Edit(
        steps=steps,
        will=f"{at} will be assigned to {machine}",
        said=f"{at} is assigned to {machine}",
    )


def unassign(documents: Documents, named: str, machine: str) -> Edit | Refused:
    """`INSTANCE[:ROLE]`, from a machine."""
    name, _, role = named.partition(":")
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    if (missing := _no_machine(fleet, machine)) is not None:
        return missing
    found = _instance(documents, name)
    if isinstance(found, Refused):
        return found
    chosen = _role(documents, found, role, "unassign", machine)
    if isinstance(chosen, Refused):
        return chosen
    at = f"{name}:{chosen}"
    placement = found.placement.get(chosen)
    if placement is None:
        return Edit(steps=(), said=f"{at} is not assigned to {machine}: it is placed nowhere")
    if (other := _not_by_name(fleet, name, chosen, placement)) is not None:
        if not _selects(fleet, placement, machine):
            return Edit(steps=(), said=f"{at} is not on {machine}: {other}")
        return Refused(f"{at} cannot be unassigned by name: {other}")
    machines = placement.machines or ()
    if machine not in machines:
        return Edit(steps=(), said=f"{at} is not assigned to {machine}")
    left = [each for each in machines if each != machine]
    path = ("instances", name, "placement", "every", chosen, "machines")
    return Edit(
        steps=(Put(path, left),),
        will=f"{at} will no longer be assigned to {machine}",
        said=f"{at} is no longer assigned to {machine}",
    )


def pin(documents: Documents, machine: str, interface: str, provider: str) -> Edit | Refused:
    """On the machine, the interface is answered from the provider's machine."""
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    for each in (machine, provider):
        if (missing := _no_machine(fleet, each)) is not None:
            return missing
    before = fleet.machines[machine].pins.get(interface)
    said = f"on {machine}, {interface} is answered from {provider}"
    if before == provider:
        return Edit(steps=(), said=f"{said} already")
    path = ("machines", machine, "pins", interface)
    return Edit(
        steps=(Put(path, provider),),
        will=f"on {machine}, {interface} will be answered from {provider}"
        + ("" if before is None else f" (is {before})"),
        said=said + ("" if before is None else f" (was {before})"),
    )


def unpin(documents: Documents, machine: str, interface: str) -> Edit | Refused:
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    if (missing := _no_machine(fleet, machine)) is not None:
        return missing
    before = fleet.machines[machine].pins.get(interface)
    if before is None:
        return Edit(steps=(), said=f"{interface} is not pinned on {machine}")
    return Edit(
        steps=(Remove(("machines", machine, "pins", interface)),),
        will=f"on {machine}, {interface} will no longer be pinned to {before}",
        said=f"on {machine}, {interface} is no longer pinned to {before}",
    )


def remove_machine(documents: Documents, machine: str) -> Edit | Refused:
    """With its place in each placement by name, its own pins, and every pin to it."""
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    if (missing := _no_machine(fleet, machine)) is not None:
        return missing
    steps: list[Step] = []
    will = [f"{machine} will leave the fleet"]
    said = [f"{machine} leaves the fleet"]
    for name, instance in sorted(fleet.instances.items()):
        for role, placement in sorted(instance.placement.items()):
            if machine in (placement.machines or ()):
                left = [each for each in placement.machines or () if each != machine]
                strategy = placement.strategy.value
                path = ("instances", name, "placement", strategy, role, "machines")
                steps.append(Put(path, left))
                will.append(f"{name}:{role} will no longer be assigned to it")
                said.append(f"{name}:{role} is no longer assigned to it")
    for name, other in sorted(fleet.machines.items()):
        for interface, provider in sorted(other.pins.items()):
            if name != machine and provider == machine:
                steps.append(Remove(("machines", name, "pins", interface)))
                will.append(f"on {name}, {interface} will no longer be pinned to it")
                said.append(f"on {name}, {interface} is no longer pinned to it")
    steps.append(Remove(("machines", machine)))
    return Edit(steps=tuple(steps), will="; ".join(will), said="; ".join(said))


def _no_machine(fleet: Fleet, name: str) -> Refused | None:
    if name in fleet.machines:
        return None
    return Refused(f"no machine `{name}`{_hint(name, fleet.machines, 'machines')}")


def _instance(documents: Documents, name: str) -> Instance | Refused:
    fleet = documents.fleet
    assert fleet is not None, "a revision that was the target has a fleet"
    if name in fleet.instances:
        return fleet.instances[name]
    return Refused(f"no instance `{name}`{_hint(name, fleet.instances, 'instances')}")


def _hint(name: str, known: Iterable[str], kind: str) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 2)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f": the {kind} are {', '.join(names)}" if names else f": there are no {kind}"


def _module(documents: Documents, instance: Instance) -> Module | Refused:
    found = documents.modules.get(instance.module)
    if found is None:
        return Refused(f"{instance.name} is of module `{instance.module}`, which is not there")
    return found


def _role(
    documents: Documents, instance: Instance, role: str, verb: str, machine: str
) -> str | Refused:
    """The role that is meant: where there is one only, it need not be named."""
    module = _module(documents, instance)
    if isinstance(module, Refused):
        return module
    if role in module.roles:
        return role
    names = sorted(module.roles)
    if role:
        return Refused(f"{instance.name} has no role `{role}`{_hint(role, names, 'roles')}")
    if len(names) == 1:
        return names[0]
    ways = " or ".join(f"`keyplane {verb} {instance.name}:{each} {machine}`" for each in names)
    return Refused(f"{instance.name} has several roles: {ways}")


def _role_with(documents: Documents, instance: Instance, setting: str) -> str | Refused:
    module = _module(documents, instance)
    if isinstance(module, Refused):
        return module
    having = [name for name, role in sorted(module.roles.items()) if setting in role.settings]
    if len(having) == 1:
        return having[0]
    if having:
        ways = " or ".join(f"{instance.name}.{role}.{setting}" for role in having)
        return Refused(f"several roles of {instance.name} have a setting `{setting}`: say {ways}")
    known = {each for role in module.roles.values() for each in role.settings}
    return Refused(
        f"no role of {instance.name} has a setting `{setting}`{_hint(setting, known, 'settings')}"
    )


def _type_of(documents: Documents, instance: Instance, role: str, setting: str) -> str | None:
    """The declared type; None where nothing is declared, which the planner's rows will tell."""
    module = documents.modules.get(instance.module)
    found = None if module is None else module.roles.get(role)
    declared = None if found is None else found.settings.get(setting)
    return None if declared is None else str(declared.type)


def _value(kind: str | None, text: str) -> Json | Refused:
    """What was typed, as a value of that type."""
    if kind == "string":
        return text
    try:
        parsed: Any = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        parsed = text
    words: Mapping[str, tuple[type, ...]] = {
        "integer": (int,), "number": (int, float), "boolean": (bool,), "list": (list,),
    }  # fmt: skip
    if kind not in words:
        return parsed
    is_flag = isinstance(parsed, bool)
    if is_flag == (kind == "boolean") and type(parsed) in words[kind]:
        return parsed
    if kind == "boolean":
        return Refused(f"{_shown(text)} is neither true nor false")
    such = ', such as ["a", "b"]' if kind == "list" else ""
    return Refused(f"{_shown(text)} is no {kind}{such}")


def _no_constant(text: str) -> Json:
    raise ValueError(f"{text} is no number that a document can hold")


def _alike(one: Json, other: Json) -> bool:
    return type(one) is type(other) and one == other


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _selects(fleet: Fleet, placement: Placement, machine: str) -> bool:
    if placement.machines is not None:
        return machine in placement.machines
    return set(placement.tags or ()) <= set(fleet.machines[machine].tags)


def _not_by_name(fleet: Fleet, name: str, role: str, placement: Placement) -> str | None:
    """How else it is placed, and where a person changes that; None if by the machines' names."""
    at = f"edit instances.{name}.placement.{placement.strategy}.{role} in {fleet.file}"
    if placement.strategy is Strategy.COUNT:
        return f"its machines are chosen by count ({placement.count}); {at}"
    if placement.machines is not None:
        return None
    if placement.tags:
        return f"it is placed by the tags {', '.join(placement.tags)}; give or take a tag, or {at}"
    return f"it is placed on all machines; {at}"
