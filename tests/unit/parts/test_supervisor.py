"""Parts are started again, ended together, and leave nothing behind."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keyplane.model.declaration import OfferNumber, Report
from keyplane.model.names import EntryId, MachineName
from keyplane.parts import agent_socket, supervisor, supervisor_client, unix_socket
from keyplane.parts.supervisor import Part, Supervisor, dying_with
from keyplane.ports.bus import BusServerError
from keyplane.ports.control import ControlRefusedError
from keyplane.rollout.declaring_values import Rights

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


async def until(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(60):
        while not (value := found()):
            await asyncio.sleep(0.01)
        return value


def part(name: str, folder: Path, command: list[str] = SLEEPER) -> Part:
    return Part(name=name, command=lambda: command, log_file=folder / f"{name}.log")


async def test_a_part_that_was_killed_is_started_again(tmp_path: Path) -> None:
    """Under another pid, and ended with its task."""
    one = part("one", tmp_path)
    task = asyncio.create_task(one.run())
    first = await until(lambda: one.pid)
    os.kill(first, signal.SIGKILL)
    second = await until(lambda: one.pid if one.pid not in (None, first) else None)
    assert one.starts == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not Path(f"/proc/{second}").exists()


@pytest.mark.parametrize(("is_there", "printed"), [(True, b"runs\n"), (False, b"")])
def test_nothing_is_begun_for_a_parent_that_ended(is_there: bool, printed: bytes) -> None:
    parent = os.getpid() if is_there else -1
    begun = subprocess.run(
        ["echo", "runs"], stdout=subprocess.PIPE, preexec_fn=dying_with(parent), check=False
    )
    assert (begun.stdout, begun.returncode) == (printed, not is_there)


async def test_a_part_that_cannot_start_says_why_and_is_tried_again(tmp_path: Path) -> None:
    """The command is asked again before each try."""
    commands: list[list[str] | BusServerError] = [
        BusServerError("another process runs the bus"),
        ["/nowhere/to/be/found"],
        SLEEPER,
    ]

    def command() -> list[str]:
        match commands[0]:
            case BusServerError() as error:
                raise error
            case words:
                return words

    one = Part(name="one", command=command, log_file=tmp_path / "one.log")
    task = asyncio.create_task(one.run())
    for said in ("another process runs the bus", "/nowhere/to/be/found"):
        await until(lambda said=said: said in str(one.problem))
        del commands[0]
    await until(lambda: one.pid)
    assert one.starts == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Running:
    """A supervisor of sleepers, and questions to it."""

    def __init__(
        self, folder: Path, controller: list[str] = SLEEPER, agent: list[str] = SLEEPER
    ) -> None:
        self.path = folder / "run" / "s"
        self.admitted: list[tuple[str, ...]] = []
        self.permitted: list[Mapping[str, Rights]] = []
        self.supervisor = Supervisor(
            bus=part("bus", folder),
            controller=part("controller", folder, controller),
            agent=lambda machine: part(f"agent {machine}", folder, agent),
            admit=lambda machines: self.admitted.append(tuple(machines)),
            permit=self.permitted.append,
        )
        self.lock = folder / "lock"
        self.lock.touch()
        self.task = asyncio.create_task(self.supervisor.run(self.path, ["alpha"], self.lock))

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        await until(self.path.exists)
        return await asyncio.to_thread(_ask, self.path, request)

    async def pids(self) -> dict[str, int]:
        """Once all parts run."""
        async with asyncio.timeout(60):
            while True:
                parts = await self.ask({"do": "parts"})
                if all(each["pid"] is not None for each in parts.values()):
                    return {name: each["pid"] for name, each in parts.items()}
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        await self.ask({"do": "stop"})
        await asyncio.wait_for(self.task, 60)


async def test_the_controller_says_which_agents_run(tmp_path: Path) -> None:
    """Agents come and go by the list; users are admitted first; `stop` ends all of them."""
    running = Running(tmp_path)
    before = await running.pids()
    assert set(before) == {"bus", "controller", "agent alpha"}
    await running.ask({"do": "agents", "machines": ["beta"]})
    after = await running.pids()
    assert set(after) == {"bus", "controller", "agent beta"}
    assert (after["bus"], after["controller"]) == (before["bus"], before["controller"])
    assert running.admitted == [("alpha",), ("beta",)]
    assert "unknown" in (await running.ask({"do": "nonsense"}))["error"]
    await running.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in {*before.values(), *after.values()})


async def test_an_agent_that_is_not_wanted_any_more_has_ended_once_all_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes: what its supervisor leaves behind nobody looks after."""
    monkeypatch.setattr(supervisor, "STOP_S", 2.0)
    stays = ["sh", "-c", f"trap '' TERM; >{tmp_path}/stays; while :; do sleep 0.05; done"]
    running = Running(tmp_path, agent=stays)
    before = await running.pids()
    await until((tmp_path / "stays").exists)
    await running.ask({"do": "agents", "machines": []})
    await running.stop()
    assert not Path(f"/proc/{before['agent alpha']}").exists()


