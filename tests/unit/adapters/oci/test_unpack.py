"""What was packed comes out as it was; what was never meant for us does not come out at all."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from keyplane.adapters.oci import pack, unpack
from keyplane.adapters.oci.tar_stream import TornArchiveError, UnsafeArchiveError

from . import tars
from .tars import folder, link, member

BOUNDS = unpack.Bounds(bytes_max=1 << 20, members_max=50)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "box" / "target"
    made.mkdir(parents=True)
    return made


def test_what_was_packed_comes_out(tmp_path: Path, target: Path) -> None:
    """Contents, links, executables, long names; under the digest that the packer told."""
    source = tars.sample(tmp_path / "source")
    pieces: list[bytes] = []
    digest = pack.pack(source, pieces.append)
    found = unpack.unpack(tars.compressed(b"".join(pieces)), target, unpack.Bounds())
    assert found == digest
    assert tars.tree(target) == tars.tree(source)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_all_may_read_and_none_may_write(target: Path, umask: int) -> None:
    """Whatever the agent's umask is."""
    content = tars.tar(member("a/x", b"1", mode=0o4755), member("a/y", b"2", mode=0o600))
    before = os.umask(umask)
    try:
        unpack.unpack(tars.compressed(content), target, BOUNDS)
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [target, *target.rglob("*")]}
    assert modes == {"target": 0o555, "a": 0o555, "x": 0o555, "y": 0o444}


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("../x", b"1")], "no plain path"),
        ([member("a/../../x", b"1")], "no plain path"),
        ([member("/x", b"1")], "no plain path"),
        ([member("./x", b"1")], "no plain path"),
        ([member("a//x", b"1")], "no plain path"),
        ([member("", b"1")], "no plain path"),
        ([link("l", "/etc")], "leads out"),
        ([link("l", "..")], "leads out"),
        ([link("a/l", "../../x")], "leads out"),
        ([link("a/l", "x/../../../y")], "leads out"),
        ([folder("a"), link("a/up", ".."), link("l", "a/up/..")], "leads out by another link"),
        ([folder("a"), link("a/up", ".."), link("l", "a/up/../x")], "leads out by another link"),
        ([link("l", "a"), member("l/x", b"1")], "is there twice"),
        ([folder("a"), link("l", "a"), member("l/x", b"1")], "is there twice"),
        ([link("l", "x"), member("l", b"1")], "is there twice"),
        ([member("x", b"1"), member("x", b"2")], "is there twice"),
        ([member("x", b"1"), folder("x")], "is there twice"),
        ([member("x", type=tarfile.LNKTYPE, linkname="/etc/passwd")], "of kind b'1'"),
        ([member("x", type=tarfile.CHRTYPE, devmajor=1, devminor=3)], "of kind b'3'"),
        ([member("x", type=tarfile.FIFOTYPE)], "of kind b'6'"),
        ([member("x", type=tarfile.GNUTYPE_SPARSE)], "of kind b'S'"),
        ([folder(f"d{number}") for number in range(60)], "more than 50 members"),
        ([member("x", bytes((1 << 20) + 1))], "more than 1048576 bytes"),
        ([member("x", bytes(600_000)), member("y", bytes(600_000))], "more than 1048576 bytes"),
        ([member("x", type=b"L", size=1 << 30)], "a name is too long"),
        ([member("x", size=1 << 19)], "ends in the midst of x"),
        ([member("x", type=tarfile.DIRTYPE, size=1 << 40)], "more than|has content"),
    ],
)
def test_attacks_are_refused(
    target: Path, members: list[tuple[tarfile.TarInfo, bytes]], words: str
) -> None:
    """With words, with the digest of what was read to its end, and nothing made outside."""
    content = tars.tar(*members)
    with pytest.raises(UnsafeArchiveError, match=words) as raised:
        unpack.unpack(tars.compressed(content), target, BOUNDS)
    assert raised.value.digest == tars.digest(content)
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    assert [path.name for path in target.parent.parent.iterdir()] == ["box"]


def test_pax_headers_are_refused(target: Path) -> None:
    """Our packer writes none, and they can say another name or size than the header beside."""
    content = tars.tar(member("x" * 300, b"1"), form=tarfile.PAX_FORMAT)
    with pytest.raises(UnsafeArchiveError, match=r"of kind b'x'|has content"):
        unpack.unpack(tars.compressed(content), target, BOUNDS)


def test_a_bomb_is_stopped_before_it_fills_the_disk(target: Path) -> None:
    """A megabyte that says it is a gigabyte is refused by its header, unread."""
    content = tars.tar(member("x", size=1 << 33))
    with pytest.raises(UnsafeArchiveError, match="more than 1048576 bytes"):
        unpack.unpack(tars.compressed(content), target, BOUNDS)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("members", [[], [member("../x", b"1")]])
def test_a_bomb_behind_the_end_is_not_read_through(
    target: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    """Gigabytes of zeros take kilobytes: neither unpacked nor hashed to their end."""
    bomb = tars.tar(*members) + bytes(1 << 28)
    with pytest.raises(UnsafeArchiveError) as raised:
        unpack.unpack(tars.compressed(bomb), target, BOUNDS)
    assert raised.value.digest is None


def test_names_that_differ_by_case_or_composition_are_different_files(target: Path) -> None:
    """As they are to the kernel; none takes the place of another."""
    names = ["a", "A", "\u00e9", "e\u0301", "\u212b", "\u00c5", "x.", "x ", "con", "\u202ex"]
    content = tars.tar(*(member(name, name.encode()) for name in names))
    unpack.unpack(tars.compressed(content), target, BOUNDS)
    assert {path.name: path.read_text() for path in target.iterdir()} == {n: n for n in names}


def test_turning_links_that_stay_inside_are_kept(target: Path) -> None:
    content = tars.tar(folder("a"), folder("b"), member("b/x", b"1"), link("l", "a/../b/x"))
    unpack.unpack(tars.compressed(content), target, BOUNDS)
    assert (target / "l").read_bytes() == b"1"


@pytest.mark.parametrize("cut", [0, 10, 100, -1])
def test_a_torn_stream_is_told(target: Path, cut: int) -> None:
    """Cut anywhere, it is torn, unsafe under another digest, or another archive: never taken."""
    content = tars.tar(member("x", os.urandom(5_000)))
    whole = tars.compressed(content).getvalue()
    torn = tars.compressed(b"")
    torn.write(whole[:cut])
    torn.truncate()
    torn.seek(0)
    try:
        found = unpack.unpack(torn, target, BOUNDS)
    except UnsafeArchiveError as error:
        found = error.digest or "none"
    except TornArchiveError:
        found = "torn"
    assert found != tars.digest(content) or cut == -1


def test_noise_is_no_archive(target: Path) -> None:
    with pytest.raises(TornArchiveError):
        unpack.unpack(tars.io.BytesIO(b"no zstd at all" * 100), target, BOUNDS)
    with pytest.raises(UnsafeArchiveError, match=r"checksum|number"):
        unpack.unpack(tars.compressed(b"no tar at all " * 100), target, BOUNDS)
