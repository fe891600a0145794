"""`keyplane explain`: one entry, value by value; why its key moved; what its key is made of."""

import difflib
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keyplane.cli import reading
from keyplane.documents.trees import is_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keyplane.model.plan import Plan
    from keyplane.planner.explain import Explained
    from keyplane.planner.explain_key import KeyInputs
    from keyplane.planner.explain_moves import Moved, Moves

_DIGEST = re.compile(r"sha256-([0-9a-f]{12})[0-9a-f]{52}")
_WIDE = 60
"""Columns of an old or a new value. What they have in common goes first."""
_AROUND = 12
"""Characters of that which stay on each side."""
_LIVE = ("health", "reload")
"""Fields that no plane carries: out of the key, and applied to what runs."""
_NEAR_MAX = 3
"""Entries that somebody may have meant."""
_CAUSES_MAX = 5
"""Root causes of one input; `--json` has them all."""


@click.command("explain")
@reading.directory
@click.argument("entry", metavar="ENTRY")
@reading.as_json
@click.option(
    "--previous",
    metavar="OLD.json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Say why the key moved since this plan. Placements and ports are kept from it.",
)
@reading.alone
@click.option("--key", "with_key", is_flag=True, help="Show the inputs of the key.")
@reading.facts
def command(  # noqa: PLR0913  # each is a word of the command line
    directory: Path,
    entry: str,
    *,
    as_json: bool,
    previous: Path | None,
    alone: bool,
    with_key: bool,
    facts: Path | None,
) -> None:
    """Show each value of ENTRY (INSTANCE:ROLE@MACHINE): its plane, and what a change costs."""
    import msgspec

    from keyplane.parts import main
    from keyplane.planner import explain, explain_key, explain_moves, plan

    after = reading.standing(directory, previous, facts, alone=alone)
    before = after.plan
    made: Plan | None = None
    moves: Moves | None = None
    key: KeyInputs | None = None
    try:
        with main.read_fleet(directory, facts) as read:
            request = after.request(read)
            found = explain.explain(request, entry)
            if found is None or previous is not None or with_key:
                made = plan(request).plan
                if previous is not None:
                    moves = explain_moves.moves(request, before, made, entry)
                if with_key and entry in made.entries:
                    key = explain_key.inputs(made, entry)
    except main.FleetUnreadableError as error:
        reading.refuse(str(error))
    if found is None and moves is None:
        assert made is not None, "planned where nothing was found"
        begun = [each for each in made.entries if re.split("[:@]", each)[0] == entry]
        near = begun[:_NEAR_MAX] or difflib.get_close_matches(entry, made.entries, _NEAR_MAX)
        listing = f"`keyplane plan {shlex.quote(str(directory))}` lists them"
        hint = f"; did you mean {' or '.join(near)}?" if near else f": {listing}"
        reading.refuse(f"{entry} is no entry of the plan of {directory}{hint}")
    if as_json:
        said: Any = found or []
        if moves is not None or with_key:
            said = {"rows": said}
        if moves is not None:
            said |= msgspec.to_builtins(moves)
        if with_key:
            said["key"] = key
        click.echo(msgspec.json.encode(said, order="sorted"))
        return
    if found is not None:
        _show_rows(entry, found)
    if key is not None:
        _show_key(key)
    if moves is not None and previous is not None:
        _show_moves(entry, previous, moves)


def _show_rows(entry: str, found: "Sequence[Explained]") -> None:
    from keyplane.cli import rows
    from keyplane.planner import explain_hiding

    if not found:
        click.echo(f"{entry} has no value with a reference and ships no file")
    lines: list[tuple[str, ...]] = []
    for row in found:
        sources = [row.from_] if isinstance(row.from_, str) else row.from_
        live = row.unit is not None and row.name.partition(".")[0] in _LIVE
        lines.append(
            (
                row.unit or "",
                row.name,
                "" if live else row.plane,
                row.lifecycle,
                " ".join(dict.fromkeys(sources)),
                _cell(explain_hiding.shown(row.value, row.name, *sources)),
                "apply live" if live else row.cost,
            )
        )
    rows.table(entry, ("UNIT", "NAME", "PLANE", "LIFECYCLE", "FROM", "VALUE", "COST"), lines)


