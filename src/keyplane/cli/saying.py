"""What `keyplane stop` and `keyplane start` share: say it, and wait until it is so."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from keyplane.cli import faults, fleets, registry, rows, status_view
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded
from keyplane.parts.control_client import ControlClient

POLL_S = 0.1
WAIT_S = 60


wait_option: Any = click.option(
    "--wait",
    "wait_s",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    default=WAIT_S,
    show_default=True,
    help="Wait no longer than that.",
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    entry: str
    said: str
    """`stop` or `start`."""
    done: bool
    """Its machine reports it so. What was said holds in any case."""
    state: str
    cause: str | None


def say(entry: str, directory: Path | None, *, stop: bool, wait_s: int, as_json: bool) -> None:
    """Say it to the controller, and end with what came of it."""
    client = embedded.controller(fleets.state_of(directory))
    said = client.say(messages.Say(entry=entry, stop=stop))
    outcome = _await(client, said, wait_s, _is_stopped if stop else _is_started)
    word = "stop" if stop else "start"
    found = Outcome(
        entry=entry,
        said=word,
        done=outcome is not None and outcome.state != "failed",
        state=outcome.state if outcome else "unknown",
        cause=outcome.cause if outcome else _waits_for(client, said),
    )
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif found.done:
        click.echo(f"{entry} is {found.state}" + ("" if stop else " again"))
    else:
        faults.tell(f"{entry}: {rows.plain(found.cause or word)}")
        click.echo(f"  the {word} is recorded, and holds", err=True)
    sys.exit(0 if found.done else registry.EXIT_FAILED)


def _await(
    client: ControlClient,
    said: messages.Said,
    wait_s: int,
    done: Callable[[messages.EntryStatus], bool],
) -> messages.EntryStatus | None:
    """The entry once it is so, or failed; None if that takes longer."""
    deadline = time.monotonic() + wait_s
    while True:
        status = client.status()
        machine = next((each for each in status.machines if each.machine == said.machine), None)
        entry = next((each for each in status.entries if each.entry == said.entry), None)
        # What it reported under an earlier offer says nothing of this one.
        heeded = machine is not None and machine.accepted == machine.offered
        if heeded and entry is not None and (done(entry) or entry.state == "failed"):
            return entry
        if time.monotonic() > deadline:
            return None
        time.sleep(POLL_S)


def _is_stopped(entry: messages.EntryStatus) -> bool:
    return entry.stopped is not None and entry.state == "stopped"


def _is_started(entry: messages.EntryStatus) -> bool:
    runs = entry.state == "healthy" or (entry.state == "applied" and not entry.units)
    return entry.stopped is None and runs


def _waits_for(client: ControlClient, said: messages.Said) -> str:
    status = client.status()
    machines = [each for each in status.machines if each.machine == said.machine]
    for fault in status_view.machine_faults(machines):
        return f"{fault}; it heeds that when it is back"
    entry = next((each for each in status.entries if each.entry == said.entry), None)
    if entry is None:
        return f"machine {said.machine} has not reported it yet"
    if machines and machines[0].accepted != machines[0].offered:
        return f"machine {said.machine} has not acknowledged it yet"
    return f"it is {entry.state} still" + (f": {entry.cause}" if entry.cause else "")
