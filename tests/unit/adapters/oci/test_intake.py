"""What a machine may put into the store, and that nothing but the whole of it is kept."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nacl.signing
import pytest
import uvicorn
from starlette.applications import Starlette

from keyplane.adapters.oci import intake, pack_volume
from keyplane.adapters.oci.layout import Layout
from keyplane.adapters.oci.upload import VolumeUpload
from keyplane.model.names import EntryId, MachineName
from keyplane.ports.host import HostError
from keyplane.ports.store import StoreUnavailableError

PG = EntryId("pg:main@alpha")
KEYS = {name: nacl.signing.SigningKey.generate() for name in ("alpha", "beta")}


@dataclass
class Desk:
    url: str
    layout: Layout

    def upload(self, machine: str, key: nacl.signing.SigningKey) -> VolumeUpload:
        return VolumeUpload(locate=lambda: self.url, machine=MachineName(machine), key=key)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    layout = Layout(tmp_path / "store")

    async def expected(machine: str, entry: str, number: int) -> bool:
        return (machine, entry, number) == ("alpha", PG, 7)

    def key(machine: str) -> nacl.signing.VerifyKey | None:
        return KEYS[machine].verify_key if machine in KEYS else None

    application = Starlette(routes=intake.routes(layout, key, expected))
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    yield Desk(f"http://127.0.0.1:{listener.getsockname()[1]}", layout)
    server.should_exit = True
    thread.join()


def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / "data").write_bytes(b"x" * 3_000_000)
    return folder


def test_what_is_sent_is_kept_by_its_digest(desk: Desk, tmp_path: Path) -> None:
    folder = volume(tmp_path)
    saved = desk.upload("alpha", KEYS["alpha"]).put(
        PG, "/var/lib/pg", 7, lambda sink: pack_volume.pack_volume(folder, sink, root=Path("/"))
    )
    assert saved.size > 3_000_000
    assert asyncio.run(desk.layout.has(saved.digest))


@pytest.mark.parametrize(
    ("machine", "key", "entry", "number", "why"),
    [
        ("alpha", "beta", PG, 7, "not signed by machine alpha"),
        ("gamma", "beta", PG, 7, "not signed by machine gamma"),
        ("beta", "beta", PG, 7, "nobody asked beta"),
        ("alpha", "alpha", PG, 8, "nobody asked alpha"),
        ("alpha", "alpha", EntryId("other:main@alpha"), 7, "nobody asked alpha"),
    ],
)
def test_nobody_puts_in_what_was_not_asked_of_him(
    desk: Desk, tmp_path: Path, machine: str, key: str, entry: EntryId, number: int, why: str
) -> None:
    folder = volume(tmp_path)
    with pytest.raises(HostError, match=why):
        desk.upload(machine, KEYS[key]).put(
            entry,
            "/var/lib/pg",
            number,
            lambda sink: pack_volume.pack_volume(folder, sink, root=Path("/")),
        )
    assert desk.layout.archives() == {}


def test_half_of_it_is_not_kept(desk: Desk) -> None:
    """Where the machine fails in its midst, and where it is killed."""

    def fails(sink) -> str:
        sink(b"x" * 100_000)
        raise StoreUnavailableError("cut off")

    with pytest.raises(StoreUnavailableError):
        desk.upload("alpha", KEYS["alpha"]).put(PG, "/var/lib/pg", 7, fails)
    assert desk.layout.archives() == {}
