"""What an operator sees of a fleet that runs: `status`, `machine`, `logs`, and what hangs."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.fleet import KEYPLANE, ROOT, Fleet, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLEET = """
fleet = "looked"
[machines.alpha]
address = "127.77.0.1"
tags = ["eu", "disk=ssd"]
local = true
[machines.beta]
address = "127.77.0.2"
local = true
[instances.source]
module = "source"
placement.every.main = { machines = ["alpha"] }
[instances.reader]
module = "reader"
placement.every.main = { machines = ["beta"] }
"""
INTERFACES = """
[word.exports]
word = "string"
port = "integer"
"""
SOURCE = """
module = "source"
version = "1"
[roles.main.listens]
say = { protocol = "tcp" }
[roles.main.provides.word]
interface = "word"
scope = "mesh"
exports.word = { value = "hello", lifecycle = "static" }
exports.port = { value = "${alloc.ports.say}", lifecycle = "static" }
[roles.main.units.talk]
kind = "process"
command = ["sh", "-c", "n=0; while :; do n=$((n+1)); echo talk $n; sleep 0.2; done"]
[roles.main.units.hum]
kind = "process"
command = ["sh", "-c", "n=0; while :; do n=$((n+1)); echo hum $n; sleep 0.3; done"]
"""
READER = """
module = "reader"
version = "1"
[roles.main.uses.from]
interface = "word"
[roles.main.units.read]
kind = "process"
command = ["sh", "-c", "while :; do echo got $WORD; sleep 0.5; done"]
env = { WORD = "${results.from.word}" }
configData."/etc/looked/port" = { text = "${results.from.port}" }
reload = { signal = "WINCH" }
"""


def write(folder: Path) -> Path:
    for name, text in {
        "fleet.toml": FLEET,
        "interfaces.toml": INTERFACES,
        "modules/source/module.toml": SOURCE,
        "modules/reader/module.toml": READER,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("looked")
    with running(write(folder / "source"), folder / "fleet") as fleet:
        yield fleet


def test_status_says_when_each_machine_was_heard(fleet: Fleet) -> None:
    """Lately, and by whom; its report may be as old as it likes."""
    machines = {each["machine"]: each for each in fleet.status()["machines"]}
    assert set(machines) == {"alpha", "beta"}
    assert not any(each["silent"] for each in machines.values())
    assert all(each["reported_ms_ago"] is not None for each in machines.values())
    shown = fleet.run("status").out
    assert "HEARD" in shown
    assert "ago" in shown or "just now" in shown


def test_a_machine_that_is_silent_is_said_so_with_since_when(fleet: Fleet) -> None:
    """What it said is shown as what was, and the exit status is 1."""
    agent = fleet.parts()["agent beta"]
    os.kill(agent, signal.SIGSTOP)
    try:

        def silent() -> str | None:
            shown = fleet.run("status", exit_status=None)
            return shown.out if shown.exit == 1 and "beta is silent since 20" in shown.out else None

        shown = wait_for(silent, "beta is silent")
        reader = next(line for line in shown.splitlines() if "reader:main@beta" in line)
        assert "as of" in reader
    finally:
        os.kill(agent, signal.SIGCONT)
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "beta is back")


def test_a_controller_that_hangs_is_named_at_once_and_given_up_later(fleet: Fleet) -> None:
    """The first line comes long before the end, which says which process and what to do."""
    controller = fleet.parts()["controller"]
    os.kill(controller, signal.SIGSTOP)
    try:
        with fleet.start("status") as child:
            assert child.stderr is not None
            first = child.stderr.readline()
            assert f"the controller (pid {controller}) does not answer yet" in first
            assert child.poll() is None
            rest = child.stderr.read()
        assert child.returncode == 1
        assert f"kill -CONT {controller}" in rest
    finally:
        os.kill(controller, signal.SIGCONT)
    assert fleet.run("status", exit_status=None).out


def test_a_supervisor_that_hangs_is_not_taken_for_none(fleet: Fleet) -> None:
    state = fleet.directory / ".keyplane"
    found = subprocess.run(
        ["pgrep", "-f", f"keyplane.parts.main supervise {state}"], capture_output=True, check=True
    )
    supervisor = int(found.stdout.split()[0])
    os.kill(supervisor, signal.SIGSTOP)
    try:
        ran = fleet.run("status", "--parts", exit_status=1)
        assert f"the supervisor (pid {supervisor}) has not answered" in ran.err
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_watch_is_for_a_terminal_or_for_programs(fleet: Fleet) -> None:
    """In a pipe it is refused; with --json it prints a line, and another once something changed."""
    assert "--watch --json" in fleet.run("status", "--watch", exit_status=2).err
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "all is as it should be")
    with fleet.start("status", "--watch", "--json") as child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        assert {each["entry"] for each in first["entries"]} == {
            "reader:main@beta",
            "source:main@alpha",
        }
        child.send_signal(signal.SIGINT)
    assert child.returncode == 0


def test_watch_draws_in_place_at_a_terminal(fleet: Fleet) -> None:
    """On the second screen, which is left as it was when it ends."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(
        ["nsenter", f"--net={fleet.network.path}", *KEYPLANE, "status", "--watch"],
        cwd=fleet.directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    drawn = b""
    while b"reader:main@beta" not in drawn:
        drawn += os.read(ours, 65_536)
    child.send_signal(signal.SIGINT)
    try:
        while more := os.read(ours, 65_536):
            drawn += more
    except OSError:
        pass  # the terminal's other side is closed
    os.close(ours)
    assert child.wait(60) == 0
    assert drawn.startswith(b"\x1b[?1049h")
    assert drawn.rstrip().endswith(b"\x1b[?1049l")


