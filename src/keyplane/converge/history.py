"""What happened on the machine: noted as it is folded in, bounded, and told once.

Numbered without a gap, so that whoever is told can say what he was not told. A history that was
lost is begun anew under another name.
"""

from collections import Counter
from dataclasses import dataclass

from keyplane.converge.frozen import replace
from keyplane.model.names import EntryId, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence

KEPT_MAX = 500
"""Some 70 KiB, which are written anew with each: a week of a machine that is let alone."""
TOLD_MAX = 100
"""So many go with one report: a machine that was cut off tells the rest with the next ones."""
DETAIL_MAX = 300
"""Characters: a line or two of a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Outlives the agent."""

    name: str
    """The life of the agent that began it."""
    last: int = 0
    kept: tuple[Occurrence, ...] = ()
    told: int = 0
    """The number of the last one that the controller has taken in."""

    def untold(self) -> tuple[Occurrence, ...]:
        """What goes with the next report."""
        if self.told >= self.last:
            return ()
        return tuple(each for each in self.kept if each.number > self.told)[:TOLD_MAX]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An occurrence before it is numbered."""

    entry: EntryId
    unit: UnitName
    act: Act
    cause: Cause
    detail: str = ""
    who: str = ""


def add(history: History, notes: list[Note], *, at_ms: int) -> History:
    """With these at its end. The entry with most of them loses its oldest, where room is needed."""
    kept, number = list(history.kept), history.last
    for note in notes:
        number += 1
        kept.append(
            Occurrence(
                number=number,
                at_ms=at_ms,
                entry=note.entry,
                unit=note.unit,
                act=note.act,
                cause=note.cause,
                detail=note.detail[:DETAIL_MAX],
                who=note.who,
            )
        )
    while len(kept) > KEPT_MAX:
        ((most, _),) = Counter(each.entry for each in kept).most_common(1)
        del kept[next(at for at, each in enumerate(kept) if each.entry == most)]
    return replace(history, last=number, kept=tuple(kept))


def told(history: History, number: int) -> History:
    return history if number <= history.told else replace(history, told=number)
