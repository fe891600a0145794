"""What the agent and the controller need of an entry beside its units; out of its key."""

from collections.abc import Callable

from keyplane.model import places
from keyplane.model.module import Json, Module, Role
from keyplane.planner.draft import Assignment
from keyplane.planner.program import Family
from keyplane.planner.terms import Tree

Close = Callable[[Tree, str], Tree]
"""Resolves the texts of a tree of static values, given its path from the role."""
Whole = Callable[[Tree, str], Tree | None]
"""The same; None if anything in it cannot be resolved, which is a row."""


def extras(family: Family, close: Close, whole: Whole) -> dict[str, Tree]:
    """By field of the plan's entry; what is empty is left out.

    An agent is to read no source, and write no file, of which only a part is known.
    """
    assignment = family.assignment
    role = assignment.role
    found: dict[str, Tree] = {
        "publishes": _publishes(assignment, whole),
        "grants": {
            name: path
            for name, tree in assignment.compiled.grants.items()
            if (path := whole(tree, f"provides.{name}.grants")) is not None
        },
        "credentials": _credentials(family),
        "secret_options": _secret_options(assignment.module, role),
        "state": {
            name: {
                "name": places.bucket_name(assignment.instance, assignment.role_name, name),
                "history": 1 if bucket.history is None else bucket.history,
            }
            for name, bucket in sorted(role.state.items())
        },
        "reads": _reads(role),
        "zone": {} if role.zone is None else {"name": role.zone.name, "listen": role.zone.listen},
        "seats": {
            name: close(tree, f"seats.{name}") for name, tree in assignment.compiled.seats.items()
        },
    }
    return {name: value for name, value in found.items() if value}


def _publishes(assignment: Assignment, whole: Whole) -> dict[str, Tree]:
    """The type and the source of each dynamic export, by `PROVIDE/EXPORT`."""
    found: dict[str, Tree] = {}
    for offer in assignment.offers:
        for name, export in offer.exports.items():
            path = f"provides.{offer.provide}.exports.{name}.source"
            source = {
                key: tree if isinstance(tree, bool) else whole(tree, f"{path}.{key}")
                for key, tree in (export.source or {}).items()
            }
            if source and None not in source.values():
                found[f"{offer.provide}/{name}"] = {"type": export.type.value, **source}
    return found


def _credentials(family: Family) -> dict[str, str]:
    assignment = family.assignment
    found: dict[str, str] = {}
    for slot, binding in zip(assignment.slots, family.bindings, strict=True):
        if slot.presence or binding is None:
            continue
        if binding.targets[0].offer.credentials:
            path = places.credential_path(assignment.instance, assignment.role_name, slot.name)
            found[slot.name] = path
    return found


def _secret_options(module: Module, role: Role) -> dict[str, Json]:
    """Length and owner of each secret that states one; the owner by the account's own name."""
    accounts = {
        name: str(resource.fields.get("name", name))
        for other in module.roles.values()
        for name, resource in other.resources.items()
        if resource.type == "account"
    }
    found: dict[str, Json] = {}
    for name, secret in sorted(role.secrets.items()):
        said: dict[str, Json] = {}
        if secret.length is not None:
            said["length"] = secret.length
        if secret.owner is not None:
            said["owner"] = accounts.get(secret.owner, secret.owner)
        if said:
            found[name] = said
    return found


def _reads(role: Role) -> list[str]:
    found: list[str] = []
    for read in role.reads:
        holder, _, bucket = read.partition("/")
        instance, _, other = holder.partition(":")
        found.append(places.bucket_name(instance, other, bucket))
    return sorted(found)
