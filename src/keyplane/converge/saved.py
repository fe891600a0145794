"""What outlives an agent, as bytes. Versioned JSON, so that a person can read it on the machine.

The declaration and the ledger are kept apart: the first is large and rarely changes. Neither has
to be as new as the other: the ledger tells what may be on the machine, whatever was declared. The
history is for people, and nothing is decided by it.
"""

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


class _Saved(msgspec.Struct, Generic[T], frozen=True):
    version: int
    content: T


class _Version(msgspec.Struct, frozen=True):
    version: int


_ENCODER = msgspec.json.Encoder()
_VERSION = msgspec.json.Decoder(_Version)
_LEDGER = msgspec.json.Decoder(_Saved[Ledger])
_DECLARATION = msgspec.json.Decoder(_Saved[Declaration])
_HISTORY = msgspec.json.Decoder(_Saved[History])
_REACTIONS = msgspec.json.Decoder(_Saved[reaction_state.State])


def encode_ledger(ledger: Ledger) -> bytes:
    return _ENCODER.encode(_Saved(VERSION, ledger))


def encode_declaration(declaration: Declaration) -> bytes:
    return _ENCODER.encode(_Saved(VERSION, declaration))


def encode_reactions(reactions: reaction_state.State) -> bytes:
    return _ENCODER.encode(_Saved(VERSION, replace(reactions, readers={})))


def decode_ledger(data: bytes | None) -> Ledger | None:
    """None if it is torn or of another version: what matches is then adopted."""
    return _decode(_LEDGER, data)


def decode_declaration(data: bytes | None) -> Declaration | None:
    return _decode(_DECLARATION, data)


def encode_history(history: History) -> bytes:
    return _ENCODER.encode(_Saved(VERSION, history))


def decode_history(data: bytes | None) -> History | None:
    return _decode(_HISTORY, data)


def decode_reactions(data: bytes | None) -> reaction_state.State | None:
    return _decode(_REACTIONS, data)


def _decode(decoder: "msgspec.json.Decoder[_Saved[T]]", data: bytes | None) -> T | None:
    if data is None:
        return None
    try:
        if _VERSION.decode(data).version != VERSION:
            return None
        return decoder.decode(data).content
    except msgspec.MsgspecError:
        return None
