"""`keyplane backups`: what was saved of volumes, and what old copies stand on machines."""

import shlex
from pathlib import Path

import click
import msgspec

from keyplane.cli import ages, fleets, reading, rows
from keyplane.parts import embedded, volume_messages
from keyplane.parts.state_dir import StateDir

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.command("backups")
@fleets.fleet_option
@click.option(
    "--forget", type=int, metavar="BACKUP", help="Let go of one; the collection takes it."
)
@reading.as_json
def command(directory: Path | None, *, forget: int | None, as_json: bool) -> None:
    """List the backups of volumes, the newest first, and copies that nobody uses any more.

    A backup is made by `keyplane backup`, and by each hand over. The store holds it until it is
    forgotten here. Old copies are on their machines, and never removed by Keyplane.
    """
    state = fleets.state_of(directory)
    client = embedded.controller(state)
    if forget is None:
        found = client.backups()
    else:
        found = client.forget_backup(volume_messages.Forget(backup=forget))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _show(state, found)


def _show(state: StateDir, found: volume_messages.Backups) -> None:
    table = [
        (
            str(each.backup),
            each.entry,
            ages.at(each.at_ms),
            ", ".join(sorted(each.volumes)),
            size(each.size),
            each.why,
        )
        for each in found.backups
    ]
    rows.table("", ("BACKUP", "ENTRY", "SAVED", "VOLUMES", "SIZE", "WHY"), table)
    if not table:
        click.echo("no backups: `keyplane backup ENTRY` makes one")
    for each in found.pending:
        click.echo(f"backup {each.backup} of {each.entry} is being made")
    for each in found.failed:
        mark = click.style("x", fg="red")
        click.echo(f"{mark} backup {each.backup} of {each.entry} came to nothing: {each.problem}")
    if found.copies:
        click.echo("\nold copies, which nothing uses; each goes with the command below it:")
    for each in found.copies:
        where = f"{each.path} on {each.machine}"
        click.echo(f"  {where}: of {each.entry}, {rows.plain(each.why)} {ages.at(each.since_ms)}")
        click.echo(click.style(f"    rm -r {shlex.quote(str(_place(state, each)))}", dim=True))


def _place(state: StateDir, copy: volume_messages.Copy) -> Path:
    """Where it stands: a machine of this box has its files below a root of its own."""
    root = state.machine(copy.machine) / "root"
    return Path(f"{root}{copy.path}") if root.is_dir() else Path(copy.path)


def size(count: int) -> str:
    value, unit = float(count), 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
