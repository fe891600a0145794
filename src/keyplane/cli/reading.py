"""What the offline commands have in common: options, reading, and exit statuses."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from keyplane.cli import faults

EXIT_ROWS = 3
"""There are error rows."""
PLAN_BYTES_MAX = 2 << 30
"""A plan at its limits is some 1.5 GB; a pipe without an end is given up here."""

directory: Any = click.argument(
    "directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False)
)
as_json: Any = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
facts: Any = click.option(
    "--facts",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Read the snapshots of facts from here, not from DIR/facts.",
)
previous: Any = click.option(
    "--previous",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A plan to keep placements and ports from; else the target of the control plane of DIR, "
    "with what its machines say of themselves.",
)
alone: Any = click.option("--alone", is_flag=True, help="Ask no control plane.")


def refuse(message: str, *ways: str) -> NoReturn:
    """End with status 2, saying why, and what to do instead."""
    raise faults.UnusableError(message, *ways)


def bounded(path: Path, size_max: int) -> bytes:
    """What a file or pipe holds; one that is too large, or has no end, ends the command."""
    try:
        with path.open("rb") as source:
            if stat.S_ISCHR(os.fstat(source.fileno()).st_mode) and not source.isatty():
                refuse(f"{path} is neither a file nor a pipe")
            data = source.read(size_max + 1)
    except OSError as error:
        refuse(f"{path}: {error.strerror}")
    if len(data) > size_max:
        refuse(f"{path} holds more than {size_max >> 20} MiB")
    return data


def load_plan(path: Path) -> Any:
    """Read a plan that `keyplane plan --json` made."""
    import msgspec

    from keyplane.model.plan import FORMAT, Plan

    try:
        found = msgspec.json.decode(bounded(path, PLAN_BYTES_MAX), type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse(f"{path} is no plan: {error}")
    if found.format != FORMAT:
        refuse(f"{path} is of format {found.format!r}; this release reads {FORMAT!r}")
    return found


def status_of(rows: Sequence[Any]) -> int:
    """The exit status that diagnostics ask for."""
    return EXIT_ROWS if any(row.severity == "error" for row in rows) else 0


class Standing(NamedTuple):
    """What a directory is planned after, and by."""

    plan: Any = None
    """Placements and ports are kept from it; None: from nothing."""
    facts: Mapping[str, Mapping[str, Any]] = {}
    """What machines said of themselves to the control plane that was asked."""
    waiting: Sequence[Any] = ()
    """What else they say, that plans do not go by yet."""

    def request(self, read: Any) -> Any:
        """What the planner is asked of a directory that was read."""
        from keyplane.parts import by_facts
        from keyplane.planner import PlanRequest

        documents = by_facts.merged(read.documents, by_facts.known(self.facts))
        return PlanRequest(documents=documents, evaluate=read.evaluate, previous=self.plan)


ALONE = Standing()


def _target_of(directory: Path) -> Standing:
    """The target of the control plane that a directory belongs to, where one answers.

    A plan keeps placements and ports from it, as an apply would. What was done is told on stderr.
    """
    if not (directory / ".keyplane").is_dir():
        return Standing()
    from keyplane.cli import fleets

    state = fleets.state_beside(directory)
    if state is None:
        return Standing()
    from keyplane.parts.control_client import ControlClient
    from keyplane.ports.errors import PortError

    try:
        found = ControlClient(state.control_socket).target()
    except PortError:
        click.echo("keyplane: no control plane answers here: planned from nothing", err=True)
        return Standing()
    if found.plan is None:
        click.echo("keyplane: nothing was applied here yet: planned from nothing", err=True)
    else:
        name = found.plan.generation.removeprefix("sha256-")[:12]
        click.echo(f"keyplane: planned from the target that stands, generation {name}", err=True)
    return Standing(found.plan, found.facts, found.waiting)


def standing(
    directory: Path, previous: Path | None, facts: Path | None, *, alone: bool
) -> Standing:
    """What to plan a directory after. Facts that are given by hand are the only ones."""
    if previous is not None:
        return Standing(load_plan(previous))
    found = Standing() if alone else _target_of(directory)
    return found if facts is None else found._replace(facts={}, waiting=())


def by_what_waits(found: Any, after: Standing, read: Any) -> Any:
    """As an apply plans what is edited by the facts that wait for just that."""
    from keyplane.parts import by_facts, fact_edits
    from keyplane.planner import plan

    if after.plan is None or not after.waiting:
        return found
    edits = fact_edits.edited(after.plan, found.plan)
    if not (taken := fact_edits.to_take(after.waiting, edits)):
        return found
    facts = {name: {**after.facts.get(name, {}), **said} for name, said in taken.items()}
    by = after._replace(facts={**after.facts, **facts})
    trial = plan(by.request(read))
    if not fact_edits.is_all_of_them(edits, found.plan, trial.plan):
        return found
    click.echo(f"keyplane: planned by {by_facts.told(taken)}", err=True)
    return trial


def planned(directory: Path, facts: Path | None, previous: Path | None, *, alone: bool) -> Any:
    """Plan a directory; what cannot be read at all ends the command."""
    from keyplane.parts import main
    from keyplane.planner import plan

    after = standing(directory, previous, facts, alone=alone)
    try:
        with main.read_fleet(directory, facts) as reading:
            return by_what_waits(plan(after.request(reading)), after, reading)
    except main.FleetUnreadableError as error:
        refuse(str(error))
