"""`keyplane logs`: what units and parts wrote, in one order of time."""

import contextlib
import difflib
import heapq
import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from keyplane.cli import faults, fleets, rows
from keyplane.cli import since as since_
from keyplane.model.host import LogLine
from keyplane.parts.main import log_sources
from keyplane.parts.main.log_sources import Source
from keyplane.parts.state_dir import StateDir

LINES = 100
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red")
Found = tuple[Source, LogLine]


@click.command()
@click.argument("entries", metavar="[ENTRY[/UNIT]]...", nargs=-1)
@fleets.fleet_option
@click.option(
    "--part",
    "parts",
    metavar="PART",
    multiple=True,
    help="Of the control plane: controller, bus, supervisor, agent:MACHINE, or all.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@click.option("--since", metavar="WHEN", help=since_.HELP)
@click.option(
    "-n",
    "--lines",
    "--tail",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Begin with so many lines; {LINES} if no --since is said, else all.",
)
@click.option("--times", is_flag=True, help="Print the time of each line before it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(  # noqa: PLR0913  # each is a word of the command line
    entries: tuple[str, ...],
    directory: Path | None,
    *,
    parts: tuple[str, ...],
    follow: bool,
    since: str | None,
    lines: int | None,
    times: bool,
    as_json: bool,
) -> None:
    """Print the logs of entries' units, such as mygame-eu:server@alpha or 'motd:*'.

    An entry may be one that runs no more. Lines of several units stand in the order of the times
    at which each was read from its unit, and each names its own.
    """
    state = fleets.state_of(directory)
    sources = [*_units(state, entries), *_parts(state, parts)]
    if not sources:
        raise faults.UnusableError(
            "name an entry, or a part by --part" + _known(log_sources.entries(state))
        )
    show(sources, follow=follow, since=since, lines=lines, times=times, as_json=as_json)


def show(  # noqa: PLR0913  # each is a word of the command line
    sources: Sequence[Source],
    *,
    follow: bool,
    since: str | None,
    lines: int | None,
    times: bool,
    as_json: bool,
) -> None:
    """Print logs, as the flags of a command say."""
    begin = _since(since)
    count = lines if lines is not None else (LINES if since is None else log_sources.ALL)
    shown = _Show(sources, times=times, as_json=as_json)
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(sources, shown, count, begin)
    else:
        shown.lines(
            _merged([(each, each.last(count, begin)) for each in sources])[-count or None :]
        )


def _units(state: StateDir, named: Sequence[str]) -> Iterator[Source]:
    seen: set[str] = set()
    for each in named:
        found = log_sources.units(state, each)
        if not found:
            known = log_sources.entries(state)
            near = difflib.get_close_matches(each.partition("/")[0], known, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else _known(known)
            raise faults.UnusableError(
                f"nothing wrote a log as {each} here{hint}", *_all_of(each, known)
            )
        for source in found:
            if source.name not in seen:
                seen.add(source.name)
                yield source


def _all_of(instance: str, known: Sequence[str]) -> Iterator[str]:
    """How to name each entry of an instance whose name alone was said."""
    if any(each.startswith(f"{instance}:") for each in known):
        yield f"write '{instance}:*' for all of {instance}"


def _parts(state: StateDir, named: Sequence[str]) -> Iterator[Source]:
    known = {source.name: source for source in log_sources.parts(state)}
    for each in sorted(known) if "all" in named else dict.fromkeys(named):
        if each not in known:
            raise faults.UnusableError(f"no part {each} wrote a log here{_known(list(known))}")
        yield known[each]


def _known(names: Sequence[str]) -> str:
    return f": there are {', '.join(names)}" if names else ""


def _since(said: str | None) -> str:
    """As logs have it, so that it can be compared with a line's time; empty: from the beginning."""
    if said is None:
        return ""
    at_ms = since_.since_ms(said)
    at = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def _merged(found: Sequence[tuple[Source, list[LogLine]]]) -> list[Found]:
    """In order of time; lines of one log stay in their own order, whatever their clock did."""
    streams = [[(source, line) for line in lines] for source, lines in found]
    return list(heapq.merge(*streams, key=lambda pair: pair[1].at))


def _follow(sources: Sequence[Source], show: "_Show", count: int, begin: str) -> None:
    following = [source.following() for source in sources]
    try:
        first = _merged([(each.source, each.last(count, begin)) for each in following])
        show.lines(first[-count or None :] if count else [])
        while True:
            show.lines(_merged([(each.source, each.read()) for each in following]))
            time.sleep(log_sources.LOOK_S)
    finally:
        for each in following:
            each.close()


class _Show:
    """Prints lines, each with its source where there are several."""

    def __init__(self, sources: Sequence[Source], *, times: bool, as_json: bool) -> None:
        self._times = times
        self._as_json = as_json
        entries = {source.name.partition("/")[0] for source in sources}
        self._prefixes: dict[str, str] = {}
        if len(sources) > 1:
            names = {
                # Of one entry, its units alone tell them apart.
                source.name: source.name if len(entries) > 1 else source.name.partition("/")[2]
                for source in sources
            }
            width = max(map(len, names.values()))
            for turn, (name, short) in enumerate(sorted(names.items())):
                colour = _COLOURS[turn % len(_COLOURS)]
                self._prefixes[name] = click.style(f"{short:{width}} |", fg=colour)

    def lines(self, found: Sequence[Found]) -> None:
        for source, line in found:
            click.echo(self._json(source, line) if self._as_json else self._text(source, line))

    def _text(self, source: Source, line: LogLine) -> str:
        words = [line.at] if self._times or source.is_part else []
        words += [self._prefixes[source.name]] if source.name in self._prefixes else []
        return " ".join((*words, rows.plain(line.text) if source.is_part else line.text))

    @staticmethod
    def _json(source: Source, line: LogLine) -> str:
        if source.is_part:
            said = {"at": line.at, "part": source.name, "text": line.text}
            return json.dumps({**log_sources.keys(source, line), **said}, ensure_ascii=False)
        entry, _, unit = source.name.partition("/")
        said = {"at": line.at, "entry": entry, "unit": unit, "text": line.text}
        return json.dumps(said, ensure_ascii=False)
