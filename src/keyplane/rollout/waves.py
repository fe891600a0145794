"""Which machines of a tier are sent when: one machine first, then more and more at once.

A tier becomes steps, each a part of its machines. Entries that use each other in a circle share a
tier though each should come before the other: their machines go together.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.model.plan import Edge
from keyplane.rollout import policies
from keyplane.rollout.planned import Planned
from keyplane.rollout.policies import Paces, Rules
from keyplane.rollout.steps import Step

Group = tuple[MachineName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """Who goes last in a tier, and who first."""

    step: Step
    named: Collection[MachineName]
    changed: frozenset[EntryId]
    failing: Mapping[EntryId, MachineName]
    asking: Mapping[EntryId, MachineName]
    failing_of: Mapping[str, Collection[MachineName]]
    """By role; so is the next."""
    asking_of: Mapping[str, Collection[MachineName]]

    def late(self, group: Group) -> tuple[int, ...]:
        works = [self.step.work(machine) for machine in group]
        is_named = any(machine in self.named for machine in group)
        is_awaited = any(work.awaited for work in works)
        here = [entry for work in works for entry in (*work.rekeyed, *work.live)]
        is_failing = any(entry in self.failing for entry in here)
        is_asking = any(entry in self.asking for entry in here)
        waits = max((self._waits(each, group) for each in here if each in self.changed), default=0)
        return not is_named, not is_awaited or waits > 0, waits, not is_failing, not is_asking

    def _waits(self, entry: EntryId, group: Group) -> int:
        """Of whom on other machines its stop waits: 0 nobody, 1 who is down, 2 who asks as well."""
        if entry in self.failing:
            return 0
        role, is_asking = _role(entry), entry in self.asking
        if any(machine not in group for machine in self.failing_of.get(role, ())):
            return 1 if is_asking else 2
        others = () if is_asking else self.asking_of.get(role, ())
        return 2 if any(machine not in group for machine in others) else 0


def _turns(
    step: Step,
    named: Collection[MachineName],
    down: Collection[EntryId],
    asking: Collection[EntryId],
) -> _Turns:
    failing = {e: split_entry(e)[2] for e in (*step.changed, *step.live) if e in down}
    asks = {e: split_entry(e)[2] for e in step.changed if e in asking}
    return _Turns(
        step=step,
        named=named,
        changed=frozenset(step.changed),
        failing=failing,
        asking=asks,
        failing_of=_by_role(failing),
        asking_of=_by_role(asks),
    )


def _by_role(entries: Mapping[EntryId, MachineName]) -> dict[str, list[MachineName]]:
    found: dict[str, list[MachineName]] = {}
    for entry, machine in entries.items():
        found.setdefault(_role(entry), []).append(machine)
    return found


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
    asking: Collection[EntryId] = (),
) -> tuple[Step, ...]:
    """The steps, each parted as the policies of its entries say.

    Machines that are `absent` come last in each tier: nobody else is to wait for them. Those that
    a person `named` come first, then those on which something was sent before and not seen well: if
    that was the first of its module, nobody follows it yet. After these come those with an entry
    that is `down`: it is no loss if it is down for longer, and then those with one that is `asking`
    for its stop: it goes down for what was sent before as soon as it may. Of both sets others may
    have to wait until they are up: those come later, whatever else is said of them.
    """
    groups = _groups(steps, base_edges, target_edges)
    paces = policies.paces(rules, steps, target)
    down, asking = frozenset(down), frozenset(asking)
    found: list[Step] = []
    for tier, (step, those) in enumerate(zip(steps, groups, strict=True)):
        whole = replace(step, tier=tier, together=tuple(each for each in those if len(each) > 1))

        turns = _turns(whole, named, down, asking)

        def late(group: Group, turns: _Turns = turns) -> tuple[object, ...]:
            return (*turns.late(group), group)

        found.extend(part(whole, those, paces, absent, late, Counter()))
    return tuple(found)


def part(  # noqa: PLR0913, PLR0917  # a tier, how it is paced, and how far it is
    step: Step,
    groups: Sequence[Group],
    paces: Paces,
    absent: Collection[MachineName],
    key: Callable[[Group], tuple[object, ...]],
    rounds: Counter[str],
) -> Iterable[Step]:
    """The steps of what is left of a tier, the groups in the order of that key.

    `rounds` says of each module in how many of its steps machines have gone before.
    """
    if step.held:
        return (step,)
    restarting = frozenset(step.changed)
    loads = {
        group: _load(group, step, restarting, paces)
        for group in groups
        if any(machine not in absent for machine in group)
    }
    if not loads:
        return (replace(step, away=True),)
    if not any(load.modules or load.members for load in loads.values()):
        return (step,)
    limits = {
        role: limit
        for load in loads.values()
        for role in load.members
        if (limit := paces[role.partition(":")[0]].max_unavailable)
    }
    restarted = (paces[split_entry(entry)[0]] for entry in restarting)
    paced = {pace.module for pace in restarted if pace.is_first}
    order = sorted(loads, key=key)
    away = [machine for group in groups if group not in loads for machine in group]
    later = {module for machine in away for module in modules(step, machine, paces)}
    parts = [(*each, False) for each in _parts(loads, order, limits, paced, rounds, later)]
    if away:
        parts.append((away, 0, True))
    return _parted(step, parts)


def modules(step: Step, machine: MachineName, paces: Paces) -> dict[str, int]:
    """Those of which one machine goes first, with how long that one is watched."""
    work = step.work(machine)
    there = frozenset((*step.changed, *work.live))  # of what is new nothing can be taken away
    found: dict[str, int] = {}
    for entry in (*work.rekeyed, *work.live, *work.awaited):
        pace = paces[split_entry(entry)[0]]
        if pace.is_first and (entry in there or entry in work.awaited):
            found[pace.module] = max(found.get(pace.module, 0), pace.settle_ms)
    return found


def _load(group: Group, step: Step, restarting: Collection[EntryId], paces: Paces) -> _Load:
    load = _Load()
    for machine in group:
        for module, settle_ms in modules(step, machine, paces).items():
            load.modules[module] = max(load.modules.get(module, 0), settle_ms)
        for entry in step.work(machine).rekeyed:
            if entry in restarting and paces[split_entry(entry)[0]].max_unavailable is not None:
                load.members[_role(entry)] += 1
    return load


def _role(entry: EntryId) -> str:
    return ":".join(split_entry(entry)[:2])


def _parts(  # noqa: PLR0913, PLR0917  # who is left, and how all of it is paced
    loads: Mapping[Group, _Load],
    order: Sequence[Group],
    limits: Mapping[str, int],
    paced: Collection[str],
    rounds: Counter[str],
    later: Collection[str],
) -> Iterable[tuple[list[MachineName], int]]:
    """Machines that go at once, and how long they are watched before the next.

    `later` are modules of machines that come after all of these, if they are back by then.
    """
    left, rounds = list(order), rounds.copy()
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
        follow.update(later)
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


def _parted(
    step: Step,
    parts: Sequence[tuple[Sequence[MachineName], int, bool]],
) -> Iterable[Step]:
    turn = {machine: index for index, (machines, *_) in enumerate(parts) for machine in machines}
    lists: list[dict[str, list[EntryId]]] = [{} for _ in parts]
    for kind in ("activated", "changed", "live", "removed", "tightened", "awaited", "yielded"):
        for entry in getattr(step, kind):
            lists[turn[split_entry(entry)[2]]].setdefault(kind, []).append(entry)
    last = len(parts) - 1
    for index, (_, settle_ms, away) in enumerate(parts):
        removed = frozenset(lists[index].get("removed", ()))
        yield replace(
            Step(),
            **{kind: tuple(entries) for kind, entries in lists[index].items()},
            settle_ms=settle_ms,
            gaps=tuple(gap for gap in step.gaps if gap.provider in removed),
            rewired=step.rewired if index == last else (),
            remarks=step.remarks if index == 0 else (),
            tier=step.tier,
            together=step.together,
            away=away,
        )
