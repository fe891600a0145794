"""The breaker and the restart budget: what they hold, and what lets go."""

import pytest

from tests.unit.converge.reaction_traces import ENTRY, lines, rates, trace, value

V = {"V": value("v")}
V1 = {"v": "1"}
TRIPPING = "10:v=2 50:v=3 90:v=4 130:v=5"
THREE = [
    "40 restart running V=2 (1)",
    "80 restart running V=3 (1)",
    "120 restart running V=4 (1)",
]
TRIP = [*THREE, "160 none running-stale V=4 (1)"]
SCARCE = rates(per_unit=1, budget="5m")


def test_the_window_after_a_whole_burst_trips_the_breaker():
    """It trips at the close, and one action follows a quiet window length after it."""
    assert lines(trace(V, V1, TRIPPING)) == [*TRIP, "190 restart running V=5 (1)"]


def test_reloads_are_of_the_row_and_live_values_are_not():
    kinds = [lines(trace({"V": value("v", kind)}, V1, TRIPPING)) for kind in ("reload", "live")]
    assert [line.split()[1] for line in kinds[0]] == ["reload"] * 3 + ["none", "reload"]
    assert [line.split()[1] for line in kinds[1]] == ["live"] * 4


def test_a_window_of_live_values_alone_neither_counts_nor_ends_a_row():
    """Two closed early by their staleness: with the second the row would be too long by one."""
    two = {"L": value("l", "live", maxStaleness="1s"), "V": value("v")}
    events = "10:v=2 50:v=3 81:l=2 90:v=4 121:l=3 125:v=5"
    assert lines(trace(two, {"l": "1", **V1}, events))[:6] == [
        "40 restart running L=1 V=2 (1)",
        "80 restart running L=1 V=3 (1)",
        "82 live running L=2 V=3 (1)",
        "120 restart running L=2 V=4 (1)",
        "122 live running L=3 V=4 (1)",
        "155 none running-stale L=3 V=4 (1)",
    ]


@pytest.mark.parametrize(("opens", "trips"), [("150", True), ("151", False)])
def test_a_window_is_in_a_row_within_one_window_length_of_the_last_action(opens, trips):
    """The length itself still is within it."""
    found = lines(trace(V, V1, f"10:v=2 50:v=3 90:v=4 {opens}:v=5"))
    assert ("running-stale" in found[3]) == trips


def test_each_unit_has_a_breaker_of_its_own():
    entries = {ENTRY: {"web": V, "zed": {"W": value("w")}}}
    found = lines(trace(entries, {"v": "1", "w": "1"}, TRIPPING + " 131:w=2"))
    assert found[3:5] == ["160 none running-stale V=4 (1)", "zed: 160 restart running W=2 (1)"]


def test_quiet_is_counted_from_the_last_change():
    """What is taken up in the end is the last value, by one action."""
    assert lines(trace(V, V1, TRIPPING + " 170:v=6 195:v=7")) == [
        *TRIP,
        "225 restart running V=7 (3)",
    ]


def test_changes_of_live_values_do_not_disturb_the_quiet_and_are_applied_at_each_close():
    two = {"L": value("l", "live"), "V": value("v")}
    found = lines(trace(two, {"l": "1", **V1}, TRIPPING + " 155:l=2 165:l=3 172:l=4"))
    assert found[3:] == [
        "160 live running-stale L=2 V=4 (2)",
        "190 restart running L=4 V=5 (2)",
    ]
    busy = lines(trace(two, {"l": "1", **V1}, TRIPPING + " 161:l=2 180:v=6"))
    assert busy[4:] == [
        "191 live running-stale L=2 V=4 (3)",
        "210 restart running L=2 V=6 (0)",
    ]


def test_a_flap_back_after_a_trip_restarts_nothing():
    """No restart without a fresh value: the unit is fresh again once it was quiet."""
    assert lines(trace(V, V1, TRIPPING + " 170:v=4")) == [*TRIP, "200 none running V=4 (2)"]


def test_a_recovery_is_the_first_of_a_new_row():
    """Two more windows in a row may act, the third trips."""
    reload = {"V": value("v", "reload")}
    found = lines(trace(reload, V1, TRIPPING + " 195:v=6 230:v=7 265:v=8"))
    assert [line.split()[:3] for line in found[4:8]] == [
        ["190", "reload", "running"],
        ["225", "reload", "running"],
        ["260", "reload", "running"],
        ["295", "none", "running-stale"],
    ]


def test_a_change_at_the_instant_of_the_recovery_comes_after_it():
    assert lines(trace(V, V1, TRIPPING + " 190:v=6"))[4:] == [
        "190 restart running V=5 (1)",
        "220 restart running V=6 (1)",
    ]


def test_one_forced_action_once_the_staleness_has_passed_since_the_trip():
    """Though it is never quiet; then a new row begins."""
    busy = " ".join(f"{at}:v={at}" for at in range(135, 300, 5))
    strict = {"V": value("v", maxStaleness="1m")}
    found = lines(trace(strict, V1, f"{TRIPPING} {busy}", rates=rates(per_unit=50)))
    assert found[4] == "220 restart running V=215 (18)"
    assert [line.split()[:2] for line in found[5:8]] == [
        ["250", "restart"],
        ["280", "restart"],
        ["310", "none"],
    ]


