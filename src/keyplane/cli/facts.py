"""`keyplane facts`: plan by what machines say of themselves, whatever that stops or moves."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("facts")
@click.argument("machines", metavar="[MACHINE]...", nargs=-1)
@fleets.fleet_option
@asking.options
def command(machines: tuple[str, ...], directory: Path | None, **manner: bool | str) -> None:
    """Plan by what these machines say of themselves now, and make that the target.

    Facts that stop or move nothing count by themselves once they have held for a minute. What would
    stop or move something waits for this, unless its instance says onFact = "apply"; `keyplane
    status` tells what waits. Without MACHINE it is what all of them say. An entry that was placed on
    a machine by name goes on as it runs, also where the machine does not fit it any more.
    """
    asked = changes.TakeFacts(machines=list(machines))
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), asked, how))
