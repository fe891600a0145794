"""The command line: a front end over `parts`. Each command is a module, imported when it is used."""

import signal

try:
    # Who interrupts a command before it can answer is shown no traceback of its imports.
    _former = signal.signal(signal.SIGINT, signal.SIG_DFL)
except ValueError:  # only the main thread may, and only it is interrupted
    _former = None

from keyplane.cli.registry import main

if _former is not None:
    signal.signal(signal.SIGINT, _former)

__all__ = ["main"]
