"""The rows that a check gives, and for whom a check is waived."""

from collections.abc import Set as AbstractSet

from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.names import EntryId
from keyplane.model.plan import Plan


def wrong(code: str, subject: str, path: str, message: str) -> Diagnostic:
    """What no sound plan has: the planner is at fault, not whoever wrote the documents."""
    return Diagnostic(
        code=code,
        subject=subject,
        path=path,
        message=message,
        resolution=(
            "apply nothing: what runs goes on as it is",
            "report the plan, with the fleet directory that it was made from",
        ),
    )


def excused(plan: Plan) -> AbstractSet[EntryId]:
    """Entries of which the plan itself says that they are wrong.

    They are listed as far as they go, and need no second row.
    """
    blamed = {row.subject for row in plan.diagnostics if row.severity is Severity.ERROR}
    return {
        EntryId(entry)
        for entry in plan.entries
        if entry in blamed or entry.rpartition("@")[0] in blamed
    }
