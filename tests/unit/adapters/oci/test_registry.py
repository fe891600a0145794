"""The read endpoint and its client, over real sockets; and answers of a store that lies."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from keyplane.adapters.oci import descriptors, serve
from keyplane.adapters.oci.client import Registry
from keyplane.adapters.oci.layout import Layout
from keyplane.model.names import Digest
from keyplane.ports.store import (
    ArtifactCorruptError,
    ArtifactMissingError,
    StoreUnavailableError,
)

from . import tars

NONE = Digest("sha256-" + "0" * 64)


@contextlib.asynccontextmanager
async def serving(application: ASGIApp) -> AsyncIterator[str]:
    config = uvicorn.Config(application, port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "store")


@pytest.fixture
def digest(layout: Layout, tmp_path: Path) -> Digest:
    return layout.put_directory(tars.sample(tmp_path / "tree"))


async def whole(store: Registry | Layout, digest: Digest) -> bytes:
    return b"".join([piece async for piece in store.read(digest)])


async def test_the_client_reads_what_the_layout_has(layout: Layout, digest: Digest) -> None:
    async with serving(serve.application(layout)) as url:
        registry = Registry(url)
        assert await registry.has(digest)
        assert await whole(registry, digest) == await whole(layout, digest)
        assert not await registry.has(NONE)
        with pytest.raises(ArtifactMissingError):
            await whole(registry, NONE)


async def test_the_endpoint_speaks_oci(layout: Layout, digest: Digest) -> None:
    """HEAD and GET, by tag and by digest, with digests in headers; errors in the spec's form."""
    async with serving(serve.application(layout)) as url, httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/v2/")).status_code == 200
        by_tag = await client.get(f"/v2/any/name/manifests/{digest}")
        assert by_tag.headers["content-type"] == descriptors.MANIFEST
        named = by_tag.headers["docker-content-digest"]
        assert named == descriptors.blob_digest(by_tag.content)
        assert (await client.get(f"/v2/any/name/manifests/{named}")).content == by_tag.content
        head = await client.head(f"/v2/any/manifests/{digest}")
        assert (head.status_code, head.content) == (200, b"")
        layer = by_tag.json()["layers"][0]
        blob = await client.get(f"/v2/any/blobs/{layer['digest']}")
        assert descriptors.blob_digest(blob.content) == layer["digest"]
        part = await client.get(f"/v2/any/blobs/{layer['digest']}", headers={"Range": "bytes=2-5"})
        assert (part.status_code, part.content) == (206, blob.content[2:6])
        missing = await client.get(f"/v2/any/manifests/{NONE}")
        assert (missing.status_code, missing.json()["errors"][0]["code"]) == (
            404,
            "MANIFEST_UNKNOWN",
        )
        for path in ("../../index.json", "sha256:..%2f..%2foci-layout", "sha256:" + "0" * 64):
            assert (await client.get(f"/v2/any/blobs/{path}")).status_code in {400, 404}
        assert (await client.put(f"/v2/any/manifests/{digest}", content=b"{}")).status_code == 405


def answering(
    answers: dict[str, tuple[int, bytes]], headers: dict[str, str] | None = None
) -> Callable[..., object]:
    said = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rpartition("archives")[2]
        status, body = answers.get(path, (404, b""))
        await send({"type": "http.response.start", "status": status, "headers": said})
        await send({"type": "http.response.body", "body": body})

    return application


async def test_a_store_that_lies_is_found_out(layout: Layout, digest: Digest) -> None:
    document = layout.manifest(digest)
    assert document is not None
    layer = descriptors.layer_of(document, digest)
    manifest, blob = f"/manifests/{digest}", f"/blobs/{layer.digest}"
    for answers in (
        {manifest: (200, b"no json")},
        {manifest: (200, b"[]")},
        {manifest: (200, descriptors.manifest(NONE, layer))},
        {manifest: (200, document)},
        {manifest: (200, document), blob: (200, b"short")},
        {manifest: (200, document), blob: (200, bytes(layer.size + 1))},
        {manifest: (200, bytes(2 << 20))},
        {manifest: (200, document.replace(descriptors.LAYER.encode(), b"text/plain"))},
        {manifest: (200, document.replace(b'"size":', b'"size":-'))},
    ):
        async with serving(answering(answers)) as url:  # type: ignore[arg-type]
            with pytest.raises(ArtifactCorruptError):
                await whole(Registry(url), digest)


async def test_a_store_that_does_not_answer_is_unavailable(digest: Digest) -> None:
    async with serving(answering({f"/manifests/{digest}": (503, b"")})) as url:  # type: ignore[arg-type]
        for call in (Registry(url).has(digest), whole(Registry(url), digest)):
            with pytest.raises(StoreUnavailableError, match="status 503"):
                await call
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        registry = Registry(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(StoreUnavailableError):
            await registry.has(digest)


async def test_a_store_that_answers_something_else_is_found_out(
    layout: Layout, digest: Digest
) -> None:
    """A page of some portal is no manifest, whatever its status."""
    document = layout.manifest(digest)
    assert document is not None
    answers = {f"/manifests/{digest}": (200, document)}
    async with serving(answering(answers, {"content-type": "text/html"})) as url:  # type: ignore[arg-type]
        with pytest.raises(ArtifactCorruptError, match="text/html"):
            await whole(Registry(url), digest)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_store_that_leads_elsewhere_is_not_followed(
    layout: Layout, digest: Digest, status: int
) -> None:
    """Not even to one that has it: the error says where it leads."""
    async with serving(serve.application(layout)) as there:
        place = f"{there}/v2/keyplane/archives/manifests/{digest}"
        answers = {f"/manifests/{digest}": (status, b"")}
        async with serving(answering(answers, {"location": place})) as url:  # type: ignore[arg-type]
            with pytest.raises(StoreUnavailableError, match=f"leads to {there}"):
                await whole(Registry(url), digest)


async def test_no_proxy_stands_between(
    layout: Layout, digest: Digest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with serving(serve.application(layout)) as url:
        assert await Registry(url).has(digest)
