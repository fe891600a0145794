"""What a plain tree is made of, said so that a type checker believes it."""

from typing import TypeGuard

from keyplane.model.module import Json


def is_table(value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)