def test_machine_show_names_what_a_machine_takes_from_another(fleet: Fleet) -> None:
    """Each value with its provider, its machine and its plane; one that takes nothing says so."""
    beta = fleet.run("machine", "show", "beta", "--json").json
    assert (beta["said"]["address"], beta["status"]["offered"]) == (
        "127.77.0.2",
        beta["status"]["accepted"],
    )
    assert [entry["entry"] for entry in beta["entries"]] == ["reader:main@beta"]
    assert [(edge["slot"], edge["provider"], edge["machine"]) for edge in beta["edges"]] == [
        ("from", "source:main@alpha", "alpha")
    ]
    taken = {(each["name"], each["export"], each["plane"]) for each in beta["takes"]}
    assert taken == {("WORD", "word/word", "env"), ("/etc/looked/port", "word/port", "config")}
    assert all(each["machine"] == "alpha" for each in beta["takes"])
    assert "it takes nothing from other machines" in fleet.run("machine", "show", "alpha").out
    assert "alpha, beta" in fleet.run("machine", "show", "gamma", exit_status=2).err
    for words in (("show", "99"), ("stop", "x"), ("events", "x"), ("rollout", "show", "99"),
                  ("push", "gamma"), ("backup", "x"), ("cordon", "gamma", "--yes")):  # fmt: skip
        fleet.run(*words, exit_status=2)  # what names nothing that is there


def test_machine_list_counts_what_is_well(fleet: Fleet) -> None:
    found = fleet.run("machine", "list", "--json").json
    assert [(each["machine"], each["well"], each["entries"]) for each in found] == [
        ("alpha", 1, 1),
        ("beta", 1, 1),
    ]
    assert found[0]["said"]["tags"] == ["eu", "disk=ssd"]
    assert "eu disk=ssd" in fleet.run("machine", "list").out


def test_logs_of_several_units_stand_in_one_order_of_time(fleet: Fleet) -> None:
    """Each names its own unit, and none more than is asked for."""

    def last() -> list[dict[str, str]] | None:
        """Once both have said something lately."""
        words = ("logs", "source:*", "reader:main@beta", "--tail", "12", "--json")
        found = [json.loads(line) for line in fleet.run(*words).out.splitlines()]
        said = {(each["entry"], each["unit"]) for each in found}
        both = {("source:main@alpha", "talk"), ("source:main@alpha", "hum")}
        return found if len(found) == 12 and both <= said else None

    found = wait_for(last, "the lines of both")
    assert [each["at"] for each in found] == sorted(each["at"] for each in found)

    def named() -> set[str]:
        shown = fleet.run("logs", "source:main@alpha", "-n", "9").out.splitlines()
        return {line.split(" | ")[0].strip() for line in shown}

    wait_for(lambda: named() == {"talk", "hum"}, "both are named")
    alone = fleet.run("logs", "source:main@alpha/talk", "-n", "3").out.splitlines()
    assert all(line.startswith("talk ") for line in alone)


def test_logs_since_a_time_leaves_out_what_was_before(fleet: Fleet) -> None:
    wait_for(
        lambda: len(fleet.run("logs", "source:main@alpha/talk", "-n", "9").out.splitlines()) == 9,
        "nine lines",
    )
    words = ("logs", "source:main@alpha/talk", "--json")
    first, *_, last = [json.loads(line) for line in fleet.run(*words).out.splitlines()]
    since = [json.loads(line) for line in fleet.run(*words, "--since", last["at"]).out.splitlines()]
    assert first["at"] < last["at"] == since[0]["at"]
    assert fleet.run(*words, "--since", "30d").out.splitlines()
    assert "neither a duration" in fleet.run(*words, "--since", "soon", exit_status=2).err


def test_logs_follow_several_at_once(fleet: Fleet) -> None:
    with fleet.start("logs", "source:main@alpha", "reader:main@beta", "-f", "-n", "0") as child:
        assert child.stdout is not None
        names: set[str] = set()
        while len(names) < 3:
            names.add(child.stdout.readline().split("|")[0].strip())
        child.kill()
    assert names == {"source:main@alpha/talk", "source:main@alpha/hum", "reader:main@beta/read"}


