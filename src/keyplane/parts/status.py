"""What `keyplane status` shows: computed from reports, never from what was sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keyplane.model.declaration import NO_OFFER, EntryReport, UnitReport
from keyplane.model.diagnostic import Severity
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.parts import control_messages as messages
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.guarding import Cordon
from keyplane.ports.inventory import PlannedEntry, StoredOffer, StoredPlan, StoredReport

UNREPORTED = "unreported"
SILENT_MS = 15_000
"""Three heartbeats: an agent that missed them all is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the controller knows of the machines at one time."""

    reports: Mapping[MachineName, StoredReport]
    offers: Mapping[MachineName, StoredOffer]
    heard_ms_ago: Mapping[MachineName, int]
    lately: frozenset[MachineName]
    """Machines that are not silent."""
    """Of those that were heard since it started."""
    now_ms: int
    lives: Mapping[MachineName, str]
    """Which life of its agent each has, where it said so."""
    facts: Mapping[MachineName, StoredFacts] = field(default_factory=dict[MachineName, StoredFacts])
    cordons: Mapping[MachineName, Cordon] = field(default_factory=dict[MachineName, Cordon])
    waits: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """Why entries are not permitted to stop yet."""


def compute(
    target: StoredPlan | None, known: Known, rollout: messages.RolloutStatus | None
) -> messages.Status:
    """Join the target with what the machines said last, and when that was."""
    reports = known.reports
    return messages.Status(
        fleet=target.plan.fleet if target else None,
        generation=target.plan.generation if target else None,
        revision=target.revision if target else None,
        entries=entries(target, known),
        machines=[
            machine_status(machine, known)
            for machine in sorted(
                {
                    *map(MachineName, target.plan.machines if target else ()),
                    # One that left the fleet matters for as long as it has something.
                    *(name for name, stored in reports.items() if stored.report.entries),
                }
            )
        ],
        rollout=rollout,
        diagnostics=[
            row
            for row in (target.plan.diagnostics if target else ())
            if row.severity is not Severity.INFO
        ],
    )


def entries(target: StoredPlan | None, known: Known) -> list[messages.EntryStatus]:
    """Those of the target, and those that a machine still has beside it."""
    wanted = target.entries if target else dict[EntryId, PlannedEntry]()
    reported = {
        entry: report
        for stored in known.reports.values()
        for entry, report in stored.report.entries.items()
    }
    rows: list[messages.EntryStatus] = []
    for entry in sorted({*wanted, *reported}):
        planned, report = wanted.get(entry), reported.get(entry)
        current = planned is not None and report is not None and report.key == planned.entry.key
        rows.append(
            messages.EntryStatus(
                entry=entry,
                machine=split_entry(entry)[2],
                state=report.state.value if report else UNREPORTED,
                current=current,
                units=_units(report),
                listens=dict(planned.entry.listens) if planned else {},
                cause=_cause(planned is None, report, known.waits.get(entry)),
                notes=list(report.notes) if report else [],
                stopped=_stopped(report),
                drift=_drift(report),
            )
        )
    return rows


def is_well(entry: messages.EntryStatus) -> bool:
    """As the target says, and healthy; where nothing is to run, it is enough that all is there."""
    healthy = entry.state == "healthy" or (entry.state == "applied" and not entry.units)
    return entry.current and healthy


def _drift(report: EntryReport | None) -> list[messages.Drifted]:
    return [
        messages.Drifted(
            path=each.path,
            what=each.what,
            since=time_of(each.since_ms),
            repaired=each.repaired,
            problem=each.problem,
        )
        for each in (report.drift if report else ())
    ]


def _stopped(report: EntryReport | None) -> messages.Stopped | None:
    if report is None or report.stopped is None:
        return None
    return messages.Stopped(who=report.stopped.who, since=time_of(report.stopped.since_ms))


def _cause(
    unwanted: bool,  # noqa: FBT001
    report: EntryReport | None,
    waits: str | None,
) -> str | None:
    if unwanted:
        said = "not in the target: it is to be removed"
    else:
        said = report.cause if report else None
    if waits is None or report is None or report.member is None or report.member.held:
        return said
    return f"{said or 'its stop waits'}, as {waits}"


def _units(report: EntryReport | None) -> dict[str, messages.UnitStatus]:
    return {name: _unit(unit) for name, unit in sorted(report.units.items())} if report else {}


def _unit(unit: UnitReport) -> messages.UnitStatus:
    return messages.UnitStatus(
        state=unit.state.value,
        pid=unit.pid,
        start_ticks=unit.start_ticks,
        restarts=unit.restarts,
        cause=unit.cause,
        reaction=unit.reaction,
        overdue=unit.overdue,
        stale_since={
            name: time_of(since_ms) for name, since_ms in sorted(unit.stale_since_ms.items())
        },
    )


def machine_status(machine: MachineName, known: Known) -> messages.MachineStatus:
    report, offer = known.reports.get(machine), known.offers.get(machine)
    heard_ms_ago, now_ms = known.heard_ms_ago.get(machine), known.now_ms
    reported_ms_ago = None if report is None else max(0, now_ms - report.received_ms)
    silent = machine not in known.lately
    since_ms = heard_ms_ago if heard_ms_ago is not None else reported_ms_ago
    return messages.MachineStatus(
        machine=machine,
        heard_ms_ago=heard_ms_ago,
        reported_ms_ago=reported_ms_ago,
        silent=silent,
        silent_since=time_of(now_ms - since_ms) if silent and since_ms is not None else None,
        cordon=cordon_of(known.cordons.get(machine)),
        offered=str(offer.offer if offer else NO_OFFER),
        accepted=str(report.report.offer) if report else None,
        refused=report.report.refused if report else None,
        anew=report is not None
        and machine in known.lives
        and known.lives[machine] != report.report.boot,
    )


def cordon_of(cordon: Cordon | None) -> str:
    if cordon is None:
        return ""
    return "drained" if cordon.drain else "cordoned"


def time_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
