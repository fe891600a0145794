"""Keys on disk: NKEYs of bus principals, and the controller's signing key.

Made where they are used, and never sent. A file that others can read is refused: whoever read it
once is that principal for good.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# The `nkeys` package has no types.

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nacl.signing
import nkeys

from keyplane.adapters.nats import private_file
from keyplane.ports.bus import BusKeyError


@dataclass(frozen=True, slots=True, kw_only=True)
class BusKey:
    """The NKEY of one principal."""

    seed: str = field(repr=False)
    public: str


def ensure_bus_key(path: Path) -> BusKey:
    """The key at that path; made if there is none."""
    text = _ensure(path, _make_seed).strip()
    try:
        _, raw = nkeys.decode_seed(text)
        # The library does not look at the checksum.
        if text != _seed_of(raw):
            raise BusKeyError(f"{path} holds no NKEY seed of a user")
        public = bytes(nkeys.from_seed(text).public_key)
        return BusKey(seed=text.decode(), public=public.decode())
    except (nkeys.NkeysError, ValueError) as err:
        raise BusKeyError(f"{path} holds no NKEY seed of a user") from err


def signing_key(path: Path) -> nacl.signing.SigningKey:
    """The principal's key at that path, to sign with what does not go by the bus."""
    _, raw = nkeys.decode_seed(ensure_bus_key(path).seed.encode())
    return nacl.signing.SigningKey(bytes(raw))


def ensure_signing_key(path: Path) -> nacl.signing.SigningKey:
    """The ed25519 key at that path; made if there is none."""
    text = _ensure(path, lambda: secrets.token_hex(32).encode() + b"\n")
    return nacl.signing.SigningKey(_key_bytes(text, str(path)))


def print_verify_key(key: nacl.signing.VerifyKey) -> str:
    """As a machine is given it when it joins."""
    return bytes(key).hex()


def pin(path: Path, key: nacl.signing.VerifyKey) -> None:
    """Have a machine believe this controller. Another file only if it is another key."""
    text = f"{print_verify_key(key)}\n".encode("ascii")
    try:
        if not path.exists() or path.read_bytes() != text:
            private_file.replace(path, text)
    except OSError as err:
        raise BusKeyError(f"{path}: {os.strerror(err.errno or 0)}") from err


def parse_verify_key(text: str) -> nacl.signing.VerifyKey:
    return nacl.signing.VerifyKey(_key_bytes(text.encode(), "the controller's key"))


def _key_bytes(text: bytes, where: str) -> bytes:
    try:
        raw = bytes.fromhex(text.decode("ascii").strip())
    except ValueError as err:
        raise BusKeyError(f"{where} is not 64 hex digits") from err
    if len(raw) != 32:
        raise BusKeyError(f"{where} is not 64 hex digits")
    return raw


def _make_seed() -> bytes:
    return _seed_of(secrets.token_bytes(32)) + b"\n"


def _seed_of(raw: bytes) -> bytes:
    return nkeys.encode_seed(raw, nkeys.PREFIX_BYTE_USER)


def _ensure(path: Path, make: Callable[[], bytes]) -> bytes:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            private_file.create(path, make())
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise BusKeyError(f"{path} is open to others (mode {mode:04o}): chmod 600 {path}")
        return path.read_bytes()
    except OSError as err:
        raise BusKeyError(f"{path}: {os.strerror(err.errno or 0)}") from err
