"""`keyplane unpin`: take back a pin."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("unpin")
@click.argument("machine", metavar="MACHINE")
@click.argument("interface", metavar="INTERFACE")
@fleets.fleet_option
@asking.options
def command(machine: str, interface: str, directory: Path | None, **manner: bool | str) -> None:
    """On MACHINE, have INTERFACE answered as without a pin.

    Shows what it costs, asks, and makes a revision of it.
    """
    asked = changes.Unpin(machine=machine, interface=interface)
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), asked, how))
