"""What a message that is not taken is answered with. Expected trouble, so a value."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec

from keyplane.model.names import MachineName

T = TypeVar("T")

_UNKNOWN_FIELD = re.compile(
    r"Object contains unknown field `(?P<field>.*?)`(?: - at `(?P<at>.*)`)?"
)


class Why(StrEnum):
    """Why a message was refused."""

    MALFORMED = "malformed"
    SIGNATURE = "signature"
    VERSION = "version"
    UNKNOWN_FIELD = "unknown-field"
    MACHINE = "machine"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Refused:
    why: Why
    reason: str
    """For a person; names the field, machine or version at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLarge:
    """A declaration that the bus would not carry."""

    machine: MachineName
    size: int
    size_max: int

    def __str__(self) -> str:
        return (
            f"the declaration of {self.machine} is {self.size} bytes, and {self.size_max} is the "
            "most that the bus carries: put large files into an archive"
        )


def decode(decoder: msgspec.msgpack.Decoder[T], data: bytes, what: str) -> T | Refused:
    """The message, or why these bytes are none. Raises for no bytes whatever."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as err:
        found = _UNKNOWN_FIELD.fullmatch(str(err))
        if found is None:
            return Refused(Why.MALFORMED, f"{what}: {err}")
        at = f" at {found['at']}" if found["at"] else ""
        return Refused(Why.UNKNOWN_FIELD, f"{what}: unknown field `{found['field']}`{at}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as err:
        return Refused(Why.MALFORMED, f"{what}: {err}")
