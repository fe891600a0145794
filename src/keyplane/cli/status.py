"""`keyplane status`: what runs, by what the agents report."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from keyplane.cli import faults, fleets, rows, screen, status_view
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlUnreachableError

EXIT_NOT_WELL = 1
WATCH_S = 1.0
"""A person reads no faster."""


@click.command()
@fleets.fleet_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--watch", is_flag=True, help="Go on: drawn in place, or with --json a line a change."
)
@click.option("--parts", is_flag=True, help="Show the parts of the control plane instead.")
def command(directory: Path | None, *, as_json: bool, watch: bool, parts: bool) -> None:
    """Show each entry of the target as its machine reports it, and when that was.

    Exit status: 0 all is as it should be, 1 something is not. With --watch: as at the last look.
    """
    if parts and watch:
        raise faults.UnusableError("--parts and --watch do not go together")
    if watch and not as_json and not sys.stdout.isatty():
        raise faults.UnusableError(
            "--watch draws on a terminal, and this is none",
            "`--watch --json` prints a line for each change",
        )
    state = fleets.state_of(directory)
    if parts:
        _show_parts(embedded.ask_supervisor(state, {"do": "parts"}), as_json=as_json)
        return
    if watch:
        sys.exit(_stream(state) if as_json else _watch(state))
    status = embedded.controller(state).status()
    if as_json:
        click.echo(msgspec.json.encode(status).decode())
    else:
        for line in status_view.lines(status):
            click.echo(line)
    sys.exit(_exit_status(status))


def _exit_status(status: messages.Status | None) -> int:
    return 0 if status is not None and status_view.is_well(status) else EXIT_NOT_WELL


def _watch(state: StateDir) -> int:
    last: messages.Status | None = None
    lines = ["asking the controller"]
    with screen.Screen() as drawn, contextlib.suppress(KeyboardInterrupt):
        drawn.draw(lines)
        while True:
            try:
                last = embedded.controller(state).status()
                lines = list(status_view.lines(last))
                drawn.draw(lines)
            except ControlUnreachableError as error:
                trouble = str(error).splitlines()[0]
                drawn.draw([f"{click.style('x', fg='red')} {trouble}; what was:", *lines])
                last = None
            time.sleep(WATCH_S)
    return _exit_status(last)


def _stream(state: StateDir) -> int:
    """A line whenever something but an age is another."""
    last: messages.Status | None = None
    with contextlib.suppress(KeyboardInterrupt):
        for status in _looks(state):
            # Kept before it is printed: whoever has read the line may end this at once.
            before, last = last, status
            if before is None or _without_ages(status) != _without_ages(before):
                click.echo(msgspec.json.encode(status).decode())
    return _exit_status(last)


def _looks(state: StateDir) -> Iterator[messages.Status]:
    while True:
        yield embedded.controller(state).status()
        time.sleep(WATCH_S)


def _without_ages(status: messages.Status) -> messages.Status:
    replace = msgspec.structs.replace
    machines = [replace(each, heard_ms_ago=None, reported_ms_ago=None) for each in status.machines]
    return replace(status, machines=machines)


def _show_parts(parts: dict[str, dict[str, object]] | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(parts or {}))
        return
    if parts is None:
        click.echo("no control plane runs; `keyplane up DIR` starts it")
        sys.exit(EXIT_NOT_WELL)
    table = [
        (name, str(part["pid"] or ""), str(part["starts"]), str(part["problem"] or ""))
        for name, part in parts.items()
    ]
    rows.table("", ("PART", "PID", "STARTS", "PROBLEM"), table)
