"""`keyplane apply`: make a directory's text the fleet's target, and show what that does."""

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from keyplane.cli import asking, fleets, reading
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts import descent, main
from keyplane.parts.state_dir import StateDir
from keyplane.ports import ordering


@click.command()
@fleets.fleet_argument
@fleets.control_option
@click.option(
    "--over",
    metavar="REVISION",
    type=click.IntRange(min=1),
    help="Apply DIR although the fleet was edited since, up to this revision.",
)
@click.option("--push", is_flag=True, help="Send what policies only record, to every machine.")
@asking.options
def command(
    directory: Path | None, control: Path | None, *, over: int | None, **manner: bool | str
) -> None:
    """Make DIR the fleet's target: providers first, each step when the last one is healthy.

    Shows the difference first, then each entry as it becomes healthy. What was edited since DIR
    was last applied or exported is shown, and nothing is applied over it. Exit status: 0
    done, 1 something failed or was refused, 3 the documents have errors and nothing was applied,
    4 done but for machines that were not heard, 5 something failed and all is as it was before, 6
    that failed too.
    """
    state = fleets.state_of(directory if control is None else control)
    text = fleets.text_of(directory, state)
    sys.exit(run(state, text, asking.Manner(**manner), over=over))  # type: ignore[arg-type]


def run(
    state: StateDir,
    text: StateDir,
    manner: asking.Manner,
    *,
    over: int | None = None,
    verb: str = "apply",
) -> int:
    """Apply the fleet directory of `text` to the control plane of `state`; the exit status."""
    try:
        files = main.read_text(text.fleet)
    except main.FleetUnreadableError as error:
        reading.refuse(str(error))
    asked = changes.Directory(files=files, descent=descent.read(text), over=over, verb=verb)
    keep = _Keeping(state=state, text=text, asked=asked)
    return asking.carry_out(state, asked, manner, keep=keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keeping:
    """What the directory remembers of the revision that it descends from."""

    state: StateDir
    text: StateDir
    asked: changes.Directory

    def sending(self, proposal: messages.Proposal) -> None:
        """Who is cut off now knows his own text again in the history."""
        base = self.asked.descent
        if self.asked.over is None and proposal.revision is not None:
            base = changes.Descent(revision=proposal.revision, digest=proposal.digest)
        if base is not None:
            descent.write(self.text, base, of=self.state, sent=self._digest())

    def begun(self, revision: int) -> None:
        made = changes.Descent(revision=revision, digest=self._digest())
        descent.write(self.text, made, of=self.state)

    def _digest(self) -> str:
        return ordering.revision_digest(self.asked.files)
