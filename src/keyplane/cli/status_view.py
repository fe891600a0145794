"""What `keyplane status` shows of a fleet, line by line."""

from collections.abc import Iterator

import click

from keyplane.cli import ages, fact_view, progress, rows
from keyplane.parts import control_messages as messages
from keyplane.parts import freezing
from keyplane.parts import status as computing


def is_well(status: messages.Status) -> bool:
    """All is as the target says, and every machine says so itself."""
    entries = all(map(computing.is_well, status.entries))
    return entries and not any(machine_faults(status.machines))


def lines(status: messages.Status) -> Iterator[str]:
    """The whole of it: entries, machines, what is wrong, and the rollout that is open."""
    if status.frozen:
        yield f"the fleet is frozen {status.frozen}: nothing is sent, and no unit reacts to a value"
        yield "  `keyplane thaw` ends that"
    if status.generation is None:
        yield "nothing was applied yet: `keyplane apply DIR`"
        return
    yield f"fleet {status.fleet}, generation {status.generation[7:19]}, revision {status.revision}"
    yield from rows.shown(status.diagnostics)
    if not status.entries:
        yield "  no entry is in the target, and no machine has one"
    silent = {each.machine: each for each in status.machines if each.silent}
    yield from entry_table(status.entries, silent)
    yield ""
    yield from machine_table(status.machines)
    mark = click.style("x", fg="red")
    for entry in status.entries:
        for cause in causes(entry):
            yield f"{mark} {entry.entry}: {rows.plain(cause)}"
        if entry.stopped is not None:
            told = f"stopped by a person, {entry.stopped.who}, since {entry.stopped.since}"
            yield f"  {entry.entry}: {rows.plain(told)}; `keyplane start {entry.entry}` ends that"
        for stale in stale_values(entry):
            yield f"  {entry.entry}: {rows.plain(stale)}"
        for each in entry.drift:
            yield f"{'' if each.repaired else mark}  {entry.entry}: {rows.plain(drift(each))}"
        for note in entry.notes:
            yield f"  {entry.entry}: {rows.plain(note)}"
    for fault in machine_faults(status.machines):
        yield f"{mark} {rows.plain(fault)}"
    yield from fact_view.waiting(status.facts)
    if status.rollout is not None:
        yield from rollout_lines(status.rollout)


def rollout_lines(rollout: messages.RolloutStatus) -> Iterator[str]:
    """What of it is not done, what it holds, and what a person can do about either."""
    for held in rollout.held:
        yield f"  {progress.held_line(held)}"
    if rollout.state == "done" or rollout.closed:
        return
    said = rollout.why
    if not said.startswith(f"{rollout.state} "):
        said = f"{rollout.state}: {said}" if said else rollout.state
    yield f"rollout {rollout.number} is {said}"
    if rollout.state == "paused" and not freezing.is_pause(rollout.paused):
        yield f"  `keyplane rollout resume {rollout.number}` lets it go on"
    elif rollout.state in ("failed", "stopped", "rolled-back", "rollback-failed"):
        yield "  mend what failed, and `keyplane apply` again: it goes on from here"
        yield f"  or send the same once more: `keyplane rollout retry {rollout.number}`"


def entry_table(
    entries: list[messages.EntryStatus], silent: dict[str, messages.MachineStatus]
) -> Iterator[str]:
    """A line for each unit; what a silent machine said is marked as what was."""
    table: list[tuple[str, ...]] = []
    for entry in entries:
        state = entry.state if entry.current else f"{entry.state}, not current"
        if entry.machine in silent:
            state = f"{state}, {_when(silent[entry.machine])}"
        listens = " ".join(f"{name}:{port}" for name, port in entry.listens.items())
        units = list(entry.units.items()) or [("", messages.UnitStatus(state=""))]
        for turn, (name, unit) in enumerate(units):
            first = turn == 0
            shown = name if unit.state in ("", entry.state) else f"{name} ({unit.state})"
            table.append(
                (
                    entry.entry if first else "",
                    state if first else "",
                    shown,
                    str(unit.pid or ""),
                    str(unit.restarts or ""),
                    listens if first else "",
                )
            )
    return rows.tabled("", ("ENTRY", "STATE", "UNIT", "PID", "RESTARTS", "LISTENS"), table)


def machine_table(machines: list[messages.MachineStatus]) -> Iterator[str]:
    """When each machine was heard, when what it says last changed, and which offer it has."""
    table: list[tuple[str, ...]] = []
    for each in machines:
        reported = "never" if each.reported_ms_ago is None else ages.ago(each.reported_ms_ago)
        table.append((each.machine, heard(each), reported, offer(each)))
    return rows.tabled("", ("MACHINE", "HEARD", "REPORT CHANGED", "OFFER"), table)


def offer(machine: messages.MachineStatus) -> str:
    """The number that it has; both, where it was sent another."""
    accepted = machine.accepted or "none"
    return accepted if accepted == machine.offered else f"{accepted} of {machine.offered}"


def heard(machine: messages.MachineStatus) -> str:
    if not machine.silent and machine.heard_ms_ago is not None:
        return ages.ago(machine.heard_ms_ago)
    return "silent" if machine.silent_since is None else f"silent since {machine.silent_since}"


def _when(machine: messages.MachineStatus) -> str:
    """When that was which a silent machine said."""
    known = machine.heard_ms_ago if machine.heard_ms_ago is not None else machine.reported_ms_ago
    return "not heard" if known is None else f"as of {ages.ago(known)}"


def machine_faults(machines: list[messages.MachineStatus]) -> Iterator[str]:
    for machine in machines:
        if machine.silent:
            yield f"machine {machine.machine} is silent{_since(machine)}"
        elif machine.anew:
            yield (
                f"the agent of {machine.machine} was started and has not told yet what it found: "
                "what is shown is as of before"
            )
        if machine.refused:
            yield f"machine {machine.machine} did not take its declaration: {machine.refused}"


def _since(machine: messages.MachineStatus) -> str:
    if machine.heard_ms_ago is not None:
        return f" since {machine.silent_since} ({ages.ago(machine.heard_ms_ago)})"
    if machine.reported_ms_ago is not None:
        reported = f"{machine.silent_since} ({ages.ago(machine.reported_ms_ago)})"
        return f": not heard since the controller started; its last report came at {reported}"
    return ": it was never heard"


def stale_values(entry: messages.EntryStatus) -> Iterator[str]:
    """Each dynamic value that may be wrong, and since when."""
    for name, unit in entry.units.items():
        if unit.overdue:
            yield f"{name} is overdue: a value is too old, and its restart budget is used up"
        for value, since in unit.stale_since.items():
            yield f"{name} runs on a {value} that may be wrong since {since}"


def drift(found: messages.Drifted) -> str:
    """What somebody changed, when that was found, and what came of it."""
    told = f"{found.path} {found.what}, found {found.since}"
    if found.repaired:
        return f"{told}, and was put right"
    return f"{told}, and is not put right" + (f": {found.problem}" if found.problem else " yet")


def causes(entry: messages.EntryStatus) -> Iterator[str]:
    """What is wrong with it, then with each unit that this does not say already."""
    if entry.cause:
        yield entry.cause
    for name, unit in entry.units.items():
        told = f"{name}: {unit.cause}"
        if unit.cause and told != entry.cause:
            yield told