async def test_what_is_no_request_ends_its_connection_alone(tmp_path: Path) -> None:
    """Whatever bytes come: the next request is answered, and no bug is told."""
    bugs: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, bug: bugs.append(bug))
    running = Running(tmp_path)
    await running.pids()
    agent = tmp_path / "agent.sock"
    none = OfferNumber(0, 0)
    report = Report(
        machine=MachineName("alpha"), offer=none, settled=none, sequence=1, boot="", entries={}
    )
    serving = asyncio.create_task(agent_socket.serve(_Reports(report), agent))
    await until(agent.exists)
    for path in (running.path, agent):
        for line in (b"[" * 60_000, b"[]", b"7", b"\xff", b"", b'{"do": "agents"}'):
            assert await asyncio.to_thread(_say, path, line) == b"", (path, line[:20])
    said = await asyncio.to_thread(agent_socket.ask, agent, {"do": "status"})
    assert said == msgspec.json.encode(report) + b"\n"
    await running.stop()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert bugs == []


class _Reports:
    """An agent of which nothing is asked but its report."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def report(self) -> Report:
        return self._report

    def stop_entry(self, entry: EntryId, who: str) -> bool:
        raise AssertionError(entry, who)

    def start_entry(self, entry: EntryId, who: str) -> bool:
        raise AssertionError(entry, who)


def _say(path: Path, line: bytes) -> bytes:
    with unix_socket.connect(path) as client, client.makefile("rwb") as stream:
        stream.write(line + b"\n")
        stream.flush()
        return stream.readline()


async def test_a_part_that_ends_again_and_again_is_told_while_it_runs(tmp_path: Path) -> None:
    """Whoever asks between two ends hears of the last one."""
    running = Running(
        tmp_path, ["sh", "-c", f"test -e {tmp_path}/x && sleep 60; >{tmp_path}/x; exit 7"]
    )
    async with asyncio.timeout(60):
        told = {"pid": None, "problem": None}
        while told["pid"] is None or told["problem"] is None:
            told = (await running.ask({"do": "parts"}))["controller"]
    assert told["problem"] == "ended with status 7"
    await running.stop()


async def test_a_socket_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    """With its folder, and no part is started again for it."""
    running = Running(tmp_path)
    before = await running.pids()
    running.path.unlink()
    running.path.parent.rmdir()
    assert await running.pids() == before
    await running.stop()


async def test_who_asks_while_a_socket_is_made_anew_waits_for_it(tmp_path: Path) -> None:
    """As a controller does, whose own socket was removed with it, in the midst of an apply."""
    running = Running(tmp_path)
    await running.pids()
    running.path.unlink()
    await supervisor_client.ask(running.path, {"do": "permit", "rights": {}})
    assert running.permitted == [{}]
    with pytest.raises(ControlRefusedError, match="unknown request"):
        await supervisor_client.ask(running.path, {"do": "nonsense"})
    await running.stop()


async def test_a_supervisor_whose_state_was_removed_ends(tmp_path: Path) -> None:
    """Nobody could ever reach it again, and its parts would write into nothing."""
    folder = tmp_path / "state"
    folder.mkdir()
    running = Running(folder)
    pids = await running.pids()
    shutil.rmtree(folder)
    await asyncio.wait_for(running.task, 60)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


async def test_a_supervisor_whose_lock_was_removed_ends_although_it_is_reached(
    tmp_path: Path,
) -> None:
    """Its parts put back of the state what they write into; what is gone they never find out."""
    running = Running(tmp_path)
    pids = await running.pids()
    with running.lock.open():  # as who holds it has it
        running.lock.unlink()
        running.lock.touch()
        await asyncio.wait_for(running.task, 60)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


async def test_one_that_ends_takes_no_more_agents(tmp_path: Path) -> None:
    """Who asks for agents then starts another supervisor."""
    running = Running(tmp_path)
    await running.pids()
    with unix_socket.connect(running.path) as client, client.makefile("rwb") as stream:

        def both() -> list[Any]:
            for request in ({"do": "stop"}, {"do": "agents", "machines": ["alpha"]}):
                stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            return [json.loads(stream.readline()) for _ in range(2)]

        answers = await asyncio.to_thread(both)
    assert answers == [{"ok": True}, {"error": "it is ending"}]
    await asyncio.wait_for(running.task, 60)


def _ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    with unix_socket.connect(path) as client, client.makefile("rwb") as stream:
        stream.write(json.dumps(request).encode() + b"\n")
        stream.flush()
        return json.loads(stream.readline())


def test_a_socket_may_lie_deeper_than_an_address_holds(tmp_path: Path) -> None:
    """Both ends go through the directory, and the old socket is replaced."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    for _ in range(2):
        with unix_socket.listen(deep / "s"), unix_socket.connect(deep / "s"):
            pass


async def test_what_each_machine_may_say_and_read_is_passed_on(tmp_path: Path) -> None:
    running = Running(tmp_path)
    rights = {"alpha": {"says": ["a/provides/p/x"], "reads": []}}
    assert await running.ask({"do": "permit", "rights": rights}) == {"ok": True}
    assert running.permitted == [{"alpha": Rights(says=("a/provides/p/x",))}]
    await running.stop()
