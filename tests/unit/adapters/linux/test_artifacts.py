"""The machine's cache: only what was verified stands under a digest."""

import hashlib
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard

from keyplane.adapters.linux.artifacts import ArtifactCache
from keyplane.adapters.linux.state_root import StateRoot
from keyplane.adapters.oci import pack
from keyplane.model.names import Digest
from keyplane.ports.host import HostError
from keyplane.ports.store import ArtifactCorruptError, ArtifactMissingError


class Store:
    """Gives what it is told to, right or wrong."""

    def __init__(self) -> None:
        self.given: dict[Digest, bytes] = {}

    async def has(self, digest: Digest) -> bool:
        return digest in self.given

    async def read(self, digest: Digest) -> AsyncIterator[bytes]:
        if digest not in self.given:
            raise ArtifactMissingError(f"the store has no {digest}")
        for start in range(0, len(self.given[digest]), 100):
            yield self.given[digest][start : start + 100]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def cache(state: StateRoot, store: Store) -> ArtifactCache:
    return ArtifactCache(state, store)


def packed(folder: Path) -> tuple[Digest, bytes]:
    folder.mkdir()
    (folder / "code").write_bytes(os.urandom(2_000))
    (folder / "sub").mkdir()
    (folder / "sub" / "f").write_text("x")
    pieces: list[bytes] = []
    digest = Digest(pack.pack(folder, pieces.append))
    return digest, zstandard.compress(b"".join(pieces))


async def test_a_fetched_archive_is_there(
    cache: ArtifactCache, store: Store, state: StateRoot, tmp_path: Path
) -> None:
    """Once; a second fetch asks nothing of the store; removed, it is gone with all of it."""
    digest, content = packed(tmp_path / "tree")
    store.given[digest] = content
    await cache.fetch(digest)
    assert cache.present() == {digest}
    assert (state.artifacts / digest / "sub" / "f").read_text() == "x"
    store.given.clear()
    await cache.fetch(digest)
    cache.remove(digest)
    cache.remove(digest)
    assert cache.present() == frozenset()
    assert list(state.artifacts.iterdir()) == []


async def test_what_is_not_the_digest_is_never_there(
    cache: ArtifactCache, store: Store, state: StateRoot, tmp_path: Path
) -> None:
    """Not a byte of it: damaged, cut, another archive, or noise."""
    digest, content = packed(tmp_path / "tree")
    _, other = packed(tmp_path / "other")
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    for lie in (other, content[:middle], content[:-30], flipped, b"", b"noise" * 100):
        store.given[digest] = lie
        with pytest.raises(ArtifactCorruptError):
            await cache.fetch(digest)
        assert cache.present() == frozenset()
        assert list(state.artifacts.iterdir()) == []
    store.given[digest] = content
    await cache.fetch(digest)
    assert cache.present() == {digest}


async def test_missing_and_nonsense_are_told_apart(cache: ArtifactCache) -> None:
    with pytest.raises(ArtifactMissingError):
        await cache.fetch(Digest("sha256-" + "0" * 64))
    with pytest.raises(HostError):
        await cache.fetch(Digest("../x"))


async def test_an_archive_that_was_made_unsafe_is_refused_for_good(
    cache: ArtifactCache, store: Store
) -> None:
    """Under its right digest: to fetch it again would not help."""
    info = tarfile.TarInfo("../x")
    content = info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    digest = Digest(f"sha256-{hashlib.sha256(content).hexdigest()}")
    store.given[digest] = zstandard.compress(content)
    with pytest.raises(HostError, match="not safe"):
        await cache.fetch(digest)
    assert cache.present() == frozenset()


def test_what_a_killed_agent_left_is_taken_away(state: StateRoot, store: Store) -> None:
    left = state.artifacts / ".new-x" / "sub"
    left.mkdir(parents=True)
    (left / "f").write_text("half")
    left.chmod(0o555)
    (state.artifacts / ".half").write_text("half")
    ArtifactCache(state, store)
    assert list(state.artifacts.iterdir()) == []
