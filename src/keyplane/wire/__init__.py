"""Messages as bytes: the only place that knows them. Pure; keys come from the caller.

Everything is msgpack. A declaration holds the bytes of files, and a signed one holds a body of
bytes: msgpack carries both as they are, where JSON would carry them as base64 of base64, at
nearly twice the size.
"""

from keyplane.wire.declaration import digest_of
from keyplane.wire.facts import Facts, decode_facts, encode_facts, fact_fault
from keyplane.wire.messages import (
    Answer,
    Ask,
    Beat,
    decode_answer,
    decode_ask,
    decode_beat,
    encode,
)
from keyplane.wire.refusal import Refused, TooLarge, Why
from keyplane.wire.report import decode_report, encode_report
from keyplane.wire.signed import (
    SIGNED_SIZE_MAX,
    WIRE_VERSION,
    generation_of,
    open_declaration,
    sign,
    too_large,
)
from keyplane.wire.word import Word, decode_word, encode_word

__all__ = [
    "SIGNED_SIZE_MAX",
    "WIRE_VERSION",
    "Answer",
    "Ask",
    "Beat",
    "Facts",
    "Refused",
    "TooLarge",
    "Why",
    "Word",
    "decode_answer",
    "decode_ask",
    "decode_beat",
    "decode_facts",
    "decode_report",
    "decode_word",
    "digest_of",
    "encode",
    "encode_facts",
    "encode_report",
    "encode_word",
    "fact_fault",
    "generation_of",
    "open_declaration",
    "sign",
    "too_large",
]
