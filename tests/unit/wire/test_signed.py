"""What an agent takes for a declaration, and what it refuses."""

import dataclasses
import hashlib
import random
from typing import Any

import msgspec
import nacl.signing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane import wire
from keyplane.model.declaration import Declaration, OfferNumber
from keyplane.model.names import MachineName
from keyplane.model.volumes import SaveOrder, TakeOrder
from keyplane.wire import Refused, TooLarge, Why
from tests.unit.wire.values import ALPHA, DECLARATION, KEY, declarations, digest


def signed(declaration: Declaration = DECLARATION) -> bytes:
    made = wire.sign(declaration, KEY)
    assert isinstance(made, bytes)
    return made


def opened(data: bytes) -> Declaration | Refused:
    return wire.open_declaration(data, key=KEY.verify_key, machine=ALPHA)


def envelope() -> dict[str, Any]:
    """What the signature covers, as a faulty controller would change it before it signs."""
    return msgspec.msgpack.decode(signed()[64:])


def signed_envelope(changed: dict[str, Any]) -> bytes:
    payload = msgspec.msgpack.encode(changed)
    return KEY.sign(b"keyplane declaration\0" + payload).signature + payload


def with_body(body: Any) -> bytes:
    data = msgspec.msgpack.encode(body)
    sha256 = f"sha256-{hashlib.sha256(data).hexdigest()}"
    return signed_envelope(envelope() | {"body": data, "digest": sha256})


@given(declarations)
def test_round_trip(declaration: Declaration) -> None:
    """What was signed is what is opened."""
    assert (
        wire.open_declaration(signed(declaration), key=KEY.verify_key, machine=declaration.machine)
        == declaration
    )


def test_unchanged_envelope_is_taken() -> None:
    """The forgeries below fail for what they change, and not for how they are made."""
    assert opened(signed_envelope(envelope())) == DECLARATION
    assert opened(with_body(msgspec.msgpack.decode(envelope()["body"]))) == DECLARATION


def test_one_flipped_byte_anywhere_is_refused() -> None:
    """Each byte of a signed declaration is covered."""
    data = signed()
    for position in range(len(data)):
        for mask in (0x01, 0x80):
            broken = bytearray(data)
            broken[position] ^= mask
            found = opened(bytes(broken))
            assert isinstance(found, Refused), position
            assert found.why is Why.SIGNATURE


@given(st.data())
@settings(max_examples=50)
def test_one_changed_byte_of_any_declaration_is_refused(data: st.DataObject) -> None:
    broken = bytearray(signed(data.draw(declarations)))
    broken[data.draw(st.integers(0, len(broken) - 1))] ^= data.draw(st.integers(1, 255))
    assert isinstance(opened(bytes(broken)), Refused)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 200])
def test_cut_short_is_refused(length: int) -> None:
    assert isinstance(opened(signed()[:length]), Refused)


def test_wrong_key_is_refused() -> None:
    """A declaration by another controller than the one that the machine joined is not taken."""
    other = nacl.signing.SigningKey(bytes(32)).verify_key
    found = wire.open_declaration(signed(), key=other, machine=ALPHA)
    assert isinstance(found, Refused)
    assert found.why is Why.SIGNATURE
    assert "not signed by the controller key" in found.reason


def test_wrong_machine_is_refused() -> None:
    """Another machine's declaration is not taken, though its signature is good."""
    found = wire.open_declaration(signed(), key=KEY.verify_key, machine=MachineName("beta"))
    assert found == Refused(Why.MACHINE, "the declaration is for machine alpha; this is beta")


def test_body_of_another_digest_is_refused() -> None:
    found = opened(signed_envelope(envelope() | {"digest": digest("f")}))
    assert isinstance(found, Refused)
    assert found.why is Why.DIGEST
    assert digest("f") in found.reason


def test_unknown_version_is_refused_by_number() -> None:
    """A newer version is refused as such, whatever else it has changed."""
    found = opened(signed_envelope({"wire": 2, "machine": {"what": "else"}}))
    assert found == Refused(
        Why.VERSION, "the declaration is of wire version 2; this agent reads version 1"
    )


def test_unknown_field_is_refused_by_name() -> None:
    """At any depth, and the declaration as a whole."""
    unit = {"digest": "d", "kind": "process", "colour": "red"}
    entry = {"key": "k", "module": "m", "version": "1", "units": {"u": unit}}
    found = opened(with_body({"entries": {"a:b@alpha": entry}}))
    assert isinstance(found, Refused)
    assert found.why is Why.UNKNOWN_FIELD
    assert "unknown field `colour` at $.entries[...].units[...]" in found.reason
    for data in (with_body({"colour": 1}), signed_envelope(envelope() | {"colour": 1})):
        found = opened(data)
        assert isinstance(found, Refused)
        assert found == Refused(Why.UNKNOWN_FIELD, "declaration: unknown field `colour`")


def test_wrong_type_is_refused_with_its_place() -> None:
    found = opened(with_body({"entries": {"a:b@alpha": {"key": 1}}}))
    assert isinstance(found, Refused)
    assert found.why is Why.MALFORMED
    assert "$.entries[...].key" in found.reason


def test_the_largest_declaration() -> None:
    """One that the bus would not carry is a value that says whose it is and how large."""
    filler = wire.SIGNED_SIZE_MAX - len(signed(with_content(0))) - 5
    fits = wire.sign(with_content(filler), KEY)
    assert isinstance(fits, bytes)
    assert len(fits) == wire.SIGNED_SIZE_MAX
    too_large = wire.sign(with_content(filler + 1), KEY)
    assert isinstance(too_large, TooLarge)
    assert too_large.size == wire.SIGNED_SIZE_MAX + 1
    assert f"declaration of alpha is {too_large.size} bytes" in str(too_large)


def with_content(size: int) -> Declaration:
    return dataclasses.replace(DECLARATION, contents={digest("3"): bytes(size)})


def test_digest_is_of_what_the_machine_should_be() -> None:
    """It moves with any entry or content; the number and the generation do not count."""
    same = dataclasses.replace(DECLARATION, offer=OfferNumber(9, 9), generation=digest("e"))
    assert wire.digest_of(same) == wire.digest_of(DECLARATION)
    fewer = dataclasses.replace(DECLARATION, entries={})
    other = dataclasses.replace(DECLARATION, contents={digest("3"): b"x"})
    assert len({wire.digest_of(each) for each in (DECLARATION, fewer, other)}) == 3


@given(declarations, st.randoms(use_true_random=False))
def test_digest_does_not_depend_on_order(declaration: Declaration, order: random.Random) -> None:
    """Equal declarations have one digest, in whatever order their mappings were filled."""
    entries = list(declaration.entries.items())
    contents = list(declaration.contents.items())
    order.shuffle(entries)
    order.shuffle(contents)
    shuffled = dataclasses.replace(declaration, entries=dict(entries), contents=dict(contents))
    assert wire.digest_of(shuffled) == wire.digest_of(declaration)


def test_orders_on_volumes_are_opened_as_they_were_signed() -> None:
    """What is not known yet, what is empty, and an archive are three things."""
    save = SaveOrder(number=7, paths=("/var/lib/web",), gives=True, to="shop:web@beta")
    held = {"/var/lib/web": digest("7"), "/srv/new": None}
    for take in (TakeOrder(number=6, contents=held), TakeOrder(number=6, source="x"), None):
        entries = {
            name: dataclasses.replace(each, save=save, take=take)
            for name, each in DECLARATION.entries.items()
        }
        ordered = dataclasses.replace(DECLARATION, entries=entries)
        assert opened(signed(ordered)) == ordered
