"""`keyplane freeze`: no rollout sends anything further."""

from pathlib import Path

import click

from keyplane.cli import fleets, reading, rollout
from keyplane.parts import rollout_messages


@click.command()
@fleets.fleet_argument
@rollout.why_option
@reading.as_json
def command(directory: Path | None, *, why: str, as_json: bool) -> None:
    """Let nothing be sent, and no unit react to a dynamic value, until `keyplane thaw`.

    What was sent is still judged; an apply in the meantime is recorded and waits. Units with another
    value to take up are `running-stale` until then.
    """
    asked = rollout_messages.RolloutAct(verb="freeze", why=why)
    rollout.say(directory, asked, "is frozen", as_json=as_json)
