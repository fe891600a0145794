"""`keyplane uncordon`: a machine takes its share again."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("uncordon")
@click.argument("machine", metavar="MACHINE")
@fleets.fleet_option
@asking.options
def command(machine: str, directory: Path | None, **manner: bool | str) -> None:
    """Place on MACHINE by count again, after `cordon` or `drain`."""
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), changes.Uncordon(machine=machine), how))
