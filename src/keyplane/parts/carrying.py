"""What comes of orders on volumes by the reports: who takes what was saved, and what is over."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from keyplane.model.declaration import Report
from keyplane.model.names import EntryId
from keyplane.model.volumes import (
    Backup,
    OrderChange,
    OrderKind,
    SavedVolume,
    VolumeOrder,
    VolumesReport,
)
from keyplane.ports.clock import Clock
from keyplane.ports.inventory import Inventory
from keyplane.rollout import volumes


async def see(inventory: Inventory, orders: Iterable[VolumeOrder], *, at_ms: int) -> OrderChange:
    """Write down what came of orders; done again it changes nothing more."""
    reports = (await inventory.reports()).values()
    said = {entry: each for row in reports for entry, each in told(row.report)}
    change, backups = follow(tuple(orders), said, at_ms=at_ms)
    for backup in backups:
        await inventory.keep_backup(backup)
    if change != OrderChange():
        await inventory.change_volume_orders(change)
    return change


def follow(
    orders: Iterable[VolumeOrder], said: Mapping[EntryId, VolumesReport], *, at_ms: int
) -> tuple[OrderChange, tuple[Backup, ...]]:
    """What comes of orders by what is told of them: who takes what was saved, and what is over."""
    drop: list[VolumeOrder] = []
    fill: list[VolumeOrder] = []
    backups: list[Backup] = []
    for order in orders:
        own = said.get(order.entry, VolumesReport())
        match order.kind:
            case OrderKind.TAKE if own.taken >= order.number:
                drop.append(order)
            case OrderKind.SAVE if own.saved >= order.number:
                drop.append(order)
                if own.saved == order.number and own.volumes:
                    backups.append(_backup(order, own, at_ms, "backup"))
            case OrderKind.GIVE if own.given == order.number and own.saved == order.number:
                take = next(
                    (
                        each
                        for each in orders
                        if each.kind is OrderKind.TAKE
                        and each.entry == order.other
                        and each.number == order.number
                        and each.contents is None
                    ),
                    None,
                )
                if take is not None:
                    given = replace(order, who=take.who)
                    backups.append(_backup(given, own, at_ms, f"handed over to {order.other}"))
                    kept = {n: own.volumes[p].digest for n, p in order.volumes.items()}
                    fill.append(replace(take, contents=volumes.contents(take.volumes, kept)))
            case _:
                pass
    return OrderChange(drop=tuple(drop), fill=tuple(fill)), tuple(backups)


def _backup(order: VolumeOrder, said: VolumesReport, at_ms: int, why: str) -> Backup:
    return Backup(
        number=order.number,
        entry=order.entry,
        at_ms=at_ms,
        who=order.who,
        why=why,
        volumes=tuple(
            SavedVolume(
                name=name, path=path, digest=said.volumes[path].digest, size=said.volumes[path].size
            )
            for name, path in sorted(order.volumes.items())
        ),
    )


def told(report: Report) -> Iterable[tuple[EntryId, VolumesReport]]:
    for entry, said in report.entries.items():
        if said.volumes is not None:
            yield entry, said.volumes


async def next_number(inventory: Inventory, clock: Clock) -> int:
    """Above all that any machine or the inventory knows, where clocks go as they should."""
    known = [clock.now_ms()]
    known += [each.number + 1 for each in await inventory.volume_orders()]
    known += [each.number + 1 for each in await inventory.backups()]
    for stored in (await inventory.reports()).values():
        known += [copy.number + 1 for copy in stored.report.copies.values()]
        known += [max(s.saved, s.given, s.taken) + 1 for _, s in told(stored.report)]
    return max(known)
