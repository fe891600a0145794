"""Runs seeds: `python -m keyplane.testing.simulation --seeds 5000`, or `--seed 123` with its log."""

import argparse
import logging
import os
import subprocess
import sys

from keyplane.testing.simulation import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seed", type=int, help="one seed, with the log of all that happens")
    parser.add_argument("--seeds", type=int, default=500, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    logging.getLogger("keyplane").addHandler(logging.NullHandler())
    if asked.seed is not None:
        return _one(asked.seed)
    broken = 0
    for outcome in run.outcomes(range(asked.first, asked.first + asked.seeds), asked.jobs):
        if outcome.broken:
            broken += 1
            sys.stdout.write(f"{outcome.seed}: {outcome.broken}\n  make sim SEED={outcome.seed}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{asked.seeds} seeds, {broken} broken, at commit {_commit()}\n")
    return 1 if broken else 0


def _one(seed: int) -> int:
    outcome = run.run(seed)
    sys.stdout.write("\n".join(outcome.log) + "\n")
    sys.stdout.write(f"seed {seed} at commit {_commit()}: {outcome.broken or 'all kept'}\n")
    return 1 if outcome.broken else 0


def _commit() -> str:
    """A seed says something of one commit only."""
    command = ["git", "describe", "--always", "--dirty"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
