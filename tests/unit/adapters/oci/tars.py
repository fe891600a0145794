"""Tars made by hand, as an attacker would make them."""

import hashlib
import io
import tarfile
from pathlib import Path

import zstandard


def member(name: str, content: bytes = b"", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in changes.items():
        setattr(info, field, value)
    return info, content


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.DIRTYPE)


def tar(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    made = io.BytesIO()
    for info, content in members:
        made.write(info.tobuf(form))
        made.write(content)
        made.write(bytes(-len(content) % 512))
    return made.getvalue() + bytes(1024)


def compressed(content: bytes) -> io.BytesIO:
    return io.BytesIO(zstandard.compress(content))


def digest(content: bytes) -> str:
    return f"sha256-{hashlib.sha256(content).hexdigest()}"


def tree(base: Path) -> dict[str, object]:
    """What is below a folder: contents, link targets and modes."""
    found: dict[str, object] = {}
    for path in sorted(base.rglob("*")):
        name = str(path.relative_to(base))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def sample(base: Path) -> Path:
    """Names of all lengths, an empty folder, an empty file, links, a large file."""
    (base / "bin").mkdir(parents=True)
    (base / "empty").mkdir()
    (base / "bin" / "run").write_bytes(b"#!/bin/sh\n")
    (base / "bin" / "run").chmod(0o755)
    (base / "none").write_bytes(b"")
    (base / "block").write_bytes(bytes(range(256)) * 2)
    (base / "large").write_bytes(b"0123456789abcdef" * 600_000)
    (base / "ümlaut").write_bytes(b"x")
    deep = base / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)
    (deep / ("f" * 200)).write_bytes(b"deep")
    (base / "bin" / "again").symlink_to("../none")
    (base / "bin" / "here").symlink_to(".")
    (base / "far").symlink_to("/".join(["d" * 90, "e" * 90, "f" * 200]))
    return base
