"""`keyplane push`: send machines what they are to be, also what their policies only record."""

import sys
from pathlib import Path

import click

from keyplane.cli import faults, fleets, reading, rollout
from keyplane.parts import rollout_messages


@click.command()
@click.argument("machines", metavar="[MACHINE]...", nargs=-1)
@fleets.fleet_option
@click.option("--all", "to_all", is_flag=True, help="Name every machine.")
@click.option("--behind", is_flag=True, help="Name every machine that is not as the target says.")
@reading.as_json
def command(
    machines: tuple[str, ...], directory: Path | None, *, to_all: bool, behind: bool, as_json: bool
) -> None:
    """Send the target to machines that are named, also what is only recorded.

    Others that are not as the target says are sent it too, but nothing that is only recorded: that
    is held, and named with the command that sends it. Exit status: as `keyplane apply`.
    """
    if not (machines or to_all or behind):
        raise faults.UnusableError("name machines, or say --behind or --all")
    if machines and (to_all or behind):
        raise faults.UnusableError("machines, --behind and --all exclude each other")
    asked = rollout_messages.Again(machines=list(machines), all=to_all, behind=behind)
    sys.exit(rollout.again(directory, asked, as_json=as_json))
