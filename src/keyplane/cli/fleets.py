"""Which fleet a command means: a directory that was named, or the one that we stand in."""

import contextlib
import shlex
from pathlib import Path
from typing import Any

import click

from keyplane.cli import faults
from keyplane.documents.reading import SPELLINGS
from keyplane.parts import descent, state_dir
from keyplane.parts.state_dir import StateDir

fleet_option: Any = click.option(
    "--fleet",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="KEYPLANE_FLEET",
    help="The fleet directory; else $KEYPLANE_FLEET, else the one that you stand in.",
)

fleet_argument: Any = click.argument(
    "directory",
    metavar="[DIR]",
    required=False,
    type=click.Path(path_type=Path, file_okay=False),
    envvar="KEYPLANE_FLEET",
)


control_option: Any = click.option(
    "--fleet",
    "control",
    type=click.Path(path_type=Path, file_okay=False),
    help="The fleet directory that the control plane runs in, where DIR is another.",
)


def state_of(directory: Path | None) -> StateDir:
    """Return the state of a fleet that was up here once; a usage error says how to begin.

    Of a directory that was exported it is the state of the fleet that it was exported from.
    """
    if directory is not None:
        state = state_dir.of_fleet(directory)
        if not directory.is_dir():
            raise faults.UnusableError(f"{directory} is no directory")
        if not state.root.is_dir():
            raise _never_up(directory)
        return state_beside(directory) or state
    found = _nearest(Path.cwd())
    if found is None:
        raise _never_up(Path.cwd())
    return state_beside(found.fleet) or found


def _never_up(directory: Path) -> faults.UnusableError:
    """Whoever names a part of a fleet directory, or what is none, is not sent to begin there."""
    here = directory.resolve() == Path.cwd()
    message = f"no control plane was ever up {'here' if here else f'in {directory}'}"
    around = _nearest(directory)
    if around is not None:
        return faults.UnusableError(message, f"name its fleet directory: {named(around)}")
    if not any((directory / f"fleet.{each}").exists() for each in SPELLINGS):
        return faults.UnusableError(
            f"{message}, and no fleet.toml, fleet.json or fleet.star is in it",
            "name the fleet directory, or stand in it",
            "or begin with one: `keyplane up DIR`",
        )
    where = "." if here else shlex.quote(str(directory))
    return faults.UnusableError(message, f"begin with `keyplane up {where}`")


def text_of(directory: Path | None, state: StateDir) -> StateDir:
    """Where the text is that a command means: the directory named, or the one that we stand in."""
    if directory is not None:
        return state_dir.of_fleet(directory)
    return _nearest(Path.cwd()) or state


def text_here(state: StateDir) -> StateDir:
    """Where the text is of somebody who named no directory, of the control plane of `state`."""
    found = _nearest(Path.cwd())
    return found if found is not None and state_beside(found.fleet) == state else state


def argument(text: StateDir) -> str:
    """How a command line names a fleet directory, with a space before it; empty where we stand."""
    if _nearest(Path.cwd()) == text:
        return ""
    return f" {shlex.quote(str(named(text)))}"


def named(text: StateDir) -> Path:
    """A fleet directory as it is short to say from here."""
    with contextlib.suppress(ValueError):
        return text.fleet.relative_to(Path.cwd())
    return text.fleet


def state_beside(directory: Path) -> StateDir | None:
    """The state that a fleet directory knows of, its own or another's; None if it knows none."""
    state = state_dir.of_fleet(directory)
    if state.controller.is_dir():
        return state
    where = descent.control(state)
    return None if where is None else state_dir.of_fleet(where)


def _nearest(start: Path) -> StateDir | None:
    for folder in (start.resolve(), *start.resolve().parents):
        state = StateDir(folder / state_dir.NAME)
        if state.controller.is_dir() or descent.control(state) is not None:
            return state
    return None
