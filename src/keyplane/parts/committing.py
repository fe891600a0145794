"""Makes a plan the target, once all that machines need for it is there, and begins its rollout."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from keyplane.model.names import Digest, MachineName, split_entry
from keyplane.parts import control_messages as messages
from keyplane.parts.leaving import Leaving
from keyplane.parts.people import People
from keyplane.parts.planning import Base, Planned, Planning
from keyplane.parts.revising import Made
from keyplane.parts.rolling import Rolling
from keyplane.parts.volumes import Volumes
from keyplane.ports.inventory import NO_CHANGE, Change, StoredPlan
from keyplane.ports.store import ArtifactIntake
from keyplane.rollout import declaring_values
from keyplane.rollout.declaring_values import Rights
from keyplane.rollout.policies import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Committing:
    """Of one controller."""

    planning: Planning
    store: ArtifactIntake
    rolling: Rolling
    leaving: Leaving
    people: People
    volumes: Volumes
    permit: Callable[[Mapping[MachineName, Rights]], Awaitable[None]]
    """Lets each machine say and read just these dynamic values on the bus."""
    absent: Callable[[], Awaitable[frozenset[MachineName]]]

    async def commit(  # noqa: PLR0913  # all that was looked at before
        self,
        made: Made,
        planned: Planned,
        *,
        base: Base,
        target: StoredPlan | None,
        who: str,
        why: str,
        push: bool,
        volumes: Mapping[str, str],
        request: str = "",
    ) -> AsyncIterator[messages.Event]:
        """Yields what happens then; raises TargetMovedError and its like where it is too late.

        With `push`, what is else only recorded is sent. `volumes` says what is to become of the
        data of entries that move: RefusedError where nobody said it of one.
        """
        decided = await self.volumes.decide(base.entries, planned.entries, volumes, who)
        await self._keep_archives(planned)
        stored = StoredPlan(
            plan=planned.plan,
            revision=made.revision,
            entries=planned.entries,
            contents=planned.contents,
        )
        fleet = planned.documents.fleet
        assert fleet is not None, "a plan without error rows has a fleet"
        async with self.leaving.committing(fleet, base):
            # Before anybody is offered what needs it; what is no longer needed ends with the rollout.
            rights = declaring_values.rights(base.entries, base.fled(), planned.entries)
            await self.permit(rights)
            diff = planned.diff
            moved = {*diff.activate, *diff.deactivate, *diff.reload, *diff.rewire}
            change = Change(
                files=made.files,
                parent=made.parent,
                verb=made.verb,
                why=f"{why} ({made.said})" if why and made.said else why or made.said,
                moved=len(moved),
                detail={
                    **made.detail,
                    **(NO_CHANGE if _is_so(made, planned, base, target) else {}),
                },
                forgets=made.forgets,
                facts=made.take,
            )
            await self.people.forget(stored)
            return await self.rolling.begin(
                stored,
                base,
                parent=Digest(target.plan.generation) if target else None,
                before=target,
                who=who,
                change=change,
                terms=Terms(
                    rules=planned.rules,
                    absent=await self.absent(),
                    lost=frozenset() if made.forgets is None else frozenset((made.forgets,)),
                    named=_everybody(stored, base) if push else frozenset(),
                    transfers=decided.transfers,
                ),
                volumes=decided.change,
                request=request,
            )

    async def _keep_archives(self, planned: Planned) -> None:
        """Pack what machines will fetch and the store does not have yet."""
        for digest in planned.archives:
            if not await self.store.has(digest):
                await self.store.put(digest, self.planning.archive(planned, digest))


def _is_so(made: Made, planned: Planned, base: Base, target: StoredPlan | None) -> bool:
    """Whether all that is asked for holds already, sent and known to be well."""
    return (
        target is not None
        and made.revision == target.revision
        and made.cordon is None
        and not made.take
        and planned.plan.generation == target.plan.generation
        and not base.unproven
        and base.entries is target.entries  # else something of it was not sent yet
    )


def _everybody(stored: StoredPlan, base: Base) -> frozenset[MachineName]:
    here = {split_entry(entry)[2] for entry in base.entries}
    return frozenset({*map(MachineName, stored.plan.machines), *here})
