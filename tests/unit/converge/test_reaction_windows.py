"""What a window gathers, when it closes, and what comes of it."""

from tests.unit.converge.reaction_traces import ENTRY, export, lines, rates, trace, value

V = {"V": value("v")}
V1 = {"v": "1"}


def test_a_window_gathers_all_changes_until_it_closes():
    """Two changes are one restart, with the last value."""
    assert lines(trace(V, V1, "10:v=2 39:v=3")) == ["40 restart running V=3 (2)"]


def test_a_window_ends_before_the_events_of_its_last_instant():
    """A change at the close opens the next window."""
    assert lines(trace(V, V1, "10:v=2 40:v=3")) == [
        "40 restart running V=2 (1)",
        "70 restart running V=3 (1)",
    ]


def test_what_falls_on_the_end_still_runs():
    """A close at `until` is printed, one after it is not; events likewise."""
    assert lines(trace(V, V1, "10:v=2", until="40s")) == ["40 restart running V=2 (1)"]
    assert lines(trace(V, V1, "10:v=2", until="39s")) == []
    assert lines(trace(V, V1, "10:v!", until="10s")) == ["10 none running-stale V=1 (1)"]
    assert lines(trace(V, V1, "11:v!", until="10s")) == []


def test_a_value_that_is_back_is_no_change():
    """Nothing is done, and its changes still count for the next action."""
    assert lines(trace(V, V1, "10:v=2 20:v=1 100:v=3")) == ["130 restart running V=3 (3)"]


def test_a_repeated_value_opens_no_window_and_counts_nowhere():
    """Neither that of the start nor one that was just told."""
    assert lines(trace(V, V1, "5:v=1 20:v=2 30:v=2")) == ["50 restart running V=2 (1)"]


def test_one_window_of_a_machine_holds_all_its_units():
    """The second unit is acted on when the window of the first change closes."""
    entries = {ENTRY: {"web": V, "zed": {"W": value("w")}}}
    assert lines(trace(entries, {"v": "1", "w": "1"}, "10:v=2 30:w=2")) == [
        "40 restart running V=2 (1)",
        "zed: 40 restart running W=2 (1)",
    ]


def test_each_machine_has_windows_of_its_own():
    """A change that only another machine reads opens none here."""
    entries = {"app:web@alpha": {"web": V}, "app:web@beta": {"zed": {"W": value("w")}}}
    assert lines(trace(entries, {"v": "1", "w": "1"}, "10:v=2 30:w=2")) == [
        "40 restart running V=2 (1)",
        "zed: 60 restart running W=2 (1)",
    ]


def test_what_nobody_reads_opens_no_window():
    assert lines(trace(V, V1, "10:other=2 20:v=2")) == ["50 restart running V=2 (1)"]


def test_rows_are_by_time_then_entry_then_unit():
    entries = {
        "b:web@alpha": {"b": V, "a": V},
        "a:web@beta": {"c": V},
        "a:web@alpha": {"c": V},
    }
    found = [line.split(":")[0] for line in lines(trace(entries, V1, "10:v=2"))]
    assert found == ["c", "c", "a", "b"]


def test_a_unit_is_acted_on_once_by_the_strongest_reaction():
    """A restart takes the other values up too; a value that came back does not count."""
    three = {"X": value("x", "live"), "Y": value("y", "reload"), "Z": value("z")}
    start = {"x": "1", "y": "1", "z": "1"}
    assert lines(trace(three, start, "10:x=2 11:z=2 12:y=2")) == [
        "40 restart running X=2 Y=2 Z=2 (3)"
    ]
    assert lines(trace(three, start, "10:x=2 11:z=2 12:y=2 13:z=1")) == [
        "40 reload running X=2 Y=2 Z=1 (4)"
    ]
    assert lines(trace(three, start, "10:x=2")) == ["40 live running X=2 Y=1 Z=1 (1)"]


def test_a_window_closes_before_a_value_grows_too_stale():
    """It is counted from the event that made the value wrong, not from the window's opening."""
    two = {"V": value("v"), "W": value("w", maxStaleness="10s")}
    assert lines(trace(two, {"v": "1", "w": "1"}, "10:v=2 15:w=2 20:w=3")) == [
        "25 restart running V=2 W=3 (3)"
    ]


def test_a_value_that_came_back_is_stale_no_more():
    """A new wrong value is counted from its own event."""
    quick = {"V": value("v", maxStaleness="20s")}
    assert lines(trace(quick, V1, "10:v=2 15:v=1 25:v=3")) == ["40 restart running V=3 (3)"]
    quick = {"V": value("v", maxStaleness="12s")}
    assert lines(trace(quick, V1, "10:v=2 15:v=1 25:v=3")) == ["37 restart running V=3 (3)"]


def test_an_early_close_takes_up_what_the_others_wait_for():
    """The window is the machine's, and there is one close."""
    entries = {ENTRY: {"web": {"V": value("v", maxStaleness="10s")}, "zed": {"W": value("w")}}}
    assert lines(trace(entries, {"v": "1", "w": "1"}, "5:w=2 10:v=2")) == [
        "20 restart running V=2 (1)",
        "zed: 20 restart running W=2 (1)",
    ]


def test_a_unit_that_waits_starts_at_once_when_its_last_value_is_there():
    """No window delays a start."""
    two = {"V": value("v"), "W": value("w")}
    assert lines(trace(two, {}, "10:v=1 50:w=1 200:w=2")) == [
        "50 start running V=1 W=1 (2)",
        "230 restart running V=1 W=2 (1)",
    ]


def test_a_first_value_opens_a_window_as_any_change_does():
    """What follows it soon is resolved at its close."""
    assert lines(trace(V, {}, "10:v=1 20:v=2")) == [
        "10 start running V=1 (1)",
        "40 restart running V=2 (1)",
    ]


def test_other_rates_make_other_windows():
    document = trace(V, V1, "10:v=2", rates=rates(window="5s"))
    assert lines(document) == ["15 restart running V=2 (1)"]
    del document["rates"]
    assert lines(document) == ["40 restart running V=2 (1)"]


def test_a_template_is_filled_in_with_what_each_source_says():
    """Text around references, two of them, and one that stands twice."""
    contract = value(["h", "p"], template="http://${results.s.h}:${results.s.p}/${results.s.h}")
    assert lines(trace({"URL": contract}, {"h": "a", "p": 80}, "10:p=81")) == [
        "40 restart running URL=http://a:81/a (1)"
    ]
    assert lines(trace({"L": value(["h", "p"])}, {"h": "a"}, "10:p=x")) == [
        "10 start running L=a x (1)"
    ]


def test_one_export_in_two_values_is_one_change():
    two = {"V": value("v"), "URL": value("v", template="x-${results.s.v}")}
    assert lines(trace(two, V1, "10:v=2")) == ["40 restart running URL=x-2 V=2 (1)"]


def test_events_out_of_order_are_put_in_order():
    document = trace(V, V1, "39:v=3 10:v=2")
    assert lines(document) == ["40 restart running V=3 (2)"]
    assert document["events"][0]["export"] == export("v")
