"""Shows what happens in a rollout to its end, across a controller that goes away and comes back."""

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import click
import msgspec

from keyplane.cli import progress
from keyplane.cli.registry import EXIT_INTERRUPTED
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded
from keyplane.parts.control_client import ControlClient
from keyplane.parts.state_dir import StateDir
from keyplane.ports.control import ControlSilentError, ControlUnreachableError

EXIT_FAILED = 1
EXIT_SKIPPED = 4
EXIT_ROLLED_BACK = 5
EXIT_ROLLBACK_FAILED = 6

TRIES = 3
"""So many lives of a controller may end while they are asked: what is asked may be what ends them."""

GONE_S = 60.0
"""How long a controller that went away during a rollout may take to come back."""


class Begin(Protocol):
    """Asks for a rollout; `repeated` where it was asked before and nobody heard the answer."""

    def __call__(self, *, repeated: bool) -> Iterator[messages.Event]: ...


class Keeping(Protocol):
    """Who writes down how far his text came."""

    @property
    def text(self) -> StateDir:
        """The directory that it stands in."""
        ...

    def sending(self, proposal: messages.Proposal) -> None: ...
    def begun(self, revision: int) -> None: ...


def watch(
    state: StateDir,
    begin: Begin,
    *,
    as_json: bool,
    keep: Keeping | None = None,
    said: Sequence[str] = (),
) -> int:
    """Begin a rollout and show what happens in it, to its end; the exit status.

    `said` is what was done once it has begun.
    """
    events = _told(_events(state, begin), keep)
    try:
        end = _print_json(events) if as_json else progress.show_events(events, said)
    except KeyboardInterrupt:
        return unwatched()
    return exit_status(end)


def follow(state: StateDir, *, as_json: bool) -> int:
    """Show what happens from now on in the rollout that is open; the exit status."""
    client = embedded.controller(state)

    def begin(*, repeated: bool) -> Iterator[messages.Event]:
        del repeated  # looking changes nothing
        return client.follow()

    return watch(state, begin, as_json=as_json)


def unwatched() -> int:
    """Of a command whose watcher went away."""
    click.echo("\nno longer watched; what was begun goes on: `keyplane status` shows it", err=True)
    return EXIT_INTERRUPTED


def exit_status(end: messages.Ended | None) -> int:
    """Of a command that waited for the end of a rollout."""
    if end is None:
        return EXIT_FAILED
    if end.outcome == "done":
        return EXIT_SKIPPED if end.skipped else 0
    return {"rolled-back": EXIT_ROLLED_BACK, "rollback-failed": EXIT_ROLLBACK_FAILED}.get(
        end.outcome, EXIT_FAILED
    )


def _told(events: Iterator[messages.Event], keep: Keeping | None) -> Iterator[messages.Event]:
    for event in events:
        if keep is not None and isinstance(event, messages.Begun) and event.revision is not None:
            keep.begun(event.revision)
        yield event


def _events(state: StateDir, begin: Begin) -> Iterator[messages.Event]:
    """Yield what happens; a controller that comes back within a while is listened to again.

    One that had not said yet that it took this is asked once more, in its next life.
    """
    ours: int | None = None
    lost = "it ended"
    for attempt in range(TRIES):
        if attempt > 0:
            embedded.controller(state)  # a socket that is being closed may still take a connection
        try:
            for event in begin(repeated=attempt > 0):
                ours = event.rollout if isinstance(event, messages.Begun) else ours
                yield event
                if isinstance(event, messages.Ended):
                    return
        except ControlSilentError:
            raise
        except ControlUnreachableError as error:
            lost = str(error)
        if ours is not None:
            click.echo("  the controller went away; waiting for it to come back", err=True)
            yield from _followed(state, ours)
            return
        if not embedded.lives(state):
            break
        if attempt == 0:
            click.echo("  the controller went away; asking it again once it is back", err=True)
    raise ControlUnreachableError(
        f"the controller went away before it said that it took this ({lost}): "
        "`keyplane history` shows whether it did; saying it again does what is left"
    )


def _followed(state: StateDir, ours: int) -> Iterator[messages.Event]:
    """Go on with a rollout; the end of another is not its own."""
    client = ControlClient(state.control_socket)
    deadline = time.monotonic() + GONE_S
    while True:
        try:
            for event in client.follow():
                deadline = time.monotonic() + GONE_S
                if isinstance(event, messages.Begun) and event.rollout != ours:
                    yield _end_of(client, ours, event.rollout)
                    return
                yield event
                if isinstance(event, messages.Ended):
                    return
        except ControlUnreachableError:
            if not embedded.lives(state):
                raise ControlUnreachableError(
                    "the control plane was stopped before the rollout came to its end: "
                    f"`keyplane up {state.fleet}` goes on with it"
                ) from None
        if time.monotonic() > deadline:
            raise ControlUnreachableError(
                f"nothing more was heard of the rollout in {GONE_S:.0f} s: `keyplane status`"
            )
        time.sleep(0.1)


def _end_of(client: ControlClient, ours: int, newer: int) -> messages.Ended:
    """Of one that ended while nobody was heard, and after which another began."""
    end = client.rollout(ours).end
    assert end is not None, "only the latest is open"
    if end.outcome != "superseded":
        return end
    return msgspec.structs.replace(
        end, why=f"rollout {newer} took this one over, and does what was left of it"
    )


def _print_json(events: Iterator[messages.Event]) -> messages.Ended | None:
    for event in events:
        click.echo(msgspec.json.encode(event).decode())
        if isinstance(event, messages.Ended):
            return event
    return None
