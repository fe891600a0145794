"""What others make of the same keyed values: Nix of the whole fleet, Ansible of 40 machines.

Neither checks anything: no types, no ports, no bindings, no diagnostics. Ansible is installed from
PyPI into `.tools`, once. Nix is Debian's, and is installed by apt only where that is asked for.
"""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.beside import peers

_NIX = """
{ machines, services }:
let
  pad = text: width:
    if builtins.stringLength text >= width then text else pad ("0" + text) width;
  part = n: of: n - n / of * of;
  entry = s: m: {
    name = "service-${pad (toString s) 2}:main@m${pad (toString m) 5}";
    value = builtins.hashString "sha256" (builtins.toJSON {
      FIRST = "http://10.0.0.1:${toString (20000 + part (s + 1) 5)}/";
      LEVEL = toString s;
      MODE = "production";
      PORT = toString (20000 + s);
      SECOND = "tcp:${toString (20000 + part (s + 2) 5)}";
      SELF = "10.${toString (m / 65536)}.${toString (part (m / 256) 256)}.${toString (part m 256)}";
    });
  };
  of = s: builtins.genList (m: entry s m) machines;
in builtins.listToAttrs (builtins.concatMap of (builtins.genList (n: n) services))
"""
_TEMPLATE = """{% for s in range(services) %}
{% set value = {"FIRST": "http://10.0.0.1:" ~ (20000 + (s + 1) % 5) ~ "/", "LEVEL": s | string,
 "MODE": "production", "PORT": (20000 + s) | string, "SECOND": "tcp:" ~ (20000 + (s + 2) % 5),
 "SELF": address} %}
service-{{ s }}:main@{{ inventory_hostname }} {{ value | to_json(sort_keys=True) | hash("sha256") }}
{% endfor %}
"""
_PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - set_fact:
        made: "{{ lookup('template', 'entries.j2') }}"
"""
ANSIBLE_MACHINES = 40
_ANSIBLE = "2.19.3"
_INSTALL_NIX = ("apt-get", "install", "--yes", "--no-install-recommends", "nix-bin")


def install_nix() -> None:
    if shutil.which("nix-instantiate") is None:
        subprocess.run(_INSTALL_NIX, check=True, stdout=subprocess.DEVNULL)


def nix(machines: int, services: int) -> float:
    """Seconds of the processor to evaluate all entries."""
    if shutil.which("nix-instantiate") is None:
        raise peers.AbsentError(f"nix-instantiate is not there: {' '.join(_INSTALL_NIX)}, or --nix")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "entries.nix")
        file.write_text(_NIX)
        command = ["nix-instantiate", "--eval", "--strict", "--json", "--store", "dummy://"]
        sizes = ["--arg", "machines", str(machines), "--arg", "services", str(services)]
        return _took([*command, str(file), *sizes])


def ansible(services: int) -> float:
    """Seconds of the processor to template all entries of 40 machines, ansible-core started."""
    environment = peers.environment("ansible-core", _ANSIBLE)
    with tempfile.TemporaryDirectory() as folder:
        hosts = [
            f"m{number:05} ansible_connection=local address=10.0.0.{number} services={services}\n"
            for number in range(ANSIBLE_MACHINES)
        ]
        Path(folder, "hosts").write_text("".join(hosts))
        Path(folder, "play.yml").write_text(_PLAYBOOK)
        Path(folder, "entries.j2").write_text(_TEMPLATE)
        # By its interpreter: the scripts name the place where the environment was made.
        playbook = [environment / "bin/python", "-m", "ansible", "playbook"]
        command = [*map(str, playbook), "-i", "hosts", "play.yml"]
        return _took(command, Path(folder))


def _took(command: Sequence[str], folder: Path | None = None) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "ANSIBLE_LOCALHOST_WARNING": "0", "LC_ALL": "C.UTF-8"}
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
