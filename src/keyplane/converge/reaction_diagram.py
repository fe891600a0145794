"""The page docs/reference/reaction-states.md, drawn from the table of transitions.

Made by `python -c "from keyplane.converge import reaction_diagram as d; print(d.page(), end='')"`.
"""

from keyplane.converge.reaction_state import TRANSITIONS, ReactionState

_HEAD = """\
# States of a unit with dynamic values

Drawn from the table in `keyplane.converge.reaction_state`; a test keeps it current.

A restart, a reload or a live change of a unit that stays in its state is no arrow.

"""


def page() -> str:
    ids = {state: state.value.replace("-", "_") for state in ReactionState}
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state}" as {name}' for state, name in ids.items() if name != state]
    lines += [f"    [*] --> {ids[ReactionState.WAITING]}"]
    lines += [f"    {ids[old]} --> {ids[new]}: {turn}" for (old, turn), new in TRANSITIONS.items()]
    return _HEAD + "\n".join([*lines, "```"]) + "\n"
