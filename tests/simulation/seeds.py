"""How many seeds are run, and on how many cores."""

import os

SEEDS = int(os.environ.get("SEEDS", "500"))
JOBS = os.cpu_count() or 1
