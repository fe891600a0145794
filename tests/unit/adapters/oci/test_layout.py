"""A store on disk: what it takes is there whole, or not at all."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import zstandard

from keyplane.adapters.oci import descriptors
from keyplane.adapters.oci.layout import Layout, _Intake
from keyplane.model.names import Digest
from keyplane.ports.store import (
    ArtifactCorruptError,
    ArtifactMissingError,
    Pack,
    StoreUnavailableError,
)

from . import tars

CONTENT = tars.tar(tars.member("x", b"hello" * 1000))
DIGEST = Digest(tars.digest(CONTENT))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "store")


def sending(content: bytes) -> Pack:
    def send(sink: Callable[[bytes], object]) -> None:
        for start in range(0, len(content), 1000):
            sink(content[start : start + 1000])

    return send


async def whole(layout: Layout, digest: Digest) -> bytes:
    compressed = b"".join([piece async for piece in layout.read(digest)])
    return zstandard.ZstdDecompressor().decompressobj().decompress(compressed)


def files(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}


async def test_what_is_put_is_read_back(layout: Layout) -> None:
    assert not await layout.has(DIGEST)
    await layout.put(DIGEST, sending(CONTENT))
    assert await layout.has(DIGEST)
    assert await whole(layout, DIGEST) == CONTENT
    again = Layout(layout._path)
    assert await again.has(DIGEST)


async def test_a_directory_is_packed_under_the_digest_of_its_tar(
    layout: Layout, tmp_path: Path
) -> None:
    """Two packs of equal trees are one archive."""
    first = layout.put_directory(tars.sample(tmp_path / "one"))
    kept = files(tmp_path / "store")
    assert layout.put_directory(tars.sample(tmp_path / "two")) == first
    assert files(tmp_path / "store") == kept
    assert tars.digest(await whole(layout, first)) == first


async def test_it_is_an_oci_image_layout(layout: Layout, tmp_path: Path) -> None:
    """With a manifest of an empty config and one layer, tagged and annotated by content."""
    await layout.put(DIGEST, sending(CONTENT))
    store = tmp_path / "store"
    assert json.loads((store / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((store / "index.json").read_text())
    (entry,) = index["manifests"]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == DIGEST
    manifest = json.loads((store / "blobs" / entry["digest"].replace(":", "/")).read_text())
    assert manifest["config"]["mediaType"] == descriptors.EMPTY
    (layer,) = manifest["layers"]
    for each in (entry, manifest["config"], layer):
        blob = (store / "blobs" / each["digest"].replace(":", "/")).read_bytes()
        assert descriptors.blob_digest(blob) == each["digest"]
        assert len(blob) == each["size"]


async def test_nothing_is_kept_of_what_is_not_its_digest(layout: Layout, tmp_path: Path) -> None:
    other = Digest("sha256-" + "0" * 64)
    with pytest.raises(ArtifactCorruptError):
        await layout.put(other, sending(CONTENT))
    assert not await layout.has(other)
    with pytest.raises(ArtifactMissingError):
        await whole(layout, other)
    assert files(tmp_path / "store") == {".lock"}


async def test_an_intake_that_fails_leaves_nothing(layout: Layout, tmp_path: Path) -> None:
    def breaks(sink: Callable[[bytes], object]) -> None:
        sink(CONTENT[:100])
        raise ConnectionResetError("away")

    with pytest.raises(Exception, match="away"):
        await layout.put(DIGEST, breaks)
    assert files(tmp_path / "store") == {".lock"}


async def test_what_fails_before_an_index_names_it_leaves_nothing(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its layer stands in its place already, under no name that a later life would look for."""
    await layout.put(DIGEST, sending(CONTENT))
    before = files(tmp_path)
    other = tars.tar(tars.member("y", b"other"))

    def full(self: Layout, path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Layout, "_write", full)
        with pytest.raises(StoreUnavailableError):
            await layout.put(Digest(tars.digest(other)), sending(other))
    layout.clear()  # manifests are small, and left to the next

    assert files(tmp_path) == before


