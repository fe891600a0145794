"""The page docs/reference/rollout-states.md, drawn from the table of transitions.

Made by `python -c "from keyplane.rollout import diagram as d; print(d.page(), end='')"`.
"""

from keyplane.rollout.state import Phase
from keyplane.rollout.transitions import TRANSITIONS

_HEAD = """\
# States of a rollout

Drawn from the table in `keyplane.rollout.transitions`; a test keeps it current.

A rollout is an ordered list of steps. All that is open is of one step; a step that passed is
followed by the sending of the next. Whatever is open comes to its end by itself: sending, waiting,
recalling and returning by the step's deadline, settling by its settle time, a pause after a day.

"""


def page() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.SENDING}"]
    lines += [f"    {old} --> {new}: {turn}" for (old, turn), new in TRANSITIONS.items()]
    lines += [f"    {phase} --> [*]" for phase in Phase if not phase.is_open]
    return _HEAD + "\n".join([*lines, "```"]) + "\n"
