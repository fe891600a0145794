"""Who may be stopped: floors and `maxUnavailable` as one rule, for every cause of a stop.

A set is the members of a role whose instance states a floor or a `maxUnavailable`. A member may be
stopped while more of the others are up than have to be. What is up is told by reports, never by
what was sent; a member with a permit out is not up, whatever its last report says.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keyplane.model.declaration import Member, Report
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.rollout.policies import Rule, Rules

RoleId = str
"""`INSTANCE:ROLE`."""
NAMED_MAX = 3
"""Members that a refusal names: of a hundred that are down a person looks at the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What is stated of a set."""

    floor: int = 0
    away: int | None = None
    """How many members may be down at once."""

    def keeps(self, members: int) -> int:
        """How many of so many members have to stay up. One may be stopped in any case."""
        within = 0 if self.away is None else members - self.away
        return min(max(self.floor, within), members - 1)


Guards = Mapping[RoleId, Guard]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """All that a decision is a function of."""

    guards: Guards
    declared: Mapping[RoleId, Collection[EntryId]]
    """The members of each set, as machines are told to have them now."""
    members: Mapping[EntryId, Member]
    """As the newest report of each machine has them; those that are to go among them."""
    out: Mapping[EntryId, str]
    """The permits that were granted, by name."""
    unheard: Collection[MachineName]
    """Machines of which nothing was heard lately: their members may be down."""
    waiting: Sequence[EntryId]
    """Those that ask, the one that asked first first."""
    given: Collection[EntryId] = ()
    """Those whose data another member has taken: they come up no more, and nobody misses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    granted: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """New permits, by name."""
    over: tuple[EntryId, ...] = ()
    """Entries whose permit has ended."""
    refused: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """Why each of the others has to wait."""


def guards(rules: Rules, entries: Iterable[EntryId]) -> dict[RoleId, Guard]:
    """Of the roles of these entries; one that states nothing has none."""
    found: dict[RoleId, Guard] = {}
    for role in sorted({role_of(entry) for entry in entries}):
        instance, _, name = role.partition(":")
        rule = rules.get(instance, Rule())
        guard = Guard(floor=rule.floors.get(name, 0), away=rule.away)
        if guard != Guard():
            found[role] = guard
    return found


def role_of(entry: EntryId) -> RoleId:
    return ":".join(split_entry(entry)[:2])


def sets(guards: Guards, entries: Iterable[EntryId]) -> dict[RoleId, frozenset[EntryId]]:
    """The members of each set among these entries."""
    found: dict[RoleId, set[EntryId]] = {role: set() for role in guards}
    for entry in entries:
        role = role_of(entry)
        if role in found:
            found[role].add(entry)
    return {role: frozenset(members) for role, members in found.items()}


def down(
    guards: Guards, entries: Iterable[EntryId], reports: Mapping[MachineName, Report]
) -> set[EntryId]:
    """Members of these sets that were reported, and not as up."""
    found = _members(guards, entries, reports)
    return {entry for entry, member in found if not member.up}


def asking(
    guards: Guards, entries: Iterable[EntryId], reports: Mapping[MachineName, Report]
) -> set[EntryId]:
    """Members of these sets that wait for a permit, or have one."""
    found = _members(guards, entries, reports)
    return {entry for entry, member in found if member.permit is not None}


def _members(
    guards: Guards, entries: Iterable[EntryId], reports: Mapping[MachineName, Report]
) -> Iterable[tuple[EntryId, Member]]:
    for entry in entries:
        report = reports.get(split_entry(entry)[2]) if role_of(entry) in guards else None
        said = None if report is None else report.entries.get(entry)
        if said is not None and said.member is not None:
            yield entry, said.member


def otherwise(before: Guards, after: Guards, entries: Iterable[EntryId]) -> set[MachineName]:
    """Machines that are to hear that an entry of theirs is guarded now, or is no longer."""
    moved = before.keys() ^ after.keys()
    return (
        {split_entry(entry)[2] for entry in entries if role_of(entry) in moved} if moved else set()
    )


def decide(asked: Asked) -> Decision:
    """Grant what can be granted, in order; the same asked again grants nothing more."""
    over = tuple(
        entry
        for entry, name in asked.out.items()
        if entry not in asked.members or asked.members[entry].permit != name
    )
    holders = {entry for entry, member in asked.members.items() if member.held}
    holders |= asked.out.keys() - set(over)
    granted: dict[EntryId, str] = {}
    refused: dict[EntryId, str] = {}
    up = _up(asked, holders)
    for entry in asked.waiting:
        name = asked.members[entry].permit
        if entry in holders or name is None:
            continue
        role = role_of(entry)
        serving = up.get(role, set())
        guard = asked.guards.get(role)
        members = _declared(asked, role)
        # One that is not up takes nothing away; a set that is to go has nothing to keep. One that is
        # not heard may be up: it is no help to the others, and nobody may take it for down.
        is_up = asked.members[entry].up
        if guard is None or not is_up or len(serving - {entry}) >= guard.keeps(len(members)):
            granted[entry] = name
            holders.add(entry)
            serving.discard(entry)
        else:
            refused[entry] = _why(role, guard, asked, serving, holders)
    return Decision(granted=granted, over=over, refused=refused)


def _declared(asked: Asked, role: RoleId) -> frozenset[EntryId]:
    return frozenset(asked.declared.get(role, ())) - frozenset(asked.given)


def _up(asked: Asked, holders: Collection[EntryId]) -> dict[RoleId, set[EntryId]]:
    found: dict[RoleId, set[EntryId]] = {}
    for entry, member in asked.members.items():
        if member.up and entry not in holders and split_entry(entry)[2] not in asked.unheard:
            found.setdefault(role_of(entry), set()).add(entry)
    return found


def _why(
    role: RoleId,
    guard: Guard,
    asked: Asked,
    serving: Collection[EntryId],
    holders: Collection[EntryId],
) -> str:
    members = _declared(asked, role)
    said: list[str] = []
    for entry in sorted(entry for entry in members if entry not in serving):
        if entry in holders:
            said.append(f"{entry} has a permit")
        elif split_entry(entry)[2] in asked.unheard:
            said.append(f"{split_entry(entry)[2]} is not heard")
        else:
            said.append(f"{entry} is not up")
    more = len(said) - NAMED_MAX
    told = ", ".join(said[:NAMED_MAX]) + (f" and {more} more are not up" if more > 0 else "")
    keeps = guard.keeps(len(members))
    of = f"{keeps} of the {len(members)} members of {role} have to stay up"
    return f"{of}: {told}" if told else of