async def test_who_takes_in_is_done_with_his_file_before_it_is_closed(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends may go away at any moment, and a number of a file may be another's then."""
    is_writing, goes_on, wrote = threading.Event(), threading.Event(), list[str]()
    write = _Intake.write

    def slow(self: _Intake, piece: bytes) -> None:
        is_writing.set()
        goes_on.wait(60)
        write(self, piece)
        os.fstat(self._file)
        wrote.append("to its own file")

    async def pieces() -> AsyncIterator[bytes]:
        yield b"piece"

    monkeypatch.setattr(_Intake, "write", slow)
    taking = asyncio.ensure_future(layout.take_in(pieces()))
    assert await asyncio.to_thread(is_writing.wait, 60)
    taking.cancel()
    asyncio.get_running_loop().call_later(0.05, goes_on.set)
    with pytest.raises(asyncio.CancelledError):
        await taking

    assert wrote == ["to its own file"]
    assert not any("blobs" in name for name in files(tmp_path))


async def test_a_killed_packer_leaves_a_store_that_works(layout: Layout, tmp_path: Path) -> None:
    """And its half file is taken away by the next intake, one that is being written is not."""
    await layout.put(DIGEST, sending(CONTENT))
    before = files(tmp_path / "store")
    fifo = tmp_path / "tree"
    fifo.mkdir()
    script = f"""
import sys
from pathlib import Path
from keyplane.adapters.oci.layout import Layout, _Intake
with Layout(Path({str(tmp_path / "store")!r}))._intake() as intake:
    intake.write(bytes(5_000_000))
    print("half", flush=True)
    sys.stdin.read()
"""
    packer = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    with packer:
        assert packer.stdout is not None
        assert packer.stdout.readline() == b"half\n"
        half = files(tmp_path / "store") - before
        assert len(half) == 1
        other = tars.tar(tars.member("y", b"other"))
        await layout.put(Digest(tars.digest(other)), sending(other))
        assert half <= files(tmp_path / "store")
        os.kill(packer.pid, signal.SIGKILL)
    assert await whole(Layout(tmp_path / "store"), DIGEST) == CONTENT
    third = tars.tar(tars.member("z", b"third"))
    await layout.put(Digest(tars.digest(third)), sending(third))
    assert not half & files(tmp_path / "store")


@pytest.mark.parametrize("point", ["index.json", "keyplane.json", "oci-layout"])
async def test_what_was_put_in_place_before_an_index_named_it_goes(
    layout: Layout, tmp_path: Path, point: str
) -> None:
    """A packer was killed with its blobs in place: what an index names stays, and nothing else."""
    await layout.put(DIGEST, sending(CONTENT))
    before = files(tmp_path / "store")
    other = tars.tar(tars.member("y", b"other"))
    script = f"""
import os, signal, sys
from pathlib import Path
from keyplane.adapters.oci.layout import Layout, _Intake
replace = Path.replace
def killed(self, target):
    if Path(target).name == {point!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = killed
(Path({str(tmp_path / "store")!r}) / "oci-layout").unlink()
content = sys.stdin.buffer.read()
Layout(Path({str(tmp_path / "store")!r}))._put({tars.digest(other)!r}, lambda sink: sink(content))
"""
    packer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=asyncio.subprocess.PIPE
    )
    await packer.communicate(other)
    assert packer.returncode == -signal.SIGKILL
    half = {name for name in files(tmp_path / "store") - before if name.startswith("blobs/")}
    assert len(half) == 2  # layer and manifest

    Layout(tmp_path / "store").clear()

    assert files(tmp_path / "store") | {"oci-layout"} == before
    assert await whole(Layout(tmp_path / "store"), DIGEST) == CONTENT
    await layout.put(Digest(tars.digest(other)), sending(other))
    assert await whole(layout, Digest(tars.digest(other))) == other
    Layout(tmp_path / "store").clear()
    assert half <= files(tmp_path / "store")


def test_a_layout_that_is_not_there_has_nothing_to_clear(layout: Layout) -> None:
    layout.clear()
    assert not layout._path.exists()


