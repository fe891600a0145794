"""How long planning takes beside its floor and its goals (DESIGN §11), in one run.

    python -m benchmarks.plan [--nix] [MACHINES ...]

The floor is plain CPython that builds, encodes (sorted) and hashes as many entries with six values
each. Times are of the processor, the shortest of some turns, each size in processes of its own, so
that the peaks of memory are its own too. `--nix` installs Debian's nix-bin where it is missing; a
peer that is not there is named.
"""

import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from benchmarks.beside.peers import AbsentError
from benchmarks.plan import fleets, peers
from keyplane.planner import PlanRequest, PlanResult, compare, plan
from keyplane.planner.changes import Change, ExportValue, FactValue, SettingValue
from keyplane.planner.warm import Planner

SERVICES = 25 + fleets.BASES
"""25 on every machine, and the few that they read."""
SIZES = (40, 400, 4000)
SMALL = (1000, 4000)
TURNS = 3
NAME = SERVICES - 1
"""The service that tells the name of its machine's system."""


def floor(count: int) -> int:
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    entries: dict[str, str] = {}
    for number in range(count):
        values = {
            "FIRST": f"http://10.0.0.1:{20000 + number % 7}/",
            "LEVEL": str(number % 25),
            "MODE": "production",
            "PORT": str(20000 + number % 25),
            "SECOND": "tcp:20001",
            "SELF": f"10.0.{number >> 8}.{number & 255}",
        }
        entries[f"service:main@m{number:06}"] = sha256(encode(values).encode()).hexdigest()
    return len(entries)


