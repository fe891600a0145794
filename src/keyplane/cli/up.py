"""`keyplane up`: the whole control plane of a fleet on this machine."""

import os
import pwd
import shlex
import sys
import time
from pathlib import Path

import click

from keyplane.cli import apply, asking, coming, faults, reading, rows
from keyplane.cli.registry import EXIT_FAILED, EXIT_INTERRUPTED
from keyplane.parts import by_facts, descent, embedded, main, state_dir
from keyplane.parts.main import local, neighbours
from keyplane.planner import PlanRequest, plan


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), default=".")
@click.option("--yes", is_flag=True, help="Apply without a question.")
@click.option("--no-apply", is_flag=True, help="Start the parts, and leave what runs as it is.")
@asking.volumes_option
def command(directory: Path, *, yes: bool, no_apply: bool, volumes: dict[str, str]) -> None:
    """Start bus, store, controller and an agent for each `local` machine of DIR, and apply DIR.

    What ran before is adopted as it is. State stays in DIR/.keyplane.
    """
    try:
        with main.read_fleet(directory, None) as text:
            request = PlanRequest(documents=text.documents, evaluate=text.evaluate)
            found = plan(request)
            # What machines are is not known here: where that matters, the controller tells of it.
            of_facts = by_facts.rows(request, found.plan.diagnostics)
    except main.FleetUnreadableError as error:
        reading.refuse(str(error))
    if reading.status_of([row for row in found.plan.diagnostics if row not in of_facts]):
        rows.show(found.plan.diagnostics)
        click.echo("nothing was started: the rows above are errors", err=True)
        sys.exit(reading.EXIT_ROWS)
    fleet = text.documents.fleet
    assert fleet is not None, "a plan without error rows has a fleet"
    machines = sorted(name for name, machine in fleet.machines.items() if machine.local)
    if not machines:
        raise faults.UnusableError(
            f"{fleet.file} has no machine with `local = true`: an embedded control "
            "plane runs agents for those only",
            "say `local = true` of each machine that is to be one of this computer",
        )
    state = state_dir.of_fleet(directory)
    _refuse_odd_path(state.root.resolve())
    other = descent.control(state)
    if other is not None and not state.controller.is_dir():
        raise faults.UnusableError(
            f"this text was exported from the control plane of {other}",
            "`keyplane apply` sends it there",
            f"without {state.root} it is a fleet of its own",
        )
    _refuse_clashes(list(neighbours.clashes(state, found.plan, text.documents, machines)))
    first = not state.controller.is_dir()
    was_up = embedded.is_up(state)
    click.echo(
        f"{'already up' if was_up else 'starting'}: bus, store, controller, "
        f"agents of {', '.join(machines)}"
    )
    if os.geteuid() != 0:
        click.echo(
            f"as {_own_name()}, an ordinary user: units run under this account, whichever "
            "they name; `keyplane status` says what each goes without"
        )
    idle = not (first or was_up or local.count_units(state))
    # A machine that left the fleet has an agent for as long as something of it is there.
    machines = sorted({*machines, *local.machines_in_use(state)})
    since = time.monotonic()
    try:
        embedded.start(state, machines)
        ready = embedded.wait_ready(state, machines)
    except KeyboardInterrupt:
        click.echo(
            "\nno longer waited for; what was started goes on: `keyplane down` ends it", err=True
        )
        sys.exit(EXIT_INTERRUPTED)
    if idle and ready.generation is not None:
        click.echo("nothing ran of what was applied: the agents start it again")
    if no_apply:
        return
    exit_status = apply.run(
        state,
        state,
        asking.Manner(
            yes=yes or first or ready.generation is None,
            dry_run=False,
            why="",
            as_json=False,
            volumes=volumes,
        ),
        verb="up",
    )
    sys.exit(exit_status or coming.wait(state, since))


def _refuse_odd_path(root: Path) -> None:
    """Bus, inventory and units are all told where the state is, as text."""
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise faults.UnusableError(
            f"the path {str(root)!a} is no UTF-8 text", "give the directory another name"
        ) from None


def _own_name() -> str:
    """Of the account that units run under; it may have none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"account {os.geteuid()}"


def _refuse_clashes(found: list[neighbours.Clash]) -> None:
    """End where another fleet on this box holds a port that this one would take."""
    if not found:
        return
    for each in found:
        faults.tell(
            f"{each.port} of {each.address} is held by {each.entry} of the fleet in "
            f"{each.fleet}, and machines.{each.machine} of this fleet has the same address"
        )
    machine, address = found[0].machine, found[0].address
    click.echo(
        f"  resolution: give machines.{machine} another address, such as {_beside(address)}\n"
        f"  resolution: or stop the other first: `keyplane down {shlex.quote(str(found[0].fleet))} "
        "--units`\nnothing was started",
        err=True,
    )
    sys.exit(EXIT_FAILED)


def _beside(address: str) -> str:
    """An address for the same machine in the next range: `127.77.1.1` for `127.77.0.1`."""
    parts = address.split(".")
    if len(parts) != 4 or not parts[2].isdecimal():
        return "127.77.1.1"
    return ".".join((*parts[:2], str((int(parts[2]) + 1) % 256), parts[3]))
