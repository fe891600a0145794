"""Whether what each machine is to be fits into one declaration. Reads; changes nothing."""

from collections.abc import Iterable, Mapping

from keyplane import wire
from keyplane.model.declaration import NO_OFFER
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.names import Digest, EntryId, MachineName, split_entry
from keyplane.ports.inventory import PlannedEntry
from keyplane.rollout import declaring

ENTRY_BYTES = 1024
"""What an entry takes beside its files, texts and values, more often than not."""


def check(
    entries: Mapping[EntryId, PlannedEntry], contents: Mapping[Digest, bytes]
) -> list[Diagnostic]:
    """A row for each machine whose declaration would be larger than the bus carries."""
    by_machine: dict[MachineName, dict[EntryId, PlannedEntry]] = {}
    for entry, planned in entries.items():
        by_machine.setdefault(split_entry(entry)[2], {})[entry] = planned
    rows: list[Diagnostic] = []
    for machine, here in sorted(by_machine.items()):
        if _guess(here.values(), contents) < wire.SIGNED_SIZE_MAX // 2:
            continue  # far from it, however rough the guess
        made = declaring.declare(machine, NO_OFFER, Digest(""), here, contents)
        found = None if isinstance(made, declaring.Refused) else wire.too_large(made)
        if found is not None:
            rows.append(_row(found))
    return rows


def _row(found: wire.TooLarge) -> Diagnostic:
    return Diagnostic(
        code="declaration-too-large",
        subject=found.machine,
        path=f"machines.{found.machine}",
        message=(
            f"what {found.machine} is to be comes to {found.size} bytes, and {found.size_max} is "
            "the most that it can be sent at once"
        ),
        resolution=(
            "put large files into an archive of [build], which is fetched beside it",
            f"or place less on {found.machine}",
        ),
    )


def _guess(entries: Iterable[PlannedEntry], contents: Mapping[Digest, bytes]) -> int:
    """About how many bytes it takes: files, texts and values are nearly all of it."""
    named: set[str] = set()
    size = 0
    for planned in entries:
        named.update(planned.grants.values())
        said: list[object] = []
        for unit in planned.entry.units.values():
            named.update(each for each in unit.config_data.values() if isinstance(each, str))
            said += (*unit.env.values(), *(unit.command or ()))
        for resource in planned.entry.resources.values():
            said += resource.values()
        texts = [each for each in said if isinstance(each, str)]
        named.update(each for each in texts if each in contents)
        size += ENTRY_BYTES + sum(map(len, texts))
    return size + sum(len(contents.get(Digest(each), b"")) for each in named)
