"""A machine for the arena's programs, and one whose database runs already."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import arena
from tests.examples.arena import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Below /tmp itself: another account has to get in, and a socket's path has to be short."""
    root = Path(tempfile.mkdtemp(prefix="arena-", dir="/tmp"))
    root.chmod(0o755)
    made = Machine(root)
    yield made
    made.stop()
    print(made.log())  # shown with a failure
    shutil.rmtree(root)


@pytest.fixture
def database(machine: Machine) -> Machine:
    """A machine on which PostgreSQL and its provisioner run, over TCP, with no consumer yet."""
    arena.start_database(machine, listen="tcp")
    return machine
