"""What a plan's difference does to each entry, in the words of every command that tells of it.

The words are those of docs/glossary.md. What is to come is said with the verb, what came of it with
its participle: `restart`, then `restarted`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keyplane.model.plan import Diff


class Act(StrEnum):
    START = "start"
    STOP = "stop"
    RESTART = "restart"
    CHANGE = "apply, with no restart"
    """The key moved and no unit's digest: resources, listens, volumes or secrets."""
    RELOAD = "reload"
    LIVE = "apply live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry."""

    entry: str
    act: Act
    units: tuple[str, ...] = ()
    """Those that restart."""
    why: str = ""

    @property
    def told(self) -> str:
        return " ".join((self.act.value, ", ".join(self.units))).rstrip()


def lines(diff: "Diff") -> Iterator[Line]:
    """A line for each entry that anything happens to, by name."""
    before, after = set(diff.deactivate), set(diff.activate)
    found: list[Line] = []
    for entry in before | after:
        units = tuple(diff.units.get(entry, ()))
        why = ", ".join(diff.why.get(entry, ()))
        if entry not in before:
            found.append(Line(entry=entry, act=Act.START))
        elif entry not in after:
            found.append(Line(entry=entry, act=Act.STOP))
        elif units:
            found.append(Line(entry=entry, act=Act.RESTART, units=units, why=why))
        else:
            found.append(Line(entry=entry, act=Act.CHANGE, why=why))
    found += [Line(entry=entry, act=Act.RELOAD, why="configData") for entry in diff.reload]
    found += [Line(entry=entry, act=Act.LIVE) for entry in diff.rewire]
    yield from sorted(found, key=lambda line: line.entry)


def count(diff: "Diff", cascade: int) -> str:
    """`1 start, 2 restart (1 by the cascade alone), 12 untouched`; what is none is left out."""
    numbers = dict.fromkeys(Act, 0)
    for line in lines(diff):
        numbers[line.act] += 1
    parts = [f"{number} {act.value}" for act, number in numbers.items() if number]
    moved = numbers[Act.RESTART] + numbers[Act.CHANGE]
    if cascade:
        parts.append(f"{cascade} of {moved} keys moved by the cascade alone")
    return ", ".join((*(parts or ["no difference"]), f"{len(diff.untouched)} untouched"))