def _show_key(key: "KeyInputs") -> None:
    from keyplane.cli import rows

    lines = [("closure", key.closure)]
    for unit, env in key.env.items():
        lines += [(f"env.{unit}.{name}", _cell(value)) for name, value in env.items()]
    lines.append(("machine", key.machine))
    lines += [(f"dependency {name}", one) for name, one in key.dependencies.items()]
    rows.table(
        f"key {_short(key.key)} is the hash of",
        ("INPUT", "VALUE"),
        [(name, _short(value)) for name, value in lines],
    )


def _show_moves(entry: str, previous: Path, moves: "Moves") -> None:
    from keyplane.cli import rows
    from keyplane.planner.explain_moves import Since

    match moves.since:
        case Since.NEW:
            came = f": it came from {moves.elsewhere}" if moves.elsewhere else ""
            click.echo(f"{entry} is new since {previous}{came}")
        case Since.GONE:
            went = f": it went to {moves.elsewhere}" if moves.elsewhere else ""
            click.echo(f"{entry} is gone since {previous}{went}")
        case Since.UNCHANGED:
            click.echo(f"the key of {entry} is unchanged since {previous}")
        case Since.RELOADED:
            click.echo(
                f"the key of {entry} is unchanged since {previous}; its configData is not, which "
                "costs a reload"
            )
        case Since.REWIRED:
            click.echo(
                f"the key of {entry} is unchanged since {previous}; what is applied live is not, "
                "which costs nothing"
            )
        case Since.CHANGED:
            rows.table(
                f"why the key of {entry} moved since {previous}",
                ("INPUT", "OLD", "NEW", "FROM", "RESTARTS"),
                [line for one in moves.moved for line in _moved_lines(one)],
            )
            if not moves.moved:
                click.echo(
                    f"the key of {entry} moved since {previous}, and no input of it that the plans "
                    "show did: another release made that plan"
                )


def _moved_lines(one: "Moved") -> list[tuple[str, str, str, str, str]]:
    """A line for each cause, the first of them with all the rest."""
    old, new = _differing(_cell(one.old), _cell(one.new))
    causes = ["".join(f"← {step} " for step in chain).rstrip() for chain in one.from_[:_CAUSES_MAX]]
    if len(one.from_) > _CAUSES_MAX:
        causes.append(f"and {len(one.from_) - _CAUSES_MAX} more")
    first, *others = causes or [""]
    head = (one.input, old, new, first, ", ".join(one.units) or "nothing")
    return [head, *(("", "", "", other, "") for other in others)]


def _cell(value: Any) -> str:
    """A value as it stands in a table: texts as they are, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _short(value)
    hole: Any = value.get("hole") if is_table(value) else None
    if hole is not None:
        return f"(waits for fact {hole['fact']} of {hole['machine']})"
    import msgspec

    return _short(msgspec.json.encode(value, order="sorted").decode())


def _short(text: str) -> str:
    return _DIGEST.sub(r"sha256-\1", text)


def _differing(old: str, new: str) -> tuple[str, str]:
    """Two long values where they differ."""
    if max(len(old), len(new)) <= _WIDE:
        return old, new
    ahead = _common(old, new)
    least = min(len(old), len(new)) - ahead
    behind = min(_common(old[::-1], new[::-1]), least)
    return _around(old, ahead, behind), _around(new, ahead, behind)


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next(
        (at for at, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(one), len(other))
    )


def _around(text: str, ahead: int, behind: int) -> str:
    """The text but for the characters that begin and end it in both."""
    start = max(ahead - _AROUND, 0)
    end = len(text) - max(behind - _AROUND, 0)
    middle = text[start:end]
    if len(middle) > 2 * _WIDE:
        middle = f"{middle[:_WIDE]} … {middle[-_AROUND:]}"
    return f"{'…' if start else ''}{middle}{'…' if end < len(text) else ''}"
