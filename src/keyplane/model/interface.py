"""Interfaces: what a consumer asks of a provider, and what it is given back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ValueType(StrEnum):
    """The type of a value that crosses an edge; `list` is of strings."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One named interface, wherever it was declared."""

    name: str
    request: Mapping[str, ValueType] = field(default_factory=dict[str, ValueType])
    exports: Mapping[str, ValueType] = field(default_factory=dict[str, ValueType])
