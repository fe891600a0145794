"""What people say of rollouts: pause, stop, push and the like, at whatever time."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.controller import Controller
from keyplane.parts.rollout_messages import Again, RolloutAct
from keyplane.ports.errors import PortError
from keyplane.rollout import state as states
from keyplane.rollout.state import Phase
from keyplane.testing.simulation.world import World

WHO = "ana"

Work = Callable[[Controller], Coroutine[Any, Any, object]]


class Overseers:
    """Those who look after rollouts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance

    def word(self) -> str:
        """One word of somebody, who waits for what comes of it as long as he is answered."""
        said: Mapping[Callable[[], str], int] = {
            self._pause: 3,
            self._resume: 4,
            self._stop: 2,
            self._close: 1,
            self._freeze: 1,
            self._thaw: 3,
            self._retry: 3,
            self._push: 5,
        }
        return self._chance.weighed(said)()

    async def let_go(self) -> None:
        """Whatever people hold up goes on."""
        row = await self._world.truth.rollout()
        state = None if row is None else states.decode(row.state)
        if await self._world.truth.frozen():
            self._thaw()
        elif row is not None and state is not None and state.phase is Phase.PAUSED:
            self._act(RolloutAct(verb="resume", who=WHO, number=row.number))

    def _number(self) -> int:
        """That of the latest, mostly."""
        latest = self._world.watch.rollout
        return latest if self._chance.happens(0.8) else self._chance.count(1, latest + 1)

    def _pause(self) -> str:
        return self._act(RolloutAct(verb="pause", who=WHO, number=self._number()))

    def _resume(self) -> str:
        return self._act(RolloutAct(verb="resume", who=WHO, number=self._number()))

    def _stop(self) -> str:
        return self._act(RolloutAct(verb="stop", who=WHO, number=self._number()))

    def _close(self) -> str:
        return self._act(RolloutAct(verb="close", who=WHO, number=self._number()))

    def _freeze(self) -> str:
        return self._act(RolloutAct(verb="freeze", who=WHO))

    def _thaw(self) -> str:
        return self._act(RolloutAct(verb="thaw", who=WHO))

    def _retry(self) -> str:
        return self._again(Again(retry=self._number(), who=WHO))

    def _push(self) -> str:
        everybody = [*self._world.machines]
        how = self._chance.pick(("one", "some", "behind", "all"))
        machines = {
            "one": [self._chance.pick(everybody)],
            "some": self._chance.some(everybody, 0.5),
        }.get(how, [])
        asked = Again(who=WHO, machines=machines, behind=how == "behind", all=how == "all")
        return self._again(asked)

    def _act(self, asked: RolloutAct) -> str:
        return self._say(
            asked.verb if asked.number is None else f"{asked.verb} {asked.number}",
            lambda controller: controller.rollouts.act(asked),
        )

    def _again(self, asked: Again) -> str:
        async def watched(controller: Controller) -> None:
            async for event in await controller.rollouts.again(asked):
                if isinstance(event, messages.Ended):
                    self._world.log("person", f"is told: {event.outcome} {event.why}")

        names = ", ".join(asked.machines) or ("all" if asked.all else "behind")
        what = f"retry {asked.retry}" if asked.retry is not None else f"push {names}"
        return self._say(what, watched)

    def _say(self, what: str, work: Work) -> str:
        desk = self._world.desk()
        if desk is None:
            return f"a person says {what}, and finds no controller"
        desk.life.spawn(self._said(what, work(desk.controller)))
        return f"a person says {what}"

    async def _said(self, what: str, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except RefusedError as error:
            self._world.log("person", f"may not {what}: {error.problem.code}")
        except PortError as error:
            self._world.log("person", f"is answered to {what}: {error}")