def test_a_value_that_became_wrong_after_the_trip_is_stale_from_then():
    """It had come back in between: staleness ended there."""
    strict = {"V": value("v", maxStaleness="1m")}
    busy = " ".join(f"{at}:v={at}" for at in range(195, 280, 20))
    found = lines(trace(strict, V1, f"{TRIPPING} 165:v=4 175:v=9 {busy}"))
    assert found[4] == "235 restart running V=215 (5)"


def test_a_forced_action_needs_a_fresh_value():
    """Past the staleness of a value that is back, nothing is done."""
    strict = {"V": value("v", maxStaleness="35s")}
    assert lines(trace(strict, V1, TRIPPING + " 170:v=5x 189:v=4"))[4:] == [
        "219 none running V=4 (3)"
    ]


def test_an_exhausted_budget_holds_until_it_allows_a_restart():
    """A slot is free again at exactly start + window."""
    found = lines(trace(V, V1, "10:v=2 100:v=3", rates=SCARCE))
    assert found == [
        "40 restart running V=2 (1)",
        "130 none running-stale V=2 (1)",
        "340 restart running V=3 (1)",
    ]
    exact = lines(trace(V, V1, "10:v=2 310:v=3", rates=SCARCE))
    assert exact[1] == "340 restart running V=3 (1)"


def test_what_the_budget_holds_acts_at_the_later_of_quiet_and_budget():
    """A change shortly before there is budget makes it wait for the quiet."""
    found = lines(trace(V, V1, "10:v=2 100:v=3 330:v=4", rates=SCARCE))
    assert found[2] == "360 restart running V=4 (2)"


def test_a_forced_action_waits_for_budget_and_is_overdue_until_then():
    """It does not wait for quiet."""
    strict = {"V": value("v", maxStaleness="1m")}
    found = lines(trace(strict, V1, "10:v=2 100:v=3 330:v=4", rates=SCARCE))
    assert found == [
        "40 restart running V=2 (1)",
        "130 none running-stale V=2 (1)",
        "190 none running-stale V=2 (1) overdue",
        "340 restart running V=4 (2)",
    ]


def test_a_value_that_comes_back_is_overdue_no_more():
    strict = {"V": value("v", maxStaleness="1m")}
    found = lines(trace(strict, V1, "10:v=2 100:v=3 200:v=2", rates=SCARCE))
    assert found[2:] == [
        "190 none running-stale V=2 (1) overdue",
        "200 none running-stale V=2 (2)",
        "230 none running V=2 (2)",
    ]


def test_a_forced_action_spends_budget():
    """The second forced one waits for the slot of the first."""
    strict = {"V": value("v", maxStaleness="1m")}
    busy = " ".join(f"{at}:v={at}" for at in range(5, 590, 10))
    found = lines(trace(strict, V1, busy, rates=rates(burst=1, per_unit=2, budget="5m")))
    restarts = [line.split()[0] for line in found if " restart " in line]
    assert restarts == ["35", "125", "335", "425"]


def test_reloads_spend_no_budget():
    none_left = rates(per_unit=0)
    found = lines(trace({"V": value("v", "reload")}, V1, "10:v=2", rates=none_left))
    assert found == ["40 reload running V=2 (1)"]


def test_a_held_reload_needs_no_budget_either():
    reload = {"V": value("v", "reload")}
    found = lines(trace(reload, V1, TRIPPING, rates=rates(per_unit=0)))
    assert found[4] == "190 reload running V=5 (1)"


def test_with_no_budget_at_all_nothing_restarts_and_it_is_overdue_for_ever():
    strict = {"V": value("v", maxStaleness="1m")}
    assert lines(trace(strict, V1, "10:v=2", rates=rates(per_unit=0))) == [
        "40 none running-stale V=1 (1)",
        "100 none running-stale V=1 (1) overdue",
    ]


def test_starts_and_stops_spend_no_budget():
    stopping = {"V": value("v", onMissing="stop")}
    found = lines(trace(stopping, V1, "10:v! 50:v=2 90:v! 130:v=3", rates=rates(per_unit=0)))
    assert [line.split()[1] for line in found] == ["stop", "start", "stop", "start"]


def test_a_held_unit_is_stopped_all_the_same():
    """What must not run without a value does not; and the hold is over with it."""
    stopping = {"V": value("v", onMissing="stop")}
    found = lines(trace(stopping, V1, TRIPPING + " 165:v! 200:v=9"))
    assert found[4:] == ["195 stop stopped (2)", "230 start running V=9 (1)"]


def test_no_release_starts_what_is_about_to_be_stopped():
    """The close of the window that a `missing` opened comes after the quiet here."""
    two = {"L": value("l", "live", onMissing="stop"), "V": value("v")}
    found = lines(trace(two, {"l": "1", **V1}, TRIPPING + " 175:l!"))
    assert found[4:] == ["205 stop stopped (2)"]


def test_a_hold_that_ends_with_nothing_to_do_leaves_live_values_to_their_close():
    two = {"L": value("l", "live"), "V": value("v")}
    found = lines(trace(two, {"l": "1", **V1}, TRIPPING + " 160:l=2 170:v=4 195:l=3"))
    assert found[4:] == [
        "190 live running-stale L=2 V=4 (3)",
        "200 none running L=2 V=4 (1)",
        "225 live running L=3 V=4 (1)",
    ]


def test_a_unit_acts_once_where_its_release_and_a_close_fall_together():
    """The restart takes up what the window holds."""
    two = {"L": value("l", "live"), "V": value("v")}
    found = lines(trace(two, {"l": "1", **V1}, TRIPPING + " 160:l=2"))
    assert found[4:] == ["190 restart running L=2 V=5 (2)"]
