"""A small fleet whose text is drawn by chance, and what must run for it.

Its units are `sleep`s that carry what they were started with in their environment, so that what
runs can be compared with the text without asking Keyplane.
"""

import collections
import contextlib
import json
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.fleet import Fleet

MACHINES = {"alpha": "127.77.0.1", "beta": "127.77.0.2", "gamma": "127.77.0.3"}
BELOW = {"middle": "base", "edge": "middle"}
"""Which kind each one consumes."""
WORDS = ("no", "08", "1.0", "", "ünï ☃", "two words", "$HOME", "x" * 300)
INSTANCES_MAX = 7

INTERFACES = """
[base.exports]
where = "string"
[middle.exports]
where = "string"
"""

MODULE = """
module = "{name}"
version = "1.0"
policy.settle = "200ms"
[roles.main.settings]
text = {{ type = "string" }}
note = {{ type = "string" }}
{provides}{uses}
[roles.main.listens]
port = {{ protocol = "tcp" }}
[roles.main.resources.file]
type = "file"
path = "/etc/drawn/{name}"
text = "${{settings.text}}"
[roles.main.units.sleeper]
kind = "process"
command = ["sleep", "infinity"]
stopTimeout = "2s"
reload = {{ command = ["true"] }}
configData."/etc/drawn/{name}.conf" = {{ text = "${{settings.note}}" }}
[roles.main.units.sleeper.env]
DRAWN_ENTRY = "${{self.entry}}"
DRAWN_TEXT = "${{settings.text}}"
{reads}
"""
PROVIDES = """
[roles.main.provides.it]
interface = "{kind}"
scope = "mesh"
exports.where = {{ value = "${{machine.address}}:${{settings.text}}", lifecycle = "static" }}
"""
USES = """
[roles.main.uses.below]
interface = "{below}"
"""
READS = 'DRAWN_BELOW = "${results.below.where}"\n'


@dataclass
class Instance:
    kind: str
    machines: list[str]
    text: str = "begin"
    note: str = "begin"
    bind: str | None = None


@dataclass
class Drawn:
    """The fleet as it is written now."""

    rng: random.Random
    instances: dict[str, Instance] = field(
        default_factory=lambda: {
            "base-1": Instance("base", ["alpha"]),
            "base-2": Instance("base", ["beta"]),
            "middle-1": Instance("middle", ["beta"], bind="base-1"),
            "middle-2": Instance("middle", ["gamma"], bind="base-2"),
            "edge-1": Instance("edge", ["alpha", "gamma"], bind="middle-1"),
            "edge-2": Instance("edge", ["beta"], bind="middle-2"),
        }
    )
    made: int = 0

    def edit(self) -> str:
        """Change one thing; what that was."""
        name = self.rng.choice(sorted(self.instances))
        each = self.instances[name]
        kinds = ["text", "note", "move"]
        kinds += ["bind"] if each.bind is not None else []
        kinds += ["add"] * 2 if len(self.instances) < INSTANCES_MAX else []
        bound = any(other.bind == name for other in self.instances.values())
        kinds += ["remove"] * 2 if not bound and len(self._of(each.kind)) > 1 else []
        match self.rng.choice(kinds):
            case "note":
                each.note = f"note {self.rng.random()}"
                return f"note of {name}"
            case "move":
                many = 1 if each.kind != "edge" else self.rng.randint(1, 3)
                each.machines = sorted(self.rng.sample(sorted(MACHINES), many))
                return f"{name} to {each.machines}"
            case "bind":
                each.bind = self.rng.choice(self._of(BELOW[each.kind]))
                return f"{name} bound to {each.bind}"
            case "add":
                return f"add {self._add()}"
            case "remove":
                del self.instances[name]
                return f"remove {name}"
            case _:
                each.text = f"{self.rng.choice(WORDS)} {self.rng.randrange(1000)}"
                return f"text of {name}"

    def _add(self) -> str:
        self.made += 1
        kind = self.rng.choice(("base", "middle", "edge"))
        made = Instance(kind, [self.rng.choice(sorted(MACHINES))])
        made.bind = self.rng.choice(self._of(BELOW[kind])) if kind in BELOW else None
        name = f"{kind}-x{self.made}"
        self.instances[name] = made
        return name

    def _of(self, kind: str) -> list[str]:
        return sorted(name for name, each in self.instances.items() if each.kind == kind)

    def write(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        (directory / "interfaces.toml").write_text(INTERFACES)
        shutil.rmtree(directory / "modules", ignore_errors=True)
        for name, each in self.instances.items():
            folder = directory / "modules" / name
            folder.mkdir(parents=True)
            below = BELOW.get(each.kind)
            text = MODULE.format(
                name=name,
                provides="" if each.kind == "edge" else PROVIDES.format(kind=each.kind),
                uses="" if below is None else USES.format(below=below),
                reads="" if below is None else READS,
            )
            (folder / "module.toml").write_text(text)
        lines = ['fleet = "drawn"']
        for name, address in MACHINES.items():
            lines.append(f'[machines.{name}]\naddress = "{address}"\nlocal = true')
        for name, each in self.instances.items():
            lines.append(f'[instances.{name}]\nmodule = "{name}"')
            lines.append(f"settings.main.text = {_quoted(each.text)}")
            lines.append(f"settings.main.note = {_quoted(each.note)}")
            lines.append(f"placement.every.main = {{ machines = {json.dumps(each.machines)} }}")
            if each.bind is not None:
                lines.append(f'bind.main.below = "{each.bind}"')
        (directory / "fleet.toml").write_text("\n".join(lines) + "\n")

    def wanted(self) -> dict[str, tuple[str, str]]:
        """The text of each entry, and what it must know of the one below."""
        found: dict[str, tuple[str, str]] = {}
        for name, each in self.instances.items():
            below = self.instances[each.bind] if each.bind is not None else None
            where = f"{MACHINES[below.machines[0]]}:{below.text}" if below is not None else ""
            for machine in each.machines:
                found[f"{name}:main@{machine}"] = (each.text, where)
        return found


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def running(fleet: Fleet) -> dict[str, list[tuple[int, str, str]]]:
    """What really runs, by entry: pid, text, and what it knows of the one below."""
    found: dict[str, list[tuple[int, str, str]]] = collections.defaultdict(list)
    for pid, command in fleet.holders().items():
        if not command.startswith("sleep infinity"):
            continue
        with contextlib.suppress(OSError):
            raw = Path(f"/proc/{pid}/environ").read_bytes().decode()
            env = dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)
            if env:  # with none it is just ending
                told = env["DRAWN_TEXT"], env.get("DRAWN_BELOW", "")
                found[env["DRAWN_ENTRY"]].append((pid, *told))
    return dict(found)


def told(fleet: Fleet) -> dict[str, list[tuple[str, str]]]:
    """The same without the pids: what each process was started with."""
    return {
        entry: [(text, below) for _, text, below in each] for entry, each in running(fleet).items()
    }
