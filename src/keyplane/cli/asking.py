"""What all commands that change the fleet have in common: show, ask, do, and tell."""

import contextlib
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import click
import msgspec

from keyplane.cli import faults, fleets, progress, questions, reading, revisions, rows, watching
from keyplane.cli.registry import EXIT_INTERRUPTED, refused
from keyplane.model.volumes import Choice
from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts import descent, embedded, volume_choices
from keyplane.parts.control_client import ControlClient, RefusedError
from keyplane.parts.state_dir import StateDir
from keyplane.ports.errors import PortError

T = TypeVar("T")

_CHOICES = tuple(each.value for each in Choice)


@dataclass(frozen=True, slots=True)
class Manner:
    """How somebody wants it done."""

    yes: bool
    dry_run: bool
    why: str
    as_json: bool
    push: bool = False
    """What is else only recorded is sent too."""
    volumes: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is to become of the data of entries that move, by how they are named."""


def _choices(
    _context: click.Context, _option: click.Parameter, said: tuple[str, ...]
) -> dict[str, str]:
    """`ENTRY=CHOICE`, or a choice alone for all that are asked about."""
    found: dict[str, str] = {}
    for each in said:
        name, _, choice = each.rpartition("=")
        if choice.partition(":")[0] not in _CHOICES:
            raise faults.UnusableError(f"--volumes: `{choice}` is none of {', '.join(_CHOICES)}")
        found[name or volume_choices.ALL] = choice
    return found


volumes_option = click.option(
    "--volumes",
    multiple=True,
    metavar="[ENTRY=]CHOICE",
    callback=_choices,
    help="What becomes of the data of an entry that moves, or of each: hand-over, restore, "
    "restore:BACKUP or start-empty.",
)


def options(command: Any) -> Any:
    """The options of a command that changes the fleet, as keywords of `Manner`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line."),
        volumes_option,
        click.option("--why", default="", metavar="TEXT", help="Kept with the revision."),
        click.option("--dry-run", is_flag=True, help="Show the difference and change nothing."),
        click.option("--yes", is_flag=True, help="Do it without a question."),
    ):
        command = option(command)
    return command


def carry_out(
    state: StateDir,
    asked: changes.Asked,
    manner: Manner,
    *,
    show: Callable[[messages.Proposal], None] = progress.show_proposal,
    keep: watching.Keeping | None = None,
) -> int:
    """Propose it, ask, apply it, and tell what comes of it; the exit status."""
    client = embedded.controller(state)
    try:
        return _carry_out(client, state, asked, manner, show, keep)
    except RefusedError as error:
        ways = _ways(error.problem, fleets.text_here(state) if keep is None else keep.text)
        problem = msgspec.structs.replace(error.problem, ways=[*error.problem.ways, *ways])
        if manner.as_json:
            click.echo(msgspec.json.encode(problem).decode())
        else:
            _show_refusal(problem)
        return reading.EXIT_ROWS if problem.diagnostics else refused(problem)


def _carry_out(  # noqa: PLR0913, PLR0917  # what was asked, and how
    client: ControlClient,
    state: StateDir,
    asked: changes.Asked,
    manner: Manner,
    show: Callable[[messages.Proposal], None],
    keep: watching.Keeping | None,
) -> int:
    volumes = dict(manner.volumes)
    proposal = client.propose(asked, volumes)
    errors = any(row.severity == "error" for row in proposal.diagnostics)
    if manner.as_json:
        click.echo(msgspec.json.encode(messages.Shown.of(proposal)).decode())
    else:
        if proposal.will or proposal.said:
            click.echo(rows.plain(proposal.will or proposal.said))
        if not proposal.nothing:
            show(proposal)
    if errors:
        if not manner.as_json:
            click.echo("nothing was applied: the rows above are errors", err=True)
        return reading.EXIT_ROWS
    if proposal.nothing:
        if not manner.as_json:
            click.echo("nothing changes")
        return 0
    if manner.dry_run:
        return 0
    said = _asked(proposal, manner)
    if said is None:
        click.echo("nothing was applied: say what is to become of the data, as above", err=True)
        return watching.EXIT_FAILED
    volumes |= said
    if not manner.yes and (proposal.said or _changes(proposal)) and not _confirmed():
        click.echo("nothing was applied", err=True)
        return watching.EXIT_FAILED
    order = messages.Apply(
        asked=asked,
        parent=proposal.parent,
        revision=proposal.revision,
        generation=proposal.generation,
        why=manner.why,
        push=manner.push,
        volumes=volumes,
        request=secrets.token_hex(16),
    )
    if keep is None:
        keep = _Beside(client, fleets.text_here(state))
    keep.sending(proposal)

    def begin(*, repeated: bool) -> Iterator[messages.Event]:
        return client.apply(msgspec.structs.replace(order, repeated=repeated))

    said = [proposal.said] if proposal.will else []
    if proposal.former is not None:
        said.append(f"the fleet is now called {proposal.fleet}")
    exit_status = watching.watch(state, begin, as_json=manner.as_json, keep=keep, said=said)
    if isinstance(keep, _Beside) and not manner.as_json:
        keep.tell()
    return exit_status


