"""`keyplane collection`: which archives the store holds, for what, and letting go of the rest."""

from pathlib import Path

import click
import msgspec

from keyplane.cli import ages, backups, fleets, reading, rows
from keyplane.parts import collection_messages, embedded

_KINDS = ("generation", "machine", "backup")


@click.command("collection")
@fleets.fleet_argument
@reading.as_json
@click.option("--delete", is_flag=True, help="Let go of what nothing names.")
@click.option(
    "--automatic",
    type=click.Choice(["on", "off"]),
    help="Whether that happens after each apply; off until it is switched on.",
)
def command(directory: Path | None, *, as_json: bool, delete: bool, automatic: str | None) -> None:
    """Show the store's archives: what holds each, and what would go.

    Held is what one of the twenty kept generations, a machine's last declaration or a backup names.
    Nothing else goes than what Keyplane packed itself.
    """
    client = embedded.controller(fleets.state_of(directory))
    found: collection_messages.Collection | None = None
    if automatic is not None:
        found = client.collect_automatically(automatic=automatic == "on")
    if delete:
        found = client.collect()
    found = client.collection() if found is None else found
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _show(found)


def holders(held_by: list[str]) -> str:
    """What holds an archive, of each kind in one word or two."""
    kinds: dict[str, list[str]] = {}
    others: list[str] = []
    for each in held_by:
        kind, _, name = each.partition(" ")
        if kind in _KINDS:
            kinds.setdefault(kind, []).append(name)
        else:
            others.append(each)
    told = [_told(kind, names) for kind, names in kinds.items()]
    return ", ".join([*told, *others])


def _told(kind: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]}"
    if kind == "generation":
        return rows.counted(len(names), kind)
    return f"{kind}s {rows.several(names)}"


def _show(found: collection_messages.Collection) -> None:
    table = [
        (
            each.digest[7:19],
            backups.size(each.size),
            "not by Keyplane" if each.made_ms is None else ages.at(each.made_ms),
            "nothing: it goes" if each.goes else holders(each.held_by) or "nothing",
        )
        for each in found.archives
    ]
    rows.table("", ("ARCHIVE", "SIZE", "PACKED", "HELD BY"), table)
    going = [each for each in found.archives if each.goes]
    size = sum(each.size for each in found.archives)
    click.echo(f"{rows.counted(len(found.archives), 'archive')}, {backups.size(size)}")
    if found.removed:
        click.echo(f"{len(found.removed)} let go")
    if going:
        size = sum(each.size for each in going)
        click.echo(
            f"{len(going)} would go, {backups.size(size)}: `keyplane collection --delete`, or after each "
            "apply with `--automatic on`"
        )
    click.echo(f"a sweep after each apply is {'on' if found.automatic else 'off'}")
