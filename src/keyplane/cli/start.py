"""`keyplane start`: an entry that a person stopped runs again."""

from pathlib import Path

import click

from keyplane.cli import fleets, reading, saying


@click.command()
@click.argument("entry")
@fleets.fleet_option
@saying.wait_option
@reading.as_json
def command(entry: str, directory: Path | None, *, wait_s: int, as_json: bool) -> None:
    """Let an entry run again that was stopped, wherever that was said.

    What failed of one that was not stopped is tried again at once. Exit status: 0 it is healthy,
    1 it failed or is not healthy yet, 2 there is no such entry.
    """
    saying.say(entry, directory, stop=False, wait_s=wait_s, as_json=as_json)
