"""The cores, ahead of whatever else a machine does."""

import os


def take() -> str:
    """Run before all others, and what is started from here too; says if the account may not.

    Times on the wall otherwise tell how busy a machine is, and how it shares its cores between
    one process and several.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return "beside whatever else runs: this account may not take the cores"
    return "the cores taken"
