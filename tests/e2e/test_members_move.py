"""A set whose members have data: one of them goes elsewhere with its own, and the others stay.

Said and watched at a terminal.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, Network, standing, wait_for
from tests.e2e.terminal import ENTER, LEAVE, Terminal
from tests.e2e.test_volumes import MODULE, PROGRAM

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("volumes")]

ADDRESS = {name: f"127.77.0.{number}" for number, name in enumerate(("a", "b", "c"), start=1)}
FLEET = """
fleet = "tallies"
{machines}
[instances.tally]
module = "tally"
placement.every.main = {{ machines = {placed} }}
floor.main = 1
policy.maxUnavailable = 1
policy.settle = "500ms"
"""
QUESTION = "What is to become of the data of tally:main?"


class Tallies(Fleet):
    """Some machines, of which two have a tally."""

    def write(self, *placed: str) -> None:
        lines = [
            f'[machines.{name}]\naddress = "{address}"\nlocal = true'
            for name, address in ADDRESS.items()
        ]
        named = "[" + ", ".join(f'"{name}"' for name in placed) + "]"
        text = FLEET.format(machines="\n".join(lines), placed=named)
        (self.directory / "fleet.toml").write_text(text)

    def count(self, machine: str, *, add: int = 0) -> int:
        url = f"http://{ADDRESS[machine]}:20000/"
        for _ in range(add):
            self.get(url, b"")
        return int(self.get(url))

    def answers(self, machine: str) -> bool:
        return self.try_get(f"http://{ADDRESS[machine]}:20000/") is not None


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tallies]:
    directory = tmp_path_factory.mktemp("tallies") / "fleet"
    (directory / "modules/tally/src").mkdir(parents=True)
    (directory / "modules/tally/src/tally.py").write_text(PROGRAM)
    (directory / "modules/tally/module.toml").write_text(MODULE)
    fleet = Tallies(directory, Network())
    fleet.write("a", "b")
    with standing(fleet):
        yield fleet


def test_who_interrupts_the_question_on_data_has_nothing_applied(fleet: Tallies) -> None:
    before = fleet.start_ids()
    fleet.write("a", "c")
    with Terminal(fleet, "apply") as terminal:
        terminal.until(QUESTION)
        terminal.interrupt()
        assert terminal.end() == 130
        assert b"nothing was applied" in terminal.drawn
        assert b"Aborted" not in terminal.drawn
    assert fleet.start_ids() == before


def test_one_member_goes_elsewhere_with_its_data_while_the_other_serves(fleet: Tallies) -> None:
    """It is asked about at the terminal; what was typed wrong is asked again."""
    assert (fleet.count("a", add=1), fleet.count("b", add=2)) == (1, 2)
    before = fleet.start_ids()
    fleet.write("a", "c")
    is_over, away = threading.Event(), list[str]()

    def sample() -> None:
        while not is_over.wait(0.05):
            if not fleet.answers("a"):
                away.append("a")

    sampling = threading.Thread(target=sample)
    sampling.start()
    try:
        with Terminal(fleet, "apply") as terminal:
            terminal.until(QUESTION)
            terminal.type("somehow\n")
            terminal.until(" somehow is none of hand-over, start-empty")
            terminal.type("hand-over\n")
            terminal.until("Apply?")
            terminal.type("y\n")
            assert terminal.end(240) == 0, terminal.drawn.decode()
            assert b"tally:main@c" in terminal.drawn
    finally:
        is_over.set()
        sampling.join()
    assert not away, "the other one stays up"
    assert (fleet.count("a"), fleet.count("c")) == (1, 2)
    after = fleet.start_ids()
    assert after["tally:main@a/tally"] == before["tally:main@a/tally"]
    assert {unit.partition("/")[0] for unit in after} == {"tally:main@a", "tally:main@c"}


def test_a_rollout_is_followed_in_place_to_its_end(fleet: Tallies) -> None:
    """A line for each machine; the first screen is left as it was, with how it ended."""
    first, second = placed(fleet)
    fleet.write(first, second)  # whatever was asked for, and not applied
    fleet.edit("modules/tally/src/tally.py", "import http", "# another one\nimport http")
    fleet.run("freeze", "--why", "until it is watched")
    applying = fleet.start("apply", "--yes")
    try:
        wait_for(lambda: shown(fleet)["state"] == "paused", "it waits for the thaw")
        with Terminal(fleet, "rollout", "show", "--follow") as left:
            left.until("paused before step 1")
            left.interrupt()
            assert left.end() == 130
            assert left.said.startswith(ENTER)
            told = left.said.rpartition(LEAVE)[2]
            assert "no longer watched; what was begun goes on" in told
        with Terminal(fleet, "rollout", "show", "--follow") as terminal:
            terminal.until("paused before step 1")
            fleet.run("thaw")
            assert terminal.end(240) == 0, terminal.drawn.decode()
        end = terminal.said.rpartition(LEAVE)[2]
        lines = [line.rstrip() for line in end.splitlines()]
        assert all(len(line) <= 80 for line in lines if "\x1b" not in line), end
        assert "\x1b[H" not in end, "drawn once"
        states = [line.split()[1:3] for line in lines if "tally:main@" in line]
        assert states == [[first, "done"], [second, "done"]]
        assert "2 restarted" in lines[-1]
    finally:
        out, err = applying.communicate(timeout=240)
    assert applying.returncode == 0, out + err


def placed(fleet: Tallies) -> list[str]:
    """The two machines that have a tally."""
    return sorted(unit.partition("@")[2].partition("/")[0] for unit in fleet.start_ids())


def shown(fleet: Tallies) -> dict[str, Any]:
    return fleet.run("rollout", "show", "--json").json["rollout"]
