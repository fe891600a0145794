"""Whose data goes where: which entries arrive without theirs, and what is ordered for it.

Every entry of a role that has volumes is asked about, where another of that role goes. What was
ordered stands in the inventory until it was carried out, so a later rollout goes on with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keyplane.model.declaration import SaveOrder, TakeOrder
from keyplane.model.names import Digest, EntryId, split_entry
from keyplane.model.volumes import Backup, Choice, OrderChange, OrderKind, VolumeOrder
from keyplane.rollout import claims
from keyplane.rollout.planned import Planned

Entries = Mapping[EntryId, Planned]


@dataclass(frozen=True, slots=True, kw_only=True)
class Give:
    to: EntryId
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """What a rollout has to see to."""

    gives: Mapping[EntryId, Give] = field(default_factory=dict[EntryId, Give])
    """By who stops and gives its data away, before who takes it starts."""
    takes: Mapping[EntryId, int] = field(default_factory=dict[EntryId, int])
    """Who starts only once its volumes are what was ordered, and under which number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An entry that comes to a machine while its data is elsewhere: somebody has to say."""

    to: EntryId
    source: EntryId | None
    """Who has the data now and goes; None: nobody that is declared."""
    volumes: Mapping[str, str]
    """Path by name, at the new place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    choice: Choice
    backup: Backup | None = None
    """Of RESTORE."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the orders say of who has which data."""

    base: Entries
    target: Entries
    takes: Mapping[EntryId, VolumeOrder]
    gives: Mapping[EntryId, VolumeOrder]

    def waits(self, entry: EntryId) -> bool:
        """Its data has not come yet, and nothing of it can have run."""
        take = self.takes.get(entry)
        return take is not None and take.contents is None and not take.keeps

    def went_on(self, entry: EntryId) -> bool:
        """Its data was given, and who took it may have changed it since."""
        give = self.gives.get(entry)
        return (
            give is not None
            and give.other in self.base
            and give.other is not None
            and not self.waits(give.other)
        )


def volumes_of(planned: Planned) -> dict[str, str]:
    """Path by name."""
    return {
        name: str(claims.volume_of(value)["path"])
        for name, value in sorted(planned.entry.volumes.items())
    }


def arrivals(
    base: Entries, target: Entries, orders: Iterable[VolumeOrder], copies: Iterable[EntryId]
) -> tuple[Arrival, ...]:
    """Those of which nobody has said what is to become of their data, by entry.

    `copies` are entries whose data, on their own machine, was given away.
    """
    found = _standing(base, target, orders)
    left = set(copies)
    leaving: dict[tuple[str, str], list[EntryId]] = {}
    for entry in sorted(base.keys() - target.keys()):
        has_data = not found.waits(entry) and not found.went_on(entry)
        if has_data and base[entry].entry.volumes:
            leaving.setdefault(_role(entry), []).append(entry)
    for entry, take in found.takes.items():
        sources = leaving.get(_role(entry), [])
        if entry in target and take.other is not None and take.other in sources:
            sources.remove(take.other)  # its data has somewhere to go
    made: list[Arrival] = []
    for entry in sorted(target):
        volumes = volumes_of(target[entry])
        if not volumes:
            continue
        take = found.takes.get(entry)
        if take is not None and (take.contents is not None or take.keeps or take.other in base):
            continue
        came_back = entry in base and (found.went_on(entry) or found.waits(entry))
        if not came_back and entry in base:
            continue
        sources = leaving.get(_role(entry), [])
        source = sources.pop(0) if sources else None
        if source is not None or came_back or entry in left:
            made.append(Arrival(to=entry, source=source, volumes=volumes))
    return tuple(made)


