"""Who waits for a deadline is woken at it, also where it is set meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from keyplane.parts.due import Due
from keyplane.testing.clock import LoopClock, VirtualLoop


def waited_s(*moves: tuple[float, float | None], most_s: float = 1.0) -> float:
    """How long one waits if the due time (in seconds) is set at these times."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        due = Due(LoopClock())

        def move(due_s: float | None) -> Callable[[], None]:
            return lambda: due.at(None if due_s is None else round(due_s * 1000))

        for at_s, due_s in moves:
            loop.call_at(at_s, move(due_s))
        await asyncio.sleep(0.1)
        began = loop.time()
        await due.wait(most_s)
        return loop.time() - began

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ((), 1.0),
        (((0.0, 0.4),), 0.3),
        (((0.0, 5.0),), 1.0),
        (((0.2, 0.5),), 0.4),
        (((0.0, 0.4), (0.2, 0.7)), 0.6),
        (((0.0, 0.4), (0.2, None)), 1.0),
        (((0.0, 0.05),), 1.0),
    ],
)
def test_a_wait_ends_at_what_is_due_or_at_its_own_end(
    moves: tuple[tuple[float, float | None], ...], expected: float
) -> None:
    """What is past already was looked at, and is no reason to look again at once."""
    assert waited_s(*moves) == pytest.approx(expected, abs=0.002)
