"""The processes that `keyplane up` starts: `supervise`, `controller` and `agent`."""

import sys
from pathlib import Path

from keyplane import journal
from keyplane.parts.state_dir import StateDir
from keyplane.ports.errors import PortError

_PARTS = {"supervise": "supervisor", "controller": "controller", "agent": "agent"}
"""How each calls itself in its journal."""


def run(words: list[str]) -> None:
    match words:
        case ["supervise", root, *machines]:
            from keyplane.parts.main import supervise

            supervise.run(StateDir(Path(root)), machines)
        case ["controller", root]:
            from keyplane.parts.main import control

            control.run(StateDir(Path(root)))
        case ["agent", root, machine]:
            from keyplane.parts.main import machine_agent

            machine_agent.run(StateDir(Path(root)), machine)
        case _:
            sys.exit(f"unknown part: {' '.join(words)}")


if __name__ == "__main__":
    journal.begin(_PARTS.get(sys.argv[1] if len(sys.argv) > 1 else "", "unknown"))
    try:
        run(sys.argv[1:])
    except (PortError, OSError) as error:
        # A disk that is read-only or full, a folder that is gone: it names the path itself.
        sys.exit(f"keyplane: {error}")
