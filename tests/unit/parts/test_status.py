"""What `keyplane status` is computed from: the target, and what machines said last."""

from collections.abc import Mapping

from keyplane.model.declaration import NO_OFFER, EntryReport, EntryState, Report
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.parts import control_messages as messages
from keyplane.parts import status
from keyplane.ports.inventory import StoredReport

LEFT = MachineName("left")
WEB = EntryId("web:main@left")


def known(
    reports: Mapping[MachineName, StoredReport],
    heard_ms_ago: Mapping[MachineName, int] | None = None,
    now_ms: int = 0,
    lives: Mapping[MachineName, str] | None = None,
) -> status.Known:
    return status.Known(
        reports=reports,
        offers={},
        heard_ms_ago=heard_ms_ago or {},
        lately=frozenset(
            machine for machine, ago in (heard_ms_ago or {}).items() if ago <= status.SILENT_MS
        ),
        now_ms=now_ms,
        lives=lives or {},
    )


def machines(entries: Mapping[EntryId, EntryReport]) -> list[str]:
    """The machines that are shown where no target names one and `left` said that it has this."""
    report = Report(
        machine=LEFT, offer=NO_OFFER, settled=NO_OFFER, sequence=1, boot="x", entries=entries
    )
    reports = {LEFT: StoredReport(report=report, received_ms=0)}
    found = status.compute(None, known(reports), None)
    return [machine.machine for machine in found.machines]


def test_a_machine_that_left_the_fleet_is_shown_while_it_has_something() -> None:
    """What it has is to be removed, and only it can tell when that is done."""
    assert machines({WEB: EntryReport(state=EntryState.HEALTHY, key=Digest("k"))}) == ["left"]


def test_a_machine_that_left_the_fleet_with_nothing_is_forgotten() -> None:
    """Nobody waits for it, so it is no trouble that it is not heard."""
    assert machines({}) == []


def left(heard_ms_ago: Mapping[MachineName, int], now_ms: int) -> messages.MachineStatus:
    report = Report(
        machine=LEFT, offer=NO_OFFER, settled=NO_OFFER, sequence=1, boot="x", entries={}
    )
    reports = {LEFT: StoredReport(report=report, received_ms=1_000_000_000_000)}
    return status.machine_status(LEFT, known(reports, heard_ms_ago, now_ms))


def test_a_machine_that_beats_is_not_silent_however_old_its_report() -> None:
    """A report stands until the machine says something else."""
    found = left({LEFT: 4_000}, 1_000_000_600_000)
    assert (found.silent, found.silent_since) == (False, None)
    assert (found.heard_ms_ago, found.reported_ms_ago) == (4_000, 600_000)


def test_a_machine_that_missed_three_heartbeats_is_silent_since_the_last() -> None:
    found = left({LEFT: 60_000}, 1_000_000_600_000)
    assert (found.silent, found.silent_since) == (True, "2001-09-09T01:55:40Z")


def test_a_machine_that_this_controller_never_heard_is_silent_since_its_report() -> None:
    found = left({}, 1_000_000_600_000)
    assert (found.silent, found.silent_since) == (True, "2001-09-09T01:46:40Z")


def test_what_a_machine_said_before_its_agent_was_started_is_of_before() -> None:
    """Nothing may run any more of what that report tells, however well it was."""
    report = Report(
        machine=LEFT, offer=NO_OFFER, settled=NO_OFFER, sequence=1, boot="x", entries={}
    )
    reports = {LEFT: StoredReport(report=report, received_ms=0)}

    def anew(lives: Mapping[MachineName, str]) -> bool:
        return status.machine_status(LEFT, known(reports, lives=lives)).anew

    assert anew({LEFT: "y"})
    assert not anew({LEFT: "x"})
    assert not anew({})  # no life was named since the controller started


def test_a_clock_that_was_set_back_makes_no_age_negative() -> None:
    assert left({LEFT: 0}, 0).reported_ms_ago == 0
