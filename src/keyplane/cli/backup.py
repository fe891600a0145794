"""`keyplane backup`: save the volumes of an entry."""

import sys
import time
from pathlib import Path

import click
import msgspec

from keyplane.cli import backups, faults, fleets, reading, registry, rows
from keyplane.parts import embedded, volume_messages
from keyplane.parts.control_client import ControlClient

POLL_S = 0.1
WAIT_S = 600


@click.command()
@click.argument("entry")
@fleets.fleet_option
@click.option(
    "--wait",
    "wait_s",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    default=WAIT_S,
    show_default=True,
    help="Wait no longer than that.",
)
@reading.as_json
def command(entry: str, directory: Path | None, *, wait_s: int, as_json: bool) -> None:
    """Save the volumes of an entry, such as pg-shared:main@alpha, into the store.

    It is stopped meanwhile, so that they are saved as of one moment, and started again; one that
    a person stopped stays so. Exit status: 0 saved, 1 not, 2 there is no such entry.
    """
    client = embedded.controller(fleets.state_of(directory))
    asked = client.back_up(volume_messages.BackUp(entry=entry))
    found = _await(client, asked, wait_s)
    if isinstance(found, str):
        faults.tell(f"{entry}: {rows.plain(found)}")
        sys.exit(registry.EXIT_FAILED)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        names = ", ".join(sorted(found.volumes))
        click.echo(f"backup {found.backup} of {entry}: {names}, {backups.size(found.size)}")


def _await(
    client: ControlClient, asked: volume_messages.Pending, wait_s: int
) -> volume_messages.BackupRow | str:
    """The backup, or why there is none."""
    deadline = time.monotonic() + wait_s
    while True:
        known = client.backups()
        for each in known.backups:
            if each.backup == asked.backup:
                return each
        for each in known.failed:
            if each.backup == asked.backup:
                return f"nothing was saved, and it runs as before: {each.problem}"
        if not any(each.backup == asked.backup for each in known.pending):
            return "it left the fleet before it was saved"
        if time.monotonic() > deadline:
            return f"not saved in {wait_s} s; it is asked, and `keyplane backups` shows it"
        time.sleep(POLL_S)
