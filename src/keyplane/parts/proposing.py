"""What an edit would do, as a person is shown it."""

from collections.abc import Sequence

from keyplane.model.diagnostic import Severity, in_order
from keyplane.model.plan import NO_DIFFERENCE
from keyplane.parts import control_messages as messages
from keyplane.parts import volume_choices
from keyplane.parts.control_client import RefusedError
from keyplane.parts.planning import Planned
from keyplane.parts.revising import Made
from keyplane.parts.volume_messages import Question
from keyplane.ports.inventory import StoredPlan
from keyplane.rollout.volumes import Entries


def of_nothing(made: Made, target: StoredPlan | None) -> messages.Proposal:
    """The text says so already."""
    parent = target.plan.generation if target else None
    return messages.Proposal(
        fleet=target.plan.fleet if target else None,
        revision=made.parent,
        digest=made.newest.digest if made.newest else "",
        said=made.said,
        nothing=True,
        parent=parent,
        generation=parent or "",
        diagnostics=[],
        diff=NO_DIFFERENCE,
        entries=len(target.entries) if target else 0,
    )


def of_plan(
    made: Made,
    target: StoredPlan | None,
    base: Entries,
    planned: Planned,
    volumes: Sequence[Question],
) -> messages.Proposal:
    before, after = target.plan.fleet if target else None, planned.plan.fleet
    return messages.Proposal(
        fleet=after,
        former=None if after is None or before == after else before,
        revision=made.parent,
        digest=made.newest.digest if made.newest else "",
        will=made.will,
        said=made.said,
        parent=target.plan.generation if target else None,
        generation=planned.plan.generation,
        diagnostics=in_order([*planned.rows, *volume_choices.unsaid(volumes)]),
        diff=planned.diff,
        entries=len(planned.entries),
        volumes=list(volumes),
        inherited=volume_choices.inherited(base, planned.entries, volumes),
    )


def admit(request: messages.Apply, planned: Planned) -> None:
    """Refuse what has errors, and what was not shown so."""
    if planned.refused:
        errors = [row for row in planned.rows if row.severity is Severity.ERROR]
        raise RefusedError(
            messages.Problem(code="rows", message="the documents have errors", diagnostics=errors)
        )
    if planned.plan.generation != request.generation:
        raise RefusedError(
            messages.Problem(
                code="plan-moved",
                message="the plan is another one than was shown: look at it again",
            )
        )
