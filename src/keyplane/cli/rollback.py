"""`keyplane rollback`: back to what was the target before."""

import sys
from pathlib import Path

import click

from keyplane.cli import asking, fleets
from keyplane.parts import change_messages as changes


@click.command("rollback")
@click.argument("generation", metavar="[GENERATION]", required=False)
@fleets.fleet_option
@asking.options
def command(generation: str | None, directory: Path | None, **manner: bool | str) -> None:
    """Plan the text of an earlier generation again, and make that the target.

    Without GENERATION it is the one that was the target before this one; `keyplane history` names
    them. What machines are today counts, and ports stay as they are now. It is a revision of its
    own: nothing is lost, and a second rollback leads back here.
    """
    asked = changes.Rollback(generation=generation)
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), asked, how))
