"""`keyplane diff`: what it takes to get from one plan to another."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from keyplane.cli import reading

if TYPE_CHECKING:
    from keyplane.model.plan import Diff

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("diff")
@click.argument("old", metavar="OLD.json", type=_FILE)
@click.argument("new", metavar="NEW.json", type=_FILE)
@reading.as_json
def command(old: Path, new: Path, *, as_json: bool) -> None:
    """Compare two plans that `keyplane plan --json` made."""
    import msgspec

    from keyplane.planner import compare

    before, after = reading.load_plan(old), reading.load_plan(new)
    found = compare.diff(before, after)
    if as_json:
        click.echo(msgspec.json.encode(found, order="sorted"))
    else:
        if before.fleet != after.fleet:
            click.echo(f"fleet {before.fleet} changes its name to {after.fleet}")
        show(found)


def show(diff: "Diff") -> None:
    """Print a difference for people: retags first, as nobody may miss them."""
    from keyplane.cli import rows, words
    from keyplane.planner import compare

    rows.show(compare.retag_rows(diff))
    lines = [(line.entry, line.told, line.why) for line in words.lines(diff)]
    rows.table("difference", ("ENTRY", "WHAT", "WHY"), lines)
    rows.table(
        "moves",
        ("ROLE", "FROM", "TO"),
        [(move.entry, move.from_, move.to) for move in diff.moves],
    )
    click.echo(words.count(diff, compare.by_cascade(diff)))
