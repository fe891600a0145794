"""A person's words on rollouts: retry, close, push."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
import pytest

from keyplane.documents.reading import Reading
from keyplane.model.declaration import NO_OFFER, EntryState, OfferNumber, Report
from keyplane.model.names import MachineName
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.offering import Offering
from keyplane.parts.planning import Planning
from keyplane.parts.rollout_messages import Again, RolloutAct, RolloutView
from keyplane.parts.rollouts import Rollouts
from keyplane.parts.volumes import Volumes
from keyplane.ports.store import Pack
from tests.unit.parts.test_rolling import ALPHA, BETA, DB, KEY, WEB, World, all_of

Verb = Literal["pause", "resume", "stop", "close", "freeze", "thaw"]


class Desk(World):
    """A controller's rollouts, and who says something of them."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile = list[Callable[[], Awaitable[None]]]()
        """What happens while a word is heeded."""
        self.rollouts = self.desk()

    def desk(self) -> Rollouts:
        """Of another life of the controller."""

        async def nobody() -> frozenset[MachineName]:
            while self.meanwhile:
                await self.meanwhile.pop()()
            return frozenset()

        def unread(_: object) -> Reading:
            raise AssertionError("there is no text")

        def unpacked(*_: object) -> Pack:
            raise AssertionError("there is no archive")

        bus = self.bus.controller()
        return Rollouts(
            self.inventory,
            self.rolling,
            Offering(inventory=self.inventory, bus=bus, clock=self.clock, key=KEY),
            Planning(read=unread, archive=unpacked),
            self.clock,
            asyncio.Lock(),
            Volumes(inventory=self.inventory, rolling=self.rolling, clock=self.clock),
            nobody,
        )

    async def failed(self) -> None:
        """The first of two steps failed."""
        events = await self.apply({DB: "1", WEB: "1"})
        await self.report(ALPHA, EntryState.FAILED)
        self.clock.advance(10_000)
        await self.rolling.tick(frozenset())
        end = (await all_of(events))[-1]
        assert isinstance(end, messages.Ended)
        assert (end.outcome, end.unsent) == ("failed", [WEB])

    async def number(self) -> int:
        row = await self.inventory.rollout()
        assert row is not None
        return row.number

    async def offer_of(self, machine: MachineName) -> OfferNumber:
        offer = await self.inventory.last_offer(machine)
        return NO_OFFER if offer is None else offer.offer

    async def refused(self, asked: Again | RolloutAct) -> str:
        word = self.rollouts.again if isinstance(asked, Again) else self.rollouts.act
        with pytest.raises(RefusedError) as caught:
            await word(asked)  # type: ignore[arg-type]  # each with its own
        return caught.value.problem.code


async def test_a_retry_tries_what_failed_and_then_sends_the_rest() -> None:
    """Under a number that the machine has not seen, with a word that starts what it gave up."""
    desk = Desk()
    await desk.failed()
    before = await desk.offer_of(ALPHA)
    events = await desk.rollouts.again(Again(retry=1, who="ada"))
    assert await desk.offer_of(ALPHA) > before
    word = (await desk.inventory.words())[DB]
    assert (word.stop, word.who) == (False, "ada")
    assert await desk.offered(BETA) == {}
    await desk.report(ALPHA)
    assert set(await desk.offered(BETA)) == {WEB}
    await desk.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"


async def test_a_request_that_is_repeated_begins_nothing_more() -> None:
    """Nobody had heard that it was taken: now its rollout is told of, open or ended."""
    desk = Desk()
    await desk.failed()
    asked = Again(retry=1, who="ada", request="first")
    await desk.rollouts.again(asked)
    repeated = msgspec.structs.replace(asked, repeated=True)
    events = await desk.rollouts.again(repeated)
    await desk.report(ALPHA)
    await desk.report(BETA)
    for told in (await all_of(events), await all_of(await desk.rollouts.again(repeated))):
        assert isinstance(told[0], messages.Begun)
        assert isinstance(told[-1], messages.Ended)
        assert (told[0].rollout, told[-1].outcome) == (2, "done")
    assert await desk.number() == 2


