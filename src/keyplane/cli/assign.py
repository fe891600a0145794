"""`keyplane assign`: an instance, or a role of it, to a machine."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, assigning, fleets
from keyplane.parts import change_messages as changes


@click.command("assign")
@click.argument("instance", metavar="INSTANCE[:ROLE]")
@click.argument("machine", metavar="MACHINE")
@fleets.fleet_option
@asking.options
def command(instance: str, machine: str, directory: Path | None, **manner: bool | str) -> None:
    """Place INSTANCE on MACHINE too, as `keyplane assign motd gamma`.

    A module that has no instance yet gets one of its own name. Shows what that changes on
    MACHINE, and elsewhere by it; asks, and makes a revision of it.
    """
    asked = changes.Assign(instance=instance, machine=machine)
    status = assigning.carry_out(
        fleets.state_of(directory),
        asked,
        machine,
        asking.Manner(**manner),  # type: ignore[arg-type]
    )
    sys.exit(status)
