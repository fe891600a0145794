"""What a provider's agent says of one dynamic export.

It names the export, so that a word that was had elsewhere is none of another's. The number rises
with each other word, across lives of the agent: an old word never replaces a newer one.
"""

import msgspec

from keyplane.wire.refusal import Refused, Why, decode


class Word(msgspec.Struct, frozen=True, kw_only=True, tag="value"):
    export: str
    number: int
    value: str | None
    """None: it is missing, the source being gone."""


_ENCODER = msgspec.msgpack.Encoder()
_WORD = msgspec.msgpack.Decoder(Word)


def encode_word(word: Word) -> bytes:
    return _ENCODER.encode(word)


def decode_word(data: bytes, *, export: str) -> Word | Refused:
    """The word, if it is of that export."""
    word = decode(_WORD, data, "value")
    if isinstance(word, Refused):
        return word
    if word.export != export:
        return Refused(Why.MACHINE, f"the word of {export} is one of {word.export}")
    return word
