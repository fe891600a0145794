"""The planner: a pure function of documents, facts and the previous plan.

It reads no clock, file or network. `rounds.plan` runs the rounds one after another; each round is
a module with one job and leaves its findings in the `Draft`.
"""

from keyplane.planner.request import PlanRequest, PlanResult
from keyplane.planner.rounds import plan

__all__ = ["PlanRequest", "PlanResult", "plan"]
