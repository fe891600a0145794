"""A declaration under the controller's signature: for one machine, under one number.

An ed25519 signature of 64 bytes, then the envelope that it covers, byte for byte: nothing is
decoded before the signature was found good.
"""

import msgspec
import nacl.exceptions
import nacl.signing

from keyplane.model.declaration import Declaration, OfferNumber
from keyplane.model.names import Digest, MachineName
from keyplane.wire import declaration as content
from keyplane.wire.refusal import Refused, TooLarge, Why, decode

WIRE_VERSION = 1
"""The version of declarations that `sign` makes and `open_declaration` reads."""

SIGNED_SIZE_MAX = 8 * 1024 * 1024 - 4 * 1024
"""The bus takes messages of 8 MiB, the most that nats-server runs without a warning; the
4 KiB are for the answer around the declaration."""

_SIGNATURE_SIZE = 64
_PURPOSE = b"keyplane declaration\0"
"""Signed too, so that no signature made for another purpose passes for this one."""


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wire: int
    machine: MachineName
    offer: OfferNumber
    generation: Digest
    digest: Digest
    body: bytes


class _AnyVersion(msgspec.Struct, frozen=True):
    wire: int


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Envelope)
_VERSION_DECODER = msgspec.msgpack.Decoder(_AnyVersion)


def sign(declaration: Declaration, signing_key: nacl.signing.SigningKey) -> bytes | TooLarge:
    payload = _payload(declaration)
    if isinstance(payload, TooLarge):
        return payload
    return signing_key.sign(_PURPOSE + payload).signature + payload


def too_large(declaration: Declaration) -> TooLarge | None:
    """Whether `sign` would refuse it, for who has no key."""
    payload = _payload(declaration)
    return payload if isinstance(payload, TooLarge) else None


def _payload(declaration: Declaration) -> bytes | TooLarge:
    body = content.encode_body(declaration)
    envelope = _Envelope(
        wire=WIRE_VERSION,
        machine=declaration.machine,
        offer=declaration.offer,
        generation=declaration.generation,
        digest=content.digest_of_body(body),
        body=body,
    )
    payload = _ENCODER.encode(envelope)
    size = _SIGNATURE_SIZE + len(payload)
    if size > SIGNED_SIZE_MAX:
        return TooLarge(machine=declaration.machine, size=size, size_max=SIGNED_SIZE_MAX)
    return payload


def generation_of(signed: bytes) -> Digest | None:
    """Which plan it says it is of, believed unseen: for who signed it."""
    envelope = decode(_DECODER, signed[_SIGNATURE_SIZE:], "declaration")
    return None if isinstance(envelope, Refused) else envelope.generation


def open_declaration(
    signed: bytes, *, key: nacl.signing.VerifyKey, machine: MachineName
) -> Declaration | Refused:
    """The declaration, if `key` signed it for `machine`. Whether it is new is the agent's matter."""
    signature, payload = signed[:_SIGNATURE_SIZE], signed[_SIGNATURE_SIZE:]
    if len(signature) < _SIGNATURE_SIZE:
        return Refused(Why.SIGNATURE, "the declaration is shorter than a signature")
    try:
        key.verify(_PURPOSE + payload, signature)
    except nacl.exceptions.BadSignatureError:
        return Refused(
            Why.SIGNATURE,
            "the declaration is not signed by the controller key that this machine joined with",
        )
    version = decode(_VERSION_DECODER, payload, "declaration")
    if isinstance(version, Refused):
        return version
    if version.wire != WIRE_VERSION:
        return Refused(
            Why.VERSION,
            f"the declaration is of wire version {version.wire}; "
            f"this agent reads version {WIRE_VERSION}",
        )
    envelope = decode(_DECODER, payload, "declaration")
    if isinstance(envelope, Refused):
        return envelope
    return _open_envelope(envelope, machine)


def _open_envelope(envelope: _Envelope, machine: MachineName) -> Declaration | Refused:
    if envelope.machine != machine:
        return Refused(
            Why.MACHINE, f"the declaration is for machine {envelope.machine}; this is {machine}"
        )
    digest = content.digest_of_body(envelope.body)
    if digest != envelope.digest:
        return Refused(
            Why.DIGEST, f"the declaration says that its digest is {envelope.digest}; it is {digest}"
        )
    body = content.decode_body(envelope.body)
    if isinstance(body, Refused):
        return body
    return Declaration(
        machine=machine,
        offer=envelope.offer,
        generation=envelope.generation,
        entries=content.entries_of(body),
        contents=body.contents,
        address=body.address,
        frozen=body.frozen,
        rates=content.rates_of(body),
    )