def test_each_part_has_a_log_of_its_own(fleet: Fleet) -> None:
    """Lines of a journal come as their keys; the bus's are the bus's."""
    bus = fleet.run("logs", "--part", "bus").out
    assert "Server is ready" in bus
    words = ("logs", "--part", "controller", "--json")
    controller = [json.loads(line) for line in fleet.run(*words).out.splitlines()]
    ended = next(each for each in controller if each.get("event") == "rollout ended")
    assert (ended["part"], ended["level"], ended["outcome"]) == ("controller", "info", "done")
    known = fleet.run("logs", "--part", "nobody", exit_status=2).err
    assert "agent:alpha, agent:beta, bus, controller, supervisor" in known


def test_metrics_of_all_parts_are_one_text_that_prometheus_reads(fleet: Fleet) -> None:
    """Each sample says whose it is; what happened is counted."""
    text = fleet.run("metrics").out
    families = {each.name: each for each in text_string_to_metric_families(text)}
    assert text.count("# TYPE keyplane_entries ") == 1
    rollouts = families["keyplane_rollouts"].samples
    done = {"outcome": "done", "part": "controller"}
    assert any(each.labels == done and each.value >= 1 for each in rollouts)
    entries = {
        (each.labels["part"], each.labels["state"]): each.value
        for each in families["keyplane_entries"].samples
    }
    assert entries["controller", "healthy"] == 2
    assert entries["agent:alpha", "healthy"] == entries["agent:beta", "healthy"] == 1
    started = {
        (each.labels["part"], each.labels["cause"])
        for each in families["keyplane_occurrences"].samples
        if each.labels["act"] == "start" and each.name.endswith("_total")
    }
    assert started >= {("agent:alpha", "rollout"), ("agent:beta", "rollout")}
    up = {each.labels["child"]: each.value for each in families["keyplane_part_up"].samples}
    assert up == {"agent alpha": 1, "agent beta": 1, "bus": 1, "controller": 1}
    alone = fleet.run("metrics", "agent:beta").out
    assert "part=" not in alone
    assert (
        "agent:alpha, agent:beta, controller, supervisor"
        in fleet.run("metrics", "nobody", exit_status=2).err
    )


def test_metrics_are_given_to_prometheus_at_an_address(fleet: Fleet) -> None:
    for wrong in ("127.0.0.1:65536", "127.0.0.1:²", "here", "256.0.0.1:1"):
        assert wrong in fleet.run("metrics", "--listen", wrong, exit_status=2).err
    with fleet.start("metrics", "--listen", "127.0.0.1:0") as child:
        assert child.stderr is not None
        url = child.stderr.readline().split()[-1]
        assert "keyplane_rollouts_total" in fleet.get(url)
        child.terminate()


def test_apply_streams_an_object_a_line_from_the_diff_to_the_end(fleet: Fleet) -> None:
    """In that order, with the fields that are documented; a dry run is the first line alone."""
    fleet.edit("modules/source/module.toml", 'value = "hello"', 'value = "good day"')
    dry = fleet.run("apply", "--dry-run", "--json").json
    assert (dry["event"], dry["fleet"]) == ("diff", "looked")
    lines = [json.loads(line) for line in fleet.run("apply", "--yes", "--json").out.splitlines()]
    assert [each["event"] for each in lines[:2]] == ["diff", "begun"]
    assert lines[-1]["event"] == "end"
    assert {each["event"] for each in lines[2:-1]} <= {"entry", "step"}
    assert lines[0] == dry
    assert "reader:main@beta" in lines[0]["diff"]["activate"]
    moved = [(each["entry"], each["state"]) for each in lines if each["event"] == "entry"]
    assert moved[-1] == ("reader:main@beta", "healthy")
    assert lines[-1]["outcome"] == "done"
    assert lines[1]["entries"] == len(lines[0]["diff"]["activate"])
    documented = (ROOT / "docs" / "reference" / "apply-json.md").read_text()
    for line in lines:
        row = next(row for row in documented.splitlines() if f"| `{line['event']}` |" in row)
        assert {name for name in line if f"`{name}`" not in row} == {"event"}


def test_apply_streams_rows_where_the_documents_have_errors(fleet: Fleet) -> None:
    fleet.edit("fleet.toml", 'fleet = "looked"', 'fleet = "looked"\ntypo = 1')
    try:
        (line,) = fleet.run("apply", "--yes", "--json", exit_status=3).out.splitlines()
    finally:
        fleet.edit("fleet.toml", "\ntypo = 1", "")
    rows = json.loads(line)["diagnostics"]
    assert any(row["code"] == "unknown-field" and row["severity"] == "error" for row in rows)
