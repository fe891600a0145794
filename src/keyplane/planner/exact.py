"""Whether two values are the same to the byte: `true` is not `1`, nor is `1.0`, nor is order lost.

Python holds the three to be equal, which is not good enough to conclude that nothing changed.
"""

from dataclasses import fields, is_dataclass
from typing import Any, TypeGuard

from keyplane.documents.trees import is_list, is_table


def same(left: Any, right: Any) -> bool:
    """What is compared by identity, such as an offer, is the same if it is the same thing."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if is_table(left):
        return list(left) == list(right) and all(map(same, left.values(), right.values()))
    if is_list(left) or _is_tuple(left):
        return len(left) == len(right) and all(map(same, left, right))
    if is_dataclass(left) and type(left).__eq__ is not object.__eq__:
        return all(same(getattr(left, one.name), getattr(right, one.name)) for one in fields(left))
    return left == right


def _is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)
