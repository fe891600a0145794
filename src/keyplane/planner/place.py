"""Round place: on which machines each role stands.

`every` takes each machine that fits; `count` takes so many of them, kept where they were in the
previous plan. What fits is decided by requirements and by what can be read beside a provider only.
"""

from collections.abc import Iterable, Mapping, Sequence

from keyplane.model.diagnostic import Severity
from keyplane.model.fleet import Placement, Strategy
from keyplane.model.module import Reach
from keyplane.model.names import split_entry
from keyplane.planner import choose, implied, order, room
from keyplane.planner.draft import Assignment, Binding, Chosen, Draft, Lookup, SlotSpec
from keyplane.planner.require import MET, Requirements, Unmet, Verdict
from keyplane.planner.rows import ENTRY, MACHINE, Fault

_Rank = tuple[int, bool, int]
"""Readers that it would be apart from, whether it is new there, wants that are unmet."""


def place(draft: Draft) -> None:
    draft.lookup = _looker(draft)
    kept = _kept(draft)
    by_tags = _ByTags(draft)
    for group in order.order(draft):
        if len(group) > 1 or order.waits_for_itself(draft, group[0]):
            _refuse_circle(draft, group)
            continue
        assignment = group[0]
        placement = assignment.placement
        assert placement is not None
        pool = by_tags.machines(placement)
        if placement.strategy is Strategy.EVERY:
            machines = _every(draft, assignment, pool)
        else:
            before = kept.get(assignment.id, frozenset())
            apart = _apart(draft, assignment, by_tags)
            machines = _count(draft, assignment, pool, before, apart)
        if not draft.room.take_entries(assignment.role, len(machines)):
            path = f"placement.{placement.strategy.value}.{assignment.role_name}"
            room.refuse_placement(draft.rows, assignment.id, path, assignment.role, len(machines))
            machines = ()
        draft.stand(assignment, machines)


def check_floors(draft: Draft) -> None:
    """Warn of each floor that no number of healthy members can meet."""
    for assignment in draft.assignments.values():
        instance = draft.instances.get(assignment.instance)
        floor = instance.floor.get(assignment.role_name, 0) if instance is not None else 0
        members = len(assignment.machines)
        placement = assignment.placement
        if placement is None or floor <= members:
            continue
        unread = (
            draft.is_dropped(draft.fleet.file, "machines", machine)
            for machine in placement.machines or ()
        )
        if not any(unread):
            draft.rows.add(
                "unhealthy-floor",
                assignment.id,
                "floor",
                f"floor of {assignment.id} is {floor}, and it has {_told(members)}",
                f"lower instances.{assignment.instance}.floor.{assignment.role_name}, or place "
                "more members",
                severity=Severity.WARNING,
            )


def _told(members: int) -> str:
    if not members:
        return "no members: it stands on no machine"
    count = f"{members} {'member' if members == 1 else 'members'}"
    return f"{count}: one at a time may be stopped all the same"


