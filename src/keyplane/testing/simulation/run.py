"""One run: a seed in, what it came to out."""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from keyplane.testing.clock import VirtualLoop
from keyplane.testing.simulation.chance import Chance
from keyplane.testing.simulation.happenings import Happenings
from keyplane.testing.simulation.natures import Natures
from keyplane.testing.simulation.voices import Voices
from keyplane.testing.simulation.world import World

WITH_VALUES = 1_000_000
"""From this seed on services say values while they run, and others read them."""
WITH_FACTS = 2_000_000
"""From this seed on machines say what they are, and some services hang on that; no values then."""
WITH_SETS = 3_000_000
"""From this seed on there are also sets of which some have to stay up, and machines that are
cordoned, drained and removed."""
WITH_MISTAKES = 4_000_000
"""From this seed on people often apply what fails, and what fails again to mend it; no sets then."""
VALUES = 1 << 32
FACTS = 1 << 33
"""Beside a run's own seed, so that what is drawn of dynamic values or of facts shifts no other draw."""
HEALED_S = 600.0
"""Within it everything is as the target says, once nothing fails any more: two rollouts that wait
to their deadline, and the longest pauses before what failed is tried again."""
TIDY_S = 60.0
"""Agents let go of archives a while after all has settled."""
QUIET_S = 70.0
"""Two full passes, in which nothing is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one seed came to."""

    seed: int
    broken: str
    """The first promise that was broken; empty if none was."""
    log: tuple[str, ...]
    seconds: float
    """Of virtual time."""
    acts: int
    targets: int


def run(seed: int) -> Outcome:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(seed))


def outcomes(seeds: Sequence[int], jobs: int) -> Iterator[Outcome]:
    """What each seed came to, in any order."""
    if jobs == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=2)


async def _run(seed: int) -> Outcome:
    chance = Chance(seed)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.takes_s = partial(chance.between, 0.0, 0.3)
    world = World(
        chance,
        Chance(seed + VALUES),
        Chance(seed + FACTS),
        has_values=WITH_VALUES <= seed < WITH_FACTS or WITH_SETS <= seed < WITH_MISTAKES,
        has_facts=WITH_FACTS <= seed < WITH_SETS,
        has_sets=WITH_SETS <= seed < WITH_MISTAKES,
        has_mistakes=seed >= WITH_MISTAKES,
    )
    story = asyncio.ensure_future(_story(world))
    broken = asyncio.ensure_future(world.watch.is_broken.wait())
    await asyncio.wait([story, broken], return_when=asyncio.FIRST_COMPLETED)
    story.cancel()
    broken.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await story
    for seat in (*world.controls, *world.machines.values()):
        seat.is_off = True
        if seat.life is not None:
            seat.life.kill("ended with the run")
    await asyncio.sleep(0.01)  # what was killed ends
    return Outcome(
        seed=seed,
        broken=world.watch.broken,
        log=tuple(world.lines),
        seconds=asyncio.get_running_loop().time(),
        acts=world.watch.acts,
        targets=world.watch.targets,
    )


async def _story(world: World) -> None:
    chance = world.chance
    world.begin()
    world.fleet.begin(chance)
    happenings = Happenings(world)
    voices, natures = Voices(world), Natures(world)
    natures.begin()
    await asyncio.sleep(1.0)
    world.apply()
    for _ in range(chance.count(5, 30)):
        # Some things happen in the middle of others, and some after all is quiet.
        await asyncio.sleep(chance.pick((0.01, 0.1, 0.5, 2.0, 5.0, 15.0)) * chance.share())
        happenings.happen()
        voices.happen()
        await natures.happen()
    # Long enough, at times, for a rollout to come to its deadline.
    for _ in range(chance.pick((1, 1, 70))):
        await asyncio.sleep(10.0 * chance.share())
        await world.watch.check_rollout()
    happenings.heal()
    voices.heal()
    natures.heal()
    await _converge(world, happenings, natures)
    await world.watch.check_ends()
    if said := await world.unrecorded():
        world.watch.fault("whoever changed something can be found", said)
    await asyncio.sleep(TIDY_S)
    acts = world.watch.acts
    await asyncio.sleep(QUIET_S)
    # What a lost inventory does not know any more is nobody's to mend, and may fail for ever.
    if world.watch.acts != acts and not await world.is_forsaken():
        world.watch.fault("a second look has no effects", f"{world.watch.acts - acts} were done")


async def _converge(world: World, happenings: Happenings, natures: Natures) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + HEALED_S
    said = again = ""
    while loop.time() < until:
        happenings.clear_conflicts()
        await happenings.overseers.let_go()
        if world.fleet.has_sets:
            await happenings.placers.let_go()
        rollout = await world.truth.rollout()
        if rollout is None or not rollout.open:
            await natures.let_go()
            said = await world.unsettled()
            if world.text != world.fleet.text() or said == again != "":
                world.log("person", f"applies it once more: {said or 'mended'}")
                world.apply()
                world.text = world.fleet.text()
            elif not said:
                return
            again = said
        happenings.let_go()
        await asyncio.sleep(10.0)
    world.watch.fault("it converges once it is healed", said)
