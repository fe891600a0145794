"""`keyplane export`: the text of a revision as a directory."""

import json
import sys
from pathlib import Path
from typing import NoReturn

import click

from keyplane.cli import faults, fleets, reading, rows, watching
from keyplane.parts import change_messages as changes
from keyplane.parts import descent, embedded, main
from keyplane.parts.control_client import ControlClient, RefusedError
from keyplane.parts.state_dir import StateDir


@click.command("export")
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False)
)
@fleets.control_option
@click.option("--revision", type=click.IntRange(min=1), help="This one, not the newest.")
@click.option("--force", is_flag=True, help="Write over what was edited in DIR.")
@reading.as_json
def command(
    directory: Path | None,
    control: Path | None,
    *,
    revision: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the newest revision into DIR, which then descends from it.

    DIR may be new, or hold an earlier revision: what others edited since comes into it, and what
    was edited in DIR stays. Where both edited the same lines nothing is written. Exit status 1:
    refused.
    """
    state = fleets.state_of(_known(directory) if control is None else control)
    text = fleets.text_of(directory, state)
    client = embedded.controller(state)
    wanted = client.revision(revision)
    base = _base(client, descent.read(text))
    try:
        done = main.write_text(text.fleet, wanted.files, base, force=force)
    except main.FleetUnreadableError as error:
        reading.refuse(str(error), "name a new directory, or one that holds an earlier revision")
    except main.ExportRefusedError as error:
        _refuse(text, error.paths, wanted.revision.revision)
    made = changes.Descent(revision=wanted.revision.revision, digest=wanted.digest)
    descent.write(text, made, of=state)
    if as_json:
        click.echo(json.dumps({"revision": wanted.revision.revision, **done}))
    else:
        _tell(text.fleet, wanted.revision.revision, done)


def _known(directory: Path | None) -> Path | None:
    """Whose control plane is meant: that of a directory which knows one, else where we stand."""
    if directory is None or not (directory / ".keyplane").is_dir():
        return None
    return directory


def _base(client: ControlClient, known: changes.Descent | None) -> dict[str, bytes] | None:
    """The text that a directory descends from, as long as it is kept."""
    if known is None:
        return None
    try:
        found = client.revision(known.revision)
    except RefusedError:
        return None
    return found.files if found.digest == known.digest else None


def _refuse(text: StateDir, paths: tuple[str, ...], revision: int) -> NoReturn:
    listed = ", ".join(map(rows.plain, paths))
    faults.tell(
        f"nothing was written: in {text.fleet} this is not as any revision has it, and revision "
        f"{revision} has it otherwise: {listed}",
        "`keyplane export` into another directory, and bring the two together",
        f"then `keyplane apply --over {revision}`",
        "`--force` writes over what stands there",
    )
    sys.exit(watching.EXIT_FAILED)


def _tell(directory: Path, revision: int, done: dict[str, tuple[str, ...]]) -> None:
    counts = [f"{len(done[word])} {word}" for word in ("written", "removed") if done[word]]
    click.echo(f"revision {revision} in {directory}: {', '.join(counts) or 'nothing to write'}")
    for word, said in (
        ("merged", "merged with what was edited here"),
        ("kept", "left as it was edited here"),
    ):
        for path in done[word]:
            click.echo(f"  {rows.plain(path)}: {said}")
