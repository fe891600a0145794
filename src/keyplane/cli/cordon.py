"""`keyplane cordon`: nothing new goes to a machine."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("cordon")
@click.argument("machine", metavar="MACHINE")
@fleets.fleet_option
@asking.options
def command(machine: str, directory: Path | None, **manner: bool | str) -> None:
    """Place nothing new on MACHINE by count. What is there stays.

    Holds until `keyplane uncordon`, whatever is applied.
    """
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), changes.Cordon(machine=machine), how))
