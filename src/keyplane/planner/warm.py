"""A planner that stays: after a change of values it plans again only what the change reaches.

Its plan is always the one that planning the changed documents as a whole gives, with its last plan
as the previous one. What it cannot follow it plans as a whole.
"""

from dataclasses import replace

from keyplane.planner import changes, kept, rounds
from keyplane.planner.changes import Change
from keyplane.planner.kept import Kept
from keyplane.planner.request import PlanRequest, PlanResult


class Planner:
    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._kept: Kept | None = None
        """None: nothing is kept, and the next change is planned as a whole."""
        self._result = self._plan()

    @property
    def result(self) -> PlanResult:
        """The last plan. It shares with the ones before what is the same in them."""
        return self._result

    def update(self, change: Change) -> PlanResult:
        documents, delta = changes.applied(self._request.documents, change)
        evaluate = self._request.evaluate
        if isinstance(change, changes.NewDocuments) and change.evaluate is not None:
            evaluate = change.evaluate
        self._request = replace(
            self._request, documents=documents, evaluate=evaluate, previous=self._result.plan
        )
        # Taken out while it works, so that nothing half done is ever used.
        at_work, self._kept = self._kept, None
        found = None
        if at_work is not None and delta is not None:
            found = self._result if delta.none else at_work.update(documents, evaluate, delta)
        if found is None:
            self._result = self._plan()
        else:
            self._kept, self._result = at_work, found
        return self._result

    def _plan(self) -> PlanResult:
        worked = rounds.work(self._request, keep=True)
        if worked is None:
            return rounds.empty(self._request)
        if kept.can_keep(worked.draft):
            self._kept = Kept(worked)
        return worked.result