@dataclass(slots=True)
class _Beside:
    """An edit of the fleet's text that is in no directory yet."""

    client: ControlClient
    text: StateDir
    revision: int | None = None

    def sending(self, proposal: messages.Proposal) -> None:
        """There is nothing to remember: the directory stays as it is."""

    def begun(self, revision: int) -> None:
        self.revision = revision

    def tell(self) -> None:
        """Whoever applies the directory next would be refused: say how it gets the edit."""
        known = descent.read(self.text)
        if self.revision is None or known is None:
            return
        with contextlib.suppress(PortError):
            if self.client.revision(self.revision).digest == known.digest:
                return
        named = fleets.argument(self.text)
        where = str(fleets.named(self.text)) if named else "this directory"
        click.echo(
            f"  revision {self.revision} is not in {where}: `keyplane export{named}` brings it there"
        )


def _asked(proposal: messages.Proposal, manner: Manner) -> dict[str, str] | None:
    """What is said now of data that nobody said anything of; None where nobody can be asked."""
    open_ = [each for each in proposal.volumes if each.choice is None]
    if manner.as_json:
        volume_choices.refuse_unsaid(open_)
    if open_ and (manner.yes or not sys.stdin.isatty()):
        return None
    found: dict[str, str] = {}
    for each in open_:
        choices = [
            choice
            for choice in _CHOICES
            if not (choice == Choice.HAND_OVER and each.source is None)
            and not (choice == Choice.RESTORE and each.backup is None)
        ]
        name = each.entry.rpartition("@")[0]
        question = f"What is to become of the data of {name}?"
        found[each.entry] = _answer(partial(questions.choose, question, choices))
    return found


def _changes(proposal: messages.Proposal) -> bool:
    diff = proposal.diff
    moves = diff.activate or diff.deactivate or diff.reload or diff.rewire
    return bool(moves) or proposal.former is not None


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        reading.refuse("nobody is there to be asked", "`--yes` applies without a question")
    return _answer(lambda: questions.confirm("Apply?"))


def _answer(ask: Callable[[], T]) -> T:
    """What a person says; whoever interrupts the question has nothing applied."""
    try:
        return ask()
    except click.Abort:
        click.echo("\nnothing was applied", err=True)
        sys.exit(EXIT_INTERRUPTED)


def _show_refusal(problem: messages.Problem) -> None:
    rows.show(problem.diagnostics)
    faults.tell(rows.plain(problem.message))
    if problem.diagnostics or problem.edits or problem.difference:
        click.echo("nothing was applied", err=True)
    for edited in problem.edits:
        for line in revisions.edited(edited):
            click.echo(line, err=True)
    if problem.difference:
        click.echo("this directory would make of it:", err=True)
        for line in revisions.cut(problem.difference):
            click.echo(line, err=True)
    for way in problem.ways:
        click.echo(f"  resolution: {way}", err=True)


def _ways(problem: messages.Problem, text: StateDir) -> Iterator[str]:
    newest, named = problem.revision, fleets.argument(text)
    if problem.code in ("edited-since", "unknown-descent"):
        yield f"`keyplane export{named}` brings that into this directory, beside what was edited here"
        yield (
            f"`keyplane apply{named} --over {newest}` applies this directory as it is, "
            "and takes that back"
        )
    elif problem.code in ("target-moved", "plan-moved"):
        yield "say it again: the difference is shown anew, on top of what there is now"