async def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    """Each adds to the index that the other left."""
    contents = [tars.tar(tars.member(f"f{number}", b"x")) for number in range(8)]
    layouts = [Layout(tmp_path / "store") for _ in contents]
    await asyncio.gather(
        *(
            layout.put(Digest(tars.digest(content)), sending(content))
            for layout, content in zip(layouts, contents, strict=True)
        )
    )
    assert set(Layout(tmp_path / "store").archives()) == {tars.digest(each) for each in contents}


def blobs(layout: Layout) -> list[Path]:
    return sorted((layout._path / "blobs" / "sha256").iterdir())


@pytest.mark.parametrize("which", ["layer", "manifest"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "empty"])
async def test_what_was_damaged_on_disk_is_packed_again(
    layout: Layout, which: str, damage: str
) -> None:
    """It is no longer there, is taken in anew, and is right then."""
    await layout.put(DIGEST, sending(CONTENT))
    document = layout.manifest(DIGEST)
    assert document is not None
    digest = (
        descriptors.layer_of(document, DIGEST).digest
        if which == "layer"
        else layout.archives()[DIGEST].digest
    )
    path = layout.blob(digest)
    assert path is not None
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        made = {"flipped": content[:-1] + bytes([content[-1] ^ 1]), "cut": content[:-1]}
        path.write_bytes(made.get(damage, b""))
    for each in (layout, Layout(layout._path)):
        assert not await each.has(DIGEST)
    await layout.put(DIGEST, sending(CONTENT))
    assert await layout.has(DIGEST)
    assert await whole(layout, DIGEST) == CONTENT


async def test_an_index_that_cannot_be_read_is_as_good_as_none(layout: Layout) -> None:
    await layout.put(DIGEST, sending(CONTENT))
    (layout._path / "index.json").write_bytes(b"\0" * 100)
    assert not await layout.has(DIGEST)
    await layout.put(DIGEST, sending(CONTENT))
    assert await whole(layout, DIGEST) == CONTENT


async def test_what_is_let_go_leaves_nothing_and_takes_nothing_of_others(layout: Layout) -> None:
    """A layer that another manifest names stays, and so does what somebody else put there."""
    other = tars.tar(tars.member("y", b"other"))
    await layout.put(DIGEST, sending(CONTENT))
    before = [path.name for path in blobs(layout)]
    await layout.put(Digest(tars.digest(other)), sending(other))
    document = layout.manifest(Digest(tars.digest(other)))
    assert document is not None
    foreign = document.replace(b"io.keyplane.content", b"org.somebody.else")
    name = descriptors.blob_digest(foreign)
    (layout._path / "blobs" / "sha256" / name[7:]).write_bytes(foreign)
    index = json.loads((layout._path / "index.json").read_text())
    index["manifests"].append({"digest": name, "size": len(foreign)})
    (layout._path / "index.json").write_text(json.dumps(index))

    assert layout.remove(Digest(tars.digest(other)))
    assert not await layout.has(Digest(tars.digest(other)))
    layer = descriptors.layer_of(document, Digest(tars.digest(other)))
    assert sorted([*before, name[7:], layer.digest[7:]]) == [p.name for p in blobs(layout)]
    kept = json.loads((layout._path / "index.json").read_text())["manifests"]
    assert {each["digest"] for each in kept} == {name, layout.archives()[DIGEST].digest}
    assert await whole(layout, DIGEST) == CONTENT

    assert layout.remove(DIGEST)
    assert {p.name for p in blobs(layout)} == {
        name[7:],
        layer.digest[7:],
        descriptors.blob_digest(descriptors.EMPTY_BLOB)[7:],
    }


async def test_what_is_not_recorded_as_packed_here_is_never_let_go(layout: Layout) -> None:
    await layout.put(DIGEST, sending(CONTENT))
    (held,) = layout.holdings()
    assert held.made_ms is not None
    assert held.size > 0
    (layout._path / "keyplane.json").unlink()
    assert [each.made_ms for each in layout.holdings()] == [None]
    assert not layout.remove(DIGEST)
    assert await whole(layout, DIGEST) == CONTENT
    assert not layout.automatic
    layout.set_automatic(automatic=True)
    assert Layout(layout._path).automatic
