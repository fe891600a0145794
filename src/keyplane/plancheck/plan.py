"""The check of a whole plan, before it becomes the target, and of every plan that a test makes."""

from keyplane.model.diagnostic import Diagnostic, in_order
from keyplane.model.documents import Documents
from keyplane.model.plan import Plan
from keyplane.plancheck import cells, edges, form, keys, machines
from keyplane.plancheck.rows import excused


def check(plan: Plan, documents: Documents | None = None) -> list[Diagnostic]:
    """Every way in which the plan is not what a planner may give; none if it is sound.

    Entries that the plan's own rows call wrong are judged only by their form and keys. With the
    documents ports are judged by their protocols too, which a plan does not show.
    """
    waived = excused(plan)
    return in_order(
        [
            *form.check(plan),
            *edges.check(plan, waived),
            *cells.check(plan, waived),
            *machines.check(plan, waived, documents),
            *keys.check(plan),
        ]
    )
