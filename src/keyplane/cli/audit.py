"""`keyplane audit`: who changed what."""

import json
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from keyplane.cli import ages, fleets, reading, rows
from keyplane.parts import embedded


@click.command("audit")
@fleets.fleet_argument
@click.option(
    "-n", "--lines", "--tail", "lines", metavar="N", type=click.IntRange(1, 10_000), default=50, show_default=True,
    help="Show so many, the newest.",
)  # fmt: skip
@reading.as_json
def command(directory: Path | None, *, lines: int, as_json: bool) -> None:
    """List what was changed, the newest last: when, who, what, and which revision came of it.

    WHO is the account that asked, with its number, as the kernel tells it.
    """
    found = embedded.controller(fleets.state_of(directory)).audit(lines)[::-1]
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found:
        click.echo("nothing was changed yet")
    table = [(ages.at(each.at_ms), each.who, each.what, _detail(each.detail)) for each in found]
    rows.table("", ("WHEN", "WHO", "WHAT", "DETAIL"), table)


def _detail(detail: Any) -> str:
    if not isinstance(detail, dict):
        return "" if detail is None else json.dumps(detail, ensure_ascii=False)
    said = cast("dict[str, Any]", detail)
    known = {name: value for name, value in said.items() if value is not None}
    nothing = ["no change"] if known.pop("changed", True) is False else []
    return ", ".join(nothing + [f"{name} {_value(name, value)}" for name, value in known.items()])


def _value(name: str, value: Any) -> str:
    if name == "generation" and isinstance(value, str):
        return value.removeprefix("sha256-")[:12]
    if isinstance(value, dict):
        return f"({_detail(value)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
