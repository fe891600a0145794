"""Declared paths stand in their place for the unit, and nowhere else."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from keyplane.adapters.linux.processes import LinuxProcesses
from keyplane.adapters.linux.spawn import SHIM
from keyplane.adapters.linux.state_root import StateRoot

from .conftest import ENTRY, UNIT, needs_root, shell, until

pytestmark = needs_root


@pytest.fixture
def declared(state: StateRoot) -> tuple[str, ...]:
    for path, text in (("/etc/mygame/x.json", "one"), ("/etc/issue", "ours")):
        place = Path(f"{state.root}{path}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
    volume = Path(f"{state.root}/srv-of-game/data")
    volume.mkdir(parents=True)
    os.chown(volume, 65534, 65534)
    return ("/etc/mygame/x.json", "/etc/issue", "/srv-of-game/data")


async def said(units: LinuxProcesses) -> tuple[str, ...]:
    ended = await asyncio.wait_for(units.exited(), 60)
    lines = units.tail(ENTRY, UNIT, 20)
    assert ended.exit_code == 0, lines
    return lines


async def test_a_declared_file_is_in_its_place(
    local: LinuxProcesses, declared: tuple[str, ...]
) -> None:
    """Beside what the host has there; the host itself sees nothing of it."""
    script = "cat /etc/mygame/x.json /etc/issue; grep -c ^root: /etc/passwd; test -d /etc/ssl"
    seen = await local.start(shell(script, paths=declared))
    assert seen.notes == ()
    assert await said(local) == ("one", "ours", "1")
    assert not Path("/etc/mygame").exists()


async def test_a_file_replaced_by_rename_is_seen(
    local: LinuxProcesses, declared: tuple[str, ...], state: StateRoot
) -> None:
    """By the process that runs already."""
    script = "while :; do read line < /etc/mygame/x.json; echo $line; sleep 0.01; done"
    await local.start(shell(script, paths=declared))
    await until(lambda: local.tail(ENTRY, UNIT, 1) == ("one",))
    place = state.root / "etc/mygame/x.json"
    made = place.with_name("new")
    made.write_text("two\n")
    made.replace(place)
    await until(lambda: local.tail(ENTRY, UNIT, 1) == ("two",))


async def test_an_account_reaches_what_lies_below_folders_it_may_not_enter(
    local: LinuxProcesses, declared: tuple[str, ...], state: StateRoot, tmp_path: Path
) -> None:
    """As `postgres` does when the state root is in root's home; a volume is its to write."""
    tmp_path.chmod(0o700)
    archive = state.artifacts / ("sha256-" + "b" * 64)
    archive.mkdir()
    (archive / "code").write_text("code\n")
    script = """
        cat code /etc/mygame/x.json
        echo kept > /srv-of-game/data/f && cat /srv-of-game/data/f
        touch here 2>/dev/null || echo read-only
        id -un; pwd"""
    await local.start(shell(script, paths=declared, user="nobody", archive=archive.name))
    lines = await said(local)
    assert lines == (
        "code",
        "one",
        "kept",
        "read-only",
        "nobody",
        f"/.keyplane/artifacts/{archive.name}",
    )
    assert (state.root / "srv-of-game/data/f").read_text() == "kept\n"


async def test_not_even_root_writes_into_an_archive(
    local: LinuxProcesses, state: StateRoot
) -> None:
    archive = state.artifacts / ("sha256-" + "b" * 64)
    archive.mkdir()
    await local.start(shell("touch here || echo refused", archive=archive.name))
    assert (await said(local))[-1] == "refused"


async def test_a_declared_path_through_a_host_link_stands_behind_it(
    local: LinuxProcesses, state: StateRoot
) -> None:
    """`/var/run` is a link to `/run` on this host; `/bin` one to `/usr/bin`."""
    place = state.root / "bin/ours"
    place.parent.mkdir()
    place.write_text("#!/bin/sh\necho ours\n")
    place.chmod(0o755)
    await local.start(shell("ours; readlink /bin", paths=("/bin/ours",)))
    assert await said(local) == ("ours", "usr/bin")


async def test_what_cannot_be_shown_is_noted(local: LinuxProcesses) -> None:
    seen = await local.start(shell("test -e /proc/self/maps", paths=("/proc/x",)))
    assert seen.notes == ("/proc/x cannot be shown in place",)
    assert await said(local) == ()


def test_an_ordinary_user_has_a_private_root_too(
    state: StateRoot, declared: tuple[str, ...], tmp_path: Path
) -> None:
    """By a user namespace, in which the user is who it is."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o111)
    subprocess.run(["chown", "-R", "nobody", state.path], check=True)
    arguments = ["--state", str(state.path), "--mountpoint", str(state.run)]
    for path in declared:
        arguments += ["--path", path]
    script = "cat /etc/mygame/x.json; id -u; echo [$KEYPLANE_ROOT]"
    done = subprocess.run(
        [
            *[
                "setpriv",
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                SHIM,
                *arguments,
            ],
            *["--", "/bin/sh", "-c", script],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "one\n65534\n[]\n", done.stderr


def test_without_the_right_to_mount_the_unit_is_told_where(
    state: StateRoot, declared: tuple[str, ...]
) -> None:
    """Where the kernel refuses namespaces, `KEYPLANE_ROOT` names the tree."""
    arguments = ["--state", str(state.path), "--mountpoint", str(state.run), "--uid", "65534"]
    arguments += ["--gid", "65534", "--run", str(state.run), "--log", f"{state.path}/log/x"]
    script = f"echo $KEYPLANE_ROOT > {state.root}/srv-of-game/data/said"
    for folder in (state.path.parent, *state.path.parent.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o111)
    done = subprocess.run(
        [
            *[
                "setpriv",
                "--bounding-set",
                "-sys_admin",
                "--inh-caps",
                "-sys_admin",
                SHIM,
                *arguments,
            ],
            *["--", "/bin/sh", "-c", script],
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (state.root / "srv-of-game/data/said").read_text() == f"{state.root}\n"
    assert "no private root" in (state.run / "status").read_text()
