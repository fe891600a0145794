"""`keyplane drain`: a machine is emptied."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("drain")
@click.argument("machine", metavar="MACHINE")
@fleets.fleet_option
@asking.options
def command(machine: str, directory: Path | None, **manner: bool | str) -> None:
    """Move what is placed on MACHINE by count elsewhere, and place nothing new there.

    Says which entries stay, as they are placed by name or on every machine. Members of a set go as
    its `floor` and `maxUnavailable` let them. Holds until `keyplane uncordon`.
    """
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), changes.Drain(machine=machine), how))
