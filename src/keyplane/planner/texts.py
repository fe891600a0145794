"""What a machine's hash is of, kept so that the hash is soon made anew.

Of an entry it holds the digest alone: a change of one costs its own bytes and those of the digests
beside it. What comes before the entries is hashed once.
"""

from hashlib import sha256


def entry(name: str, digest: str) -> bytes:
    """`ID:DIGEST` in canonical form; neither needs an escape."""
    return b'"%b":"%b"' % (name.encode(), digest.encode())


class Text:
    """One machine's text; only its entries change."""

    __slots__ = ("_begun", "_tail", "entries")

    def __init__(self, head: bytes, entries: list[bytes], tail: bytes) -> None:
        self.entries = entries
        """In order, each `ID:DIGEST`."""
        self._tail = tail
        self._begun = sha256(head)

    def hash(self) -> str:
        state = self._begun.copy()
        state.update(b",".join(self.entries))
        state.update(self._tail)
        return "sha256-" + state.hexdigest()
