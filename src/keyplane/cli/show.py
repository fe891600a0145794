"""`keyplane show`: one revision of a fleet's text."""

import base64
import difflib
import json
from pathlib import Path

import click
import msgspec

from keyplane.cli import fleets, reading, revisions, rows
from keyplane.documents import comparing
from keyplane.parts import embedded


@click.command("show")
@click.argument("revision", metavar="[REVISION]", required=False, type=click.IntRange(min=1))
@click.argument("path", metavar="[FILE]", required=False)
@fleets.fleet_option
@click.option("--diff", "as_diff", is_flag=True, help="Show what it changed instead.")
@reading.as_json
def command(
    revision: int | None, path: str | None, directory: Path | None, *, as_diff: bool, as_json: bool
) -> None:
    """Show the text of REVISION, or FILE of it; the newest one if none is named.

    FILE without a flag is printed as it is, byte for byte.
    """
    client = embedded.controller(fleets.state_of(directory))
    found = client.revision(revision)
    files, difference = found.files, found.difference
    if path is not None:
        former: dict[str, bytes] = {}
        if as_diff and found.revision.revision > 1:
            former = client.revision(found.revision.revision - 1).files
        _check_there(found.revision.revision, path, files.keys() | former.keys())
        files = _only(files, path)
        difference = comparing.difference(_only(former, path), files)
    if as_json:
        said = msgspec.to_builtins(found.revision)
        said |= {"difference": difference} if as_diff else {"files": _files(files)}
        click.echo(json.dumps(said, ensure_ascii=False))
    elif as_diff:
        click.echo(revisions.head(found.revision))
        for line in revisions.coloured(difference.splitlines()):
            click.echo(line)
    elif path is not None:
        click.echo(files[path], nl=False)
    else:
        click.echo(revisions.head(found.revision))
        for name, data in sorted(files.items()):
            click.echo(click.style(f"==> {rows.plain(name)} <==", bold=True))
            click.echo("\n".join(map(rows.plain, _text(data).splitlines())))


def _check_there(revision: int, path: str, known: set[str]) -> None:
    if path in known:
        return
    near = difflib.get_close_matches(path, known, 3)
    told = (
        f"; did you mean {' or '.join(near)}?" if near else f": it has {', '.join(sorted(known))}"
    )
    reading.refuse(f"revision {revision} has no {path}{told}")


def _only(files: dict[str, bytes], path: str) -> dict[str, bytes]:
    return {path: files[path]} if path in files else {}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are no text)"


def _files(files: dict[str, bytes]) -> dict[str, object]:
    """Texts as they are; other bytes as `{"base64": …}`."""
    said: dict[str, object] = {}
    for name, data in sorted(files.items()):
        try:
            said[name] = data.decode()
        except UnicodeDecodeError:
            said[name] = {"base64": base64.b64encode(data).decode()}
    return said
