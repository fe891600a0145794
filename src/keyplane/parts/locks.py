"""Locks that parts hold for as long as they live: how one is taken, and looked at."""

import fcntl
import os
import time
from pathlib import Path

LOOK_S = 0.5
"""Longer than any look takes; another part holds it for good."""
POLL_S = 0.01


def is_held(path: Path) -> bool:
    """Whether somebody has it. Any number may look at once, and none takes another for a holder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def take(descriptor: int) -> bool:
    """Have it until the file is closed; False if somebody else has. Who only looks is waited for."""
    deadline = time.monotonic() + LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        else:
            return True
