"""What may not run twice is stopped first, whatever it asks for, and the plan says why."""

import pytest
from msgspec import UNSET

from keyplane.model.diagnostic import Severity
from keyplane.planner import PlanResult
from tests.unit.planner import fleets as f

ASKS = 'handover = "start-first"\nreplaces = "older"\n'
VOLUME = '[roles.main.volumes.data]\npath = "/var/lib/solo"\n'
FIXED = '[roles.main.listens.dns]\nprotocol = "udp"\nport = 53\n'
ASSIGNED = '[roles.main.listens.main]\nprotocol = "tcp"\n'


def solo(more: str, *, on: str = "alpha") -> PlanResult:
    fleet = f.machines("alpha", "beta") + f.instance("solo", "solo", on)
    return f.result_of(fleet, {"solo": f.UNIT + more})


def rows(found: PlanResult) -> list[tuple[str, str, str]]:
    return [(each.code, each.path, each.message) for each in found.plan.diagnostics]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (VOLUME, "volume data"),
        (FIXED, "port 53"),
        (VOLUME + FIXED + ASSIGNED, "volume data, port 53"),
    ],
)
def test_a_volume_or_a_fixed_port_is_had_by_one_alone(more: str, why: str) -> None:
    found = solo(ASKS + more)
    unit = found.plan.entries["solo:main@alpha"].units["main"]
    assert (unit.handover, unit.replaces) == ("start-first", "older")
    assert unit.stop_first == why
    why_not = f"only one of them can have {why}"
    assert rows(found) == [
        (
            "stop-first",
            f"units.main.{field}",
            f"main of solo:main@alpha is started once {old} has stopped, not before: {why_not}",
        )
        for field, old in (("handover", "its former version"), ("replaces", "older"))
    ]
    assert {each.severity for each in found.plan.diagnostics} == {Severity.INFO}


def test_a_port_that_is_assigned_may_be_shared() -> None:
    found = solo(ASKS + ASSIGNED)
    assert found.plan.entries["solo:main@alpha"].units["main"].stop_first is UNSET
    assert rows(found) == []


def test_who_does_not_ask_is_told_nothing() -> None:
    for more in ("", 'handover = "stop-first"\n'):
        found = solo(more + VOLUME)
        assert found.plan.entries["solo:main@alpha"].units["main"].stop_first is UNSET
        assert rows(found) == []


def test_it_is_said_once_of_a_role_on_many_machines() -> None:
    fleet = f.machines("alpha", "beta") + f.instance("solo", "solo", "alpha", "beta")
    found = f.result_of(fleet, {"solo": f.UNIT + 'handover = "start-first"\n' + VOLUME})
    assert [each.subject for each in found.plan.diagnostics] == ["solo:main"]
    assert "solo:main@alpha and 1 more" in found.plan.diagnostics[0].message


def test_a_unit_that_is_declared_beside_its_successor_is_not_taken_over() -> None:
    second = '[roles.main.units.next]\nkind = "process"\ncommand = ["run"]\nreplaces = "main"\n'
    found = solo(second)
    assert [(each.code, each.severity, each.path) for each in found.plan.diagnostics] == [
        ("replaces-declared", Severity.WARNING, "units.next.replaces")
    ]
    assert "both run" in found.plan.diagnostics[0].message


def test_how_it_is_handed_over_is_in_no_key() -> None:
    keys = {solo(more + ASSIGNED).plan.entries["solo:main@alpha"].key for more in ("", ASKS)}
    assert len(keys) == 1
