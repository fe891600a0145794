"""The page of a rollout's states."""

from pathlib import Path

from keyplane.rollout import diagram
from keyplane.rollout.machine import TRANSITIONS
from keyplane.rollout.state import Phase

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rollout-states.md"


def test_the_page_is_drawn_from_the_table():
    """docs/reference/rollout-states.md is what the table of transitions gives today."""
    assert PAGE.read_text() == diagram.page()


def test_every_open_phase_can_end_and_no_ended_one_goes_on():
    """The table has no dead end and no way back."""
    left = {phase for phase, _ in TRANSITIONS}
    assert left == {phase for phase in Phase if phase.is_open}
