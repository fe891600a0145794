"""`keyplane machine`: what the machines are, run, and take from each other."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from keyplane.cli import asking, fact_view, fleets, reading, rows, status_view
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts import embedded


@click.group("machine")
def command() -> None:
    """List the machines of a fleet, or show one of them."""


@command.command("list", short_help="A line for each machine.")
@fleets.fleet_argument
@reading.as_json
def list_(directory: Path | None, *, as_json: bool) -> None:
    """A line for each machine: where it is, when it was heard, what it has."""
    found = embedded.controller(fleets.state_of(directory)).machines()
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found:
        click.echo("nothing was applied yet, so no machine is known: `keyplane apply DIR`")
    table = [
        (
            each.machine,
            "left the fleet" if each.said is None else each.said.address,
            "" if each.said is None else " ".join(each.said.tags),
            each.status.cordon,
            status_view.heard(each.status),
            f"{each.well} of {each.entries}",
            status_view.offer(each.status),
        )
        for each in found
    ]
    rows.table("", ("MACHINE", "ADDRESS", "TAGS", "CORDON", "HEARD", "WELL", "OFFER"), table)
    for fault in status_view.machine_faults([each.status for each in found]):
        click.echo(f"{click.style('x', fg='red')} {rows.plain(fault)}")


@command.command("show", short_help="Show a machine: what it runs, and takes from others.")
@click.argument("machine", metavar="MACHINE")
@fleets.fleet_option
@reading.as_json
def show(machine: str, directory: Path | None, *, as_json: bool) -> None:
    """Show a machine: its address, what runs on it, and what it takes from other machines.

    OFFER is the number of the declaration that it has, and of the one that it was sent if that
    is another.
    """
    found = embedded.controller(fleets.state_of(directory)).machine(machine)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for line in _lines(found):
        click.echo(line)


@command.command("remove", short_help="Take a machine out of the fleet.")
@click.argument("machine", metavar="MACHINE")
@click.option("--lost", is_flag=True, help="It will not be back: take it out as it is.")
@fleets.fleet_option
@asking.options
def remove(machine: str, directory: Path | None, *, lost: bool, **manner: bool | str) -> None:
    """Take a machine out of the fleet, with its assignments and every pin of it and to it.

    Refused while it has entries, unless it was drained, or is --lost: then nobody waits for it.
    """
    asked = changes.RemoveMachine(machine=machine, lost=lost)
    how = asking.Manner(**manner)  # type: ignore[arg-type]
    sys.exit(asking.carry_out(fleets.state_of(directory), asked, how))


def _lines(view: messages.MachineView) -> Iterator[str]:
    yield f"machine {view.machine}"
    for name, said in _facts_of(view):
        yield f"  {name:9} {rows.plain(said)}"
    silent = {view.machine: view.status} if view.status.silent else {}
    yield ""
    if not view.entries:
        yield "  it runs nothing"
    yield from status_view.entry_table(view.entries, silent)
    yield ""
    if not view.edges and not view.takes:
        yield "  it takes nothing from other machines"
    table = [
        (
            each.entry,
            each.slot,
            each.provider,
            each.machine or "external",
            f"by {each.chosen}",
        )
        for each in view.edges
    ]
    yield from rows.tabled(
        "uses, of other machines", ("ENTRY", "SLOT", "PROVIDER", "MACHINE", "CHOSEN"), table
    )
    if view.edges and view.takes:
        yield ""
    yield from rows.tabled(
        "values of other machines",
        ("ENTRY", "VALUE", "PLANE", "EXPORT", "OF", "MACHINE", "A CHANGE COSTS"),
        [_taken(each) for each in view.takes],
    )
    if view.facts:
        yield ""
        yield from rows.tabled("facts", ("FACT", "VALUE", "SINCE"), _facts(view))
    mark = click.style("x", fg="red")
    for entry in view.entries:
        for cause in status_view.causes(entry):
            yield f"{mark} {entry.entry}: {rows.plain(cause)}"
    for fault in status_view.machine_faults([view.status]):
        yield f"{mark} {rows.plain(fault)}"


def _facts_of(view: messages.MachineView) -> Iterator[tuple[str, str]]:
    if view.said is None:
        yield "text", "the target does not name it; what it has is to be removed"
    else:
        yield "address", view.said.address
        yield "tags", " ".join(view.said.tags) or "none"
        yield "platform", f"{view.said.platform}{', local' if view.said.local else ''}"
        for interface, machine in view.said.pins.items():
            yield "pin", f"{interface} is answered from {machine}"
    if view.status.cordon:
        yield "cordon", f"{view.status.cordon}: `keyplane uncordon {view.machine}` takes it back"
    yield "heard", status_view.heard(view.status)
    yield "offer", f"sent {view.status.offered}, acknowledged {view.status.accepted or 'none'}"


def _facts(view: messages.MachineView) -> list[tuple[str, ...]]:
    return [
        (rows.plain(name), fact_view.value(value), _since(view, name))
        for name, value in view.facts.items()
    ]


def _since(view: messages.MachineView, name: str) -> str:
    if name not in view.facts_since:
        return f"from facts/{view.machine}.json"
    told = view.facts_since[name]
    if name not in view.facts_planned:
        return told
    planned = view.facts_planned[name]
    by = "none" if planned is None else fact_view.value(planned)
    return f"{told}; plans go by {rows.plain(by)}"


def _taken(each: messages.Taken) -> tuple[str, ...]:
    where = each.name if each.unit is None else f"{each.unit}.{each.name}"
    machine = each.machine or "external"
    return (each.entry, where, each.plane, each.export, each.provider, machine, each.cost)
