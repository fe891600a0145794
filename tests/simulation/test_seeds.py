"""Whatever the seeds draw, every promise holds, and everything converges once it is healed."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from keyplane.testing.simulation import run
from tests.simulation.seeds import JOBS, SEEDS

KEPT = Path(__file__).with_name("seeds.txt")

pytestmark = pytest.mark.slow


def seeds() -> list[int]:
    lines = KEPT.read_text(encoding="ascii").splitlines()
    kept = [int(line.split()[0]) for line in lines if line and not line.startswith("#")]
    more = (
        seed
        for first, count in (
            (run.WITH_VALUES, SEEDS // 5),
            (run.WITH_FACTS, SEEDS // 12),
            (run.WITH_SETS, SEEDS // 12),
            (run.WITH_MISTAKES, SEEDS // 12),
        )
        for seed in range(first, first + count)
    )
    return sorted({*kept, *range(SEEDS), *more})


@pytest.mark.timeout(0)
def test_no_seed_breaks_a_promise() -> None:
    """A broken one is shown with the way to replay it; it is then kept in seeds.txt, and why."""
    seen: Counter[str] = Counter()
    broken: list[run.Outcome] = []
    for outcome in run.outcomes(seeds(), JOBS):
        seen.update(kinds(outcome))
        if outcome.broken:
            broken.append(outcome)
    for outcome in sorted(broken, key=lambda each: each.seed):
        print(f"seed {outcome.seed}: {outcome.broken}\n  make sim SEED={outcome.seed}")
    assert not broken, f"{len(broken)} of {len(seeds())} seeds broke a promise"
    if len(seeds()) >= 500:
        missing = sorted(HAPPENED - seen.keys())
        assert not missing, "the runs had none of these, and so tried less than they seem to"


HAPPENED = {
    "target", "offers", "start", "stop", "reload", "write", "remove", "unpack", "fetch", "forget",
    "killed before", "killed amid", "killed after", "without power", "lost its ledger",
    "lost its declaration", "without its lease", "has the lease", "loses", "is gone", "jumps",
    "is full", "ignore TERM", "a person stops", "a person starts", "somebody changes",
    "lets go", "says that", "a person sets", "a person pins", "rolls back to", "somebody takes",
    "held by pid", "somebody puts", "ends with", "the store is down", "the inventory fails", "is refused",
    "is otherwise", "takes facts of", "flap", "burst", "missing", "store of values is deleted", "sets the pace", "sets the contract",
    "done", "failed", "superseded", "is off", "backs the inventory up", "restores the inventory",
    "says pause", "says resume", "says stop", "says close", "says freeze", "says thaw", "says retry",
    "drains", "cordons", "uncordons", "removes", "as lost",
    "says push", "leaves the fleet", "joins the fleet", "rolled-back", "rollback-failed", "stopped",
}  # fmt: skip
"""What must have happened somewhere in so many runs."""


def kinds(outcome: run.Outcome) -> set[str]:
    text = "\n".join(outcome.log)
    return {kind for kind in HAPPENED if re.search(rf"\b{kind}\b", text)}


def test_a_seed_is_the_same_run_anywhere() -> None:
    """Whatever the order of sets is: the log is the same to the last line."""
    program = (
        "import hashlib; from keyplane.testing.simulation import run;"
        "print([hashlib.sha256('\\n'.join(run.run(seed).log).encode()).hexdigest()"
        " for seed in range(6)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": order},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for order in ("1", "2")
    }
    assert len(said) == 1
