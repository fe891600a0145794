"""Durations as people write them: one whole number and one unit, no leading zero, not zero."""

import re
from dataclasses import dataclass, field

_FORM = re.compile(r"([1-9][0-9]{0,17})(ms|s|m|h|d)", re.ASCII)
"""Eighteen digits are thirty million years even in milliseconds; thousands would be no `int`."""
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Duration:
    """Kept as written, compared as time."""

    text: str = field(compare=False)
    milliseconds: int

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Duration | None:
    """The duration that the text says, or None if it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    return Duration(text, int(found[1]) * _UNIT_MS[found[2]])


def print_ms(milliseconds: int) -> str:
    """In the largest unit that leaves a whole number."""
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _UNIT_MS[unit] == 0:
            return f"{milliseconds // _UNIT_MS[unit]}{unit}"
    return f"{milliseconds}ms"
