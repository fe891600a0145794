"""The page of a unit's states."""

from pathlib import Path

from keyplane.converge import reaction_diagram
from keyplane.converge.reaction_state import TRANSITIONS, ReactionState

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "reaction-states.md"


def test_the_page_is_drawn_from_the_table():
    """docs/reference/reaction-states.md is what the table of transitions gives today."""
    assert PAGE.read_text() == reaction_diagram.page()


def test_every_state_can_be_left_and_all_but_the_first_be_reached():
    """There is no state that a unit is in for ever, and none waits for a first value twice."""
    assert {state for state, _ in TRANSITIONS} == set(ReactionState)
    assert set(TRANSITIONS.values()) == set(ReactionState) - {ReactionState.WAITING}
