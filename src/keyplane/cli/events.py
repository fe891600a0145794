"""`keyplane events`: what happened to an entry or on a machine, and why."""

import contextlib
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from keyplane.cli import faults, fleets, reading, rows, since
from keyplane.model.occurrence import Occurrence
from keyplane.parts import embedded, occurrence_messages

LOOK_S = 1.0
"""Agents report within a second; a person reads no faster."""


since_option: Any = click.option("--since", "begin", metavar="WHEN", help=since.HELP)
lines_option: Any = click.option(
    "-n",
    "--lines",
    "--tail",
    type=click.IntRange(1, occurrence_messages.OCCURRENCES_MAX),
    metavar="N",
    default=100,
    show_default=True,
    help="The last so many.",
)


@click.command()
@click.argument("entry", required=False)
@fleets.fleet_option
@click.option(
    "--machine", metavar="MACHINE", help="Everything on this machine, instead of one entry."
)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@since_option
@lines_option
@reading.as_json
def command(  # noqa: PLR0913  # each is a flag
    entry: str | None,
    directory: Path | None,
    *,
    machine: str | None,
    follow: bool,
    begin: str | None,
    lines: int,
    as_json: bool,
) -> None:
    """Print every start, stop, restart, reload and end of an entry's units, with its cause.

    With --json one object; with --follow too, one a line.
    """
    if entry is None and machine is None:
        raise faults.UnusableError(
            "name an entry such as mygame-eu:server@alpha, or --machine NAME"
        )
    if entry is not None and machine is not None:
        raise faults.UnusableError("name an entry or --machine NAME, and not both")
    asked = occurrence_messages.OccurrencesAsked(
        entry=entry, machine=machine, since_ms=since.since_ms(begin), limit=lines
    )
    client = embedded.controller(fleets.state_of(directory))
    found = client.occurrences(asked)
    if as_json and not follow:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found.occurrences and not follow:
        click.echo("nothing is known to have happened")
    show(found.occurrences, as_json=as_json)
    with contextlib.suppress(KeyboardInterrupt):
        while follow:
            last = found.occurrences[-1].id if found.occurrences else asked.after
            asked = msgspec.structs.replace(
                asked, after=last, limit=occurrence_messages.OCCURRENCES_MAX
            )
            time.sleep(LOOK_S)
            found = client.occurrences(asked)
            show(found.occurrences, as_json=as_json)


def show(found: Iterable[occurrence_messages.OccurrenceRow], *, as_json: bool) -> None:
    """A line for each, for people or for programs."""
    for each in found:
        if as_json:
            click.echo(msgspec.json.encode(each).decode())
        else:
            click.echo(line(each))


def line(each: occurrence_messages.OccurrenceRow) -> str:
    """`TIME  ENTRY/UNIT  ACT  CAUSE  DETAIL`."""
    return told(each.machine, each)


def told(machine: str, each: occurrence_messages.OccurrenceRow | Occurrence) -> str:
    subject = "/".join(filter(None, (each.entry or machine, each.unit)))
    words = f"{at(each.at_ms)}  {subject}  {each.act:7}  {each.cause:8}  {each.detail}"
    return rows.plain(words.rstrip())


def at(at_ms: int) -> str:
    when = datetime.fromtimestamp(at_ms / 1000, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"
