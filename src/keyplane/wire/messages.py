"""The small messages: an ask, its answer, a heartbeat.

Decoding skips unknown fields, as machines and controllers of different releases need: what must
not be misread is inside the signed declaration, which is strict.
"""

from collections.abc import Mapping

import msgspec

from keyplane.model.declaration import OfferNumber
from keyplane.model.names import Digest, EntryId
from keyplane.wire.refusal import Refused, decode


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """A machine asks what it should be."""

    have: OfferNumber
    """The highest offer that was accepted."""
    wire: int
    """The newest version of declarations that the agent reads."""
    boot: str
    """Names the agent's life."""
    generation: Digest | None = None
    """Of the declaration at hand: a controller that was restored may have given its number to
    another one."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    declaration: bytes | None
    """Signed; None when nothing is newer than what the asker has."""
    highest: OfferNumber
    """The highest that the controller has for this machine."""
    heard: int | None = None
    """The sequence of the report that the controller holds of the asker's life, 0 for none; None
    where it does not say. One below what the asker believes to have told is to be told again."""
    facts: str | None = None
    """The digest of the facts that the controller has of the machine; None where it does not say."""
    permits: Mapping[EntryId, str] = {}
    """Those that the asker's entries have, by entry, each under the name it was asked by."""


class Beat(msgspec.Struct, frozen=True, kw_only=True, tag="beat"):
    offer: OfferNumber
    """The highest offer that was accepted: a controller that has a higher one hints again."""
    sequence: int
    """Of the last report that was made."""
    generation: Digest | None = None
    """As in an ask."""
    boot: str | None = None
    """Names the agent's life; None of an agent that does not say it."""
    facts: str | None = None
    """The digest of what the machine says of itself: a controller that has others hints."""


_ENCODER = msgspec.msgpack.Encoder()
_ASK = msgspec.msgpack.Decoder(Ask)
_ANSWER = msgspec.msgpack.Decoder(Answer)
_BEAT = msgspec.msgpack.Decoder(Beat)


def encode(message: Ask | Answer | Beat) -> bytes:
    return _ENCODER.encode(message)


def decode_ask(data: bytes) -> Ask | Refused:
    return decode(_ASK, data, "ask")


def decode_answer(data: bytes) -> Answer | Refused:
    return decode(_ANSWER, data, "answer")


def decode_beat(data: bytes) -> Beat | Refused:
    return decode(_BEAT, data, "beat")
