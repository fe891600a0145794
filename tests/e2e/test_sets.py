"""Members of a set that have to stay up, and machines that are drained and removed."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, Network, standing, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MACHINES = ("a", "b", "c", "d", "e", "f")

MODULE = """
module = "web"
version = "1"
[roles.main.uses.peer]
interface = "peer"
[roles.main.reactions."peer.address"]
reaction = "restart"
[roles.main.units.server]
kind = "process"
command = ["python3", "-u", "-c", "import time; time.sleep(1000000)"]
stopTimeout = "2s"
env = { PEER = "${results.peer.address}" }
"""
VPN = """
module = "vpn"
version = "1"
[roles.node.provides.peer]
interface = "peer"
scope = "mesh"
exports.address = { lifecycle = "dynamic", source = { file = "/var/lib/vpn/address" } }
[roles.node.resources.state]
type = "directory"
path = "/var/lib/vpn"
[roles.node.units.node]
kind = "process"
command = ["sh", "-c", '''
cd /var/lib/vpn && printf 10.0.0.1 > draft && mv draft address  # never half
exec sleep 1000000
''']
"""
COUNTED = """
module = "spare"
version = "1"
[roles.main.units.server]
kind = "process"
command = ["python3", "-u", "-c", "import time; time.sleep(1000000)"]
stopTimeout = "2s"
"""


def write(directory: Path) -> None:
    for name, text in (("web", MODULE), ("vpn", VPN), ("spare", COUNTED)):
        folder = directory / "modules" / name
        folder.mkdir(parents=True)
        (folder / "module.toml").write_text(text)
    (directory / "interfaces.toml").write_text('[peer.exports]\naddress = "string"\n')
    lines = ['fleet = "sets"']
    for number, name in enumerate(MACHINES, start=1):
        lines += [f"[machines.{name}]", f'address = "127.78.0.{number}"', "local = true"]
        lines += [f"[machines.{name}.reactions]", 'debounce = { window = "500ms", burst = 3 }']
    lines += ["[instances.web]", 'module = "web"', "placement.every.main = {}"]
    lines += ["policy.maxUnavailable = 1", 'policy.settle = "500ms"']
    lines += ["[instances.vpn]", 'module = "vpn"']
    lines += ['placement.every.node = { machines = ["a"] }']
    lines += ["[instances.spare]", 'module = "spare"']
    lines += ["placement.count.main = { count = 2 }", "floor.main = 1"]
    (directory / "fleet.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("sets") / "sets"
    directory.mkdir()
    write(directory)
    with standing(Fleet(directory, Network())) as fleet:
        yield fleet


def entries(fleet: Fleet, instance: str) -> dict[str, dict[str, Any]]:
    return {
        each["machine"]: each
        for each in fleet.status()["entries"]
        if each["entry"].startswith(f"{instance}:")
    }


def peer_of(entry: dict[str, Any]) -> str | None:
    """With which value its process was started; None while none runs."""
    pid = entry["units"]["server"]["pid"]
    try:
        env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    found = [each for each in env if each.startswith(b"PEER=")]
    return found[0].decode().removeprefix("PEER=") if found else None


def test_a_value_that_reaches_six_replicas_restarts_one_at_a_time(fleet: Fleet) -> None:
    """Six restarts in all; never is a second one stopped before the first is up again."""

    def all_well() -> dict[str, dict[str, Any]] | None:
        found = entries(fleet, "web")
        return found if {each["state"] for each in found.values()} == {"healthy"} else None

    before = wait_for(all_well, "all replicas to be healthy")
    said = fleet.directory / ".keyplane/machines/a/root/var/lib/vpn/address"
    draft = said.with_name("draft")
    draft.write_text("10.0.0.2")
    draft.replace(said)
    away: list[list[str]] = []

    def all_have_it() -> bool:
        found = entries(fleet, "web")
        up = ("healthy", "running-stale")
        away.append([name for name, each in found.items() if each["state"] not in up])
        return all(
            each["state"] == "healthy" and peer_of(each) == "10.0.0.2" for each in found.values()
        )

    wait_for(all_have_it, "all replicas to run with the new value", 120)
    after = entries(fleet, "web")
    assert all(len(each) <= 1 for each in away), away
    restarts = {
        name: after[name]["units"]["server"]["restarts"]
        - before[name]["units"]["server"]["restarts"]
        for name in MACHINES
    }
    assert restarts == dict.fromkeys(MACHINES, 1)


def test_a_persons_stop_waits_for_the_others(fleet: Fleet) -> None:
    """It says for whom it waits; once that one is started again, it is carried out."""
    fleet.run("stop", "web:main@b")
    assert "recorded" in fleet.run("stop", "web:main@c", "--wait", "0", exit_status=1).err
    told = "5 of the 6 members of web:main have to stay up: web:main@b"
    wait_for(lambda: told in (entries(fleet, "web")["c"]["cause"] or ""), "c to say why it waits")
    assert entries(fleet, "web")["c"]["units"]["server"]["state"] == "healthy"
    fleet.run("start", "web:main@b")
    wait_for(lambda: entries(fleet, "web")["c"]["state"] == "stopped", "c to be stopped", 120)
    fleet.run("start", "web:main@c")


def test_a_machine_is_drained_and_removed(fleet: Fleet) -> None:
    """What is placed by count moves; what is placed otherwise is named; then the machine goes."""
    first = max(entries(fleet, "spare"))
    refused = fleet.run("machine", "remove", first, "--yes", exit_status=1)
    assert f"`keyplane drain {first}` moves spare:main@{first} elsewhere" in refused.err
    assert f"`keyplane machine remove {first} --lost` if it" in refused.err
    ran = fleet.run("drain", first, "--dry-run")
    assert f"by count will go elsewhere: spare:main@{first}" in ran.out
    assert "goes elsewhere" not in ran.out
    ran = fleet.run("drain", first, "--yes")
    assert f"web:main@{first}" in ran.out
    assert f"\nwhat is placed on {first} by count goes elsewhere\n" in ran.out
    assert first not in entries(fleet, "spare")
    assert len(entries(fleet, "spare")) == 2
    shown = fleet.run("machine", "show", first).out
    assert f"drained: `keyplane uncordon {first}`" in shown
    fleet.run("machine", "remove", first, "--yes")
    assert first not in entries(fleet, "web")
    machines = json.loads(fleet.run("machine", "list", "--json").out)
    assert first not in [each["machine"] for each in machines]
    what = [row["what"] for row in json.loads(fleet.run("audit", "--json").out)]
    assert {"drain", "machine remove"} <= set(what)


def test_a_lost_machine_is_removed_as_it_is(fleet: Fleet) -> None:
    """Nobody waits for its agent, be it only just silent; and nothing of it is left open."""
    lost = max(entries(fleet, "web"))
    agent = fleet.parts()[f"agent {lost}"]
    os.kill(agent, signal.SIGSTOP)
    try:
        ran = fleet.run("machine", "remove", lost, "--lost", "--yes")
        assert "not heard" not in ran.out + ran.err
        assert lost not in entries(fleet, "web")
        assert [each["machine"] for each in fleet.status()["machines"] if each["silent"]] == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGCONT)


def test_a_lost_machine_holds_up_no_controller_that_was_just_started(fleet: Fleet) -> None:
    """That one has yet to find out who is silent, and waits for nobody's deadline."""
    lost = max(entries(fleet, "web"))
    agent = fleet.parts()[f"agent {lost}"]
    fleet.run("freeze")
    os.kill(agent, signal.SIGSTOP)
    removing = fleet.start("machine", "remove", lost, "--lost", "--yes")
    try:
        wait_for(lambda: shown(fleet)["state"] == "paused", "the removal waits for the thaw")
        os.kill(fleet.parts()["controller"], signal.SIGKILL)
        wait_for(lambda: fleet.run("thaw", exit_status=None).exit == 0, "the next one is there")
        wait_for(lambda: not shown(fleet)["open"], "its rollout to end", 300)
        assert shown(fleet)["state"] == "done"
        assert lost not in entries(fleet, "web")
        removing.communicate(timeout=300)
    finally:
        removing.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGCONT)


def shown(fleet: Fleet) -> dict[str, Any]:
    ran = fleet.run("rollout", "show", "--json", exit_status=None)
    return ran.json["rollout"] if ran.exit == 0 else {"state": "", "open": True}
