"""An artifact store behind HTTP, read by the OCI distribution specification.

On the standard library, in threads: an agent fetches once in days, and a client library would be
a quarter of its memory all the while.
"""

import asyncio
import contextlib
import http.client
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Generator

from keyplane.adapters.oci import descriptors
from keyplane.model.names import Digest
from keyplane.ports.store import (
    ArtifactCorruptError,
    ArtifactMissingError,
    StoreUnavailableError,
)

_PIECE = 1 << 20
_MANIFEST_MAX = 1 << 20
"""An archive's manifest is half a kilobyte; what is a thousand times that is none."""
_TIMEOUT_S = 30.0
"""For one step of an exchange: connecting, or the next bytes of an answer."""


def _opener() -> urllib.request.OpenerDirector:
    """Goes where it is told, by no proxy: a store answers itself, and leads nobody elsewhere."""
    made = urllib.request.OpenerDirector()
    for step in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        made.add_handler(step)
    return made


_OPENER = _opener()


class Registry:
    """`ports.store.ArtifactStore`: one repository of a registry, such as `http://HOST:PORT`."""

    def __init__(self, url: str, repository: str = "keyplane/archives") -> None:
        self._base = f"{url.rstrip('/')}/v2/{repository}"

    async def has(self, digest: Digest) -> bool:
        answer = await asyncio.to_thread(self._ask, "HEAD", f"manifests/{digest}")
        if answer is None:
            return False
        answer.close()
        return True

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        layer = descriptors.layer_of(await asyncio.to_thread(self._manifest, digest), digest)
        answer = await asyncio.to_thread(self._ask, "GET", f"blobs/{layer.digest}")
        if answer is None:
            raise ArtifactCorruptError(
                f"{self._base} has lost the layer of {digest}: `keyplane apply` packs it again"
            )
        taken = 0
        with contextlib.closing(answer), self._told():
            while piece := await asyncio.to_thread(answer.read, _PIECE):
                taken += len(piece)
                if taken > layer.size:
                    break
                yield piece
        if taken != layer.size:
            raise ArtifactCorruptError(
                f"{self._base}: {layer.digest} is {taken} bytes, where the manifest says "
                f"{layer.size}"
            )

    def _manifest(self, digest: Digest) -> bytes:
        answer = self._ask("GET", f"manifests/{digest}")
        if answer is None:
            raise ArtifactMissingError(f"{self._base} has no {digest}")
        with contextlib.closing(answer), self._told():
            kind = answer.headers.get("Content-Type", descriptors.MANIFEST)
            if kind.partition(";")[0].strip() != descriptors.MANIFEST:
                raise ArtifactCorruptError(
                    f"{self._base}/manifests/{digest} is {kind}, and no manifest"
                )
            document = answer.read(_MANIFEST_MAX + 1)
        if len(document) > _MANIFEST_MAX:
            raise ArtifactCorruptError(f"{self._base}/manifests/{digest} is too large")
        return document

    def _ask(self, method: str, path: str) -> http.client.HTTPResponse | None:
        """The answer, its body yet to be read; None where there is nothing of that name."""
        headers = {"Accept": descriptors.MANIFEST} if path.startswith("manifests/") else {}
        with self._told():
            try:
                request = urllib.request.Request(  # noqa: S310  # the store's own address
                    f"{self._base}/{path}", method=method, headers=headers
                )
                answer = _OPENER.open(request, timeout=_TIMEOUT_S)
            except urllib.error.HTTPError as refused:
                refused.close()
                if refused.code == http.client.NOT_FOUND:
                    return None
                elsewhere = refused.headers.get("Location")
                leads = f", which leads to {elsewhere}" if elsewhere else ""
                raise StoreUnavailableError(
                    f"{self._base}/{path}: status {refused.code}{leads}"
                ) from refused
        if answer.status != http.client.OK:
            answer.close()
            raise StoreUnavailableError(f"{self._base}/{path}: status {answer.status}")
        return answer

    @contextlib.contextmanager
    def _told(self) -> Generator[None]:
        """Say what went wrong as the port has it."""
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            words = str(error) or type(error).__name__
            raise StoreUnavailableError(f"{self._base}: {words}") from error
