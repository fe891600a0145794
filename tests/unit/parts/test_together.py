"""Calls that come while one is under way are made as one; each has its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from keyplane.parts import together
from keyplane.parts.together import Together
from keyplane.testing.clock import VirtualLoop


class Work:
    """Doubles numbers, each time that it is let; remembers what was asked at once."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.may = asyncio.Semaphore(0)
        self.failures: list[Exception] = []

    def let(self) -> None:
        for _ in range(20):
            self.may.release()

    async def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.asked.append([*numbers])
        await self.may.acquire()
        if self.failures:
            raise self.failures.pop()
        return [ValueError(f"{each} is odd") if each % 2 else each * 2 for each in numbers]


async def begun(*calls: asyncio.Future[int]) -> None:
    """Each has been asked, as far as it comes by itself."""
    for _ in range(3 + len(calls)):
        await asyncio.sleep(0)


async def test_what_comes_meanwhile_is_made_as_one() -> None:
    """The first goes at once, and all that came by its end go after it, in their order."""
    work = Work()
    asks = Together(work)
    calls = [asyncio.ensure_future(asks(number)) for number in (2, 4, 6, 8)]
    await begun(*calls)
    assert work.asked == [[2]]
    work.let()
    assert await asyncio.gather(*calls) == [4, 8, 12, 16]
    assert work.asked == [[2], [4, 6, 8]]


async def test_nobody_is_answered_by_what_began_before() -> None:
    """The same question again is asked again: what it reads may be another by now."""
    work = Work()
    asks = Together(work)
    first = asyncio.ensure_future(asks(2))
    await begun(first)
    second = asyncio.ensure_future(asks(2))
    await begun(second)
    work.let()
    assert await asyncio.gather(first, second) == [4, 4]
    assert work.asked == [[2], [2]]


async def test_an_exception_is_of_the_call_that_it_answers() -> None:
    work = Work()
    work.let()
    asks = Together(work)
    found = await asyncio.gather(asks(2), asks(3), asks(4), return_exceptions=True)
    assert [each if isinstance(each, int) else str(each) for each in found] == [4, "3 is odd", 8]


async def test_one_that_is_raised_is_everybodys_and_ends_nothing() -> None:
    """Who comes after them is answered."""
    work = Work()
    asks = Together(work)
    first = asyncio.ensure_future(asks(2))
    await begun(first)
    work.failures = [OSError("away")]
    others = [asyncio.ensure_future(asks(number)) for number in (4, 6)]
    await begun(*others)
    work.let()
    with pytest.raises(OSError, match="away"):
        await first
    assert await asyncio.gather(*others) == [8, 12]
    work.failures = [OSError("away again")]
    found = await asyncio.gather(asks(8), asks(10), return_exceptions=True)
    assert str(found[0]) == "away again"
    assert found[1] == 20


def test_where_nobody_is_in_a_hurry_others_are_waited_for() -> None:
    """For so long after the first that came, and no longer."""
    work = Work()

    async def run() -> list[float]:
        work.let()
        asks = Together(work, after_s=5)
        loop = asyncio.get_running_loop()

        async def ask(at_s: float, number: int) -> float:
            await asyncio.sleep(at_s)
            assert await asks(number) == number * 2
            return round(loop.time(), 3)

        return await asyncio.gather(ask(0, 2), ask(3, 4), ask(7, 6), ask(11, 8))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(run()) == [5, 5, 12, 12]
    assert work.asked == [[2, 4], [6, 8]]


@pytest.mark.parametrize("given_up", [0, 1, 2])
async def test_one_that_is_given_up_takes_no_other_with_it(given_up: int) -> None:
    """Not even the one that makes the call for all: another of them does."""
    work = Work()
    asks = Together(work)
    before = asyncio.ensure_future(asks(0))
    await begun(before)
    calls = [asyncio.ensure_future(asks(number)) for number in (2, 4, 6)]
    await begun(*calls)
    work.may.release()
    await before
    await begun(*calls)
    assert work.asked[1:] == [[2, 4, 6]]
    calls[given_up].cancel()
    await begun(*calls)
    work.let()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(found.pop(given_up), asyncio.CancelledError)
    assert found == [each * 2 for each in (2, 4, 6) if each != (2, 4, 6)[given_up]]


async def test_so_many_at_most_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST", 3)
    work = Work()
    asks = Together(work)
    numbers = list(range(0, 20, 2))
    calls = [asyncio.ensure_future(asks(number)) for number in numbers]
    await begun(*calls)
    work.let()
    assert await asyncio.gather(*calls) == [each * 2 for each in numbers]
    assert max(map(len, work.asked)) == 3
    assert [each for asked in work.asked for each in asked] == numbers
