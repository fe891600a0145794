"""`keyplane rollout`: how edits went over the machines, and a person's word on that."""

import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import click
import msgspec

from keyplane.cli import ages, fleets, progress, reading, rows, screen, watching
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded, rollout_messages
from keyplane.parts.control_client import ControlClient
from keyplane.ports.control import ControlUnreachableError

T = TypeVar("T")
Verb = Literal["pause", "resume", "stop", "close", "freeze", "thaw"]

_DONE = "done"
FOLLOW_S = 0.5
"""How often it is drawn: as often as a person can see."""
ENTRIES_MAX = 3
"""Entries of a machine that a line names; `--json` has all."""

why_option = click.option("--why", default="", metavar="TEXT", help="Kept in the audit log.")


@click.group("rollout")
def command() -> None:
    """List rollouts, show one, or say what is to become of one."""


@command.command("list")
@fleets.fleet_argument
@reading.as_json
def list_(directory: Path | None, *, as_json: bool) -> None:
    """A line for each of the last twenty, the newest first."""
    found = embedded.controller(fleets.state_of(directory)).rollouts()
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found:
        click.echo("nothing was applied yet: `keyplane apply DIR`")
        return
    table = [
        (
            str(each.number),
            each.state,
            f"{each.step} of {each.steps}",
            each.who,
            ages.at(each.created_ms),
            rows.plain(each.said),
        )
        for each in found
    ]
    rows.table("", ("ROLLOUT", "STATE", "STEPS", "BY", "BEGUN", ""), table)


@command.command("show")
@click.argument("number", metavar="[ID]", type=int, required=False)
@fleets.fleet_option
@click.option("--follow", "-f", is_flag=True, help="Go on to the end of the one that is open.")
@reading.as_json
def show(number: int | None, directory: Path | None, *, follow: bool, as_json: bool) -> None:
    """Show one, or the latest: a line for each machine of each step.

    Exit status with `--follow`: as `keyplane apply`.
    """
    state = fleets.state_of(directory)
    client = embedded.controller(state)
    found = client.rollout(number)
    if follow and found.rollout.open and not as_json and sys.stdout.isatty():
        sys.exit(_follow(client, found))
    if follow and found.rollout.open:
        sys.exit(watching.follow(state, as_json=as_json))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        for line in lines(found):
            click.echo(line)
    if follow:
        sys.exit(watching.exit_status(found.end))


def _follow(client: ControlClient, found: rollout_messages.RolloutView) -> int:
    """Draw it in place to its end, and leave how it ended on the first screen."""
    number = found.rollout.number
    try:
        with screen.Screen() as drawn:
            shown = list(lines(found))
            while found.rollout.open:
                drawn.draw(shown if screen.fits(shown) else list(at_work(found)))
                time.sleep(FOLLOW_S)
                try:
                    found = client.rollout(number)
                    shown = list(lines(found))
                except ControlUnreachableError as error:
                    trouble = str(error).splitlines()[0]
                    drawn.draw([f"{click.style('x', fg='red')} {trouble}; what was:", *shown])
                    time.sleep(FOLLOW_S)
    except KeyboardInterrupt:
        return watching.unwatched()
    for line in shown:
        click.echo(line)
    return watching.exit_status(found.end)


def at_work(found: rollout_messages.RolloutView) -> Iterator[str]:
    """Without the machines that are done, where there is no room for all."""
    left = [each for each in found.machines if each.state != _DONE]
    first, *others = lines(msgspec.structs.replace(found, machines=left))
    yield f"{first}, {len(found.machines) - len(left)} of {len(found.machines)} lines done"
    yield from others


def lines(found: rollout_messages.RolloutView) -> Iterator[str]:
    one = found.rollout
    yield f"rollout {one.number} by {one.who} is {one.state}, {one.step} of {one.steps} steps sent"
    if one.said:
        yield f"  {rows.plain(one.said)}"
    if one.state == "paused":
        yield f"    {progress.way_on(one.number, one.said)}"
    table = [
        (str(each.step), each.machine, each.state, _entries(each.entries), rows.plain(each.said))
        for each in found.machines
    ]
    yield from rows.tabled("", ("STEP", "MACHINE", "STATE", "ENTRIES", ""), table)
    if found.end is not None:
        for failure in found.end.failures:
            yield f"{click.style('x', fg='red')} {rows.plain(failure.cause)}"
        yield progress.sum_line(found.end)


def _entries(entries: list[str]) -> str:
    more = len(entries) - ENTRIES_MAX
    return ", ".join(entries[:ENTRIES_MAX]) + (f" and {more} more" if more > 0 else "")


def _verb(name: Verb, told: str, text: str) -> None:
    @command.command(name, help=text, short_help=text)
    @click.argument("number", metavar="ID", type=int)
    @fleets.fleet_option
    @why_option
    @reading.as_json
    def verb(number: int, directory: Path | None, *, why: str, as_json: bool) -> None:
        asked = rollout_messages.RolloutAct(verb=name, number=number, why=why)
        say(directory, asked, told, as_json=as_json)


_verb("pause", "sends nothing further", "Send no further step of it; what was sent is judged.")
_verb("resume", "goes on", "Let it go on after a pause.")
_verb("stop", "is stopped", "End it: what was sent stays, and nothing further is sent.")
_verb("close", "is closed", "Put one that has ended away: no trouble any more, and never retried.")


@command.command("retry")
@click.argument("number", metavar="ID", type=int)
@fleets.fleet_option
@reading.as_json
def retry(number: int, directory: Path | None, *, as_json: bool) -> None:
    """Send once more what failed, and then what it had not sent.

    Refused while it is open, and after a newer one. Exit status: as `keyplane apply`.
    """
    asked = rollout_messages.Again(retry=number)
    sys.exit(again(directory, asked, as_json=as_json))


def say(
    directory: Path | None, asked: rollout_messages.RolloutAct, told: str, *, as_json: bool
) -> None:
    client = embedded.controller(fleets.state_of(directory))
    is_of_one = asked.number is not None
    found = client.act(asked) if is_of_one else client.freeze(asked)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        what = f"rollout {asked.number} {told}" if is_of_one else f"the fleet {told}"
        click.echo(what if found.changed else f"{what} already")


def again(directory: Path | None, asked: rollout_messages.Again, *, as_json: bool) -> int:
    state = fleets.state_of(directory)
    client: ControlClient = embedded.controller(state)
    asked = msgspec.structs.replace(asked, request=secrets.token_hex(16))

    def begin(*, repeated: bool) -> Iterator[messages.Event]:
        return client.again(msgspec.structs.replace(asked, repeated=repeated))

    return watching.watch(state, begin, as_json=as_json)