class _ByTags:
    """The machines of a selection, by name; equal selections share one tuple."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._all = tuple(sorted(draft.fleet.machines))
        self._found: dict[frozenset[str], tuple[str, ...]] = {}

    def machines(self, placement: Placement) -> tuple[str, ...]:
        fleet = self._draft.fleet.machines
        if placement.machines is not None:
            return tuple(sorted({name for name in placement.machines if name in fleet}))
        tags = frozenset(placement.tags or ())
        if not tags:
            return self._all
        if tags not in self._found:
            self._found[tags] = tuple(name for name in self._all if tags.issubset(fleet[name].tags))
        return self._found[tags]


def _looker(draft: Draft) -> Lookup:
    def look(assignment: Assignment, slot: SlotSpec, machine: str) -> Binding | None:
        return choose.choose(draft, assignment, slot, machine).binding

    return look


def _kept(draft: Draft) -> Mapping[str, frozenset[str]]:
    """By role, where it was placed in the previous plan; only `count` asks.

    Where it stood only because a reader needed it there it will stand again, if one still does.
    """
    wanted = {
        name
        for name, one in draft.assignments.items()
        if one.placement is not None and one.placement.strategy is Strategy.COUNT
    }
    found: dict[str, set[str]] = {}
    previous = draft.request.previous
    if previous is not None and wanted:
        beside = {edge.provider for edge in previous.edges if edge.chosen == Chosen.IMPLIED.value}
        for entry in previous.entries.keys() - beside:
            instance, role, machine = split_entry(entry)
            if f"{instance}:{role}" in wanted:
                found.setdefault(f"{instance}:{role}", set()).add(machine)
    return {name: frozenset(machines) for name, machines in found.items()}


def _every(draft: Draft, assignment: Assignment, pool: tuple[str, ...]) -> tuple[str, ...]:
    requirements = Requirements(draft, assignment)
    if requirements.none:
        return pool
    assert assignment.placement is not None
    named = assignment.placement.machines is not None
    verdicts = requirements.judge_all(pool)
    if all(verdict is MET for verdict in verdicts):
        return pool
    placed: list[str] = []
    for machine, verdict in zip(pool, verdicts, strict=True):
        if not verdict.needed:
            placed.append(machine)
            _warn_unmet(draft, assignment, machine, verdict.wanted)
        elif named:
            for unmet in verdict.needed:
                _place_unmet(draft, assignment, machine, unmet)
    return tuple(placed)


def _count(
    draft: Draft,
    assignment: Assignment,
    pool: tuple[str, ...],
    kept: frozenset[str],
    apart: Sequence[frozenset[str]],
) -> tuple[str, ...]:
    placement = assignment.placement
    assert placement is not None
    requirements = Requirements(draft, assignment)
    verdicts: dict[str, Verdict] = {}
    refused: dict[str, str] = {}
    asked: dict[str, Requirements] = {}
    cordoned = draft.request.cordoned
    for machine in pool:
        if machine in cordoned and (cordoned[machine] or machine not in kept):
            refused[machine] = "is drained" if cordoned[machine] else "is cordoned"
            continue
        verdict = requirements.judge(machine)
        parted = None if verdict.needed else _parted(draft, assignment, machine, asked)
        if verdict.needed:
            refused[machine] = ", ".join(map(str, verdict.needed))
        elif parted is not None:
            refused[machine] = parted
        else:
            verdicts[machine] = verdict
    wanted = placement.count or 0
    ranks = {
        name: (sum(name not in where for where in apart), name not in kept, len(verdict.wanted))
        for name, verdict in verdicts.items()
    }
    chosen = _pick(draft, placement, ranks)
    if len(chosen) < wanted:
        where = "; ".join(f"{machine}: {why}" for machine, why in sorted(refused.items()))
        draft.rows.add(
            "placement-short",
            assignment.id,
            f"placement.count.{assignment.role_name}",
            f"{assignment.id} is to stand on {wanted} machines and {len(chosen)} of "
            f"{len(pool)} fit" + (f" ({where})" if where else ""),
            "lower the count, select more machines, or mend what is unmet",
        )
    for machine in sorted(chosen):
        _warn_unmet(draft, assignment, machine, verdicts[machine].wanted)
    return tuple(sorted(chosen))


def _pick(
    draft: Draft,
    placement: Placement,
    ranks: Mapping[str, _Rank],
) -> list[str]:
    """The first so many by rank, fewest members of the spread value, name."""
    wanted = placement.count or 0
    ranked = sorted((rank, name) for name, rank in ranks.items())
    if placement.spread is None:
        return [name for _, name in ranked[:wanted]]
    groups: dict[_Rank, dict[str, list[str]]] = {}
    for rank, name in ranked:
        value = _tag(draft.fleet.machines[name].tags, placement.spread)
        groups.setdefault(rank, {}).setdefault(value, []).append(name)
    chosen: list[str] = []
    members: dict[str, int] = {}
    for by_value in groups.values():
        queues = {value: iter(names) for value, names in by_value.items()}
        heads = {value: next(queue) for value, queue in queues.items()}
        while heads and len(chosen) < wanted:
            value = min(heads, key=lambda item: (members.get(item, 0), heads[item]))
            chosen.append(heads[value])
            members[value] = members.get(value, 0) + 1
            following = next(queues[value], None)
            if following is None:
                del heads[value]
            else:
                heads[value] = following
    return chosen


def _tag(tags: Iterable[str], key: str) -> str:
    return next((tag for tag in sorted(tags) if tag.partition("=")[0] == key), "")


def _apart(draft: Draft, assignment: Assignment, by_tags: _ByTags) -> list[frozenset[str]]:
    """For each role that can read it beside it only: where that stands, or fits if it waits."""
    found: list[frozenset[str]] = []
    for reader in draft.assignments.values():
        if reader is assignment or reader.placement is None:
            continue
        for slot in reader.slots:
            offers = order.beside_only(draft, reader, slot)
            if len(offers) != 1 or offers[0].assignment is not assignment:
                continue
            where = reader.machines or by_tags.machines(reader.placement)
            if not reader.machines and not order.reads_in_requirements(reader):
                verdicts = Requirements(draft, reader).judge_all(where)
                where = [
                    name
                    for name, verdict in zip(where, verdicts, strict=True)
                    if not verdict.needed
                ]
            found.append(frozenset(where))
    return found


def _parted(
    draft: Draft, assignment: Assignment, machine: str, asked: dict[str, Requirements]
) -> str | None:
    """Why a slot could not be read from this machine though its provider stands elsewhere."""
    for slot in assignment.slots:
        if slot.reach is Reach.ALL:
            continue  # what it cannot read is no member
        choice = choose.choose(draft, assignment, slot, machine)
        for fault in choice.faults:
            if fault.code == "machine-local-split" or (
                fault.code == "reach-one-none" and slot.reach is Reach.LOCAL
            ):
                return f"slot {slot.name} could not be read there"
        if choice.implied is not None:
            module, role_name, _ = choice.implied
            would_be = implied.would_be(draft, module, role_name)
            if would_be.id not in asked:
                asked[would_be.id] = Requirements(draft, would_be)
            unmet = asked[would_be.id].looked_at(machine).needed
            if unmet:
                told = ", ".join(map(str, unmet))
                return f"slot {slot.name} needs {would_be.id} beside it, which requires {told}"
    return None


def _refuse_circle(draft: Draft, group: list[Assignment]) -> None:
    names = [assignment.id for assignment in group]
    draft.rows.add(
        "circular-placement",
        names[0],
        "placement",
        f"each of {', '.join(names)} waits for the machine of the other, so none is placed",
        'give one of them its machines: placement.every.ROLE = { machines = ["MACHINE"] }',
        'or let what one reads of the other be read from anywhere: access = "routable"',
        "or take the reference out of one's requirements",
    )


def _place_unmet(draft: Draft, assignment: Assignment, machine: str, unmet: Unmet) -> None:
    fault = Fault(
        code="requirement-unmet",
        path="requirements",
        message=f"{ENTRY} requires {unmet} of {MACHINE}, so it is not placed there",
        resolution=(
            f"mend {MACHINE}, or leave it out of the placement of {assignment.id}",
            'or say severity = "want"',
        ),
        alone=True,
    )
    draft.rows.place(assignment.id, (machine,), fault)


def _warn_unmet(
    draft: Draft, assignment: Assignment, machine: str, unmet: tuple[Unmet, ...]
) -> None:
    for one in unmet:
        fault = Fault(
            code="requirement-unmet",
            path="requirements",
            message=f"{ENTRY} wants {one} of {MACHINE}",
            resolution=(f"mend {MACHINE}, or place {assignment.id} elsewhere",),
            severity=Severity.WARNING,
            alone=True,
        )
        draft.rows.place(assignment.id, (machine,), fault)
