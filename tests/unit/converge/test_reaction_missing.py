"""What is done when a provider's agent says that a source is gone, and when it is back."""

from tests.unit.converge.reaction_traces import lines, trace, value

V = {"V": value("v")}
STOP = {"V": value("v", onMissing="stop")}
DEFAULT = {"V": value("v", onMissing={"default": "d"})}
V1 = {"v": "1"}


def test_a_kept_value_is_stale_at_once_and_restarts_nothing():
    """However long it is missing, past its staleness too."""
    strict = {"V": value("v", maxStaleness="1m")}
    assert lines(trace(strict, V1, "10:v!")) == ["10 none running-stale V=1 (1)"]


def test_the_last_value_is_what_was_said_last_though_not_taken_up_yet():
    """The window still resolves it, and the unit stays stale."""
    assert lines(trace(V, V1, "10:v=2 15:v!")) == [
        "15 none running-stale V=1 (2)",
        "40 restart running-stale V=2 (2)",
    ]


def test_a_missing_value_that_comes_back_the_same_is_fresh_at_once():
    assert lines(trace(V, V1, "10:v! 100:v=1")) == [
        "10 none running-stale V=1 (1)",
        "100 none running V=1 (2)",
    ]


def test_a_missing_value_that_comes_back_another_is_fresh_at_the_close():
    assert lines(trace(V, V1, "10:v! 100:v=2")) == [
        "10 none running-stale V=1 (1)",
        "130 restart running V=2 (2)",
    ]
    live = {"V": value("v", "live")}
    assert lines(trace(live, V1, "10:v! 100:v=2"))[1] == "130 live running V=2 (2)"


def test_a_value_that_comes_back_too_late_is_taken_up_at_once():
    """It has run too long already on a value that nobody stood for."""
    strict = {"V": value("v", maxStaleness="1m")}
    assert lines(trace(strict, V1, "10:v! 100:v=2"))[1] == "100 restart running V=2 (2)"
    assert lines(trace(strict, V1, "10:v! 60:v=2"))[1] == "70 restart running V=2 (2)"


def test_a_restart_on_a_last_value_ends_no_staleness():
    """It goes on from when the source was gone."""
    strict = {"V": value("v", maxStaleness="1m")}
    found = lines(trace(strict, V1, "10:v=2 15:v! 50:v=3 60:v! 110:v=4"))
    assert found[1:3] == [
        "40 restart running-stale V=2 (2)",
        "75 restart running-stale V=3 (2)",
    ]
    assert found[3] == "120 restart running V=4 (1)"


def test_one_missing_value_leaves_the_others_their_reactions():
    two = {**V, "W": value("w")}
    assert lines(trace(two, {"v": "1", "w": "1"}, "10:v! 50:w=2 100:v=1")) == [
        "10 none running-stale V=1 W=1 (1)",
        "80 restart running-stale V=1 W=2 (2)",
        "100 none running V=1 W=2 (1)",
    ]


def test_missing_twice_is_missing_once():
    assert lines(trace(V, V1, "10:v! 20:v! 100:v=1"))[1] == "100 none running V=1 (2)"


def test_without_a_value_it_may_not_miss_a_unit_stops_at_the_close():
    """And starts at the close of the window that a value opens, with nothing in between."""
    assert lines(trace(STOP, V1, "10:v! 100:v=1")) == [
        "40 stop stopped (1)",
        "130 start running V=1 (1)",
    ]


def test_a_value_back_before_the_close_stops_nothing():
    assert lines(trace(STOP, V1, "10:v! 20:v=1")) == []
    assert lines(trace(STOP, V1, "10:v! 20:v=2")) == ["40 restart running V=2 (2)"]


def test_a_stop_comes_before_the_missing_value_is_too_old():
    strict = {"V": value("v", onMissing="stop", maxStaleness="10s")}
    assert lines(trace(strict, V1, "10:v!")) == ["20 stop stopped (1)"]


def test_a_stopped_unit_needs_all_that_it_stopped_without():
    two = {**STOP, "W": value("w", onMissing="stop")}
    assert lines(trace(two, {"v": "1", "w": "1"}, "10:v! 11:w! 100:v=2 200:w=2")) == [
        "40 stop stopped (2)",
        "230 start running V=2 W=2 (2)",
    ]


def test_a_stopped_unit_starts_on_the_last_value_of_another():
    two = {**STOP, "W": value("w")}
    assert lines(trace(two, {"v": "1", "w": "1"}, "10:v! 100:w! 110:v=1")) == [
        "40 stop stopped (1)",
        "130 start running-stale V=1 W=1 (2)",
    ]


def test_a_live_value_may_stop_a_unit_too():
    live = {"V": value("v", "live", onMissing="stop")}
    assert lines(trace(live, V1, "10:v!")) == ["40 stop stopped (1)"]


def test_a_default_is_a_change_to_it():
    """The unit is never stale."""
    assert lines(trace(DEFAULT, V1, "10:v! 100:v=2")) == [
        "40 restart running V=d (1)",
        "130 restart running V=2 (1)",
    ]
    assert lines(trace(DEFAULT, {"v": "d"}, "10:v!")) == []


def test_a_default_is_text_whatever_it_was_written_as():
    numbered = {"V": value("v", onMissing={"default": 80})}
    assert lines(trace(numbered, V1, "10:v!")) == ["40 restart running V=80 (1)"]


def test_a_unit_that_waits_takes_a_default_and_nothing_else_for_a_value():
    assert lines(trace(DEFAULT, {}, "10:v!")) == ["10 start running V=d (1)"]
    assert lines(trace(STOP, {}, "10:v! 20:v=1")) == ["20 start running V=1 (2)"]
    assert lines(trace(V, {}, "10:v! 20:v=1")) == ["20 start running V=1 (2)"]
    assert lines(trace(V, {}, "")) == []


def test_a_unit_that_waits_for_another_value_starts_on_a_kept_one():
    two = {**V, "W": value("w")}
    assert lines(trace(two, V1, "10:v! 20:w=1")) == ["20 start running-stale V=1 W=1 (2)"]


def test_a_template_goes_by_its_contract_where_one_source_is_gone():
    text = "${results.s.a}-${results.s.b}"
    start = {"a": "1", "b": "1"}
    kept = {"T": value(["a", "b"], template=text)}
    assert lines(trace(kept, start, "10:a! 20:b=2")) == [
        "10 none running-stale T=1-1 (1)",
        "40 restart running-stale T=1-2 (2)",
    ]
    default = {"T": value(["a", "b"], template=text, onMissing={"default": "d"})}
    assert lines(trace(default, start, "10:a!")) == ["40 restart running T=d (1)"]


def test_what_happens_at_one_instant_happens_together():
    """A value that is gone and back within an instant was not missing."""
    assert lines(trace(V, V1, "10:v! 10:v=1")) == []
