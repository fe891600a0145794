"""`keyplane schema`: the shapes of the documents that people write, as JSON Schema."""

from pathlib import Path

import click

from keyplane.cli import reading


@click.command("schema")
@click.argument("kind", metavar="[KIND]", required=False)
@click.option(
    "--all",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the schema of each kind to DIR/KIND.schema.json in place of printing one.",
)
def command(kind: str | None, *, directory: Path | None) -> None:
    """Print the JSON Schema of KIND: facts, fleet, interfaces or module.

    A schema knows the fields and the types. What holds between fields and between documents,
    `keyplane check` says.
    """
    from keyplane.documents import schema

    known = ", ".join(schema.KINDS)
    if (kind is None) == (directory is None):
        reading.refuse(f"name one kind of document ({known}), or --all DIR")
    if directory is not None:
        for each in schema.KINDS:
            _write(directory, f"{each}.schema.json", text_of(each))
        return
    assert kind is not None
    if kind not in schema.KINDS:
        reading.refuse(f"{kind!r} is no kind of document; there are {known}")
    click.echo(text_of(kind), nl=False)


def text_of(kind: str) -> str:
    """A schema as it is printed and kept in docs/reference/schemas."""
    import json

    from keyplane.documents import schema

    return json.dumps(schema.of(kind), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _write(directory: Path, name: str, content: str) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content, encoding="utf-8")
    except OSError as error:
        reading.refuse(f"{directory / name}: {error.strerror}")
