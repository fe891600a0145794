"""What somebody asked for becomes the target: planned, looked at once more, and committed."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from keyplane.parts import control_messages as messages
from keyplane.parts import lost, proposing
from keyplane.parts.committing import Committing
from keyplane.parts.control_client import RefusedError
from keyplane.parts.cordoning import Cordoning
from keyplane.parts.fact_plans import FactPlans
from keyplane.parts.knowing import Knowing
from keyplane.parts.mixing import BaseMovedError
from keyplane.parts.planning import Planning
from keyplane.parts.revising import Made
from keyplane.parts.rolling import Rolling
from keyplane.ports.inventory import Inventory, RevisionMovedError, StoredPlan, TargetMovedError

TRIES_MAX = 10
"""Each that is in vain is a step of the rollout that is open: after so many there is another fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applying:
    """Of one controller."""

    inventory: Inventory
    planning: Planning
    rolling: Rolling
    cordoning: Cordoning
    committing: Committing
    facts: Knowing
    fact_plans: FactPlans

    async def apply(
        self, request: messages.Apply, made: Made, target: StoredPlan | None, *, who: str
    ) -> AsyncIterator[messages.Event]:
        """Yields what happens then. The caller sees to it that nobody here moves the target.

        A rollout that is open goes on meanwhile, and what it sends is planned from: all is looked at
        again then, as what was shown is the way from one target to the next.
        """
        left = TRIES_MAX
        while True:
            left -= 1
            try:
                return await self._apply(request, made, target, who)
            except (TargetMovedError, RevisionMovedError, BaseMovedError) as error:
                if left and isinstance(error, BaseMovedError):
                    continue
                problem = messages.Problem(code="target-moved", message=str(error))
                raise RefusedError(problem) from error

    async def _apply(
        self, request: messages.Apply, made: Made, target: StoredPlan | None, who: str
    ) -> AsyncIterator[messages.Event]:
        base = await self.rolling.declared.base(target)
        made, planned = await self.fact_plans.meant(made, target, base)
        self.planning.drop()
        proposing.admit(request, planned)
        await self.cordoning.before(made, who)
        if target is None:
            await lost.check(self.inventory, self.facts, planned)
        try:
            events = await self.committing.commit(
                made,
                planned,
                base=base,
                target=target,
                who=who,
                why=request.why,
                push=request.push,
                volumes=request.volumes,
                request=request.request,
            )
        finally:
            self.facts.moved()
        await self.cordoning.after(made)
        self.fact_plans.planned(planned)
        return events
