"""An independent check of a plan. Shares no code with the planner, so that no fault is shared.

`plancheck.plan.check` judges a whole plan, `plancheck.mixture.check_mixture` what is declared in
the middle of a rollout.
"""
