"""People stop and start entries, with the control plane and without it, and look back on it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import hands_fleet
from tests.e2e.fleet import Fleet, Network, Ran, standing, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WEB, OTHER = "web:main@alpha", "other:main@beta"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("hands") / "fleet"
    hands_fleet.write(directory)
    with standing(Fleet(directory, Network())) as fleet:
        yield fleet


def entry(fleet: Fleet, name: str = WEB) -> dict[str, Any]:
    return next(each for each in fleet.status()["entries"] if each["entry"] == name)


def on_machine(fleet: Fleet, *words: str, exit_status: int | None = 0) -> Ran:
    state = str(fleet.directory / ".keyplane" / "machines" / "alpha")
    return fleet.run_agent(*words, "--state", state, exit_status=exit_status)


def happened(fleet: Fleet, name: str = WEB) -> list[tuple[str, str]]:
    """(what, cause) of the units of an entry."""
    found = fleet.run("events", name, "--json").json["occurrences"]
    return [(each["act"], each["cause"]) for each in found if each["unit"]]


def kill_agent(fleet: Fleet) -> None:
    pid = fleet.parts()["agent alpha"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: fleet.parts().get("agent alpha", pid) != pid, "the agent is back")


def test_a_stop_holds_through_an_apply_and_a_life_of_the_agent(fleet: Fleet) -> None:
    """The rollout neither waits for it nor starts it; who stopped it is told."""
    assert fleet.run("stop", WEB, "--json").json["done"]
    fleet.edit("fleet.toml", 'greeting = "hello"', 'greeting = "good day"')
    assert fleet.apply()["outcome"] == "done"
    kill_agent(fleet)
    wait_for(lambda: entry(fleet)["state"] == "stopped", "it is stopped")
    assert entry(fleet)["stopped"]["who"]
    assert not entry(fleet)["units"]["server"]["pid"]
    assert fleet.run("status", exit_status=1).out.count("stopped by a person") == 1
    assert fleet.run("start", WEB, "--json").json["state"] == "healthy"
    assert fleet.get(f"http://127.78.0.1:{fleet.listen(WEB, 'http')}") == "good day"
    by_hand = [("stop", "person"), ("start", "person")]
    wait_for(lambda: happened(fleet)[-2:] == by_hand, "that is told")


def test_a_mistyped_entry_names_the_nearest(fleet: Fleet) -> None:
    for words in (("stop", "web:main@alphb"), ("events", "web:main@alphb")):
        assert f"did you mean {WEB}" in fleet.run(*words, exit_status=2).err
    for word in ("stop", "events", "logs"):
        ran = on_machine(fleet, word, "web:mai@alpha", exit_status=2)
        assert f"did you mean {WEB}" in ran.err, word


def test_what_is_said_on_the_machine_and_to_the_controller_is_one_thing(fleet: Fleet) -> None:
    """The last word that comes to the machine holds."""
    on_machine(fleet, "stop", WEB)
    wait_for(lambda: entry(fleet)["state"] == "stopped", "it is stopped")
    fleet.run("start", WEB)
    fleet.run("stop", WEB)
    on_machine(fleet, "start", WEB)
    wait_for(lambda: entry(fleet)["state"] == "healthy", "it runs")
    kill_agent(fleet)
    wait_for(lambda: entry(fleet)["state"] == "healthy", "it runs still")
    wait_for(lambda: on_machine(fleet, "status", exit_status=None).exit == 0, "its agent says so")
    assert on_machine(fleet, "status", "--json").json["agent"]


def test_a_machine_without_an_agent_is_looked_at_and_obeys(fleet: Fleet) -> None:
    pid = entry(fleet)["units"]["server"]["pid"]
    fleet.run("down")
    found = on_machine(fleet, "status", "--json", exit_status=1).json
    assert (found["agent"], found["report"]["entries"][WEB]["units"]["server"]["pid"]) == (
        False,
        pid,
    )
    on_machine(fleet, "stop", WEB)
    assert not Path(f"/proc/{pid}").exists()
    assert "no agent runs" in on_machine(fleet, "status", exit_status=1).out
    assert f"life {pid}" in on_machine(fleet, "logs", WEB).out
    events = [json.loads(line) for line in on_machine(fleet, "events", "--json").out.splitlines()]
    assert (events[-1]["act"], events[-1]["cause"]) == ("stop", "person")
    fleet.run("up", ".", "--yes")
    wait_for(lambda: entry(fleet)["state"] == "stopped", "its agent reports what a person said")
    on_machine(fleet, "start", WEB)
    wait_for(lambda: entry(fleet)["state"] == "healthy", "it runs")
    wait_for(lambda: happened(fleet)[-1] == ("start", "person"), "that is told")


def test_a_crash_counts_as_a_restart_and_what_people_do_does_not(fleet: Fleet) -> None:
    before = entry(fleet)["units"]["server"]
    assert before["restarts"] == 0
    os.kill(before["pid"], signal.SIGSEGV)

    def restarted() -> bool:
        unit = entry(fleet)["units"]["server"]
        return unit["restarts"] == 1 and unit["state"] == "healthy"

    wait_for(restarted, "it runs again")
    crashed = [("end", "crash"), ("restart", "crash")]
    wait_for(lambda: happened(fleet)[-2:] == crashed, "that is told")
    fleet.run("down", "--units")
    fleet.run("up", ".", "--yes")
    wait_for(restarted, "it runs again, and no restart more")
    by_hand = [("stop", "person"), ("start", "person")]
    wait_for(lambda: happened(fleet)[-2:] == by_hand, "that is told")


def test_a_unit_that_ignores_its_stop_is_killed_and_that_is_told(fleet: Fleet) -> None:
    fleet.edit("fleet.toml", 'greeting = "good day"', 'greeting = "stubborn"')
    assert fleet.apply()["outcome"] == "done"
    fleet.run("stop", WEB)

    def told() -> bool:
        found = fleet.run("events", WEB, "--json").json["occurrences"]
        return "was killed" in found[-1]["detail"]

    wait_for(told, "that it was killed")
    fleet.run("start", WEB)


def test_events_of_a_machine_begin_where_one_says(fleet: Fleet) -> None:
    found = fleet.run("events", "--machine", "beta", "--json", "--since", "1h").json["occurrences"]
    assert {each["entry"] for each in found} == {OTHER}
    assert fleet.run("events", "--machine", "beta", "--since", "2040-01-01").out.startswith(
        "nothing"
    )
    assert fleet.run("events", exit_status=2).err


def test_a_port_that_somebody_else_took_is_named_and_waited_for(fleet: Fleet) -> None:
    """The holder answers the health check, and the unit is not healthy by it."""
    fleet.run("stop", WEB)
    port = fleet.listen(WEB, "http")
    program = (
        f"import socket, time; s = socket.create_server(('127.78.0.1', {port}));"
        "print('held', flush=True); time.sleep(600)"
    )
    words = ["nsenter", f"--net={fleet.network.path}", sys.executable, "-c", program]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        found = fleet.run("start", WEB, "--json", "--wait", "60", exit_status=1).json
        assert f"port {port} is held by pid {holder.pid} (" in found["cause"]
        assert entry(fleet)["state"] == "failed"
    finally:
        holder.kill()
        holder.communicate()
    wait_for(lambda: entry(fleet)["state"] == "healthy", "it runs", 90)


def test_a_file_that_somebody_changed_is_put_right_and_told(fleet: Fleet) -> None:
    path = fleet.directory / ".keyplane" / "machines" / "alpha" / "root" / "etc" / "web" / "motd"
    text = path.read_text()
    draft = path.with_name("draft")
    draft.symlink_to("/etc/hostname")
    draft.replace(path)  # at one blow: that it is gone would be put right too
    wait_for(lambda: not path.is_symlink() and path.read_text() == text, "it is put right", 90)
    wait_for(lambda: any(each["repaired"] for each in entry(fleet)["drift"]), "it is told")
    (told,) = entry(fleet)["drift"]
    assert (told["path"], told["what"], told["repaired"]) == ("/etc/web/motd", "was a link", True)
    found = fleet.run("events", WEB, "--json").json["occurrences"]
    assert (found[-1]["act"], found[-1]["cause"]) == ("repair", "drift")
    assert "and was put right" in fleet.run("status", exit_status=None).out


def test_a_machine_that_left_keeps_nothing_and_its_agent_goes(fleet: Fleet) -> None:
    """Also where the inventory was lost, and so does not know that it ever had something."""
    pid = entry(fleet, OTHER)["units"]["server"]["pid"]
    text = (fleet.directory / "fleet.toml").read_text()
    begin = text.index("[instances.other]")
    left = text[:begin].replace('[machines.beta]\naddress = "127.78.0.2"\nlocal = true\n', "")
    fleet.run("down")
    for file in (fleet.directory / ".keyplane" / "controller").glob("inventory*"):
        file.unlink()
    (fleet.directory / "fleet.toml").write_text(left)
    fleet.run("up", ".", "--yes")
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "what it had is gone")
    wait_for(lambda: "agent beta" not in fleet.parts(), "its agent is gone")
    wait_for(lambda: entry(fleet)["state"] == "healthy", "the other one runs")
    (fleet.directory / "fleet.toml").write_text(text)
    assert fleet.apply()["outcome"] == "done"
    pid = entry(fleet, OTHER)["units"]["server"]["pid"]
    (fleet.directory / "fleet.toml").write_text(left)
    assert fleet.apply()["outcome"] == "done"
    wait_for(lambda: "agent beta" not in fleet.parts(), "its agent is gone with the apply")
    assert not Path(f"/proc/{pid}").exists()
