"""The store of a fleet that runs: what is damaged is packed again, what nothing names is let go."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyplane.adapters.oci import descriptors
from keyplane.adapters.oci.layout import Layout
from keyplane.model.names import Digest
from tests.e2e import code_fleet
from tests.e2e.fleet import Fleet, running, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("stored")
    source = folder / "source"
    code_fleet.write(source)
    with running(source, folder / "fleet") as fleet:
        yield fleet


def version(fleet: Fleet, number: int) -> None:
    fleet.edit("modules/code/src/run.sh", "version", f"version {number} after")


def archives(fleet: Fleet) -> dict[str, dict[str, object]]:
    found = fleet.run("collection", "--json").json
    return {each["digest"]: each for each in found["archives"]}


def declared(fleet: Fleet) -> str:
    """The archive that the machine is to run from."""
    (digest,) = [
        name
        for name, each in archives(fleet).items()
        if "machine alpha" in each["held_by"]  # type: ignore[operator]
    ]
    return digest


def cached(fleet: Fleet) -> set[str]:
    """What the machine has of archives, halves of some too."""
    return {
        each.name for each in (fleet.directory / ".keyplane/machines/alpha/artifacts").iterdir()
    }


def orphan(fleet: Fleet, content: str) -> Digest:
    """An archive that Keyplane packed and nothing names any more."""
    folder = fleet.directory.parent / content
    folder.mkdir()
    (folder / "x").write_text(content)
    return Layout(fleet.directory / ".keyplane" / "store").put_directory(folder)


def test_what_a_generation_or_a_machine_names_is_held(fleet: Fleet) -> None:
    first = archives(fleet)
    assert len(first) == 1
    (held,) = first.values()
    assert any(str(each).startswith("generation ") for each in held["held_by"])  # type: ignore[attr-defined]
    assert "machine alpha" in held["held_by"]  # type: ignore[operator]
    version(fleet, 1)
    fleet.apply()
    second = archives(fleet)
    assert len(second) == 2
    assert not any(each["goes"] for each in second.values())
    shown = fleet.run("collection").out
    assert "2 archives" in shown
    assert "a sweep after each apply is off" in shown


def test_a_machine_lets_go_of_what_is_older_than_the_version_before(fleet: Fleet) -> None:
    """Once an apply has settled: its agent is not started anew. A rollback fetches nothing."""
    agent = fleet.parts()["agent alpha"]
    former = declared(fleet)
    version(fleet, 10)
    fleet.apply()
    wait_for(lambda: cached(fleet) == {former, declared(fleet)}, "the oldest goes")
    assert fleet.parts()["agent alpha"] == agent


def test_only_what_nothing_names_and_keyplane_made_goes(fleet: Fleet) -> None:
    before = set(archives(fleet))
    lost, foreign = orphan(fleet, "lost"), orphan(fleet, "foreign")
    store = fleet.directory / ".keyplane" / "store"
    record = (store / "keyplane.json").read_text()
    (store / "keyplane.json").write_text(record.replace(foreign, "sha256-" + "0" * 64))
    assert archives(fleet)[lost]["goes"] is True
    assert archives(fleet)[foreign]["goes"] is False
    assert set(archives(fleet)) == {*before, lost, foreign}  # a look lets nothing go
    swept = fleet.run("collection", "--delete", "--json").json
    assert swept["removed"] == [lost]
    assert set(archives(fleet)) == {*before, foreign}


def test_a_sweep_follows_an_apply_once_it_is_switched_on(fleet: Fleet) -> None:
    lost = orphan(fleet, "swept")
    fleet.run("collection", "--automatic", "on")
    try:
        version(fleet, 2)
        fleet.apply()
        wait_for(lambda: lost not in archives(fleet), "the sweep")
    finally:
        fleet.run("collection", "--automatic", "off")
    assert all(each["held_by"] for each in archives(fleet).values() if each["made_ms"])


def test_a_blob_that_was_damaged_is_packed_again_and_fetched(fleet: Fleet) -> None:
    """The next apply of the same text finds it by its digest; the machine then gets it."""
    state = fleet.directory / ".keyplane"
    former = declared(fleet)
    version(fleet, 3)
    fleet.apply()
    layout = Layout(state / "store")
    digest = declared(fleet)
    layer = layer_of(layout, Digest(digest))
    layer.chmod(0o600)
    layer.write_bytes(b"\0" * layer.stat().st_size)
    assert not asyncio.run(layout.has(Digest(digest)))
    fleet.run("down", "--units")
    cached = state / "machines" / "alpha" / "artifacts" / digest
    for folder in (cached, *(path for path in cached.rglob("*") if path.is_dir())):
        folder.chmod(0o700)
    shutil.rmtree(cached)

    fleet.run("up", ".", "--yes")

    assert asyncio.run(Layout(state / "store").has(Digest(digest)))
    fleet.run("status")
    # Nothing half-fetched is left, nor what is older than the version before.
    wait_for(lambda: {path.name for path in cached.parent.iterdir()} <= {digest, former}, "it goes")


def layer_of(layout: Layout, digest: Digest) -> Path:
    document = layout.manifest(digest)
    assert document is not None
    path = layout.blob(descriptors.layer_of(document, digest).digest)
    assert path is not None
    return path
