"""What a Linux machine tells of itself, and what people and modules add to it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from keyplane import wire
from keyplane.adapters.linux import fact_files, machine_facts
from keyplane.adapters.linux.fact_files import FactFiles
from keyplane.adapters.linux.machine_facts import LinuxFacts
from keyplane.model.facts import Facts

RELEASE = os.uname().release


def write(place: Path, text: str = "", mode: int = 0o644) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The kernel's and the distribution's files of a made-up machine."""
    made = tmp_path / "system"
    write(made / "etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian 12"\n')
    write(made / "proc/meminfo", "MemFree: 5 kB\nMemTotal:       2048 kB\n")
    write(
        made / f"lib/modules/{RELEASE}/modules.dep",
        "kernel/drivers/net/wireguard/wireguard.ko.xz: kernel/lib/x.ko\nkernel/nf-tables.ko:\n",
    )
    write(made / f"lib/modules/{RELEASE}/modules.builtin", "kernel/fs/ext4/ext4.ko\n")
    (made / "sys/module/loop").mkdir(parents=True)
    (made / "run/systemd/system").mkdir(parents=True)
    write(made / "usr/bin/podman", mode=0o755)
    write(made / "usr/bin/apt-get", mode=0o755)
    write(made / "usr/bin/notes.txt")
    (made / "usr/bin/gone").symlink_to("nowhere")
    return made


def facts_of(system: Path, root: Path) -> LinuxFacts:
    root.mkdir(exist_ok=True)
    return LinuxFacts(root=root, path=f"{system}/usr/bin:{system}/nowhere", system=system)


def gathered(facts: LinuxFacts) -> Any:
    return asyncio.run(facts.gather())


def test_a_machine_tells_what_it_is(system: Path, tmp_path: Path) -> None:
    """Of its kernel, distribution and size, what can be loaded and run on it."""
    said = Facts(gathered(facts_of(system, tmp_path / "root")))
    assert said["os.id"] == "debian"
    assert said["os.version"] == "12"
    assert said["kernel.release"] == RELEASE
    assert said["memory.bytes"] == 2048 * 1024
    assert said["cpu.count"] == os.cpu_count()
    for name in ("wireguard", "nf_tables", "ext4", "loop"):
        assert said[f"kernel.module.{name}"] is True
    assert said["kernel.module.zfs"] is False
    assert said["commands"] == ["apt-get", "podman"]
    assert said["package.manager"] == "apt"
    assert said["container.runtime"] == "podman"
    assert said["service.manager"] == "systemd"
    assert said["capability.container-runtime"] is True


def test_a_machine_that_has_little_tells_little(tmp_path: Path) -> None:
    """What cannot be found out is no fact; a capability has a verdict all the same."""
    (tmp_path / "system").mkdir()
    said = gathered(facts_of(tmp_path / "system", tmp_path / "root"))
    assert "os.id" not in said
    assert "container.runtime" not in said
    assert said["capability.container-runtime"] is False
    assert said["commands"] == []


def test_where_modules_cannot_be_loaded_those_that_are_count(system: Path, tmp_path: Path) -> None:
    write(system / "proc/sys/kernel/modules_disabled", "1\n")
    assert gathered(facts_of(system, tmp_path / "root"))["kernel.modules"] == ["loop"]


def test_addresses_are_those_by_which_others_reach_the_machine(
    system: Path, tmp_path: Path
) -> None:
    """Not the loopback's, a link's own, nor one that is given up within a day."""
    write(
        system / "proc/net/fib_trie",
        "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.3\n        /32 host LOCAL\n"
        "     |-- 10.0.0.255\n        /32 link BROADCAST\n"
        "     |-- 127.0.0.1\n        /32 host LOCAL\n",
    )
    lines = [
        "00000000000000000000000000000001 01 80 10 80 lo",
        "fd000000000000000000000000000002 02 40 00 80 eth0",
        "fd0000000000000000000000000000ff 02 40 00 01 eth0",
        "fe800000000000000000000000000001 02 40 20 80 eth0",
    ]
    write(system / "proc/net/if_inet6", "".join(f"{line}\n" for line in lines))
    assert gathered(facts_of(system, tmp_path / "root"))["addresses"] == ["10.0.0.3", "fd00::2"]


def test_what_is_the_same_is_the_same_object(
    system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nobody looks at it twice; a command that was added is seen at the next full look."""
    monkeypatch.setattr(machine_facts, "OWN_S", 0.0)
    facts = facts_of(system, tmp_path / "root")
    first = gathered(facts)
    assert gathered(facts) is first
    write(system / "usr/bin/git", mode=0o755)
    os.utime(system / "usr/bin", ns=(1, 1))
    assert "git" in gathered(facts)["commands"]


def test_this_machine_tells_what_can_be_said(tmp_path: Path) -> None:
    """Whatever it is."""
    said = gathered(LinuxFacts(root=tmp_path, path=os.environ["PATH"]))
    assert said["cpu.count"] >= 1
    assert "python3" in said["commands"] or said["commands"]
    assert isinstance(
        wire.decode_facts(wire.encode_facts(wire.Facts(boot="b", facts=said))), wire.Facts
    )


# Files of facts.


def test_files_add_facts(tmp_path: Path) -> None:
    """A value of JSON is what it is, anything else a text; folders one level deep count too."""
    folder = tmp_path / "etc/keyplane/facts.d"
    write(folder / "rack", "r7\n")
    write(folder / "gpu.count", "2")
    write(folder / "zones", '["a", "b"]')
    write(folder / "nix-cache/nix.key", "cache-1:abc=\n")
    write(folder / "nix-cache/deeper/ignored", "x")
    write(folder / ".half-written", "x")
    write(folder / "empty", " \n")
    assert FactFiles(tmp_path).read() == {
        "gpu.count": 2,
        "nix.key": "cache-1:abc=",
        "rack": "r7",
        "zones": ["a", "b"],
    }


def test_a_file_that_is_nested_too_deep_is_a_text(tmp_path: Path) -> None:
    """Whatever a unit writes there, its machine's agent reads on."""
    folder = tmp_path / "etc/keyplane/facts.d"
    nested = "[" * 5000
    write(folder / "deep", nested)
    write(folder / "rack", "r7")
    assert FactFiles(tmp_path).read() == {"rack": "r7"}  # longer than a text may be
    assert fact_files.parsed(nested.encode()) == nested


def test_a_file_says_nothing_against_the_machine(system: Path, tmp_path: Path) -> None:
    """What the agent finds out itself is so, whatever a module's file claims."""
    root = tmp_path / "root"
    write(root / "etc/keyplane/facts.d/liar/os.id", "plan9")
    write(root / "etc/keyplane/facts.d/liar/os.mood", "good")
    said = gathered(facts_of(system, root))
    assert said["os.id"] == "debian"
    assert said["os.mood"] == "good"


def test_no_link_is_followed_and_no_pipe_waited_for(tmp_path: Path) -> None:
    """Nor does a folder that leads out of the machine's root."""
    folder = tmp_path / "root/etc/keyplane/facts.d"
    folder.mkdir(parents=True)
    write(tmp_path / "outside/secret", "hidden")
    (folder / "linked").symlink_to(tmp_path / "outside/secret")
    (folder / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    write(folder / "large", "x" * 20_000)
    write(folder / "long", "x" * 5_000)
    write(folder / "plain", "1")
    assert FactFiles(tmp_path / "root").read() == {"plain": 1}


def test_of_two_files_with_one_name_the_first_counts(tmp_path: Path) -> None:
    """By path; so a module cannot take over what stands in the folder of one before."""
    folder = tmp_path / "etc/keyplane/facts.d"
    write(folder / "a/key", "first")
    write(folder / "b/key", "second")
    assert FactFiles(tmp_path).read() == {"key": "first"}


def test_no_folder_is_no_fact(tmp_path: Path) -> None:
    assert FactFiles(tmp_path).read() == {}
    write(tmp_path / "etc/keyplane/facts.d", "a file in its place")
    assert FactFiles(tmp_path).read() == {}
