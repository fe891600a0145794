"""A fleet of an ordinary user's: the same works, with what the account allows, and that is said."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.fleet import KEYPLANE, ROOT, Fleet, Network, wait_for
from tests.e2e.test_neighbours import write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account, which takes root"),
]

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = [
    "setpriv",
    f"--reuid={NOBODY.pw_uid}",
    f"--regid={NOBODY.pw_gid}",
    "--clear-groups",
    "--inh-caps=-all",
    "env",
]


def interpreter() -> list[str]:
    """Ours, or the system's with our packages where ours stands in a folder of root's."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    words = [
        f"PATH={Path(sys.executable).parent}:/usr/bin:/bin",
        f"PYTHONPATH={packages}:{ROOT / 'src'}",
    ]
    wanted = "import sys, keyplane.cli; sys.exit(sys.version_info[:2] != (%d, %d))"
    for python in (sys.executable, "/usr/bin/python3"):
        command = [*AS_NOBODY, *words, python]
        tried = [*command, "-c", wanted % sys.version_info[:2]]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("no interpreter of this version that an ordinary user may run")


class Ordinary(Fleet):
    """Commands are nobody's."""

    def start(self, *words: str, command: Sequence[str] = KEYPLANE) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [
                "nsenter",
                f"--net={self.network.path}",
                *interpreter(),
                *command[1:],
                *words,
            ],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    interpreter()
    # Not below pytest's folder, which only root may pass.
    folder = Path("/tmp") / f"keyplane-nobody-{os.getpid()}"
    folder.mkdir(mode=0o755)
    network = Network()
    fleet = Ordinary(write(folder / "fleet", "mine"), network)
    fleet.edit("modules/web/module.toml", 'kind = "process"', 'kind = "process"\nuser = "www-data"')
    subprocess.run(["chown", "-R", "nobody", folder], check=True)
    try:
        yield fleet
    finally:
        try:
            fleet.close()
        finally:
            network.close()
            shutil.rmtree(folder)


def test_an_ordinary_user_has_the_whole_of_it_and_is_told_what_not(fleet: Fleet) -> None:
    """Up, a change, down and up again; units run under the own account, which is said."""
    up = fleet.run("up", ".", "--yes")
    assert "1 started" in up.out
    assert "as nobody, an ordinary user" in up.out
    shown = fleet.run("status").out
    assert "runs as nobody, not as www-data: the agent is not root" in shown
    started = fleet.start_ids()
    assert len(started) == 2
    for pid, _ in started.values():
        assert Path(f"/proc/{pid}").stat().st_uid == NOBODY.pw_uid
    port = fleet.listen("web:main@alpha", "web")
    assert fleet.get(f"http://127.77.0.1:{port}/")
    fleet.edit("modules/web/module.toml", '"http.server",', '"http.server", "--protocol=HTTP/1.1",')
    assert fleet.apply()["restarted"] == 1
    before = fleet.start_ids()
    again = fleet.run("up", ".", "--yes")
    assert "already up" in again.out
    assert "no difference" in again.out
    assert fleet.start_ids() == before
    assert "2 units go on" in fleet.run("down").out
    fleet.run("up", ".", "--yes")
    assert fleet.start_ids() == before
    assert fleet.run("metrics", "agent:alpha").out
    assert fleet.run("logs", "--part", "all", "-n", "1").out
    _is_told_who_has_its_port(fleet, port)


def _is_told_who_has_its_port(fleet: Fleet, port: int) -> None:
    """By the account: a process of root's may not be looked into."""
    fleet.run("stop", "web:main@alpha")
    wait_for(lambda: not fleet.start_ids(), "it is stopped")
    with fleet.network.inside(lambda: socket.create_server(("127.77.0.1", port))):
        ran = fleet.run("start", "web:main@alpha", exit_status=1)
        said = f"port {port} is held by a process of account root that cannot be looked into"
        assert said in ran.out + ran.err
    wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "it runs once it is free")
