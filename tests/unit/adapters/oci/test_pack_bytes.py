"""The tar is what GNU tar and Python's `tarfile` read, byte for byte as GNU's format has it."""

import io
import subprocess
import tarfile
from pathlib import Path

from keyplane.adapters.oci import pack

from . import tars


def test_other_readers_find_the_same_tree(tmp_path: Path) -> None:
    """Names and link targets of every length around the hundred bytes of a header."""
    source = tars.sample(tmp_path / "source")
    for length in (99, 100, 101, 255):
        (source / ("n" * length)).write_bytes(b"x" * length)
        (source / ("d" * (length - 1) + "1")).mkdir()
        (source / f"link-{length}").symlink_to("t" * length)
    pieces: list[bytes] = []
    pack.pack(source, pieces.append)
    whole = b"".join(pieces)
    assert len(whole) % 10_240 == 0
    gnu, python = tmp_path / "gnu", tmp_path / "python"
    gnu.mkdir()
    subprocess.run(["tar", "-xf", "-", "-C", gnu], input=whole, check=True)
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        tar.extractall(python)
    assert tars.tree(gnu) == tars.tree(python) == tars.tree(source)


def test_a_file_of_many_gigabytes_has_its_size() -> None:
    """In binary, from where eleven octal digits end."""
    for size in (8**11 - 1, 8**11, 20 << 30):
        member = pack.File(name="x", executable=False, size=size, open=io.BytesIO)
        assert tarfile.TarInfo.frombuf(pack._header(member), "utf-8", "strict").size == size
