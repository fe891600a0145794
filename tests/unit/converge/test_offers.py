"""Which declarations are accepted, and what is told when one is not."""

from dataclasses import replace

from keyplane.converge import events
from keyplane.model.declaration import NO_OFFER, EntryState, OfferNumber
from keyplane.model.names import MachineName
from tests.unit.converge.world import WEB, World, entry, unit


def test_a_lower_number_is_refused_and_told_and_nothing_is_lost() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.offer({WEB: entry(units={"server": unit("2")})})
    pid = world.pid()
    old = world.declaration({}, 1)
    world.tell(events.Offered(at_ms=world.now, declaration=old))
    assert world.reports[-1].refused == "offer 1.1 is older than 1.2, which was accepted"
    assert world.pid() == pid
    assert world.report().state is EntryState.HEALTHY
    world.offer({WEB: entry(units={"server": unit("2")})})
    assert world.reports[-1].refused is None


def test_the_number_holds_when_the_declaration_was_torn() -> None:
    world = World()
    world.offer({WEB: entry(units={"server": unit()})})
    world.host.files.state["declaration"] = b'{"version":1,"con'
    world.boot()
    world.run(1_000)
    assert world.pid() is not None
    old = replace(world.declaration({}, 1), offer=OfferNumber(0, 9))
    world.tell(events.Offered(at_ms=world.now, declaration=old))
    assert world.reports[-1].refused is not None
    same = world.declaration({WEB: entry(units={"server": unit()})}, 1)
    world.tell(events.Offered(at_ms=world.now, declaration=same), run_ms=2_000)
    assert world.report().state is EntryState.HEALTHY


def test_one_number_has_one_content() -> None:
    world = World()
    declared = {WEB: entry(units={"server": unit()})}
    world.offer(declared)
    world.forget()
    world.tell(events.Offered(at_ms=world.now, declaration=world.declaration(declared, 1)))
    assert world.reports[-1].refused is None
    world.tell(events.Offered(at_ms=world.now, declaration=world.declaration({}, 1)))
    assert world.reports[-1].refused == "offer 1.1 was accepted with other content"
    assert world.acts == []


def test_a_declaration_that_nobody_could_carry_out_is_refused_whole() -> None:
    world = World("a")
    both = {WEB: entry(files={"/x": "a"}), "b:b@alpha": entry(files={"/x": "a"})}
    world.offer(both)
    assert "/x is declared by b:b@alpha and by web:main@alpha" in str(world.reports[-1].refused)
    world.offer({WEB: entry(files={"/y": "not there"})})
    assert "the content of /y" in str(world.reports[-1].refused)
    foreign = replace(world.declaration({}, 9), machine=MachineName("beta"))
    world.tell(events.Offered(at_ms=world.now, declaration=foreign))
    assert "beta" in str(world.reports[-1].refused)
    assert world.reports[-1].offer == NO_OFFER
    assert world.reports[-1].refused_offer == foreign.offer
    number = OfferNumber(1, 7)
    world.tell(events.OfferRefused(at_ms=world.now, cause="unknown field `x`", offer=number))
    assert world.reports[-1].refused == "unknown field `x`"
    assert world.reports[-1].refused_offer == number


def test_the_same_refusal_of_another_declaration_is_told_again() -> None:
    """Else whoever offered the second would wait for an answer that was given to the first."""
    world = World("a")
    for counter in (3, 4):
        number = OfferNumber(1, counter)
        world.tell(events.OfferRefused(at_ms=world.now, cause="no", offer=number), run_ms=200)
        assert (world.reports[-1].refused, world.reports[-1].refused_offer) == ("no", number)
    world.offer({WEB: entry(units={"server": unit()})})
    assert (world.reports[-1].refused, world.reports[-1].refused_offer) == (None, None)


def test_a_machine_without_a_declaration_says_that_it_is_there() -> None:
    world = World()
    world.run(1_000)
    assert world.reports[-1].offer == NO_OFFER
    assert world.reports[-1].entries == {}
    assert world.asked == ["SendReport"]


def test_reports_are_coalesced_and_sent_again_until_they_arrive() -> None:
    world = World()
    world.run(1_000)
    world.is_cut = True
    world.offer({WEB: entry(units={"a": unit("a"), "b": unit("b")})}, run_ms=20_000)
    before = len(world.reports)
    world.is_cut = False
    world.run(31_000)
    assert len(world.reports) == before + 1
    assert world.report().state is EntryState.HEALTHY
    sequences = [report.sequence for report in world.reports]
    assert sequences == sorted(set(sequences))
    world.tell(events.Connected(at_ms=world.now))
    assert len(world.reports) == before + 2
