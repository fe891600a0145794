"""Whatever an archive says, nothing of it comes to stand outside its folder, or is more than data."""

import os
import stat
import tarfile
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from keyplane.adapters.oci import unpack
from keyplane.adapters.oci.tar_stream import TornArchiveError, UnsafeArchiveError
from tests.unit.adapters.oci import tars

BOUNDS = unpack.Bounds(bytes_max=1 << 16, members_max=40)
GOOD = st.lists(st.sampled_from(["a", "b", "A", "l", "é"]), min_size=1, max_size=3).map("/".join)
PARTS = st.sampled_from(["a", "..", ".", "", "e\u0301", "x" * 120, "\udcff"])
HOSTILE = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
# One bad name refuses the whole: most are good, so that what is behind them is looked at.
PATHS = st.integers(0, 15).flatmap(lambda turn: HOSTILE if turn == 0 else GOOD)
TARGETS = (
    GOOD | HOSTILE | st.sampled_from(["/", "/etc/passwd", "../outside", "..", "../..", "a/../.."])
)
KINDS = st.sampled_from(
    [tarfile.REGTYPE] * 12
    + [tarfile.DIRTYPE] * 8
    + [tarfile.SYMTYPE] * 16
    + [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE]
    + [tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, b"x", b"g", b"?"]
)


@st.composite
def members(draw: st.DrawFn) -> tuple[tarfile.TarInfo, bytes]:
    kind = draw(KINDS)
    content = (
        draw(st.binary(max_size=600)) if kind not in (tarfile.DIRTYPE, tarfile.SYMTYPE) else b""
    )
    changes: dict[str, object] = {
        "type": kind,
        "mode": draw(st.sampled_from([0, 0o644, 0o755, 0o4755, 0o7777])),
        "linkname": draw(TARGETS) if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else "",
    }
    if draw(st.integers(0, 15)) == 0:
        changes["size"] = draw(st.sampled_from([0, 1, 511, 513, 1 << 20, 1 << 40, 8**11 - 1]))
    return tars.member(draw(PATHS), content, **changes)


def judge(content: bytes) -> bool:
    """Unpack it beside something that must not be touched; True if it was taken."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        outside, target = base / "outside", base / "target"
        outside.write_text("untouched")
        target.mkdir()
        taken = False
        try:
            found = unpack.unpack(tars.compressed(content), target, BOUNDS)
            taken = found == tars.digest(content)
            assert taken
        except (UnsafeArchiveError, TornArchiveError, OSError):
            pass
        assert sorted(path.name for path in base.iterdir()) == ["outside", "target"]
        assert outside.read_text() == "untouched"
        assert outside.stat().st_nlink == 1
        size = 0
        for folder, folders, files in os.walk(target):
            for each in (*folders, *files):
                seen = (Path(folder) / each).lstat()
                assert stat.S_IFMT(seen.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
                if not stat.S_ISLNK(seen.st_mode):
                    assert not seen.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX)
                elif taken:
                    reached = os.path.realpath(Path(folder) / each)
                    assert reached == str(target) or reached.startswith(f"{target}/")
                if stat.S_ISREG(seen.st_mode):
                    assert seen.st_nlink == 1
                    size += seen.st_size
        assert size <= BOUNDS.bytes_max
        for folder, _, _ in os.walk(target):
            Path(folder).chmod(0o700)
        return taken


@given(st.lists(members(), max_size=8))
@example([tars.folder("a"), tars.link("a/up", ".."), tars.link("l", "a/up/..")])
@example([tars.link("l", "."), tars.member("l/x", b"1")])
@example([tars.link("l", "../outside")])
@example([tars.link("l", "/etc/passwd")])
def test_no_list_of_members_comes_out_of_its_folder(
    found: list[tuple[tarfile.TarInfo, bytes]],
) -> None:
    judge(tars.tar(*found))


@given(st.data())
def test_no_damage_to_a_tar_makes_it_dangerous(data: st.DataObject) -> None:
    """Bytes changed anywhere, with headers' checksums set right again, so that they are read."""
    whole = bytearray(
        tars.tar(
            tars.folder("a"),
            tars.member("a/x", b"1" * 700, mode=0o755),
            tars.link("a/l", "x"),
            tars.member("n" * 150, b"2"),
        )
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.sampled_from([0, 1, 0x2E, 0x2F, 0x31, 0x32, 0x4C, 0x80, 0xFF]))
    for start in range(0, len(whole) - 511, 512):
        block = whole[start : start + 512]
        if block[257:262] == b"ustar":
            check = sum(block) - sum(block[148:156]) + 8 * 32
            whole[start + 148 : start + 156] = b"%06o\0 " % check
    judge(bytes(whole))


def test_the_judge_lets_a_good_archive_through() -> None:
    assert judge(tars.tar(tars.folder("a"), tars.member("a/x", b"1"), tars.link("l", "a/x")))
