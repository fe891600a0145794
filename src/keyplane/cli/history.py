"""`keyplane history`: all revisions of a fleet's text."""

from pathlib import Path

import click
import msgspec

from keyplane.cli import ages, fleets, reading, revisions, rows
from keyplane.parts import embedded


@click.command("history")
@fleets.fleet_argument
@click.option(
    "-n", "--lines", "--tail", "lines", metavar="N", type=click.IntRange(1, 10_000), default=50, show_default=True,
    help="Show so many, the newest.",
)  # fmt: skip
@reading.as_json
def command(directory: Path | None, *, lines: int, as_json: bool) -> None:
    """List the revisions, the newest first: when, who, why, and what came of it.

    MOVED is how many entries its generation moved when it was made the target.
    """
    found = embedded.controller(fleets.state_of(directory)).history(lines)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found:
        click.echo("nothing was applied yet: `keyplane apply DIR`")
    table = [
        (
            str(each.revision),
            ages.at(each.at_ms),
            each.who,
            revisions.why(each),
            "" if each.generation is None else each.generation[7:19],
            "" if each.moved is None else str(each.moved),
        )
        for each in found
    ]
    rows.table("", ("REVISION", "WHEN", "WHO", "WHY", "GENERATION", "MOVED"), table)
    if found and len(found) == lines and found[-1].revision > 1:
        click.echo(f"{found[-1].revision - 1} earlier ones: `-n` shows more")
