"""What the consumers of a provide with `grants` ask: the contributions file of its machine."""

from collections.abc import Iterator

from keyplane.model.module import Json
from keyplane.planner import canonical, fill
from keyplane.planner.draft import Draft
from keyplane.planner.program import Families, Family

_Asked = dict[str, dict[str, list[Json]]]
"""By provider's entry and provide, what its consumers ask."""


def grants(draft: Draft, families: Families) -> dict[str, dict[str, bytes]]:
    """By provider's entry and path: canonical JSON of its consumers on any machine."""
    paths: dict[str, dict[str, str]] = {}
    for several in families.values():
        for family in several:
            if family.program.extras.get("grants"):
                paths.update(_paths(draft, family))
    asked: _Asked = {entry: {name: [] for name in told} for entry, told in paths.items()}
    if asked:
        for several in families.values():
            for family in several:
                _contribute(draft, family, asked)
    return {
        entry: {
            path: canonical.encode({"consumers": canonical.in_order(asked[entry][name])})
            for name, path in told.items()
        }
        for entry, told in sorted(paths.items())
    }


def _paths(draft: Draft, family: Family) -> Iterator[tuple[str, dict[str, str]]]:
    """By entry and provide, where the contributions stand."""
    by_own = fill.columns(draft, family)
    for index, machine in enumerate(family.machines):
        values = {own: column[index] for own, column in by_own.items()}
        told = fill.tree(family.program.extras["grants"], values)
        yield f"{family.assignment.prefix}{machine}", told


def _contribute(draft: Draft, family: Family, consumers: _Asked) -> None:
    role = family.assignment
    by_own = None
    for slot, binding in zip(role.slots, family.bindings, strict=True):
        if binding is None or slot.presence:
            continue
        for target in binding.targets:
            provider = target.offer.assignment
            provide = provider.role.provides[target.offer.provide] if provider else None
            if provider is None or provide is None or provide.grants is None:
                continue
            by_own = fill.columns(draft, family) if by_own is None else by_own
            for index, machine in enumerate(family.machines):
                values = {own: column[index] for own, column in by_own.items()}
                where = machine if target.machine is None else target.machine
                request = family.program.requests.get(slot.name, {})
                entry = consumers.get(f"{provider.prefix}{where}", {})
                asked = entry.get(target.offer.provide)
                if asked is not None:
                    asked.append(
                        {
                            "instance": role.instance,
                            "role": role.role_name,
                            "machine": machine,
                            "login": role.instance.replace("-", "_"),
                            "slot": slot.name,
                            "request": {
                                name: fill.tree(item, values) for name, item in request.items()
                            },
                        }
                    )
