"""An apply that changes nothing, of 40 machines with 25 files each, and of 500 machines.

The 40 are local machines with their agents. `keyplane apply` finds no difference, and asks no
agent: each looks at its files by itself, twice a minute. So a look at all 1,000 of them is
measured too, and counted. Beside it Salt finds the same 1,000 files as they should be: masterless,
in one process, with no machine to reach. It is installed from PyPI into `.tools`, once.

The 500 are simulated: a controller with SQLite plans, compares and begins, and machines are reports
that say that all is well. Goals (DESIGN §11): 0.5 times Salt, and one second.

    python -m benchmarks.unchanged [ROUNDS]
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nacl.signing

from benchmarks.beside import cores, peers
from keyplane import wire
from keyplane.adapters import clock, directory
from keyplane.adapters.linux.files import LinuxFiles
from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.model.declaration import Declaration, EntryReport, EntryState, Report
from keyplane.model.names import MachineName
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.controller import Controller
from keyplane.parts.main import heap, local
from keyplane.parts.offering import Offering
from keyplane.parts.planning import Planning
from keyplane.parts.state_dir import StateDir
from keyplane.ports import fact_order
from keyplane.ports.store import Pack
from keyplane.testing.bus import MemoryBus, MemoryControllerBus
from keyplane.testing.store import MemoryStore
from tests.e2e.fleet import running

MACHINES, FILES = 40, 25
SIMULATED = 500
SALT = "3007.16"


def write_fleet(folder: Path, machines: int) -> None:
    """One role on every machine, with files that tell where they stand."""
    module = folder / "modules" / "files"
    module.mkdir(parents=True)
    resources = "".join(
        f'[roles.main.resources.f{number}]\ntype = "file"\npath = "/etc/bench/f{number}"\n'
        f'text = "file {number}"\n'
        for number in range(FILES)
    )
    (module / "module.toml").write_text(f'module = "files"\nversion = "1"\n{resources}')
    each = "".join(
        f'[machines.m{number}]\nlocal = true\naddress = "127.{77 + number // 250}.0.'
        f'{number % 250 + 1}"\n'
        for number in range(machines)
    )
    (folder / "fleet.toml").write_text(
        f'fleet = "bench"\n{each}[instances.files]\nmodule = "files"\n'
        'placement.every.main = {}\npolicy.upgrade = "together"\n'
    )


def seconds(rounds: int, work: Callable[[], object]) -> float:
    """The median."""
    took: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


# 40 machines that run.


def ours(folder: Path, rounds: int) -> tuple[float, float]:
    """Of an apply, and of a look at every file."""
    write_fleet(folder / "source", MACHINES)
    with running(folder / "source", folder / "fleet") as fleet:
        state = StateDir(fleet.directory / ".keyplane")
        placements = [local.placement(state, f"m{number}").state for number in range(MACHINES)]

        def look() -> None:
            for each in placements:
                files = LinuxFiles(each, each.root)
                seen = [files.observe(f"/etc/bench/f{number}") for number in range(FILES)]
                assert all(one.digest for one in seen)

        def apply() -> None:
            assert f"{MACHINES} untouched" in fleet.run("apply", "--yes").out

        return seconds(rounds, apply), seconds(rounds, look)


def salt(folder: Path, rounds: int) -> float:
    python = peers.environment("salt", SALT) / "bin/python"
    (folder / "root").mkdir(parents=True)
    states = "".join(
        f"{folder}/m{machine}/f{number}:\n  file.managed:\n    - contents: file {number}\n"
        "    - makedirs: True\n    - mode: '0644'\n"
        for machine in range(MACHINES)
        for number in range(FILES)
    )
    (folder / "root" / "files.sls").write_text(states)
    (folder / "minion").write_text(
        f"root_dir: {folder}/run\nfile_client: local\nid: bench\n"
        f"file_roots:\n  base:\n    - {folder}/root\n"
    )
    program = "import salt.scripts; salt.scripts.salt_call()"
    words = ["--local", "-c", str(folder), "-l", "critical", "--out=json", "state.apply", "files"]

    def apply() -> int:
        ran = subprocess.run(
            [python, "-W", "ignore", "-c", program, *words],
            check=True,
            capture_output=True,
            text=True,
        )
        found = json.loads(ran.stdout)["local"].values()
        assert [each["result"] for each in found] == [True] * (MACHINES * FILES)
        return sum(bool(each["changes"]) for each in found)

    apply()
    assert apply() == 0
    return seconds(rounds, apply)


# 500 that are simulated.


async def simulated(folder: Path, rounds: int) -> float:
    write_fleet(folder / "source", SIMULATED)
    files = directory.read_revision(folder / "source")
    inventory = await SqlInventory.open(f"sqlite:///{folder}/inventory")
    system_clock, key = clock.SystemClock(), nacl.signing.SigningKey.generate()
    now = system_clock.now_ms()
    assert await inventory.take_lease("bench", now_ms=now, until_ms=now + 3_600_000)
    offering = Offering(
        inventory=inventory, bus=MemoryControllerBus(MemoryBus()), clock=system_clock, key=key
    )
    controller = controller_of(inventory, offering)
    await settle(controller, offering, await begin(controller, files))
    took: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        async for event in await begin(controller, files):
            if isinstance(event, messages.Ended):
                assert event.outcome == "done"
        took.append(time.perf_counter() - began)
    await inventory.close()
    return statistics.median(took)


def controller_of(inventory: SqlInventory, offering: Offering) -> Controller:
    """One that no agent of its own belongs to."""
    return Controller(
        inventory=inventory,
        planning=Planning(
            read=lambda text: directory.documents_of(text, _no_program), archive=_pack
        ),
        offering=offering,
        store=MemoryStore(),
        clock=clock.SystemClock(),
        agents=_nothing,
        permit=_nothing,
        hold_ms=fact_order.HOLD_MS,
    )


async def begin(controller: Controller, files: dict[str, bytes]) -> Any:
    """Propose the text, and apply it, as `keyplane apply --yes` does."""
    newest = (await controller.past.history(1)).revisions
    over = newest[0].revision if newest else None
    asked = changes.Directory(files=files, over=over)
    proposal = await controller.propose(messages.Propose(asked=asked))
    assert not [row for row in proposal.diagnostics if row.severity == "error"]
    request = messages.Apply(
        asked=asked,
        parent=proposal.parent,
        revision=proposal.revision,
        generation=proposal.generation,
    )
    return await controller.apply(request, who="bench")


async def settle(controller: Controller, offering: Offering, told: Any) -> None:
    """Every machine says that it is as it was offered."""
    for number in range(SIMULATED):
        machine = MachineName(f"m{number}")
        declaration = await offering.last(machine)
        assert declaration is not None
        report = wire.encode_report(well(machine, declaration))
        await controller.on_report(machine, report)
    async for event in told:
        if isinstance(event, messages.Ended):
            assert event.outcome == "done", event


def well(machine: MachineName, declaration: Declaration) -> Report:
    entries = {
        entry: EntryReport(state=EntryState.APPLIED, key=each.key, units={})
        for entry, each in declaration.entries.items()
    }
    return Report(
        machine=machine,
        offer=declaration.offer,
        settled=declaration.offer,
        sequence=declaration.offer.counter,
        boot="b",
        entries=entries,
    )


async def _nothing(_: Sequence[str] | Mapping[MachineName, object]) -> None:
    """No supervisor starts agents, and the bus lets all of them say everything."""


def _pack(_: Mapping[str, bytes], __: str, ___: str) -> Pack:
    raise AssertionError("no archive is declared")


def _no_program(*_: object) -> Any:
    raise AssertionError("no document is a program")


def main(rounds: int) -> None:
    print(cores.take())
    heap.look_seldom()
    with tempfile.TemporaryDirectory() as name:
        took = asyncio.run(simulated(Path(name), rounds))
    print(f"{SIMULATED} simulated machines × {FILES} files: {took:.2f} s (goal 1 s)")
    with tempfile.TemporaryDirectory() as name:
        applied, looked = ours(Path(name), rounds)
    whole = applied + looked
    print(f"{MACHINES} machines × {FILES} files: apply {applied:.2f} s, a look {looked:.3f} s")
    with tempfile.TemporaryDirectory() as name:
        try:
            theirs = salt(Path(name), rounds)
        except peers.AbsentError as error:
            print(error)
            return
    print(f"salt {SALT}, masterless: {theirs:.2f} s; ours {whole / theirs:.2f} × (goal 0.5)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
