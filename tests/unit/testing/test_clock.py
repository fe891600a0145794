"""Time of a virtual loop goes when nobody has anything left to do, and at no other time."""

import asyncio
import time

from keyplane.testing.clock import VirtualLoop


def test_what_is_sent_to_a_thread_takes_no_time() -> None:
    """However slow the machine is; what it raises is raised where it is awaited."""

    async def main() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.to_thread(time.sleep, 0.05)
            try:
                await asyncio.to_thread(int, "none")
            except ValueError:
                return
        raise AssertionError

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
