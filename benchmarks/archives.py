"""Packs a tree and unpacks it safely, beside GNU tar and zstd, in turns.

The tree is made here: 210 MB in 8,500 files, of which most are small, as a built web service or a
set of libraries has. Goal (DESIGN §11): 1.3 times GNU tar and zstd, each way.

The cores are taken for both in turn, ahead of whatever else runs, where the account may do that:
otherwise the time on the wall tells how a machine shares its cores between one process and two.
Ours is packed from a directory, and from a recorded text, as a controller does; both are on disk
at the end, and so is what GNU tar made.

    python -m benchmarks.archives [ROUNDS]
"""

import asyncio
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.beside import cores
from keyplane.adapters import directory
from keyplane.adapters.oci import unpack
from keyplane.adapters.oci.layout import Layout
from keyplane.adapters.revision import RevisionTree
from keyplane.model.names import Digest

FILES, BYTES = 8_500, 210_000_000


def make_tree(folder: Path) -> None:
    """Text that compresses by about three, sizes spread over four powers of ten."""
    noise = random.Random(1)
    words = [noise.randbytes(noise.randint(2, 9)).hex().encode() for _ in range(3_000)]
    text = b" ".join(noise.choices(words, k=600_000))
    sizes = [int(10 ** noise.uniform(1.5, 5.2)) for _ in range(FILES)]
    scale = BYTES / sum(sizes)
    for number, size in enumerate(sizes):
        path = folder / f"d{number % 97}" / f"e{number % 13}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        start = noise.randrange(len(text))
        length = int(size * scale)
        path.write_bytes((text[start:] + text * (length // len(text) + 1))[:length])


Times = dict[str, list[tuple[float, float]]]
"""Of each title: the time on the wall, and of processors, ours and our children's."""


def processors() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def timed(times: Times, title: str, work: Callable[[], object]) -> None:
    began, used = time.perf_counter(), processors()
    work()
    took = (time.perf_counter() - began, processors() - used)
    times.setdefault(title, []).append(took)


def shell(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True)


def unpack_ours(layer: Path, target: Path) -> None:
    target.mkdir()
    with layer.open("rb") as file:
        unpack.unpack(file, target, unpack.Bounds())


def pack_text(store: Path, text: dict[str, bytes], digest: Digest) -> None:
    def send(sink: Callable[[bytes], object]) -> None:
        RevisionTree(text).pack("modules/m", "tree", sink)

    asyncio.run(Layout(store).put(digest, send))


def remove(path: Path) -> None:
    subprocess.run(["chmod", "-R", "u+w", path], check=True)
    shutil.rmtree(path)


def main(rounds: int) -> None:
    times: Times = {}
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        tree, theirs = base / "tree", base / "theirs.tar.zst"
        make_tree(tree)
        text = {f"modules/m/tree/{k}": v for k, v in directory.read_revision(tree).items()}
        digest = Layout(base / "first").put_directory(tree)
        pack = f"tar -C {tree} --sort=name -cf - . | zstd -q -3 -f -o {theirs} && sync {theirs}"
        print(cores.take())
        for number in range(rounds):
            store = base / f"store-{number}"
            timed(times, "pack: tar | zstd -3", lambda: shell(pack))
            timed(times, "pack: a recorded text", lambda s=store: pack_text(s, text, digest))
            assert digest in Layout(store).archives()
            shutil.rmtree(store)
            timed(times, "pack: a directory", lambda s=store: Layout(s).put_directory(tree))
            layer = max((store / "blobs" / "sha256").iterdir(), key=lambda p: p.stat().st_size)
            out = base / "out"
            out.mkdir()
            take = f"zstd -q -d -c {layer} | tar -C {out} -xf -"
            timed(times, "unpack: zstd | tar", lambda take=take: shell(take))
            shutil.rmtree(out)
            timed(times, "unpack: keyplane", lambda layer=layer: unpack_ours(layer, base / "ours"))
            remove(base / "ours")
            shutil.rmtree(store)
    for way in ("pack", "unpack"):
        titles = [title for title in times if title.startswith(way + ":")]
        limits = medians(times[titles[0]])
        for title in titles:
            told = "".join(
                f"   {median:6.2f} s {what} {median / limit:5.2f} ×"
                for what, median, limit in zip(
                    ("wall", "cpu"), medians(times[title]), limits, strict=True
                )
            )
            print(f"{title:22}{told}")


def medians(took: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = zip(*took, strict=True)
    return statistics.median(wall), statistics.median(cpu)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
