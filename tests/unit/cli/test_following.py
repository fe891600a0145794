"""What is drawn of a rollout that is followed, where its lines do not fit."""

from keyplane.cli import rollout
from keyplane.parts.rollout_messages import RolloutMachine, RolloutRow, RolloutView


def test_machines_that_are_done_make_room_for_those_at_work() -> None:
    """How many there are of them is said in the first line."""
    states = ["done"] * 40 + ["waits", "next"]
    machines = [
        RolloutMachine(machine=f"m{at}", step=at, state=state, entries=[f"web:main@m{at}"], said="")
        for at, state in enumerate(states)
    ]
    row = RolloutRow(
        number=7,
        state="waiting",
        open=True,
        who="me",
        created_ms=0,
        generation="g",
        step=41,
        steps=42,
        said="step 41 of 42: m40; goes on once healthy",
    )
    shown = list(rollout.at_work(RolloutView(rollout=row, machines=machines, end=None)))
    assert shown[0] == "rollout 7 by me is waiting, 41 of 42 steps sent, 40 of 42 lines done"
    assert [line.split()[1] for line in shown if "web:main@" in line] == ["m40", "m41"]
