"""What a rollout does not send, and why, for people; with the command that would send it."""

from collections.abc import Collection, Mapping

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.parts import builds
from keyplane.parts import control_messages as messages
from keyplane.ports.inventory import Send, StoredPlan, StoredReport
from keyplane.rollout.planned import Planned
from keyplane.rollout.state import State
from keyplane.rollout.steps import Hold


def rows(
    state: State, base: Mapping[EntryId, Planned], target: StoredPlan | None
) -> list[messages.HeldEntry]:
    """Of a rollout from a base to a target; where these are not known, no build is told."""
    holds = {hold.entry: hold for step in state.steps for hold in step.holds}
    entries: Mapping[EntryId, Planned] = {} if target is None else target.entries
    return [_row(hold, holds, state, base, entries) for hold in holds.values()]


def _row(
    hold: Hold,
    holds: Mapping[EntryId, Hold],
    state: State,
    base: Mapping[EntryId, Planned],
    target: Mapping[EntryId, Planned],
) -> messages.HeldEntry:
    entry, first = hold.entry, hold
    while first.by is not None and first.by in holds:
        first = holds[first.by]
    machine = split_entry(first.entry)[2]
    is_pushed = not first.why or first.why == state.unnamed.get(machine)
    return messages.HeldEntry(
        entry=entry,
        by=hold.by,
        why=hold.why,
        what=builds.told(builds.of(target[entry])) if entry in target else "",
        had=builds.told(builds.of(base[entry])) if entry in base else "",
        command=f"keyplane push {machine}" if is_pushed else "",
    )


def unrecorded(
    machines: Collection[MachineName],
    sends: Mapping[MachineName, Send],
    reports: Mapping[MachineName, StoredReport],
) -> dict[MachineName, str]:
    """Those of which it is not known what they were sent last, each with a clause that says so.

    One that has a higher number than is recorded was sent something that a lost inventory knew.
    """
    found: dict[MachineName, str] = {}
    for machine in sorted(machines):
        send, report = sends.get(machine), reports.get(machine)
        if send is None:
            found[machine] = f"no send to {machine} is recorded"
        elif report is not None and report.report.offer > send.offer:
            found[machine] = f"the last send to {machine} is not recorded"
    return found
