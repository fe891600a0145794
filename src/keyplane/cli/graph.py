"""`keyplane graph`: the plan of a fleet directory as a picture."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keyplane.cli import reading

if TYPE_CHECKING:
    from keyplane.drawing import Value
    from keyplane.planner.explain import Explained

_EDGES_MAX = 250_000
"""A set of 500 that 500 entries read: some ten seconds. Two for each of 100,000 entries fit in."""


@click.command("graph")
@reading.directory
@reading.previous
@reading.alone
@reading.facts
@click.option(
    "-o",
    "output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the SVG to FILE in place of printing it.",
)
def command(
    directory: Path,
    *,
    previous: Path | None,
    alone: bool,
    facts: Path | None,
    output: Path | None,
) -> None:
    """Draw the plan of DIR as SVG.

    Each machine is a box with its entries, each line what a provider gives on one plane; a line
    goes out on the right of a provider and comes in on the left of a reader. Large plans are drawn
    with less text and fewer lines; point at a part for the rest.

    Exit status: 0 no error rows, 3 error rows (the plan is drawn all the same), 2 DIR or an
    argument cannot be used.
    """
    after = reading.standing(directory, previous, facts, alone=alone)
    picture, status = drawn(directory, after, facts=facts)
    if output is None:
        click.echo(picture, nl=False)
    else:
        try:
            output.write_text(picture, encoding="utf-8")
        except OSError as error:
            reading.refuse(f"{output}: {error.strerror}")
    sys.exit(status)


def drawn(
    directory: Path, after: reading.Standing = reading.ALONE, *, facts: Path | None = None
) -> tuple[str, int]:
    """The SVG of a fleet directory's plan, and the exit status that its rows ask for."""
    from keyplane import drawing
    from keyplane.parts import main
    from keyplane.planner import explain, plan

    try:
        with main.read_fleet(directory, facts) as read:
            request = after.request(read)
            found = plan(request).plan
            if len(found.edges) > _EDGES_MAX:
                reading.refuse(
                    f"a picture of {len(found.edges)} edges would take minutes and show a blot: no "
                    f"more than {_EDGES_MAX} are drawn; `keyplane plan {directory}` lists them"
                )
            values = {
                entry: [_value(row) for row in rows]
                for entry, rows in explain.explain_all(request).items()
            }
    except main.FleetUnreadableError as error:
        reading.refuse(str(error))
    return drawing.draw(found, values), reading.status_of(found.diagnostics)


def _value(row: "Explained") -> "Value":
    from keyplane.drawing import Value

    return Value(
        name=row.name if row.unit is None else f"{row.unit}.{row.name}",
        plane=row.plane.value,
        sources=(row.from_,) if isinstance(row.from_, str) else tuple(row.from_),
    )
