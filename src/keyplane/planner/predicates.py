"""Whether a fact meets a predicate: exists, absent, equals, one-of, in-bounds, matches."""

import re
from collections.abc import Mapping

from keyplane.documents import patterns
from keyplane.documents.trees import is_list
from keyplane.model.module import Json
from keyplane.planner import canonical, settings

_BOUND = re.compile(r"\s*(>=|<=|==|!=|>|<|=)\s*(\S+)\s*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?", re.ASCII)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*", re.ASCII)


def met(requirement: Mapping[str, Json], value: Json) -> bool:
    """`value` is the fact; None where its machine does not say it."""
    present = value is not None and value is not False
    match requirement["predicate"]:
        case "exists":
            return present
        case "absent":
            return not present
        case "equals":
            return value is not None and settings.same(value, requirement.get("value"))
        case "one-of":
            values = requirement.get("values")
            if value is None or not is_list(values):
                return False
            return any(settings.same(value, item) for item in values)
        case "in-bounds":
            return value is not None and in_bounds(value, str(requirement.get("bounds", "")))
        case "matches":
            return value is not None and _matches(value, str(requirement.get("pattern", "")))
        case _:
            return False


def in_bounds(value: Json, bounds: str) -> bool:
    """Whether a number or a dotted version lies within bounds such as `>= 2, < 8`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    for bound in bounds.split(","):
        found = _BOUND.fullmatch(bound)
        order = _compare(value, found[2]) if found is not None else None
        if found is None or order is None:
            return False
        fits = {
            ">=": order >= 0,
            "<=": order <= 0,
            ">": order > 0,
            "<": order < 0,
            "=": order == 0,
            "==": order == 0,
            "!=": order != 0,
        }
        if not fits[found[1]]:
            return False
    return True


def _compare(value: float | str, limit: str) -> int | None:
    """-1, 0 or 1; None where the two cannot be compared. Text is a version, `10` above `9.9`."""
    number = _number(limit)
    if number is not None and isinstance(value, int | float):
        return (value > number) - (value < number)
    left, right = _version(canonical.text(value)), _version(limit)
    if left is None or right is None:
        return None
    length = max(len(left), len(right))
    left, right = left + [0] * (length - len(left)), right + [0] * (length - len(right))
    return (left > right) - (left < right)


def _number(text: str) -> int | float | None:
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > _DIGITS_MAX:
        return None
    return int(text) if found[1] is None and found[2] is None else float(text)


def _version(text: str) -> list[int] | None:
    found = _VERSION.match(text.strip())
    if found is None or len(found[0]) > _DIGITS_MAX:
        return None
    return [int(part) for part in found[0].split(".")]


_DIGITS_MAX = 1000
"""Longer texts are no versions; reading one as a number would be slow."""


def _matches(value: Json, pattern: str) -> bool:
    return patterns.finds(pattern, canonical.text(value))


def describe(requirement: Mapping[str, Json]) -> str:
    """The requirement in a few words."""
    operand = next(
        (
            canonical.text(requirement[name])
            for name in ("value", "values", "pattern", "bounds")
            if name in requirement
        ),
        "",
    )
    return f"{requirement['subject']} {requirement['predicate']} {operand}".rstrip()
