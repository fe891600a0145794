"""`keyplane down`: end the control plane, and the units if that is asked."""

from pathlib import Path

import click

from keyplane.cli import faults, fleets, rows
from keyplane.parts import embedded, state_dir
from keyplane.parts.main import local


@click.command()
@fleets.fleet_argument
@click.option("--units", is_flag=True, help="Stop what runs on the machines too.")
def command(directory: Path | None, *, units: bool) -> None:
    """Stop bus, store, controller and agents; the services go on unless --units is said.

    `keyplane up` adopts what runs.
    """
    try:
        state = fleets.state_of(directory)
    except faults.UnusableError:
        state = state_dir.of_fleet(directory or Path())
        if not local.has_strays(state):
            raise
        click.echo(f"{state.root} was removed while units ran")
    was_up = embedded.stop(state)
    click.echo("control plane stopped" if was_up else "no control plane ran")
    if units:
        stopped = local.stop_units(state)
        click.echo(f"{rows.counted(stopped, 'unit')} stopped")
    else:
        running = local.count_units(state)
        if running:
            go = "goes" if running == 1 else "go"
            click.echo(
                f"{rows.counted(running, 'unit')} {go} on; `keyplane down --units` stops them too"
            )
