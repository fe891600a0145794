"""`keyplane thaw`: rollouts go on after a freeze."""

from pathlib import Path

import click

from keyplane.cli import fleets, reading, rollout
from keyplane.parts import rollout_messages


@click.command()
@fleets.fleet_argument
@rollout.why_option
@reading.as_json
def command(directory: Path | None, *, why: str, as_json: bool) -> None:
    """Let rollouts and reactions go on after `keyplane freeze`."""
    asked = rollout_messages.RolloutAct(verb="thaw", why=why)
    rollout.say(directory, asked, "is thawed", as_json=as_json)
