"""`keyplane pin`: which machine answers an interface here."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("pin")
@click.argument("machine", metavar="MACHINE")
@click.argument("interface", metavar="INTERFACE")
@click.argument("provider", metavar="PROVIDER-MACHINE")
@fleets.fleet_option
@asking.options
def command(
    machine: str, interface: str, provider: str, directory: Path | None, **manner: bool | str
) -> None:
    """On MACHINE, have INTERFACE answered from PROVIDER-MACHINE.

    As `keyplane pin alpha postgresql-database beta`. Shows what it costs, asks, and makes a
    revision of it.
    """
    asked = changes.Pin(machine=machine, interface=interface, provider=provider)
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), asked, how))
