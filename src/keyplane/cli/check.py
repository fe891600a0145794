"""`keyplane check`: the diagnostics of a plan alone."""

import sys
from pathlib import Path

import click

from keyplane.cli import reading


@click.command("check")
@reading.directory
@reading.as_json
@reading.facts
@reading.alone
def command(directory: Path, *, as_json: bool, facts: Path | None, alone: bool) -> None:
    """Print what is wrong with the fleet in DIR.

    Exit status: 0 no error rows, 3 error rows, 2 DIR or an argument cannot be used.
    """
    found = reading.planned(directory, facts, None, alone=alone).plan.diagnostics
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode({"diagnostics": found}, order="sorted"))
    else:
        from keyplane.cli import rows

        rows.show(found)
        if not found:
            click.echo("nothing to report")
    sys.exit(reading.status_of(found))
