"""`keyplane stop`: an entry stays stopped until somebody starts it."""

from pathlib import Path

import click

from keyplane.cli import fleets, reading, saying


@click.command()
@click.argument("entry")
@fleets.fleet_option
@saying.wait_option
@reading.as_json
def command(entry: str, directory: Path | None, *, wait_s: int, as_json: bool) -> None:
    """Stop an entry, such as mygame-eu:server@alpha, until `keyplane start`.

    Holds through applies, and restarts of its agent and its machine. Exit status: 0 it is
    stopped, 1 it is not yet, 2 there is no such entry.
    """
    saying.say(entry, directory, stop=True, wait_s=wait_s, as_json=as_json)
