"""A diagnostic: what is wrong or doubtful, where, and how to mend it. A value, never thrown."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a row is; only errors make the exit status 3."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a plan's diagnostics."""

    code: str
    """One of the codes of the contract, such as `slot-unbound`."""
    severity: Severity = Severity.ERROR
    subject: str
    """`INSTANCE:ROLE`, an entry id, or a file relative to the fleet directory."""
    path: str = ""
    """From the role, or from the root of the file."""
    message: str
    resolution: tuple[str, ...] = ()
    """Ways to mend it, the likeliest first."""


def in_order(rows: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors first, then by subject, path, code and message; no row twice."""
    return sorted(
        set(rows),
        key=lambda row: (
            _RANK[row.severity],
            row.subject,
            row.path,
            row.code,
            row.message,
            row.resolution,
        ),
    )
