"""`keyplane plan`: what the fleet would be, and what is wrong with it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from keyplane.cli import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keyplane.model.plan import Plan


@click.command("plan")
@reading.directory
@reading.as_json
@reading.previous
@reading.facts
@reading.alone
@click.option(
    "-o",
    "output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the plan as JSON to FILE in place of printing it.",
)
def command(  # noqa: PLR0913  # its options
    directory: Path,
    *,
    as_json: bool,
    previous: Path | None,
    facts: Path | None,
    alone: bool,
    output: Path | None,
) -> None:
    """Plan the fleet in DIR.

    Where a control plane runs for DIR, placements and ports are kept from its target, as
    `keyplane apply` would keep them; stderr says so.

    Exit status: 0 no error rows, 3 error rows (the plan is printed all the same), 2 DIR or an
    argument cannot be used.
    """
    found = reading.planned(directory, facts, previous, alone=alone).plan
    if output is not None:
        try:
            with output.open("wb") as file:
                file.writelines(encoded(found))
        except OSError as error:
            reading.refuse(f"{output}: {error.strerror}")
    elif as_json:
        for piece in encoded(found):
            click.echo(piece, nl=False)
    else:
        show(found)
    sys.exit(reading.status_of(found.diagnostics))


_PIECE = 1000
"""Items that are encoded together: some hundred kilobytes."""


def encoded(plan: "Plan") -> "Iterator[bytes]":
    """The plan as a line of JSON with sorted keys, in pieces: it may be hundreds of megabytes."""
    import msgspec

    encode = msgspec.json.Encoder(order="sorted").encode
    for turn, name in enumerate(sorted(plan.__struct_fields__)):
        yield b'%b"%b":' % (b"," if turn else b"{", name.encode())
        value = getattr(plan, name)
        if isinstance(value, dict):
            items = sorted(cast("dict[str, object]", value).items())
            pieces = [dict(items[at : at + _PIECE]) for at in range(0, len(items), _PIECE)]
        elif isinstance(value, list):
            several = cast("list[object]", value)
            pieces = [several[at : at + _PIECE] for at in range(0, len(several), _PIECE)]
        else:
            yield encode(value)
            continue
        yield b"{" if isinstance(value, dict) else b"["
        for number, piece in enumerate(pieces):
            yield (b"," if number else b"") + encode(piece)[1:-1]
        yield b"}" if isinstance(value, dict) else b"]"
    yield b"}\n"


def show(plan: "Plan") -> None:
    """Print a plan for people, diagnostics first."""
    from keyplane.cli import rows

    rows.show(plan.diagnostics)
    rows.table(
        f"fleet {plan.fleet}, generation {plan.generation[7:19]}",
        ("ENTRY", "KEY", "MODULE", "UNITS", "LISTENS", "DEPENDS ON"),
        [
            (
                name,
                entry.key[7:19],
                f"{entry.module} {entry.version}",
                " ".join(sorted(entry.units)),
                " ".join(f"{listen}:{port}" for listen, port in sorted(entry.listens.items())),
                rows.several(entry.dependencies),
            )
            for name, entry in plan.entries.items()
        ],
    )
    slots: dict[tuple[str, ...], list[str]] = {}
    for edge in plan.edges:
        slot = edge.consumer, edge.slot, edge.provide, edge.chosen
        slots.setdefault(slot, []).append(edge.provider)
    rows.table(
        "edges",
        ("CONSUMER", "SLOT", "PROVIDER", "PROVIDE", "CHOSEN"),
        [
            (consumer, slot, provider, provide, chosen)
            for (consumer, slot, provide, chosen), providers in sorted(slots.items())
            for provider in (
                providers if len(providers) <= rows.NAMED_MAX else [rows.several(providers)]
            )
        ],
    )
    rows.table(
        "values that no plan can hold",
        ("ENTRY", "UNIT", "NAME", "FROM", "REACTION"),
        [
            (
                name,
                unit_name,
                variable,
                contract.from_ if isinstance(contract.from_, str) else " ".join(contract.from_),
                contract.reaction if isinstance(contract.reaction, str) else "none stated",
            )
            for name, entry in plan.entries.items()
            for unit_name, unit in sorted(entry.units.items())
            for variable, contract in sorted(unit.dynamic.items())
        ],
    )
