"""What outlives an agent, as bytes. Versioned JSON, so that a person can read it on the machine.

The declaration and the ledger are kept apart: the first is large and rarely changes. Neither has
to be as new as the other: the ledger tells what may be on the machine, whatever was declared. The
history is for people, and nothing is decided by it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from keyplane.converge import reaction_state
from keyplane.converge.frozen import replace
from keyplane.converge.history import History
from keyplane.converge.state import Ledger
from keyplane.model.declaration import Declaration

VERSION = 1
LEDGER = "ledger"
DECLARATION = "declaration"
HISTORY = "history"
REACTIONS = "reactions"
"""The names under which they are saved."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierLife:
    """What an earlier life left; None for what it did not, or what cannot be read."""

    ledger: Ledger | None = None
    declaration: Declaration | None = None
    history: History | None = None
    reactions: reaction_state.State | None = None


class _File(msgspec.Struct, Generic[T], frozen=True):
    version: int
    content: T


class _Version(msgspec.Struct, frozen=True):
    version: int


_ENCODER = msgspec.json.Encoder()
_VERSION = msgspec.json.Decoder(_Version)
_LEDGER = msgspec.json.Decoder(_File[Ledger])
_DECLARATION = msgspec.json.Decoder(_File[Declaration])
_HISTORY = msgspec.json.Decoder(_File[History])
_REACTIONS = msgspec.json.Decoder(_File[reaction_state.State])


def read(file: Callable[[str], bytes | None]) -> EarlierLife:
    """All of it, with the content of each file by its name."""
    return EarlierLife(
        ledger=decode_ledger(file(LEDGER)),
        declaration=decode_declaration(file(DECLARATION)),
        history=decode_history(file(HISTORY)),
        reactions=decode_reactions(file(REACTIONS)),
    )


def encode_ledger(ledger: Ledger) -> bytes:
    return _ENCODER.encode(_File(VERSION, ledger))


def encode_declaration(declaration: Declaration) -> bytes:
    return _ENCODER.encode(_File(VERSION, declaration))


def encode_reactions(reactions: reaction_state.State) -> bytes:
    return _ENCODER.encode(_File(VERSION, replace(reactions, readers={})))


def decode_ledger(data: bytes | None) -> Ledger | None:
    """None if it is torn or of another version: what matches is then adopted."""
    return _decode(_LEDGER, data)


def decode_declaration(data: bytes | None) -> Declaration | None:
    return _decode(_DECLARATION, data)


def encode_history(history: History) -> bytes:
    return _ENCODER.encode(_File(VERSION, history))


def decode_history(data: bytes | None) -> History | None:
    return _decode(_HISTORY, data)


def decode_reactions(data: bytes | None) -> reaction_state.State | None:
    return _decode(_REACTIONS, data)


def _decode(decoder: "msgspec.json.Decoder[_File[T]]", data: bytes | None) -> T | None:
    if data is None:
        return None
    try:
        if _VERSION.decode(data).version != VERSION:
            return None
        return decoder.decode(data).content
    except msgspec.MsgspecError:
        return None
