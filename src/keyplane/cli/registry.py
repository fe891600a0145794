"""The names of all commands, and where each lives. Nothing else is imported to show the help."""

import importlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from keyplane.cli import faults
from keyplane.ports.errors import PortError

COMMANDS = {
    "plan": "Plan a fleet directory.",
    "check": "Print what is wrong with a fleet directory, and nothing else.",
    "diff": "Compare two plans.",
    "explain": "Show an entry value by value: plane, lifecycle, cost; or why its key moved.",
    "graph": "Draw a plan as SVG: machines, entries, and what goes from one to another.",
    "react": "Replay a trace of dynamic values through the agent's reaction engine.",
    "schema": "Print the JSON Schema of a document, for editors.",
    "up": "Start the control plane of a fleet on this machine, and apply it.",
    "down": "Stop the control plane; the services keep running.",
    "apply": "Make a fleet directory's text the fleet's target.",
    "set": "Set one value of an instance, and roll it out.",
    "assign": "Place an instance on a machine, and roll it out.",
    "unassign": "Take an instance from a machine, and roll it out.",
    "pin": "Have an interface answered from a certain machine.",
    "unpin": "Take a pin back.",
    "cordon": "Place nothing new on a machine by count.",
    "drain": "Move what is placed on a machine by count elsewhere.",
    "uncordon": "Place on a machine by count again.",
    "rollback": "Go back to an earlier generation.",
    "history": "List the revisions of a fleet's text.",
    "show": "Show a revision, or what it changed.",
    "export": "Write a revision as a directory.",
    "audit": "List who changed what.",
    "status": "Show what runs, as the agents report it.",
    "machine": "List the machines, or show one: what it runs, and what it takes from others.",
    "facts": "Plan by what machines say of themselves, whatever that stops or moves.",
    "rollout": "List rollouts, show one, or pause, resume, stop, retry or close it.",
    "push": "Send machines what they are to be, also what is only recorded.",
    "freeze": "Let no rollout send anything further.",
    "thaw": "Let rollouts go on after a freeze.",
    "collection": "Show which archives the store holds and what would go, or let that go.",
    "backup": "Save the volumes of an entry.",
    "backups": "List what was saved of volumes, and old copies on machines.",
    "metrics": "Print what the parts count and measure of themselves, for Prometheus.",
    "logs": "Show the log of an entry.",
    "events": "Show what happened to an entry, and why.",
    "stop": "Stop an entry, until somebody starts it.",
    "start": "Let an entry run again that a person stopped.",
}
"""In the order of the help. Each is the `command` of the module of that name in this package."""

EXIT_UNUSABLE = 2
"""Unusable arguments, or a directory that cannot be read."""
EXIT_FAILED = 1
"""Something outside did not do what was asked."""
EXIT_FAULT = 70
"""A fault of Keyplane itself, as sysexits.h has it."""
EXIT_INTERRUPTED = 130
"""As a shell has it: 128 and the number of SIGINT."""


def _near(name: str) -> str:
    """The command that was meant: one that begins so, else one that is spelled alike."""
    import difflib

    begun = [each for each in COMMANDS if name and each.startswith(name)]
    near = begun or difflib.get_close_matches(name, COMMANDS, 1)
    return f"; did you mean {' or '.join(near)}?" if near else ""


class _Commands(click.Group):
    """A group whose commands are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if cmd_name.startswith("-"):
                return super().get_command(ctx, cmd_name)
            raise faults.UnusableError(
                f"no command `{cmd_name}`{_near(cmd_name)}", "`keyplane --help` lists them"
            )
        module = importlib.import_module(f"keyplane.cli.{cmd_name}")
        found = module.command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="keyplane", message="%(version)s")
def keyplane() -> None:
    """Know what an edit costs before you make it: plan, compare, apply."""


def main() -> None:
    """Run the command line."""
    guarded(keyplane)


class _Interrupts:
    """Whether this process was interrupted: what a library makes of that may be another error."""

    def __init__(self) -> None:
        self.seen = False
        # Where interrupts are ignored, as behind `&` in a script, they stay so.
        self._heeds = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN

    def begin(self) -> None:
        """From here on they are heard as KeyboardInterrupt."""
        if self._heeds:
            signal.signal(signal.SIGINT, self._heed)

    def leave(self) -> None:
        """All is said: what interrupts the end of the interpreter ends it, without a word."""
        if self._heeds:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _heed(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)


def guarded(group: click.Group) -> NoReturn:
    """Run a command of the group; nothing is ever thrown at a user."""
    interrupts = _Interrupts()
    try:
        interrupts.begin()
        status = _status(group, interrupts)
    except KeyboardInterrupt:
        status = _interrupted()
    finally:
        interrupts.leave()
    sys.exit(status)


def _status(group: click.Group, interrupts: _Interrupts) -> int:
    """The exit status of a command, having told why it is none that went well."""
    try:
        _refuse_odd_words()
        status = group.main(prog_name=group.name, standalone_mode=False)
    except click.Abort:
        # Also an end of the input at a question.
        return _interrupted()
    except click.ClickException as error:
        faults.tell_of(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read us has gone.
        _drop_output()
        return EXIT_FAILED
    except PortError as error:
        problem = getattr(error, "problem", None)
        faults.tell(str(error), *getattr(problem, "ways", ()))
        return refused(problem)
    except OSError as error:
        # A full disk and the like: of the machine, not of us.
        if os.environ.get("KEYPLANE_TRACEBACK"):
            raise
        where = f"{error.filename}: " if error.filename is not None else _gone()
        faults.tell(f"{where}{error.strerror or error}")
        _drop_output()
        return EXIT_FAILED
    except Exception as error:
        if interrupts.seen:
            return _interrupted()
        if os.environ.get("KEYPLANE_TRACEBACK"):
            raise
        faults.tell(
            f"a fault of keyplane itself: {type(error).__name__}: {error}",
            "report it, with what KEYPLANE_TRACEBACK=1 adds",
        )
        return EXIT_FAULT
    return status if isinstance(status, int) else 0


def refused(problem: object) -> int:
    """The exit status where the controller refused: what names nothing there is unusable."""
    code = str(getattr(problem, "code", ""))
    is_name = code.startswith("unknown-") and code != "unknown-descent"
    return EXIT_UNUSABLE if is_name else EXIT_FAILED


def _refuse_odd_words() -> None:
    """What is no text can be no name, and could not be told of in any answer."""
    for word in sys.argv[1:]:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise faults.UnusableError(f"{word!a} is no UTF-8 text") from None


def _gone() -> str:
    """What to say before an error that names no file: the directory that we stand in may be gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the directory that you stand in: "
    return ""


def _interrupted() -> int:
    click.echo("keyplane: interrupted", err=True)
    return EXIT_INTERRUPTED


def _drop_output() -> None:
    """What is still unwritten goes nowhere: the flush at exit must not fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
