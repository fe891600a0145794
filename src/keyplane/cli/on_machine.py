"""`keyplane-agent`: for people on the machine itself. Needs no controller, bus or inventory."""

import contextlib
import difflib
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from keyplane.cli import events, faults, logs, reading, registry, rows, since
from keyplane.model.declaration import EntryReport, EntryState, Report
from keyplane.model.names import EntryId, UnitName
from keyplane.model.occurrence import Occurrence
from keyplane.parts.main import log_sources, on_machine
from keyplane.parts.main.on_machine import OnMachine
from keyplane.ports import ordering

LOOK_S = 0.5
_SHOWN = 3
"""Of many machines, enough to see what to write."""

state_option: Any = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="KEYPLANE_STATE",
    help="The machine's state root; else $KEYPLANE_STATE, else the only one of the fleet here.",
)


@click.group("keyplane-agent", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="keyplane", message="%(version)s")
def group() -> None:
    """Look at a machine, and stop and start what runs on it, whoever else is away."""


def main() -> None:
    registry.guarded(group)


def _machine(state: Path | None) -> OnMachine:
    if state is not None:
        return OnMachine(state)
    found = on_machine.find(Path.cwd())
    if len(found) == 1:
        return OnMachine(found[0])
    if not found:
        raise faults.UnusableError(
            "no machine has its state here",
            "say --state DIR, such as FLEET/.keyplane/machines/NAME",
        )
    names = ", ".join(path.name for path in found)
    raise faults.UnusableError(
        f"several machines have their state here: {names}",
        *(f"say --state {shlex.quote(os.path.relpath(path))}" for path in found[:_SHOWN]),
    )


def _entry(machine: OnMachine, named: str) -> EntryId:
    """An entry of the machine; a usage error names the nearest."""
    known = machine.entries()
    if named in known:
        return EntryId(named)
    raise faults.UnusableError(f"{machine.machine} has no entry {named}{_instead(named, known)}")


def _instead(named: str, known: Sequence[str]) -> str:
    """What could have been meant, to be put behind what was said."""
    near = difflib.get_close_matches(named, known, 3)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f": there are {', '.join(known)}" if known else ""


def _source(machine: OnMachine, *, runs: bool) -> str:
    if runs:
        return f"machine {machine.machine}, by its agent"
    return f"machine {machine.machine}, by its state in {machine.root}: no agent runs"


@group.command()
@state_option
@reading.as_json
def status(state: Path | None, *, as_json: bool) -> None:
    """Show each entry of this machine.

    Exit status: 0 all is as it should be, 1 something is not, or no agent runs.
    """
    machine = _machine(state)
    report, runs = machine.status()
    if as_json:
        said = {"agent": runs, "state": str(machine.root), "report": msgspec.to_builtins(report)}
        click.echo(msgspec.json.encode(said).decode())
    else:
        click.echo(_source(machine, runs=runs))
        for line in _status_lines(report):
            click.echo(line)
    well = all(each.state is EntryState.HEALTHY for each in report.entries.values())
    raise SystemExit(0 if runs and well and not report.refused else registry.EXIT_FAILED)


def _status_lines(report: Report) -> Iterator[str]:
    if not report.entries:
        yield "  no entry is on it"
    table: list[tuple[str, ...]] = []
    for entry, each in report.entries.items():
        for turn, name in enumerate(each.units or [UnitName("")]):
            unit = each.units.get(name)
            table.append(
                (
                    "" if turn else entry,
                    "" if turn else each.state.value,
                    name,
                    "" if unit is None else unit.state.value,
                    "" if unit is None else str(unit.pid or ""),
                    "" if unit is None else str(unit.restarts or ""),
                )
            )
    yield from rows.tabled("", ("ENTRY", "STATE", "UNIT", "UNIT STATE", "PID", "RESTARTS"), table)
    for entry, each in report.entries.items():
        for text in _said(each):
            yield f"  {entry}: {rows.plain(text)}"
    if report.refused:
        yield f"  its last declaration was refused: {rows.plain(report.refused)}"


def _said(entry: EntryReport) -> Iterator[str]:
    if entry.stopped is not None:
        since = events.at(entry.stopped.since_ms)
        yield f"stopped by a person, {entry.stopped.who}, since {since}"
    if entry.cause:
        yield entry.cause
    for each in entry.drift:
        told = f"{each.path} {each.what}, found {events.at(each.since_ms)}"
        why = f": {each.problem}" if each.problem else ""
        yield (
            f"{told}, and was put right" if each.repaired else f"{told}, and is not put right{why}"
        )
    yield from entry.notes