@pytest.mark.parametrize("is_done", [False, True])
async def test_a_request_whose_rollout_was_overtaken_is_told_how_it_ended(*, is_done: bool) -> None:
    """Nobody had heard that it was taken, and others began two more meanwhile."""
    desk = Desk()
    await desk.failed()
    asked = Again(retry=1, who="ada", request="first")
    await desk.rollouts.again(asked)
    if is_done:
        await desk.report(ALPHA)
        await desk.report(BETA)
    await desk.apply({DB: "2", WEB: "2"})
    await desk.apply({DB: "3", WEB: "3"})
    repeated = msgspec.structs.replace(asked, repeated=True)
    begun, end = await all_of(await desk.rollouts.again(repeated))
    assert isinstance(begun, messages.Begun)
    assert isinstance(end, messages.Ended)
    assert (begun.rollout, end.outcome) == (2, "done" if is_done else "superseded")
    assert ("rollout 3" in end.why) is not is_done
    assert await desk.number() == 4


async def test_a_repeated_request_that_was_not_taken_is_taken_now() -> None:
    desk = Desk()
    await desk.failed()
    await desk.rollouts.again(Again(retry=1, who="ada", request="it", repeated=True))
    assert await desk.number() == 2


async def test_a_push_takes_over_from_a_rollout_that_goes_on_meanwhile() -> None:
    """What that one has sent by then is what is declared, and nobody is asked to say it again."""
    desk = Desk()
    overtaken = await desk.apply({DB: "1", WEB: "1"})
    desk.meanwhile.append(lambda: desk.report(ALPHA))
    events = await desk.rollouts.again(Again(machines=[BETA], who="ada"))
    assert await desk.number() == 2
    assert set(await desk.offered(BETA)) == {WEB}
    await desk.report(BETA)
    for told, outcome in ((overtaken, "superseded"), (events, "done")):
        end = (await all_of(told))[-1]
        assert isinstance(end, messages.Ended)
        assert end.outcome == outcome


async def test_a_retry_is_refused_where_another_has_what_was_left() -> None:
    desk = Desk()
    await desk.failed()
    assert await desk.refused(Again(retry=9)) == "overtaken"
    await desk.apply({DB: "2", WEB: "2"})
    assert await desk.refused(Again(retry=1)) == "overtaken"
    assert await desk.refused(Again(retry=2)) == "open"
    assert await desk.number() == 2


async def test_one_that_is_closed_is_not_tried_again() -> None:
    """It is closed by its number, whichever is the latest; one that is open is stopped first."""
    desk = Desk()
    await desk.failed()
    await desk.apply({DB: "2", WEB: "2"})
    assert await desk.refused(RolloutAct(verb="close", number=2)) == "open"
    await desk.rollouts.act(RolloutAct(verb="close", number=1, who="ada", why="old"))
    await desk.rollouts.act(RolloutAct(verb="stop", number=2, who="ada"))
    shown = await desk.rollouts.act(RolloutAct(verb="close", number=2, who="ada", why="done with"))
    assert isinstance(shown, RolloutView)
    assert await desk.refused(Again(retry=2)) == "closed"
    status = await desk.rolling.status(await desk.inventory.target())
    assert status is not None
    assert (status.number, status.state, status.closed) == (2, "stopped", True)
    assert await desk.refused(RolloutAct(verb="close", number=7)) == "unknown-rollout"
    log = await desk.inventory.audit_log(2)
    assert log[0][2:] == ("rollout close", {"rollout": 2, "why": "done with"})


async def test_what_an_older_one_comes_to_settles_no_newer_one() -> None:
    """A report of what the older had sent is about a lower number."""
    desk = Desk()
    first = await desk.apply({DB: "1"})
    former = await desk.offer_of(ALPHA)
    second = await desk.apply({DB: "2"})
    end = (await all_of(first))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "superseded"
    await desk.rolling.reported(
        Report(machine=ALPHA, offer=former, settled=former, sequence=50, boot="one")
    )
    assert desk.rolling.is_open
    desk.sequence = 50
    await desk.report(ALPHA)
    end = (await all_of(second))[-1]
    assert isinstance(end, messages.Ended)
    assert end.outcome == "done"
    rows = (await desk.rollouts.rows()).rollouts
    assert [(row.number, row.state, row.open) for row in rows] == [
        (2, "done", False),
        (1, "superseded", False),
    ]


