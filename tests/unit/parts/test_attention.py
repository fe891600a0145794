"""Who stood still himself takes nobody for silent by that."""

import asyncio

from keyplane.converge import events
from keyplane.model.names import MachineName
from keyplane.parts.agent_values import SILENT_MS as VALUES_SILENT_MS
from keyplane.parts.agent_values import Following
from keyplane.parts.attention import STEP_MS, Attention
from keyplane.parts.hearing import Hearing
from keyplane.parts.status import SILENT_MS
from keyplane.testing.bus import MemoryBus
from keyplane.testing.clock import LoopClock, ManualClock
from tests.unit.parts.fact_world import in_virtual_time

ALPHA = MachineName("alpha")
EXPORT = "vpn:node@beta/provides/peer/address"
LONG_MS = 600_000


def test_time_passes_for_who_looks_at_it() -> None:
    clock = ManualClock()
    attention = Attention(clock)
    for _ in range(100):
        clock.advance(1_000)
        attention.now_ms()
    assert attention.now_ms() == 100_000
    clock.advance(LONG_MS)
    assert attention.now_ms() == 100_000 + STEP_MS


def test_a_controller_that_stood_still_takes_no_machine_for_silent() -> None:
    """It hears only now what they said meanwhile; when that was heard last is told as it is."""
    clock = ManualClock()
    hearing = Hearing(clock)
    hearing.heard(ALPHA)
    hearing.back.clear()
    clock.advance(LONG_MS)
    assert hearing.lately() == {ALPHA}
    assert not hearing.is_long_enough
    assert hearing.ms_ago() == {ALPHA: LONG_MS}
    hearing.heard(ALPHA)
    assert not hearing.back
    for _ in range(SILENT_MS // 1_000 + 1):
        clock.advance(1_000)
        assert hearing.lately() <= {ALPHA}
    assert hearing.lately() == frozenset()
    assert hearing.is_long_enough
    hearing.heard(ALPHA)
    assert hearing.back == {ALPHA}


class Stilled(LoopClock):
    """Goes on also while the loop does not."""

    away_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.away_ms


def test_an_agent_that_stood_still_takes_no_provider_for_silent() -> None:
    async def main() -> None:
        clock = Stilled()
        fed: list[events.Event] = []
        bus = MemoryBus().agent(ALPHA).values
        following = Following(bus=bus, clock=clock, spread=lambda: 0.0, feed=fed.append)
        following.want({EXPORT}, set())
        running = asyncio.create_task(following.run())
        await asyncio.sleep(3)
        clock.away_ms = LONG_MS
        await asyncio.sleep(3)
        assert fed == []
        await asyncio.sleep(VALUES_SILENT_MS / 1_000)
        assert [type(each) for each in fed] == [events.Silence]
        running.cancel()
        await asyncio.wait({running})

    in_virtual_time(main)