def timed(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def shortest(work: Callable[[], Any]) -> float:
    return min(timed(work) for _ in range(TURNS))


def peak() -> str:
    return f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"


def request(machines: int) -> PlanRequest:
    return PlanRequest(documents=fleets.documents(machines, SERVICES), evaluate=_no_function)


def _no_function(asked: object) -> Any:
    raise AssertionError(asked)


def verdict(figure: float, goal: float, machines: int = SIZES[-1]) -> str:
    """Goals are of 100,000 entries."""
    if machines < SIZES[-1]:
        return "not for so few"
    return "met" if figure <= goal else f"MISSED by {figure / goal:.2f}"


def cold(machines: int) -> None:
    result = plan(request(machines))
    most = peak()
    count = len(result.plan.entries)
    assert not result.plan.diagnostics, result.plan.diagnostics[:3]
    asked = request(machines)
    took = shortest(lambda: plan(asked))
    least = shortest(lambda: floor(count))
    print(
        f"{count:>7} entries, cold: {took:.3f} s, {took / least:.2f} times the floor "
        f"({least:.3f} s), {took / count * 1e6:.1f} us an entry, {most}   "
        f"[goal: 3 times, 600 MiB: {verdict(took / least, 3, machines)}]"
    )
    again = plan(
        PlanRequest(documents=asked.documents, evaluate=_no_function, previous=result.plan)
    )
    assert again.plan.generation == result.plan.generation
    difference("two cold plans", result, again)


def difference(what: str, old: PlanResult, new: PlanResult) -> None:
    digests = {"old_digests": old.digests, "new_digests": new.digests}
    took = shortest(lambda: compare.diff(old.plan, new.plan, **digests))
    moved = len(compare.diff(old.plan, new.plan, **digests).activate)
    print(
        f"        difference, {what}: {moved} moved, {took * 1e3:.1f} ms   "
        f"[goal: 50 ms: {verdict(took, 0.05)}]"
    )


def warm(machines: int) -> None:
    start = time.process_time()
    planner = Planner(request(machines))
    first = time.process_time() - start
    print(f"        warm planner made in {first:.3f} s")
    ends = {"the first": fleets.BASES, "a middle": SERVICES // 2, "the last": SERVICES - 1}
    for place, service in ends.items():
        made = [_setting(service, 100 + turn) for turn in range(TURNS)]
        change(planner, f"a setting of {place} service", made)
    before = planner.result
    difference("that setting", before, planner.update(_setting(SERVICES - 1, 1)))
    made = [_setting(0, 100 + turn) for turn in range(TURNS)]
    change(planner, "a setting of a base, by cascade", made)
    before = planner.result
    difference("that cascade", before, planner.update(_setting(0, 99)))
    change(planner, "the value of an export", [_export(turn) for turn in range(TURNS)])
    before = planner.result
    difference("that export", before, planner.update(_export(TURNS)))
    name = f"m{machines // 2:05}"
    systems = [f"system-{turn}" for turn in range(TURNS)]
    facts = [FactValue(machine=name, fact="os.name", value=system) for system in systems]
    change(planner, "a fact that an entry reads", facts)
    facts = [FactValue(machine=name, fact="os.id", value=system) for system in systems]
    change(planner, "a fact that requirements judge", facts)
    levels = (-1, 1, -2)
    change(planner, "a setting gone wrong", [_setting(SERVICES - 2, one) for one in levels])
    assert [row.code for row in planner.result.plan.diagnostics] == ["setting-invalid"]
    print(f"        {peak()} with all that is kept")


def change(planner: Planner, what: str, changes: Iterable[Change]) -> None:
    """Make like changes one after the other; each moves as many entries."""
    best, moved = float("inf"), 0
    for one in changes:
        before = planner.result.plan.entries
        best = min(best, timed(lambda one=one: planner.update(one)))
        after = planner.result.plan.entries
        moved = sum(after[name].key != entry.key for name, entry in before.items())
    goal = 0.005 + 20e-6 * moved
    each = f", {best / moved * 1e6:.1f} us each" if moved else ""
    print(
        f"        warm, {what}: {moved} moved, {best * 1e3:.1f} ms{each}   "
        f"[goal: 5 ms + 20 us each = {goal * 1e3:.0f} ms: {verdict(best, goal)}]"
    )


def small(count: int) -> None:
    """Instances of one machine each: what is worked out for one is of no use to another."""
    asked = PlanRequest(documents=fleets.singles(count, SERVICES), evaluate=_no_function)
    result = plan(asked)
    assert not result.plan.diagnostics, result.plan.diagnostics[:3]
    most = peak()
    took = shortest(lambda: plan(asked))
    print(
        f"{count:>7} instances on a machine each, cold: {took:.3f} s, "
        f"{took / count * 1e6:.0f} us an instance, {most}"
    )


def edges(machines: int) -> None:
    """A set of all machines that each machine reads: as many edges as a plan holds at most."""
    asked = PlanRequest(documents=fleets.mesh(machines), evaluate=_no_function)
    result = plan(asked)
    assert len(result.plan.edges) == machines * machines, result.plan.diagnostics[:3]
    most = peak()
    took = shortest(lambda: plan(asked))
    count = len(result.plan.edges)
    print(f"{count:>7} edges, cold: {took:.3f} s, {took / count * 1e6:.1f} us an edge, {most}")


def _setting(service: int, level: int) -> SettingValue:
    name = f"service-{service:02}"
    return SettingValue(instance=name, role="main", setting="level", value=level)


def _export(turn: int) -> ExportValue:
    value = "http://${machine.address}:${alloc.ports.http}/" + str(turn)
    return ExportValue(module="service-00", role="main", provide="url", export="url", value=value)


def others(sizes: Iterable[int]) -> None:
    services = SERVICES - fleets.BASES
    print("peers, which check nothing: the same values of every entry, keyed")
    for machines in sizes:
        count = machines * services
        told("nix-instantiate", count, lambda machines=machines: peers.nix(machines, services))
    told("ansible-core", peers.ANSIBLE_MACHINES * services, lambda: peers.ansible(services))


def told(name: str, count: int, run: Callable[[], float]) -> None:
    try:
        took = run()
    except AbsentError as absent:
        print(f"        {absent}")
    else:
        print(f"{count:>7} entries, {name}: {took:.3f} s, {took / count * 1e6:.1f} us an entry")


def main() -> None:
    arguments = [word for word in sys.argv[1:] if word != "--nix"]
    parts = {"--cold": cold, "--warm": warm, "--small": small, "--edges": edges}
    if arguments and arguments[0] in parts:
        parts[arguments[0]](int(arguments[1]))
        return
    if "--nix" in sys.argv:
        peers.install_nix()
    sizes = [int(size) for size in arguments] or SIZES
    runs = [(part, machines) for machines in sizes for part in ("--cold", "--warm")]
    runs += [("--small", count) for count in SMALL] + [("--edges", 500), ("--edges", 1000)]
    for part, count in runs:
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.plan", part, str(count)], check=True)
    others(sizes)


if __name__ == "__main__":
    main()