@group.command(short_help="Stop an entry, until somebody starts it.")
@click.argument("entry")
@state_option
@reading.as_json
def stop(entry: str, state: Path | None, *, as_json: bool) -> None:
    """Stop an entry, until somebody starts it: here, or by `keyplane start`."""
    _say(entry, state, stop=True, as_json=as_json)


@group.command(short_help="Let an entry run again that a person stopped.")
@click.argument("entry")
@state_option
@reading.as_json
def start(entry: str, state: Path | None, *, as_json: bool) -> None:
    """Let an entry run again that a person stopped, wherever that was said."""
    _say(entry, state, stop=False, as_json=as_json)


def _say(named: str, state: Path | None, *, stop: bool, as_json: bool) -> None:
    machine = _machine(state)
    entry = _entry(machine, named)
    _, runs = machine.say(entry, stop=stop)
    word = "stop" if stop else "start"
    if as_json:
        said = {"entry": entry, "said": word, "agent": runs}
        click.echo(msgspec.json.encode(said).decode())
    elif runs:
        click.echo(f"the agent of {machine.machine} was told to {word} {entry}")
    elif stop:
        click.echo(f"{entry} is stopped, and stays so when the agent of {machine.machine} is back")
    else:
        click.echo(f"{entry} is started when the agent of {machine.machine} is back: none runs")


@group.command("logs")
@click.argument("entries", metavar="ENTRY[/UNIT]...", nargs=-1, required=True)
@state_option
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@click.option("--since", metavar="WHEN", help="Begin so long ago (10m), or at a time.")
@click.option("-n", "--lines", "--tail", type=click.IntRange(min=0), metavar="N")
@click.option("--times", is_flag=True, help="Print the time of each line before it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def logs_(  # noqa: PLR0913  # each is a word of the command line
    entries: tuple[str, ...],
    state: Path | None,
    *,
    follow: bool,
    since: str | None,
    lines: int | None,
    times: bool,
    as_json: bool,
) -> None:
    """Print what units of this machine wrote."""
    machine = _machine(state)
    sources: dict[str, log_sources.Source] = {}
    for named in entries:
        found = log_sources.units_below(machine.root, named)
        if not found:
            known = sorted({each.name for each in log_sources.units_below(machine.root, "*")})
            raise faults.UnusableError(
                f"nothing wrote a log as {named} on {machine.machine}{_instead(named, known)}"
            )
        sources |= {source.name: source for source in found}
    logs.show(
        list(sources.values()),
        follow=follow,
        since=since,
        lines=lines,
        times=times,
        as_json=as_json,
    )


@group.command("events", short_help="Print what happened on this machine, or to one entry of it.")
@click.argument("entry", required=False)
@state_option
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@events.since_option
@events.lines_option
@reading.as_json
def events_(  # noqa: PLR0913  # each is a word of the command line
    entry: str | None,
    state: Path | None,
    *,
    follow: bool,
    begin: str | None,
    lines: int,
    as_json: bool,
) -> None:
    """Print what happened on this machine, or to one entry of it, by its own history.

    With --json one object a line.
    """
    machine = _machine(state)
    if entry is not None:
        _check_known(machine, entry, (each.entry for each in machine.history().kept))
    begin_ms, last = since.since_ms(begin), 0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            found = [
                each
                for each in machine.history().kept
                if each.number > last and each.at_ms >= begin_ms and entry in (None, each.entry)
            ]
            for each in found[-lines:]:
                last = each.number
                _print(machine, each, as_json=as_json)
            if not follow:
                return
            time.sleep(LOOK_S)


def _check_known(machine: OnMachine, entry: str, known: Iterable[str]) -> None:
    """A usage error where nothing was ever known of the entry here."""
    there = sorted({*machine.entries(), *known} - {ordering.WHOLE_MACHINE})
    if entry not in there:
        raise faults.UnusableError(f"nothing is known here of {entry}{_instead(entry, there)}")


def _print(machine: OnMachine, each: Occurrence, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"machine": machine.machine, **_fields(each)}).decode())
    else:
        click.echo(events.told(machine.machine, each))


def _fields(each: Occurrence) -> dict[str, Any]:
    return msgspec.to_builtins(each)


@group.command()
@click.argument("name")
@click.argument("value", required=False)
@click.option("--missing", is_flag=True, help="Withdraw it: its source is gone.")
def publish(name: str, value: str | None, *, missing: bool) -> None:
    """Say the VALUE of a dynamic export of the unit that runs this.

    NAME is the export's, or PROVIDE/EXPORT. Exit status: 0 the agent has it, 1 it was not taken.
    """
    from keyplane.parts import publish_client

    if missing == (value is not None):
        raise faults.UnusableError("say a VALUE, or --missing")
    try:
        publish_client.publish(name, value)
    except publish_client.PublishError as error:
        faults.tell(f"{name} was not said: {error}")
        raise SystemExit(1) from error
