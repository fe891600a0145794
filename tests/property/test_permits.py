"""Whatever the order of asks, reports and deaths: no more of a set are stopped than may be."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.declaration import Member
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.rollout import permits
from keyplane.rollout.permits import Asked, Decision, Guard

ROLE = "web:main"
DRAWS = 400
many = settings(max_examples=100, deadline=None)

any_guard = st.builds(
    Guard,
    floor=st.integers(0, 5),
    away=st.one_of(st.none(), st.integers(1, 4)),
)


@dataclass(slots=True)
class One:
    """A member as it is, whatever anybody knows of it."""

    up: bool = True
    asks: int = 0
    """Under which number it asks for a permit; 0 if it does not."""
    asked_up: bool = True
    """What it was when it asked: a grant is for that alone."""
    held: bool = False
    dead: bool = False
    """Its machine says nothing, and nothing of it runs."""
    taken: bool = False
    """It was up, and is stopped by its permit."""
    said: list[Member] = field(default_factory=list[Member])
    """Reports that are on their way."""


class Set:
    """A set, its controller, and lines that are slow, lose and repeat."""

    def __init__(self, size: int, guard: Guard, chance: Random) -> None:
        self.chance = chance
        self.guard = guard
        self.ones = {EntryId(f"web:main@m{number}"): One() for number in range(size)}
        self.heard: dict[EntryId, Member] = {entry: Member(up=True) for entry in self.ones}
        self.unheard: set[MachineName] = set()
        self.out: dict[EntryId, str] = {}
        self.turns: list[EntryId] = []
        self.count = 0

    @property
    def least(self) -> int:
        """What DESIGN §6 says has to stay up; `maxUnavailable` is a floor too."""
        size = len(self.ones)
        within = 0 if self.guard.away is None else size - self.guard.away
        return min(max(self.guard.floor, within), size - 1)

    # What members do.

    def move(self) -> None:
        one = self.ones[self.chance.choice(sorted(self.ones))]
        act = self.chance.random()
        if one.dead:
            one.dead = act > 0.7
            if not one.dead and self.chance.random() < 0.3:
                one.asks, one.held, one.taken = 0, False, False  # without its ledger
        elif act < 0.4 and not one.asks:
            self.ask(one)
        elif act < 0.43 and not one.held and one.up:
            one.up = False  # by itself
        elif act < 0.97 and not one.up:
            one.up = True
            if one.held or one.asks:
                one.asks, one.held, one.taken = 0, False, False
        elif act > 0.98:
            one.dead, one.up, one.taken = True, False, False
        self.say(one)

    def ask(self, one: One) -> None:
        self.count += 1
        one.asks, one.asked_up = self.count, one.up

    def say(self, one: One) -> None:
        if not one.dead:
            name = str(one.asks) if one.asks else None
            one.said.append(Member(up=one.up and not one.held, permit=name, held=one.held))

    def take(self) -> None:
        """A member hears of its permit; what it holds it uses at once."""
        entry = self.chance.choice(sorted(self.ones))
        one = self.ones[entry]
        if one.dead or one.held or not one.asks or self.out.get(entry) != str(one.asks):
            return
        if one.asked_up != one.up:
            self.ask(one)
        else:
            one.held, one.taken, one.up = True, one.up, False
        self.say(one)

    # What its controller does.

    def hear(self) -> None:
        """A report comes, later ones with it or not; the last of them is what is known."""
        entry = self.chance.choice(sorted(self.ones))
        said = self.ones[entry].said
        if said:
            count = self.chance.randint(1, len(said))
            self.heard[entry] = said[count - 1]
            del said[:count]
            self.unheard.discard(split_entry(entry)[2])

    def silence(self) -> None:
        """Of the dead, or of all: a controller that was just started has heard nobody."""
        if self.chance.random() < 0.05:
            self.unheard = {split_entry(entry)[2] for entry in self.ones}
        entry = self.chance.choice(sorted(self.ones))
        if self.ones[entry].dead:
            self.unheard.add(split_entry(entry)[2])

    def decide(self) -> None:
        asking = [entry for entry, each in self.heard.items() if each.permit is not None]
        self.turns = [e for e in self.turns if e in asking]
        self.turns += [e for e in asking if e not in self.turns]
        asked = Asked(
            guards={ROLE: self.guard} if self.guard != Guard() else {},
            declared={ROLE: frozenset(self.ones)},
            members=self.heard,
            out=dict(self.out),
            unheard=frozenset(self.unheard),
            waiting=tuple(self.turns),
        )
        found = permits.decide(asked)
        self.check(found)
        for entry in found.over:
            del self.out[entry]
        self.out.update(found.granted)
        again = permits.decide(Asked(**{**_fields(asked), "out": dict(self.out)}))
        assert (again.granted, again.over) == ({}, ()), "the same asked again grants nothing more"

    def check(self, found: Decision) -> None:
        """DESIGN §6, of each grant: members reported healthy − permits out > what has to stay up.

        Less the one that is granted. Who is not heard counts for nobody, and is not known to be down.
        """
        out = {entry for entry in self.out if entry not in found.over}
        out |= {entry for entry, each in self.heard.items() if each.held}
        healthy = {
            entry
            for entry, each in self.heard.items()
            if each.up and split_entry(entry)[2] not in self.unheard
        }
        for entry in found.granted:
            others = healthy - out - {entry}
            assert not self.heard[entry].up or entry in out or len(others) >= self.least
            out.add(entry)

    def stopped(self) -> set[EntryId]:
        return {entry for entry, one in self.ones.items() if one.taken}


def _fields(asked: Asked) -> dict[str, object]:
    return {name: getattr(asked, name) for name in Asked.__dataclass_fields__}


def run(size: int, guard: Guard, seed: int) -> int:
    """How many were stopped at most."""
    chance = Random(seed)
    members = Set(size, guard, chance)
    most = 0
    for _ in range(DRAWS):
        act = chance.choice((members.move, members.move, members.hear, members.take))
        act()
        if chance.random() < 0.3:
            members.silence()
        if chance.random() < 0.6:
            members.decide()
        most = max(most, len(members.stopped()))
        if guard != Guard():
            assert len(members.stopped()) <= size - members.least
    return most


@many
@given(st.integers(1, 6), any_guard, st.integers(0, 1_000_000))
def test_no_more_are_stopped_than_may_be(size: int, guard: Guard, seed: int) -> None:
    """Members that were up, and that their permits took down, be the controller ever so late."""
    run(size, guard, seed)


def test_the_draws_come_to_that_limit() -> None:
    """Else nothing would be shown by keeping it."""
    guard = Guard(away=2)
    assert max(run(5, guard, seed) for seed in range(60)) == 2
    assert max(run(5, Guard(), seed) for seed in range(60)) > 2


def test_nobody_waits_for_ever_while_all_are_well() -> None:
    """Each that asks is let go once those before it are up again."""
    for guard in (Guard(away=1), Guard(floor=9), Guard(floor=2, away=3)):
        members = Set(4, guard, Random(1))
        for one in members.ones.values():
            members.ask(one)
            members.say(one)
        rounds = 0
        while any(one.asks for one in members.ones.values()):
            rounds += 1
            assert rounds < 2_000
            members.hear()
            members.decide()
            members.take()
            for one in members.ones.values():
                if one.held:
                    one.up, one.held, one.taken, one.asks = True, False, False, 0
                    members.say(one)
