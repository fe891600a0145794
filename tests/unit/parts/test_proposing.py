"""What is proposed while somebody else applies."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.rollout_messages import RolloutAct
from keyplane.ports.inventory import StoredRollout
from keyplane.testing.inventory import MemoryInventory
from tests.unit.parts.fact_fleet import HEARD, named, text
from tests.unit.parts.fact_world import World, in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Busy(MemoryInventory):
    """Something happens just before the latest rollout is read."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def rollout(self, number: int | None = None) -> StoredRollout | None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().rollout(number)


def test_who_looks_while_another_commits_is_shown_what_there_is_then() -> None:
    """He is not told to look again: whether he was quicker is said once he applies."""

    async def main() -> None:
        world = World()
        world.inventory = inventory = Busy()
        machine, other, third = HEARD
        async with world.running():
            await world.apply(text(named("plain", machine)))
            inventory.meanwhile = lambda: world.apply(text(named("plain", other)))
            asked = changes.Directory(files=text(named("plain", third)), over=1)
            proposal = await world.controller.propose(messages.Propose(asked=asked))
            target = await inventory.target()
            assert target is not None
            assert proposal.parent == target.plan.generation
            assert proposal.diff.deactivate == [f"plain:main@{other}"]

    in_virtual_time(main)


def test_who_was_quicker_is_who_moved_the_target() -> None:
    """Not who said something else since."""

    async def main() -> None:
        world = World()
        machine, other, third = HEARD
        async with world.running():
            await world.apply(text(named("plain", machine)))
            asked = changes.Directory(files=text(named("plain", third)), over=2)
            proposal = await world.controller.propose(
                messages.Propose(asked=msgspec.structs.replace(asked, over=1))
            )
            await world.apply(text(named("plain", other)))
            await world.controller.rollouts.act(RolloutAct(verb="freeze", who="bob"))
            order = messages.Apply(
                asked=asked,
                parent=proposal.parent,
                revision=proposal.revision,
                generation=proposal.generation,
            )
            with pytest.raises(RefusedError, match=r"^ada was quicker: `apply`"):
                await world.controller.apply(order, who="eve")

    in_virtual_time(main)
