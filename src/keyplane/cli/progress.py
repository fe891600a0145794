"""What an apply shows: the difference first, then each entry as it comes about, then one line."""

from collections.abc import Iterable, Iterator, Sequence

import click

from keyplane.cli import faults, rows, words
from keyplane.model.diagnostic import Severity
from keyplane.model.plan import Diff
from keyplane.parts import control_messages as messages
from keyplane.parts import freezing
from keyplane.rollout.state import Phase

_STYLE = {
    "healthy": "green",
    "applied": "green",
    "failed": "red",
    "removed": "yellow",
    "applying": "cyan",
}
_MARKS = {
    words.Act.START: ("+", "green"),
    words.Act.STOP: ("-", "red"),
    words.Act.RESTART: ("~", "yellow"),
    words.Act.CHANGE: ("~", "yellow"),
    words.Act.RELOAD: ("~", "cyan"),
    words.Act.LIVE: ("~", "cyan"),
}
_ON_THE_WAY = ("applying", "applied")
"""Not worth a line: what follows is."""
_LOG_COLUMNS = 400
"""A few lines of a terminal: a log's line may be kilobytes, and would hide what failed."""


def show_proposal(proposal: messages.Proposal) -> None:
    """Print the rows, then a line for each entry that anything happens to.

    Nothing happens where there are errors, and what the broken text would do misleads.
    """
    if show_rows(proposal):
        for line in difference(proposal.diff, renamed(proposal)):
            click.echo(line)
        for line in data(proposal):
            click.echo(line)


def show_rows(proposal: messages.Proposal) -> bool:
    """Print the rows; False if there are errors among them."""
    rows.show(proposal.diagnostics)
    return all(row.severity is not Severity.ERROR for row in proposal.diagnostics)


def renamed(proposal: messages.Proposal) -> list[str]:
    if proposal.former is None:
        return []
    told = f"changes its name to {proposal.fleet}"
    return [_line(">", "yellow", f"fleet {proposal.former}", told, "")]


def difference(diff: Diff, others: Sequence[str] = ()) -> Iterator[str]:
    """A line an entry, in the order of their ids; then how many stay as they are.

    `others` tell of what is none of an entry.
    """
    lines = changed(diff)
    yield from lines.values()
    yield from remarks(diff)
    yield from others
    if not lines and not others:
        yield "no difference"
    yield f"  {len(diff.untouched)} untouched"


def changed(diff: Diff) -> dict[str, str]:
    """A line for each entry to which anything happens, by its id."""
    return {
        line.entry: _line(*_MARKS[line.act], line.entry, line.told, line.why)
        for line in words.lines(diff)
    }


def remarks(diff: Diff) -> Iterator[str]:
    """What a difference means beside its entries."""
    for move in diff.moves:
        yield _line(">", "yellow", move.entry, f"moves from {move.from_} to {move.to}", "")
    for retag in diff.retags:
        readers = ", ".join(retag.consumers)
        told = f"is retagged from {retag.from_} to {retag.to}"
        yield _line("!", "yellow", retag.export, told, readers)


def data(proposal: messages.Proposal) -> Iterator[str]:
    """What becomes of the data of entries that move, where somebody said so."""
    for each in proposal.volumes:
        name, _, machine = each.entry.rpartition("@")
        held = ", ".join(sorted(each.volumes))
        match each.choice:
            case "hand-over":
                former = (each.source or "").rpartition("@")[2]
                told = f"stops on {former}, and starts on {machine} with its data ({held})"
            case "restore" if each.backup is not None:
                told = f"starts on {machine} with backup {each.backup.backup} ({held})"
            case "start-empty":
                told = f"starts empty on {machine} ({held})"
            case _:
                continue
        yield _line(">", "yellow", name, told, "")
    for each in proposal.inherited:
        held = ", ".join(f"{name} in {path}" for name, path in sorted(each.volumes.items()))
        yield _line(">", "yellow", each.entry, f"starts on the data of {each.of} ({held})", "")