async def test_a_push_sends_nothing_where_no_send_is_recorded_unless_it_is_named() -> None:
    desk = Desk()
    await desk.apply({DB: "1", WEB: "1"})
    await desk.rollouts.act(RolloutAct(verb="stop", number=1, who="ada"))
    events = await desk.rollouts.again(Again(machines=["alpha"], who="ada"))
    await desk.report(ALPHA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert [(each.entry, each.why, each.what, each.command) for each in end.held] == [
        (WEB, "no send to beta is recorded", "app 1", "keyplane push beta")
    ]
    assert await desk.offered(BETA) == {}
    events = await desk.rollouts.again(Again(machines=["beta"], who="ada"))
    await desk.report(BETA)
    end = (await all_of(events))[-1]
    assert isinstance(end, messages.Ended)
    assert (end.outcome, end.held) == ("done", [])
    assert set(await desk.inventory.sends()) == {ALPHA, BETA}


async def test_a_machine_that_has_more_than_is_recorded_is_held_as_well() -> None:
    """An inventory that was restored knows an older send than the last."""
    desk = Desk()
    for key in ("1", "2"):
        await desk.apply({DB: key, WEB: key})
        await desk.report(ALPHA)
        await desk.report(BETA)
    backup = desk.inventory.backup()
    await desk.apply({DB: "2", WEB: "3"})
    await desk.report(BETA)
    reports = desk.inventory.backup()["reports"]
    desk.inventory.restore({**backup, "reports": reports})
    desk.rolling = desk.life()
    desk.rollouts = desk.desk()
    desk.rolling = desk.rollouts.rolling
    await desk.rolling.tick(frozenset())
    target = await desk.inventory.target()
    assert target is not None
    unnamed = await desk.rollouts._unnamed(
        frozenset({ALPHA}),
        target,
        await desk.rolling.declared.base(target),
        *(await desk.rollouts._find(None)),
    )
    assert unnamed == {BETA: "the last send to beta is not recorded"}


async def test_what_is_so_already_is_told_as_that_and_stands_in_no_audit() -> None:
    """Another reason is something new; none is not."""
    desk = Desk()
    await desk.apply({DB: "1", WEB: "1"})

    async def said(verb: Verb, *, number: int | None = None, why: str = "") -> bool:
        asked = RolloutAct(verb=verb, number=number, who="ada", why=why)
        return (await desk.rollouts.act(asked)).changed

    async def audited() -> int:
        return len(await desk.inventory.audit_log(100))

    before = await audited()
    assert not await said("thaw")
    assert not await said("resume", number=1)
    assert await audited() == before
    words: list[tuple[Verb, int | None]] = [("pause", 1), ("freeze", None)]
    for verb, number in words:
        assert await said(verb, number=number, why="the disk is full")
        assert not await said(verb, number=number)
        assert not await said(verb, number=number, why="the disk is full")
        assert await said(verb, number=number, why="the disk is slow")
        assert await audited() == (before := before + 2)
    assert "the disk is slow" in await desk.inventory.frozen()
    assert await said("thaw")
    assert await said("resume", number=1)
    assert await said("stop", number=1)
    assert await said("close", number=1)
    assert not await said("close", number=1)
    assert await audited() == before + 4


async def test_a_push_that_had_nothing_to_send_is_audited_as_that() -> None:
    desk = Desk()
    events = await desk.apply({DB: "1"})
    await desk.report(ALPHA)
    await all_of(events)
    for _ in range(2):
        await all_of(await desk.rollouts.again(Again(machines=[ALPHA], who="ada")))
    details = [detail for _, _, what, detail in await desk.inventory.audit_log(2) if what == "push"]
    assert details == [{"machines": [ALPHA], "changed": False}] * 2
