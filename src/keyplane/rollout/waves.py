"""Which machines of a tier are sent when: one machine first, then more and more at once.

A tier becomes steps, each a part of its machines. Entries that use each other in a circle share a
tier though each should come before the other: their machines go together.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import policies
from keyplane.rollout.planned import Planned
from keyplane.rollout.policies import Rules
from keyplane.rollout.steps import Step

Group = tuple[MachineName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """Who goes last, and who first."""

    absent: Collection[MachineName]
    named: Collection[MachineName]
    down: Collection[EntryId]

    def late(self, group: Group, step: Step) -> tuple[bool, bool, bool]:
        is_named = any(machine in self.named for machine in group)
        is_awaited = any(step.work(machine).awaited for machine in group)
        failing = {
            split_entry(entry)[2] for entry in (*step.changed, *step.live) if entry in self.down
        }
        return not is_named, not is_awaited, failing.isdisjoint(group)


@dataclass(slots=True)
class _Load:
    """What a tier does on the machines of a group, as far as its pace is somebody's to say."""

    modules: dict[str, int] = field(default_factory=dict[str, int])
    """Those of which one machine goes first, with how long that one is watched."""
    members: Counter[str] = field(default_factory=Counter[str])
    """How many members of each role with a limit may restart."""


def waves(  # noqa: PLR0913, PLR0917  # both ends of the difference, and how it is paced
    steps: Sequence[Step],
    base_edges: Iterable[Edge],
    target_edges: Iterable[Edge],
    target: Mapping[EntryId, Planned],
    rules: Rules,
    absent: Collection[MachineName],
    named: Collection[MachineName] = (),
    down: Collection[EntryId] = (),
) -> tuple[Step, ...]:
    """The steps, each parted as the policies of its entries say.

    Machines that are `absent` come last in each tier: nobody else is to wait for them. Those that
    a person `named` come first, then those on which something was sent before and not seen well: if
    that was the first of its module, nobody follows it yet. After these come those with an entry
    that is `down`: it is no loss if it is down for longer, and others of its set may have to wait
    until it is up.
    """
    groups = _groups(steps, base_edges, target_edges)
    turns = _Turns(absent=absent, named=named, down=frozenset(down))
    return tuple(
        wave
        for step, together in zip(steps, groups, strict=True)
        for wave in _waves(step, together, target, rules, turns)
    )


def _waves(
    step: Step,
    groups: Sequence[Group],
    target: Mapping[EntryId, Planned],
    rules: Rules,
    turns: _Turns,
) -> Iterable[Step]:
    if step.held:
        return (step,)
    restarting = frozenset(step.changed)
    loads = {
        group: _load(group, step, restarting, target, rules)
        for group in groups
        if any(machine not in turns.absent for machine in group)
    }
    if not any(load.modules or load.members for load in loads.values()):
        return (step,)
    limits = {
        role: limit
        for load in loads.values()
        for role in load.members
        if (limit := rules.get(role.partition(":")[0], policies.Rule()).max_unavailable)
    }
    paced = {
        target[entry].entry.module
        for entry in restarting
        if policies.of(rules, entry).upgrade == policies.FIRST
    }
    order = sorted(loads, key=lambda group: (*turns.late(group, step), group))
    parts = list(_parts(loads, order, limits, paced))
    away = [machine for group in groups if group not in loads for machine in group]
    if away:
        parts.append((away, 0))
    return _parted(step, parts)


def _load(
    group: Group,
    step: Step,
    restarting: Collection[EntryId],
    target: Mapping[EntryId, Planned],
    rules: Rules,
) -> _Load:
    load = _Load()
    for machine in group:
        work = step.work(machine)
        for entry in (*work.rekeyed, *work.live):
            restarts = entry in restarting
            if not restarts and entry not in work.live:
                continue  # a new one: nothing of it is there to be taken away
            rule = policies.of(rules, entry)
            if rule.upgrade == policies.FIRST:
                module = target[entry].entry.module
                load.modules[module] = max(load.modules.get(module, 0), rule.settle_ms)
            if restarts and rule.max_unavailable is not None:
                load.members[":".join(split_entry(entry)[:2])] += 1
        for entry in work.awaited:
            rule = policies.of(rules, entry)
            if rule.upgrade == policies.FIRST:
                module = target[entry].entry.module
                load.modules[module] = max(load.modules.get(module, 0), rule.settle_ms)
    return load


