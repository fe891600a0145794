"""The client library, which also tells what the store was made to store anew.

Whoever may ask the bucket for a word may have the answer sent to any subject, and so into the
bucket, under another's name. Such an answer bears the bucket's headers; given out, it bears them
twice, of which the library keeps the last.
"""

import nats.aio.client

STORED_ANEW = "Keyplane-Stored-Anew"
"""A header that this puts there; nobody sends it."""
_MARK = b"\r\nNats-Stream:"


class Client(nats.aio.client.Client):
    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        found: dict[str, str] | None = await super()._process_headers(headers)  # pyright: ignore[reportUnknownMemberType]  # it says no types
        if found is not None:
            found.pop(STORED_ANEW, None)
            if headers is not None and headers.count(_MARK) > 1:
                found[STORED_ANEW] = ""
        return found
