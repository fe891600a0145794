"""What was done to a fleet and by whom, for people who look back. Changes nothing."""

from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts import revising
from keyplane.parts.control_client import RefusedError
from keyplane.parts.revising import Made, Revising
from keyplane.ports.inventory import Inventory

LOOKED_BACK_MAX = 100
"""Words that people say of rollouts and machines, since an edit that was made a moment ago."""


class Past:
    """Revisions and the audit log."""

    def __init__(self, *, inventory: Inventory, revising: Revising) -> None:
        self._inventory = inventory
        self._revising = revising

    async def history(self, limit: int) -> changes.History:
        notes = await self._inventory.history(limit)
        return changes.History(revisions=[revising.row(note) for note in notes])

    async def shown(self, number: int | None) -> changes.Shown:
        """A revision with its text, the newest if none is named."""
        found = await self._inventory.revision(number)
        newest = await self._inventory.revision()
        if found is None or newest is None:
            what = "nothing was applied yet" if newest is None else f"no revision {number}"
            there = "" if newest is None else f": there are 1 to {newest.number}"
            raise _refused(
                "no-revision" if newest is None else "unknown-revision", f"{what}{there}"
            )
        notes = await self._inventory.history(newest.number - found.number + 1)
        return changes.Shown(
            revision=revising.row(notes[-1]),
            digest=found.digest,
            files=dict(found.files),
            difference=await self._revising.difference(found.number),
        )

    async def audited(self, limit: int) -> changes.AuditLog:
        rows = await self._inventory.audit_log(limit)
        return changes.AuditLog(
            rows=[
                changes.AuditRow(at_ms=at_ms, who=who, what=what, detail=detail)
                for at_ms, who, what, detail in rows
            ]
        )

    async def overtaken(self, revision: int | None, made: Made, now_ms: int) -> RefusedError:
        """Somebody else was quicker: who, and what to do now."""
        rows = await self._inventory.audit_log(LOOKED_BACK_MAX)
        moves = [row for row in rows if "generation" in row[3]]  # others moved no target
        if not moves:
            return _refused("target-moved", "the target was changed since this was shown")
        at_ms, who, what, detail = moves[0]
        edit = detail.get("why", "")
        seconds = max(0, now_ms - at_ms) // 1000
        won = f"{who} was quicker: `{what}`{f' ({edit})' if edit else ''}, {seconds} s ago"
        code = "target-moved"
        if made.newest is not None and dict(made.files) == dict(made.newest.files):
            code = "same-text"
            told = (
                ", of the same text: what you asked for is being done, as `keyplane status` shows"
            )
        elif revision == made.parent:
            told = "; nothing of yours was applied, and nothing of it is lost"
        else:
            told = f", made revision {made.parent}; nothing of yours was applied, and nothing of it is lost"
        return RefusedError(messages.Problem(code=code, message=won + told, revision=made.parent))


def _refused(code: str, message: str) -> RefusedError:
    return RefusedError(messages.Problem(code=code, message=message))