def _parts(
    loads: Mapping[Group, _Load],
    order: Sequence[Group],
    limits: Mapping[str, int],
    paced: Collection[str],
) -> Iterable[tuple[list[MachineName], int]]:
    """Machines that go at once, and how long they are watched before the next."""
    left = list(order)
    rounds: Counter[str] = Counter()
    while left:
        taken: list[Group] = []
        modules: Counter[str] = Counter()
        members: Counter[str] = Counter()
        passed_over: set[str] = set()
        for group in left:
            load = loads[group]
            if (
                passed_over.isdisjoint(load.modules)
                and all(
                    modules[each] < _allowed(rounds[each], each in paced) for each in load.modules
                )
                and all(
                    members[role] == 0 or members[role] + count <= limits[role]
                    for role, count in load.members.items()
                )
            ):
                taken.append(group)
                modules.update(load.modules.keys())
                members.update(load.members)
            else:  # the first of a module is the first in order
                passed_over.update(each for each in load.modules if rounds[each] == 0)
        chosen = frozenset(taken)
        left = [group for group in left if group not in chosen]
        firsts = {each for each in modules if rounds[each] == 0}
        follow = {each for group in left if firsts for each in loads[group].modules}
        settle_ms = max(
            (
                time_ms
                for group in taken
                for each, time_ms in loads[group].modules.items()
                if each in firsts & follow
            ),
            default=0,
        )
        rounds.update(modules.keys())
        yield [machine for group in taken for machine in group], settle_ms


def _allowed(rounds: int, is_paced: bool) -> float:  # noqa: FBT001
    """How many machines at once: one, then 1, 2, 4, …; all after the first, if none restarts."""
    if rounds == 0:
        return 1
    return 1 << (rounds - 1) if is_paced else float("inf")


def _groups(
    steps: Sequence[Step], base_edges: Iterable[Edge], target_edges: Iterable[Edge]
) -> list[list[Group]]:
    """The machines of each step, those that cannot be parted together, each sorted."""
    parents: list[dict[MachineName, MachineName]] = [
        {machine: machine for machine in step.machines} for step in steps
    ]
    # Only these edges ask for an order, which would have parted their tiers if it could be kept.
    switched = {entry: at for at, step in enumerate(steps) for entry in step.switched}
    removed = {entry: at for at, step in enumerate(steps) for entry in step.removed}
    for edges, places in ((target_edges, switched), (base_edges, removed)):
        for edge in edges:
            consumer, provider = EntryId(edge.consumer), EntryId(edge.provider)
            at = places.get(consumer)
            if at is not None and at == places.get(provider):
                _join(parents[at], split_entry(consumer)[2], split_entry(provider)[2])
    found: list[list[Group]] = []
    for parent in parents:
        members: dict[MachineName, list[MachineName]] = {}
        for machine in sorted(parent):
            members.setdefault(_root(parent, machine), []).append(machine)
        found.append(sorted(tuple(each) for each in members.values()))
    return found


def _root(parent: dict[MachineName, MachineName], machine: MachineName) -> MachineName:
    while parent[machine] != machine:
        parent[machine] = parent[parent[machine]]
        machine = parent[machine]
    return machine


def _join(parent: dict[MachineName, MachineName], one: MachineName, other: MachineName) -> None:
    first, second = sorted((_root(parent, one), _root(parent, other)))
    parent[second] = first


def _parted(step: Step, parts: Sequence[tuple[Sequence[MachineName], int]]) -> Iterable[Step]:
    turn = {machine: index for index, (machines, _) in enumerate(parts) for machine in machines}
    lists: list[dict[str, list[EntryId]]] = [{} for _ in parts]
    for kind in ("activated", "changed", "live", "removed", "tightened", "awaited", "yielded"):
        for entry in getattr(step, kind):
            lists[turn[split_entry(entry)[2]]].setdefault(kind, []).append(entry)
    last = len(parts) - 1
    for index, (_, settle_ms) in enumerate(parts):
        removed = frozenset(lists[index].get("removed", ()))
        yield replace(
            Step(),
            **{kind: tuple(entries) for kind, entries in lists[index].items()},
            settle_ms=settle_ms,
            gaps=tuple(gap for gap in step.gaps if gap.provider in removed),
            rewired=step.rewired if index == last else (),
            remarks=step.remarks if index == 0 else (),
        )
