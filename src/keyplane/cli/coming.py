"""Waits for what is on its way although no rollout is: what agents start again by themselves."""

import time
from collections.abc import Iterator

import click

from keyplane.cli import faults, progress, rows, status_view
from keyplane.cli.registry import EXIT_FAILED
from keyplane.converge import backoff
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded
from keyplane.parts import status as computing
from keyplane.parts.state_dir import StateDir

WAIT_S = 120.0
"""As long as a rollout's step may take to be healthy; what takes longer is named and left to come."""
TRIED_AGAIN_S = 10.0
"""How long a try takes at most: whatever an apply just mended, as an archive that was damaged, comes
right within this once it is tried again."""
LOOK_S = 0.1

_ON_THE_WAY = ("unreported", "applying", "applied")


def wait(state: StateDir, since: float) -> int:
    """Wait until all that is on its way runs or failed, and tell of each; the exit status.

    The agents may have tried since that time, by the monotonic clock.
    """
    client = embedded.controller(state)
    began = time.monotonic()
    again_s = tried_again_s(began - since)
    awaited: set[str] = set()
    while True:
        status = client.status()
        waited_s = time.monotonic() - began
        left = set(on_the_way(status, failed=waited_s < again_s))
        for entry in status.entries:
            if entry.entry in awaited - left:
                click.echo(progress.entry_line(entry.entry, entry.state, ""))
        awaited |= left
        if not left or waited_s > WAIT_S:
            return _told(status, left)
        time.sleep(LOOK_S)


def tried_again_s(failing_s: float) -> float:
    """Within which time whatever fails for so long is tried again, and comes of it what may.

    Each wait between two tries is twice the one before, and so no longer than all before together.
    """
    return min(failing_s, backoff.LONGEST_MS / 1000) + TRIED_AGAIN_S


def on_the_way(status: messages.Status, *, failed: bool = False) -> Iterator[str]:
    """Entries that come to run, or that their machine has not looked at yet since it started.

    With `failed`, also those that are tried again, and what waits for a fact that a machine may be
    about to say.

    Not those of a machine that is silent: nobody knows how long it stays away. Nor what waits for
    a value, or for a person.
    """
    silent = {each.machine for each in status.machines if each.silent}
    held = {each.entry for each in status.rollout.held} if status.rollout else set[str]()
    anew = {each.machine for each in status.machines if each.anew}
    for entry in status.entries:
        if entry.machine in silent or (entry.entry in held and not failed):
            continue
        is_coming = entry.state in _ON_THE_WAY and not computing.is_well(entry)
        if entry.machine in anew or is_coming or (failed and entry.state == "failed"):
            yield entry.entry


def _told(status: messages.Status, left: set[str]) -> int:
    failed = False
    for entry in status.entries:
        if entry.entry in left:
            faults.tell(f"{entry.entry} is {entry.state} after {WAIT_S:.0f} s")
        elif entry.state != "failed":
            continue
        failed = True
        for cause in status_view.causes(entry):
            faults.tell(f"{entry.entry}: {rows.plain(cause)}")
    return EXIT_FAILED if failed else 0
