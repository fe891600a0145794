"""A PostgreSQL of the test run's own: on a unix socket, as a user that is not root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg


def _programs() -> Path:
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if on_path is None and not found:
        raise AssertionError("PostgreSQL is not installed: apt-get install postgresql")
    return (found[-1] if found else Path(str(on_path))).parent


@contextmanager
def cluster() -> Iterator[Path]:
    """The directory of its socket."""
    programs = _programs()
    # Not below pytest's own directory: the server's user may not enter it.
    root = Path(tempfile.mkdtemp(prefix="kp-pg-", dir="/tmp"))
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(root, "postgres", "postgres")

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [str(programs / program), "-D", str(root / "data"), *words],
            check=False, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **as_user,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout.decode()

    run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
    # Nothing here has to outlive a crash of the machine.
    run(
        "pg_ctl", "start", "-w", "-t", "300", "-s", "-l", str(root / "log"),
        "-o", f"-k {root} -c listen_addresses='' -c fsync=off",
    )  # fmt: skip
    try:
        yield root
    finally:
        run("pg_ctl", "stop", "-m", "immediate", "-t", "300", "-s")
        shutil.rmtree(root)


async def execute(socket: Path, statement: str, database: str = "postgres") -> None:
    connection = await asyncpg.connect(host=str(socket), user="postgres", database=database)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def serving(url: str) -> set[int]:
    """The server's processes for whoever uses a database; none where it is a file."""
    if not url.startswith("postgresql:"):
        return set()
    database, _, socket = url.partition("@/")[2].partition("?host=")
    connection = await asyncpg.connect(host=socket, user="postgres", database="postgres")
    try:
        found = await connection.fetch(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = $1 AND backend_type = 'client backend'",
            database,
        )
    finally:
        await connection.close()
    return {each["pid"] for each in found}


def url(socket: Path, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={socket}"
