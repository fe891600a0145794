"""What an entry has for itself on its machine, as far as a plan shows it."""

from typing import Any, cast

from keyplane.model.plan import Entry
from keyplane.rollout.planned import Planned

Json = Any

_NAMED = frozenset({"package", "account"})
"""Resources that are known by a name, where others have a path."""


def claims(planned: Planned) -> frozenset[str]:
    """In words that a person reads, such as `port 5432` or `path /etc/motd`.

    A plan does not tell the protocol of a port: a tcp and a udp port of one number count as the
    same here. That costs an order where none was needed, and never a clash.
    """
    entry = planned.entry
    found = {f"port {number}" for number in entry.listens.values()}
    found.update(f"path {path}" for path in planned.grants)
    found.update(f"path {path}" for path in paths(entry))
    for name, resource in entry.resources.items():
        kind = str(resource.get("type"))
        if kind in _NAMED:
            found.add(f"{kind} {resource.get('name') or name}")
    for unit in entry.units.values():
        if isinstance(unit.unit, str):
            found.add(f"service {unit.unit}")
        elif isinstance(unit.file, str):
            found.add(f"service {unit.file.rpartition('/')[2]}")
    return frozenset(found)


def paths(entry: Entry) -> tuple[str, ...]:
    """Of resources, volumes and configuration files, sorted."""
    found = {path for unit in entry.units.values() for path in unit.config_data}
    found.update(
        path for unit in entry.units.values() for path in unit.dynamic if path.startswith("/")
    )
    stated = [*entry.resources.values(), *(volume_of(value) for value in entry.volumes.values())]
    found.update(str(fields["path"]) for fields in stated if "path" in fields)
    return tuple(sorted(found))


def volume_of(value: Json) -> dict[str, Json]:
    """A volume's fields; a plan may give its path alone."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {"path": value}
