"""Where the rounds put the rows that they find.

A fault of a role is one row; a fault of single placements is a row for each. Faults that are met
placement by placement, yet are the role's own, become one row if every placement has them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from keyplane.documents.rows import like
from keyplane.model.diagnostic import Diagnostic, Severity

ENTRY = "\x00"
"""Stands in a message where the entry's id goes."""
MACHINE = "\x01"
"""Stands in a message where the entry's machine goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with a role as it is bound and placed."""

    code: str
    path: str
    message: str
    resolution: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    alone: bool = False
    """It is of one placement whatever the others say."""


_SUBJECT_MAX = 500
"""Rows of one subject: nobody reads more, and a document can have a million faults."""
_LISTED_MAX = 100
"""Names in one row."""


@dataclass(slots=True)
class Rows:
    """All rows of one plan."""

    found: list[Diagnostic] = field(default_factory=list[Diagnostic])
    placed: dict[tuple[str, Fault], set[str]] = field(
        default_factory=dict[tuple[str, Fault], set[str]]
    )
    _counted: dict[str, int] = field(default_factory=dict[str, int])
    """By subject."""

    def is_full(self, subject: str) -> bool:
        """Whether no more is told of a subject: what would be said needs no working out."""
        return self._counted.get(subject, 0) > _SUBJECT_MAX

    def add(
        self,
        code: str,
        subject: str,
        path: str,
        message: str,
        *resolution: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        if self.is_full(subject):
            return
        counted = self._counted[subject] = self._counted.get(subject, 0) + 1
        if counted > _SUBJECT_MAX:
            path, resolution = "", ()
            message = f"more than {_SUBJECT_MAX} problems of {subject}; the rest are not listed"
        self.found.append(
            Diagnostic(
                code=code,
                severity=severity,
                subject=subject,
                path=path,
                message=message,
                resolution=resolution,
            )
        )

    def place(self, role: str, machines: Iterable[str], fault: Fault) -> None:
        """Note a fault of a role's placements on these machines."""
        self.placed.setdefault((role, fault), set()).update(machines)

    @property
    def none(self) -> bool:
        return not self.found and not self.placed

    def places(self, code: str) -> bool:
        """Whether a fault of a placement has the code."""
        return any(fault.code == code for _, fault in self.placed)

    def take(self, other: "Rows") -> None:
        """All that another has found."""
        self.found.extend(other.found)
        for (role, fault), machines in other.placed.items():
            self.place(role, machines, fault)

    def settle(self, placements: dict[str, int]) -> None:
        """Turn the faults of placements into rows; `placements` counts those of each role."""
        for (role, fault), machines in self.placed.items():
            ordered = sorted(machines)
            if not fault.alone and len(ordered) == placements.get(role, 0):
                shown = f"{role}@{ordered[0]}"
                if len(ordered) > 1:
                    shown += f" and {len(ordered) - 1} more"
                self._row(fault, role, shown, ordered[0])
                continue
            for machine in ordered:
                entry = f"{role}@{machine}"
                self._row(fault, entry, entry, machine)
        self.placed.clear()

    def _row(self, fault: Fault, subject: str, entry: str, machine: str) -> None:
        def said(text: str) -> str:
            return text.replace(ENTRY, entry).replace(MACHINE, machine)

        self.add(
            fault.code,
            subject,
            fault.path,
            said(fault.message),
            *map(said, fault.resolution),
            severity=fault.severity,
        )


def listed(names: Iterable[str], none: str = "none") -> str:
    several = sorted(names)
    more = len(several) - _LISTED_MAX
    end = f" and {more} more" if more > 0 else ""
    return (", ".join(several[:_LISTED_MAX]) or none) + end


def did_you_mean(name: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    """Ways to mend a name that is not known: the one that was meant, and all that are."""
    names = sorted(known)
    if not names:
        return (f"there are no {what}",)
    close = like(name, names)
    ways = () if close is None else (f"write `{close}`",)
    return (*ways, f"{what}: {listed(names)}")
