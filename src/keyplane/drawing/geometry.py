"""Points and boxes, in whole pixels."""

from dataclasses import dataclass

Point = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    x: int
    y: int
    width: int
    height: int
