"""A frozen fleet: nothing is sent from before the first apply on, and no agent reacts."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fleet import Fleet, running, wait_for
from tests.e2e.test_dynamic import GAME, SOURCE, Dynamic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dynamic]:
    """A control plane with agents, to which nothing was applied."""
    with running(SOURCE, tmp_path_factory.mktemp("freeze") / "fleet", up=False) as fleet:
        fleet.run("up", ".", "--no-apply")
        yield Dynamic(fleet)


def is_paused(fleet: Fleet) -> bool:
    ran = fleet.run("rollout", "show", "--json", exit_status=None)
    return ran.exit == 0 and ran.json["rollout"]["state"] == "paused"


def test_the_first_apply_waits_for_the_thaw(dynamic: Dynamic) -> None:
    """It is recorded, `status` says who froze the fleet, and no machine is sent anything."""
    fleet = dynamic.fleet
    said = fleet.run("freeze", "--why", "a release", "--json").json
    assert said["frozen"].endswith(": a release")
    assert "the fleet is frozen by" in fleet.run("status", exit_status=None).out
    applying = fleet.start("apply", "--yes", "--json")
    try:
        wait_for(lambda: is_paused(fleet), "the apply waits")
        assert "a release" in fleet.run("rollout", "show").out
        assert fleet.status()["entries"][0]["state"] == "unreported"
        assert fleet.run("thaw", "--json").json == {"frozen": "", "changed": True}
        folder = Path(dynamic.state) / "machines/alpha/root/var/lib"
        wait_for(lambda: (folder / "vpn-a").is_dir() and (folder / "vpn-b").is_dir(), "sent")
        dynamic.say("vpn-a", "10.9.0.1")
        dynamic.say("vpn-b", "10.9.1.1")
        out, err = applying.communicate(timeout=300)
    finally:
        applying.kill()
    assert applying.returncode == 0, out + err
    assert "frozen" not in fleet.run("status").out


def test_no_unit_reacts_until_the_thaw(dynamic: Dynamic) -> None:
    """It is `running-stale` meanwhile, and takes up the newest value by one restart then."""
    before = dynamic.settle("10.9.0.1", "10.9.1.1")
    pid = dynamic.unit()["pid"]
    fleet = dynamic.fleet
    fleet.run("freeze")
    wait_for(lambda: all(m["accepted"] == m["offered"] for m in fleet.status()["machines"]), "told")
    dynamic.say("vpn-a", "10.9.0.4")
    dynamic.until(lambda: dynamic.entry()["state"] == "running-stale")
    assert dynamic.unit()["stale_since"].keys() == {"ONE"}
    # A window is a second; that it does not close is seen by another one that would have.
    dynamic.say("vpn-b", "10.9.1.9")
    dynamic.until(lambda: "TWO" in dynamic.unit()["stale_since"])
    assert dynamic.unit()["pid"] == pid
    assert len(dynamic.said()) == before
    shown = fleet.run("status", exit_status=None).out
    assert GAME in shown
    assert "no unit reacts to a value" in shown
    fleet.run("thaw")
    dynamic.until(lambda: dynamic.said()[-1] == "10.9.0.4 10.9.1.9")
    dynamic.until(lambda: dynamic.entry()["state"] == "healthy")
    assert len(dynamic.said()) == before + 1


def test_a_controller_that_is_killed_leaves_it_as_frozen(dynamic: Dynamic) -> None:
    """The word is in the inventory; so is that it was ended."""
    fleet = dynamic.fleet
    fleet.run("freeze")
    fleet.run("thaw")
    fleet.run("freeze", "--why", "again")
    before = fleet.parts()["controller"]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: fleet.parts().get("controller") not in (None, before), "another is there")
    assert ": again" in fleet.run("status", exit_status=None).out
    fleet.run("thaw")
    assert "frozen" not in fleet.run("status", exit_status=None).out
