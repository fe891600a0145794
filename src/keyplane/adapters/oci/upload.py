"""The way of a volume's content from a machine into the store: one HTTP PUT, signed by the machine.

It is streamed as it is packed. The store says which digest it took in, and the machine compares
that with its own. `agent` and store share the form of a request here; the store's side is `intake`.
"""

import contextlib
import http.client
import json
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

import nacl.signing

from keyplane.adapters.oci.pack import Sink
from keyplane.model.names import Digest, EntryId, MachineName
from keyplane.model.volumes import Saved
from keyplane.ports.host import HostError
from keyplane.ports.store import ArtifactCorruptError, StoreUnavailableError

SIGNATURE = "Keyplane-Signature"
_PURPOSE = b"keyplane volume\0"
"""Signed too, so that no signature made for another purpose passes for this one."""
_TIMEOUT_S = 60.0
"""For one step of an exchange: the store compresses and writes meanwhile."""


def signed(machine: str, entry: str, path: str, number: int) -> bytes:
    """What a machine signs: that it puts in this volume, for that order."""
    return _PURPOSE + json.dumps([machine, entry, path, number]).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeUpload:
    """Of one machine."""

    locate: Callable[[], str]
    """The store's address now; StoreUnavailableError while there is none."""
    machine: MachineName
    key: nacl.signing.SigningKey

    def put(self, entry: EntryId, path: str, number: int, write: Callable[[Sink], str]) -> Saved:
        address = urllib.parse.urlsplit(self.locate())
        assert address.hostname is not None
        asked = urllib.parse.urlencode({"entry": entry, "path": path})
        signature = self.key.sign(signed(self.machine, entry, path, number)).signature
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_TIMEOUT_S)
        size = 0

        def sink(piece: bytes) -> None:
            nonlocal size
            size += len(piece)
            if piece:
                connection.send(b"%x\r\n" % len(piece))
                connection.send(piece)
                connection.send(b"\r\n")

        try:
            connection.putrequest("PUT", f"/v1/volumes/{self.machine}/{number}?{asked}")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.putheader(SIGNATURE, signature.hex())
            connection.endheaders()
            digest = ""
            # Who is refused is told why, though he was not listened to until the end.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                digest = write(sink)
                connection.send(b"0\r\n\r\n")
            answer = connection.getresponse()
            body = answer.read()
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise StoreUnavailableError(
                f"the store does not take it in: {error or type(error).__name__}"
            ) from error
        finally:
            connection.close()
        return _answer(answer.status, body, Digest(digest), size)


def _answer(status: int, body: bytes, digest: Digest, size: int) -> Saved:
    said: dict[str, str] = {}
    with contextlib.suppress(ValueError):
        said = json.loads(body)
    if status == http.client.FORBIDDEN:
        raise HostError(f"the store refuses it: {said.get('problem', status)}")
    if status != http.client.CREATED:
        raise StoreUnavailableError(f"the store answers {status}: {said.get('problem', '')}")
    if said.get("digest") != digest:
        raise ArtifactCorruptError(f"{digest} was sent, and the store took in {said.get('digest')}")
    return Saved(digest=digest, size=size)
