"""A rollout that failed: tried once more, or put away."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, Network, standing, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODULE = """
module = "web"
version = "1"
[policy]
settle = "100ms"
[roles.main.units.server]
kind = "process"
restart = "no"
command = ["sh", "-c", "test -e GATE || exit 3; while :; do sleep 1; done", "one"]
health = { command = ["test", "-e", "GATE"], interval = "200ms", startPeriod = "60s" }
"""
"""Its check is that of the gate, too: what has yet to find it shut is not healthy meanwhile."""
FLEET = """
fleet = "retries"
[machines.a]
address = "127.77.0.1"
local = true
[machines.b]
address = "127.77.0.2"
local = true
[instances.web]
module = "web"
placement.every.main = {}
"""


class Retries:
    def __init__(self, fleet: Fleet, gate: Path) -> None:
        self.fleet = fleet
        self.gate = gate
        self.word = "one"

    def edit(self, word: str) -> None:
        self.fleet.edit("modules/web/module.toml", f'done", "{self.word}"', f'done", "{word}"')
        self.word = word

    def fail(self, word: str) -> str:
        """Apply what does not start; the number of the rollout."""
        self.gate.unlink(missing_ok=True)
        self.edit(word)
        end = self.fleet.apply(exit_status=1)
        assert "exit 3" in str(end["failures"])
        assert end["unsent"] == ["web:main@b"]
        return str(self.latest["number"])

    @property
    def latest(self) -> dict[str, Any]:
        return self.fleet.run("rollout", "show", "--json").json["rollout"]

    def runs(self) -> list[str]:
        found: list[str] = []
        for pid, _ in self.fleet.start_ids().values():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            found.append(words[-1].decode())
        return found


@pytest.fixture(scope="module")
def retries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retries]:
    directory = tmp_path_factory.mktemp("retries") / "retries"
    gate = directory.parent / "gate"
    gate.touch()
    (directory / "modules" / "web").mkdir(parents=True)
    (directory / "modules" / "web" / "module.toml").write_text(MODULE.replace("GATE", str(gate)))
    (directory / "interfaces.toml").write_text("")
    (directory / "fleet.toml").write_text(FLEET)
    with standing(Fleet(directory, Network())) as fleet:
        yield Retries(fleet, gate)


def test_a_retry_sends_what_failed_once_more_and_then_the_rest(retries: Retries) -> None:
    """The first machine is tried again though its unit says that it is not; then the others."""
    fleet = retries.fleet
    first = retries.fail("two")
    assert f"`keyplane rollout retry {first}`" in fleet.run("status", exit_status=1).out
    again = fleet.run("rollout", "retry", first, exit_status=1)
    assert "exit 3" in again.out + again.err
    second = str(retries.latest["number"])
    assert second != first
    refused = fleet.run("rollout", "retry", first, exit_status=1).err
    assert f"rollout {second} came after {first}" in refused
    retries.gate.touch()
    fleet.run("rollout", "retry", second)
    assert retries.runs() == ["two", "two"]
    fleet.run("status")
    assert [row["what"] for row in audited(fleet)].count("rollout retry") == 2


def test_one_that_is_closed_is_no_trouble_and_is_not_tried_again(retries: Retries) -> None:
    """`status` speaks of it no more; what it had sent stays, until the next apply."""
    fleet = retries.fleet
    number = retries.fail("three")
    fleet.run("rollout", "close", number, "--why", "known")
    shown = fleet.run("status", exit_status=1).out
    assert "retry" not in shown
    assert f"rollout {number}" not in shown
    assert "was closed" in fleet.run("rollout", "retry", number, exit_status=1).err
    fleet.run("rollout", "close", "99", exit_status=2)
    retries.gate.touch()
    retries.edit("four")
    assert fleet.apply()["outcome"] == "done"
    assert retries.runs() == ["four", "four"]
    closed = next(row for row in audited(fleet) if row["what"] == "rollout close")
    assert closed["detail"] == {"rollout": int(number), "why": "known"}


def test_one_that_is_open_is_stopped_before_it_is_closed(retries: Retries) -> None:
    """And then nothing of it is sent."""
    fleet = retries.fleet
    fleet.run("freeze")
    retries.edit("five")
    applying = fleet.start("apply", "--yes", "--json")
    try:
        wait_for(lambda: retries.latest["state"] == "paused", "the apply waits")
        number = str(retries.latest["number"])
        assert "is open" in fleet.run("rollout", "retry", number, exit_status=1).err
        assert f"stop {number}" in fleet.run("rollout", "close", number, exit_status=1).err
        fleet.run("rollout", "stop", number)
        out, err = applying.communicate(timeout=300)
    finally:
        applying.kill()
    assert applying.returncode == 1, out + err
    fleet.run("rollout", "close", number)
    fleet.run("thaw")
    assert retries.runs() == ["four", "four"]
    assert f"rollout {number}" not in fleet.run("status", exit_status=1).out


def test_a_path_that_cannot_be_had_fails_again_with_its_next_try(retries: Retries) -> None:
    """Applied once more with nothing mended, and not at the deadline; mended, it is done."""
    fleet = retries.fleet
    there = fleet.directory / ".keyplane" / "machines" / "a" / "root" / "etc" / "note"
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("theirs")
    wanted = '[roles.main.resources.note]\ntype = "file"\npath = "/etc/note"\ntext = "ours"\n'
    fleet.edit("modules/web/module.toml", "[roles.main.units", f"{wanted}[roles.main.units")
    fleet.edit("modules/web/module.toml", 'settle = "100ms"', 'settle = "100ms"\ndeadline = "1h"')
    for _ in range(2):
        end = fleet.apply(exit_status=1)
        assert "not ours" in str(end["failures"])
        assert there.read_text() == "theirs"
    there.unlink()
    retries.edit("six")  # it is tried at once
    assert fleet.apply()["outcome"] == "done"
    assert there.read_text() == "ours"


def audited(fleet: Fleet) -> list[dict[str, Any]]:
    return fleet.run("audit", "--json").json
