"""`keyplane react`: what a machine's rates would make of a trace of dynamic values."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from keyplane.cli import faults, fleets, reading
from keyplane.model.names import EntryId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keyplane.converge.reaction_replay import Row
    from keyplane.converge.reaction_trace import Trace

TRACE_BYTES_MAX = 64 << 20
"""As of any document. A record of an agent's is a few hundred kilobytes."""


@click.command("react")
@click.argument(
    "trace",
    metavar="[TRACE.json]",
    required=False,
    type=click.Path(path_type=Path, dir_okay=False),
)
@click.option(
    "--record",
    metavar="ENTRY",
    help="Write the trace of what the machine of ENTRY really heard; replay it with other rates.",
)
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the replay to FILE as SVG too: values, windows, actions and states.",
)
@fleets.fleet_option
@reading.as_json
def command(
    trace: Path | None,
    *,
    record: str | None,
    plot: Path | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Replay the changes in TRACE.json through the agent's reaction engine.

    Prints each action, and each change of a unit's state, as they would come about.
    Exit status: 0 replayed or recorded, 2 TRACE.json, ENTRY or FILE cannot be used.
    """
    from keyplane.converge import reaction_replay

    if (trace is None) == (record is None):
        raise faults.UnusableError("name a TRACE.json to replay, or an ENTRY to --record")
    if record is not None:
        if plot is not None:
            raise faults.UnusableError(
                "--plot draws a replay: record first, then replay what it wrote"
            )
        click.echo(_recorded(record, directory))
        return
    assert trace is not None
    found = load(trace)
    rows = reaction_replay.document(reaction_replay.replay(found))
    for export in reaction_replay.unread(found):
        click.echo(f"keyplane: no unit of {trace} reads {export!r}", err=True)
    if plot is not None:
        from keyplane.cli import react_plot

        try:
            plot.write_text(react_plot.picture(trace.name, found), encoding="utf-8")
        except OSError as error:
            reading.refuse(f"{plot}: {error.strerror}")
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(rows, order="sorted"))
    else:
        show(rows)


def _recorded(entry: str, directory: Path | None) -> str:
    """The trace of a local machine, by what its agent kept."""
    import msgspec

    from keyplane.converge import reaction_record
    from keyplane.parts.main import local

    _, at, machine = entry.rpartition("@")
    kept = local.heard(fleets.state_of(directory), machine) if at else None
    if kept is None:
        reading.refuse(f"{entry}: no machine of this fleet here has it: INSTANCE:ROLE@MACHINE")
    declaration, record = kept
    if declaration is None or entry not in declaration.entries:
        reading.refuse(f"{entry} is not declared on {machine}")
    if not any(unit.dynamic for unit in declaration.entries[EntryId(entry)].units.values()):
        reading.refuse(f"{entry} reads no dynamic value: nothing is recorded for it")
    document = reaction_record.trace(record, declaration)
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def load(path: Path) -> "Trace":
    """Read a trace; all that is wrong with it ends the command."""
    from keyplane.cli import rows
    from keyplane.converge import reaction_trace

    data = reading.bounded(path, TRACE_BYTES_MAX)
    found = reaction_trace.read(data, file=str(path))
    if not isinstance(found, reaction_trace.Trace):
        lines = [f"  {row.path or 'the document'}: {rows.plain(row.message)}" for row in found]
        reading.refuse("\n".join([f"{path} cannot be replayed", *lines]))
    return found


def show(rows: "Sequence[Row]") -> None:
    """Print what would happen, for people."""
    from keyplane.cli.rows import table

    if not rows:
        click.echo("nothing would be done")
    table(
        "reactions",
        ("AT", "ENTRY", "UNIT", "ACTION", "STATE", "CHANGES", "VALUES"),
        [
            (
                row.at,
                row.entry,
                row.unit,
                row.action,
                f"{row.state}, overdue" if row.overdue else row.state,
                str(row.collapsed),
                " ".join(f"{name}={value}" for name, value in sorted(row.values.items())),
            )
            for row in rows
        ],
    )