def decide(  # noqa: PLR0913  # both ends of the difference, and what was said
    base: Entries,
    target: Entries,
    orders: Iterable[VolumeOrder],
    asked: Iterable[Arrival],
    chosen: Mapping[EntryId, Chosen],
    *,
    number: int,
    who: str,
    at_ms: int,
) -> OrderChange:
    """What is written with the target: each order under a number of its own, from `number` on.

    `chosen` has an answer to all that is asked, by who arrives.
    """
    orders = tuple(orders)
    found = _standing(base, target, orders)
    put: list[VolumeOrder] = []

    def order(entry: EntryId, volumes: Mapping[str, str]) -> VolumeOrder:
        made = VolumeOrder(
            entry=entry,
            kind=OrderKind.TAKE,
            number=number + len(put),
            who=who,
            at_ms=at_ms,
            volumes=dict(volumes),
        )
        put.append(made)
        return made

    for arrival in asked:
        each = chosen[arrival.to]
        made = order(arrival.to, arrival.volumes)
        if each.choice is Choice.HAND_OVER:
            put[-1] = replace(made, other=arrival.source)
        else:
            kept = {} if each.backup is None else {v.name: v.digest for v in each.backup.volumes}
            put[-1] = replace(made, contents=contents(arrival.volumes, kept))
    for entry in found.gives:
        if entry in target and entry in base and entry not in chosen:
            made = order(entry, volumes_of(target[entry]))
            put[-1] = replace(made, keeps=True)
    taking = {each.entry for each in put}
    # What was ordered to come to whoever gives it on has to come there first.
    giving = {each.other for each in (*found.takes.values(), *put)}
    drop = [
        each
        for each in orders
        if (each.kind is OrderKind.TAKE and each.entry not in {*target, *giving})
        or (each.kind is not OrderKind.TAKE and each.entry not in base)
        or (each.kind is OrderKind.GIVE and each.entry in taking)
    ]
    return OrderChange(put=tuple(put), drop=tuple(drop))


def contents(volumes: Mapping[str, str], saved: Mapping[str, Digest]) -> dict[str, Digest | None]:
    """What each path is to hold, by what was saved under the name of its volume."""
    return {path: saved.get(name) for name, path in volumes.items()}


def after(orders: Iterable[VolumeOrder], change: OrderChange) -> tuple[VolumeOrder, ...]:
    """The orders once the change is written."""
    found = {(each.entry, each.kind): each for each in orders}
    for each in change.drop:
        if found.get((each.entry, each.kind)) == each:
            del found[each.entry, each.kind]
    found.update({(each.entry, each.kind): each for each in change.put})
    return tuple(found[key] for key in sorted(found))


def transfers(base: Entries, target: Entries, orders: Iterable[VolumeOrder]) -> Transfers:
    """What a rollout from base to target has to see to, by the orders as they stand then."""
    found = _standing(base, target, orders)
    gives = {
        take.other: Give(to=entry, number=take.number)
        for entry, take in sorted(found.takes.items())
        if entry in target
        and take.other is not None
        and take.other in base
        and take.other not in target
        and found.waits(entry)
    }
    takes = {e: take.number for e, take in sorted(found.takes.items()) if e in target}
    return Transfers(gives=gives, takes=takes)


def declared(orders: Sequence[VolumeOrder]) -> tuple[SaveOrder | None, TakeOrder | None]:
    """What an entry is told of the orders on it."""
    by_kind = {each.kind: each for each in orders}
    save = by_kind.get(OrderKind.GIVE) or by_kind.get(OrderKind.SAVE)
    take = by_kind.get(OrderKind.TAKE)
    return (
        None
        if save is None
        else SaveOrder(
            number=save.number,
            paths=tuple(sorted(save.volumes.values())),
            gives=save.kind is OrderKind.GIVE,
            to=save.other or "",
        ),
        None
        if take is None
        else TakeOrder(
            number=take.number,
            contents=take.contents,
            keeps=take.keeps,
            source=take.other or "",
        ),
    )


def _standing(base: Entries, target: Entries, orders: Iterable[VolumeOrder]) -> _Standing:
    orders = tuple(orders)
    return _Standing(
        base,
        target,
        {each.entry: each for each in orders if each.kind is OrderKind.TAKE},
        {each.entry: each for each in orders if each.kind is OrderKind.GIVE},
    )


def _role(entry: EntryId) -> tuple[str, str]:
    instance, role, _ = split_entry(entry)
    return instance, role
