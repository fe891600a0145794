"""An archive as OCI content: a manifest with an empty config and one layer.

The layer is the tar, compressed by zstd. Its own digest depends on the compressor, so an archive
is named by the digest of its uncompressed tar: as tag, and as an annotation of the manifest.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, cast

from keyplane.model.names import Digest
from keyplane.ports.store import ArtifactCorruptError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"
ARCHIVE = "application/vnd.keyplane.archive.v1"
LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"
CONTENT = "io.keyplane.content"
"""The annotation that holds the digest of the uncompressed tar."""
REF_NAME = "org.opencontainers.image.ref.name"

EMPTY_BLOB = b"{}"
_DIGEST = re.compile(r"sha256-[0-9a-f]{64}", re.ASCII)
_BLOB = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content by OCI's digest, `sha256:` and 64 hex digits."""

    digest: str
    size: int


def blob_digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def is_archive_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def is_blob_digest(text: str) -> bool:
    return _BLOB.fullmatch(text) is not None


def manifest(content: Digest, layer: Blob) -> bytes:
    return encode(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": ARCHIVE,
            "config": {
                "mediaType": EMPTY,
                "digest": blob_digest(EMPTY_BLOB),
                "size": len(EMPTY_BLOB),
            },
            "layers": [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size}],
            "annotations": {CONTENT: content},
        }
    )


def layer_of(document: bytes, content: Digest) -> Blob:
    """The one layer of an archive's manifest, which is not trusted."""
    try:
        read = json.loads(document)
        (layer,) = read["layers"]
        said, digest, size = read["annotations"][CONTENT], layer["digest"], layer["size"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactCorruptError(f"the manifest of {content} is none of an archive") from error
    if said != content or not isinstance(digest, str) or not is_blob_digest(digest):
        raise ArtifactCorruptError(f"the manifest under {content} is of {said}")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ArtifactCorruptError(f"the manifest of {content} gives no size of its layer")
    kind = layer.get("mediaType")
    if kind != LAYER:
        raise ArtifactCorruptError(f"the layer of {content} is said to be {kind}, and not {LAYER}")
    return Blob(digest=digest, size=size)


def encode(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def index(manifests: dict[Digest, Blob], others: list[Any]) -> bytes:
    """The layout's `index.json`: each archive's manifest, tagged by its content; then `others`."""
    ours = [
        {
            "mediaType": MANIFEST,
            "artifactType": ARCHIVE,
            "digest": blob.digest,
            "size": blob.size,
            "annotations": {REF_NAME: content, CONTENT: content},
        }
        for content, blob in sorted(manifests.items())
    ]
    return encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": [*ours, *others]})


def read_index(document: bytes) -> tuple[dict[Digest, Blob], list[Any]]:
    """What of an index is ours, and what others put beside it, which is none of our business."""
    found: dict[Digest, Blob] = {}
    others: list[Any] = []
    try:
        for each in cast("list[dict[str, Any]]", json.loads(document)["manifests"]):
            content = each.get("annotations", {}).get(CONTENT)
            if isinstance(content, str) and is_archive_digest(content):
                found[Digest(content)] = Blob(digest=each["digest"], size=each["size"])
            else:
                others.append(each)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactCorruptError("index.json of the store cannot be read") from error
    return found, others
