"""Runs the arena's own programs as an agent would: declared paths below a root, values in env."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ARENA = Path(__file__).parents[2] / "examples" / "arena"
ADDRESS = f"127.79.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""Of this process alone: a port that was free there is nobody else's then."""
SYSTEM = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # Debian's own python3, psql and sh
DEADLINE_S = 120.0  # a busy machine makes a cluster in some ten seconds


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Come back once the condition holds; fail, naming it, when the deadline has passed."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def postgres_account() -> str | None:
    """Who runs PostgreSQL: root cannot, and gives it to the account of Debian's package."""
    return "postgres" if os.geteuid() == 0 else None


@dataclass
class Machine:
    """A root with the arena's declared directories, and the processes started in it."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def path(self, declared: str) -> Path:
        return self.root / declared.lstrip("/")

    def directory(self, declared: str, *, owner: str | None) -> None:
        path = self.path(declared)
        path.mkdir(parents=True, exist_ok=True)
        if owner is not None:
            shutil.chown(path, owner)

    def write(self, declared: str, text: str) -> None:
        """Whole and by rename, as the agent does."""
        path = self.path(declared)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(text)
        fresh.rename(path)

    def start(
        self, module: str, *command: str, env: Mapping[str, str] = {}, user: str | None = None
    ) -> subprocess.Popen[bytes]:
        unpacked = self.path(f"/archives/{module}")
        if not unpacked.exists():  # the account that runs it may not enter this checkout
            shutil.copytree(ARENA / "modules" / module / "src", unpacked)
        with self.path("/log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=unpacked,
                env={**os.environ, **self.env, **env, **SYSTEM, "KEYPLANE_ROOT": str(self.root)},
                stdout=log,
                stderr=log,
                **account(user),
            )
        self.running.append(process)
        return process

    def run(self, module: str, *command: str, user: str | None = None) -> int:
        return self.start(module, *command, user=user).wait(timeout=DEADLINE_S)

    def log(self) -> str:
        path = self.path("/log")
        return path.read_text() if path.exists() else ""

    def stop(self) -> None:
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(timeout=DEADLINE_S)  # who writes into the root has ended then
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def account(user: str | None) -> dict[str, object]:
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def get(url: str, *, data: bytes | None = None) -> tuple[int, bytes]:
    """Status and body; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(url, data=data, timeout=DEADLINE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with contextlib.closing(error):
            return error.code, error.read()
    except OSError:
        return 0, b""


def value(url: str, *, data: bytes | None = None) -> object:
    return json.loads(get(url, data=data)[1])


def grants(*consumers: tuple[str, str]) -> str:
    """The file that the agent writes, for (instance, database) pairs."""
    rows = [
        {
            "instance": instance,
            "role": "server",
            "machine": "alpha",
            "login": instance.replace("-", "_"),
            "slot": "db",
            "request": {"database": database},
        }
        for instance, database in consumers
    ]
    return json.dumps({"consumers": rows}, separators=(",", ":"), sort_keys=True)


def start_database(machine: Machine, *, listen: str) -> None:
    owner = postgres_account()
    machine.env |= {
        "PG_LISTEN": listen,
        "PG_ADDRESS": ADDRESS,
        "PG_PORT": str(free_port()),
        "PG_TRUSTED": "127.79.0.0/16 127.0.0.1/32",
    }
    machine.directory("/var/lib/keyplane-postgres", owner=owner)
    machine.directory("/run/keyplane-postgres", owner=owner)
    machine.start("postgres", "sh", "server.sh", "run", user=owner)
    machine.start("postgres", "python3", "-u", "provisioner.py", user=owner)
    wait_for(lambda: machine.run("postgres", "sh", "server.sh", "check", user=owner) == 0, "server")
    wait_for(lambda: provisioned(machine), "a provisioned server without consumers")


def provisioned(machine: Machine) -> bool:
    check = ("python3", "provisioner.py", "--check")
    return machine.run("postgres", *check, user=postgres_account()) == 0


def dsn(machine: Machine, login: str, name: str) -> str:
    port = machine.env["PG_PORT"]
    if machine.env["PG_LISTEN"] == "tcp":
        return f"postgresql://{login}@{ADDRESS}:{port}/{name}"
    return f"postgresql://{login}@/{name}?host={machine.path('/run/keyplane-postgres')}&port={port}"


def sql(machine: Machine, login: str, name: str, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", dsn(machine, login, name), "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
