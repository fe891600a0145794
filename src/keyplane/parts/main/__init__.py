"""The only wiring: here, and nowhere else, adapters are chosen and parts put together.

Imports inside functions keep a command from paying for what it does not use.
"""

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from keyplane.documents.reading import Reading


class FleetUnreadableError(Exception):
    """There is no fleet to read at all; the message is for a person."""


@contextmanager
def read_fleet(directory: "Path", facts: "Path | None") -> "Generator[Reading]":
    """Read a fleet directory; what it computes can be asked until the block ends.

    Raises FleetUnreadableError if there is none.
    """
    from keyplane.adapters import directory as adapter
    from keyplane.adapters.starlark.runner import Runner

    with Runner() as runner:
        try:
            found = adapter.read(directory, facts, runner.run)
        except adapter.DirectoryUnreadableError as error:
            raise FleetUnreadableError(str(error)) from error
        yield found


def read_text(directory: "Path") -> dict[str, bytes]:
    """Read the whole text of a fleet directory; raises FleetUnreadableError."""
    from keyplane.adapters import directory as adapter
    from keyplane.documents import reading

    try:
        files = adapter.read_revision(directory)
    except adapter.DirectoryUnreadableError as error:
        raise FleetUnreadableError(str(error)) from error
    # It may be a link, which is no file of the text.
    if not any((directory / f"fleet.{spelling}").exists() for spelling in reading.SPELLINGS):
        raise FleetUnreadableError(
            f"{directory} holds no fleet.toml, fleet.json or fleet.star: "
            "name the directory that has one"
        )
    return files


class ExportRefusedError(Exception):
    """Files that were edited on both sides stand in the way; nothing was written."""

    def __init__(self, paths: "tuple[str, ...]") -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


def write_text(
    directory: "Path",
    files: "Mapping[str, bytes]",
    base: "Mapping[str, bytes] | None",
    *,
    force: bool,
) -> "dict[str, tuple[str, ...]]":
    """Write a revision's text beside what was edited in a directory since its base.

    The paths that were `written`, `removed`, `merged` with what was edited there, and `kept` so.

    Raises ExportRefusedError, and FleetUnreadableError where it cannot be written.
    """
    from keyplane.adapters import directory as adapter
    from keyplane.adapters import export

    try:
        return asdict(export.export(directory, files, base, force=force))
    except export.ExportRefusedError as error:
        raise ExportRefusedError(error.paths) from error
    except adapter.DirectoryUnreadableError as error:
        raise FleetUnreadableError(str(error)) from error
