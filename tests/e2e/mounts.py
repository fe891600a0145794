"""Disks of a fleet's own, which only its processes see: small, full or read-only."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.fleet import KEYPLANE, Fleet, Network


class Mounted(Fleet):
    """A fleet whose processes live in a mount namespace of their own."""

    def __init__(self, directory: Path, network: Network) -> None:
        super().__init__(directory, network)
        self._holder = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--propagation=private",
                "sh",
                "-c",
                "echo; exec sleep infinity",
            ],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()  # it is in its namespace

    def inside(self, path: str) -> Path:
        """A path below `.keyplane`, as the fleet sees it."""
        return Path(f"/proc/{self._holder.pid}/root{self.directory}/.keyplane/{path}")

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._enter(), f"--wdns={self.directory}", *KEYPLANE, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def process(self, *words: str) -> "subprocess.Popen[bytes]":
        """Any program, where the fleet's run."""
        return subprocess.Popen(
            [*self._enter(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _enter(self) -> list[str]:
        return ["nsenter", f"--net={self.network.path}", f"--mount=/proc/{self._holder.pid}/ns/mnt"]

    def mount(self, *words: str) -> None:
        subprocess.run([*self._enter(), *words], check=True)

    def disk(self, path: str, megabytes: int) -> None:
        """A disk of its own at a path below `.keyplane`."""
        self.inside(path).mkdir(parents=True, exist_ok=True)
        where = f"{self.directory}/.keyplane/{path}"
        self.mount("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", where)

    @contextlib.contextmanager
    def full(self, path: str, *, left: int = 0) -> Iterator[None]:
        """No space is left on the disk there, or so many bytes."""
        ballast = self.inside(path) / "ballast"
        try:
            with ballast.open("wb", buffering=0) as file:
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"\0" * 4096)
                file.truncate(max(0, file.seek(0, os.SEEK_END) - left))
            yield
        finally:
            ballast.unlink(missing_ok=True)

    @contextlib.contextmanager
    def read_only(self, path: str) -> Iterator[None]:
        """Nothing there can be written, as after an error of the disk."""
        where = f"{self.directory}/.keyplane/{path}"
        self.mount("mount", "--bind", where, where)
        try:
            self.mount("mount", "-o", "remount,ro,bind", where)
            yield
        finally:
            self.mount("umount", "--lazy", where)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._holder.kill()
            self._holder.communicate()