def _line(mark: str, colour: str, entry: str, act: str, why: str) -> str:
    text = f"{click.style(mark, fg=colour)} {entry}  {act}"
    return f"{text}  {click.style(f'({why})', dim=True)}" if why else text


def show_events(
    events: Iterable[messages.Event], said: Sequence[str] = ()
) -> messages.Ended | None:
    """Print each as it comes, and first what was done by its beginning.

    None if the stream ended before the rollout did.
    """
    number = 0
    for event in events:
        match event:
            case messages.Begun():
                number = event.rollout
                for line in said:
                    click.echo(rows.plain(line))
            case messages.EntryMoved() if event.state in _ON_THE_WAY and not event.detail:
                pass
            case messages.EntryMoved():
                click.echo(entry_line(event.entry, event.state, event.detail))
            case messages.Stepped():
                click.echo(click.style(f"  {rows.plain(event.said)}", dim=True))
                if event.phase == Phase.PAUSED:
                    click.echo(f"    {way_on(number, event.said)}")
            case messages.Ended():
                show_end(event)
                return event
    return None


def way_on(number: int, said: str) -> str:
    """What ends the pause of a rollout, by the sentence that tells of it."""
    if freezing.is_pause(said.partition(": ")[2]):
        return "`keyplane thaw` lets it go on"
    return f"`keyplane rollout resume {number}` lets it go on"


def entry_line(entry: str, state: str, detail: str) -> str:
    """How far an entry came."""
    styled = click.style(state, fg=_STYLE.get(state))
    return f"  {entry}  {styled}" + (f"  {rows.plain(detail)}" if detail else "")


def show_end(end: messages.Ended) -> None:
    for failure in end.failures:
        named = (
            failure.cause if failure.entry in failure.cause else f"{failure.entry}: {failure.cause}"
        )
        faults.tell(rows.plain(named))
        if failure.log:
            click.echo(f"  its log ends with (more: `keyplane logs {failure.entry}`):", err=True)
        for line in failure.log:
            shown = rows.plain(line)
            shown = shown if len(shown) <= _LOG_COLUMNS else f"{shown[:_LOG_COLUMNS]}…"
            click.echo(f"    | {shown}", err=True)
    if end.unsent:
        click.echo(f"  never sent: {', '.join(end.unsent)}", err=True)
    for machine in end.skipped:
        click.echo(
            f"  {machine} was not heard and is skipped: it comes to this when it is back", err=True
        )
    for held in end.held:
        click.echo(f"  {held_line(held)}", err=True)
    if end.why:
        click.echo(f"  {rows.plain(end.why)}", err=True)
    click.echo(sum_line(end))


def held_line(held: messages.HeldEntry) -> str:
    """What is not sent, why, and what would send it."""
    over = f" over {held.had}" if held.had and held.had != held.what else ""
    what = f" with {rows.plain(held.what + over)}" if held.what else ""
    way = f"; `{held.command}` sends it" if held.command else ""
    if held.by is not None:
        return f"{held.entry} is recorded and not sent{what}: {held.by} has to go before it{way}"
    if held.why and not way:
        return f"{held.entry} stays as it is for now: {rows.plain(held.why)}"
    why = rows.plain(held.why) or "its policy says so"
    return f"{held.entry} is recorded and not sent{what}: {why}{way}"


def sum_line(end: messages.Ended) -> str:
    """One line: `1 restarted, 0 reloaded, 5 untouched, 1.3 s`; what did not happen is left out."""
    parts = [f"{end.started} started"] if end.started else []
    parts += [f"{end.restarted} restarted", f"{end.reloaded} reloaded"]
    parts += [f"{end.applied} applied with no restart"] if end.applied else []
    parts += [f"{end.stopped} stopped"] if end.stopped else []
    parts += [f"{end.untouched} untouched", f"{end.milliseconds / 1000:.1f} s"]
    return ("" if end.outcome == "done" else f"{end.outcome}: ") + ", ".join(parts)
