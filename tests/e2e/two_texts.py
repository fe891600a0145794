"""A small fleet with two texts: to go from one to the other takes each kind of effect."""

import json
from pathlib import Path

from tests.e2e.fleet import Fleet

ENTRIES = {"web": ("runner", "once"), "conf": ("watcher",), "extra": ("sleeper",)}
"""Each instance's units."""

BEGUN = {
    "a": {"web/runner": 1, "web/once": 0, "conf/watcher": 0, "extra/sleeper": 1},
    "b": {"web/runner": 1, "web/once": 0, "conf/watcher": 0, "extra/sleeper": 0},
}
"""How often each unit begins on the way to a text from the other, where both have been there before;
the watcher is reloaded."""

_FLEET = """
fleet = "two-texts"
[machines.alpha]
address = "127.78.0.1"
local = true
[instances.web]
module = "web"
placement.every.main = { machines = ["alpha"] }
[instances.conf]
module = "conf"
settings.main.text = "config TEXT"
placement.every.main = { machines = ["alpha"] }
"""
_EXTRA = """
[instances.extra]
module = "extra"
placement.every.main = { machines = ["alpha"] }
"""
_WEB = """
module = "web"
version = "1"
[roles.main.resources.tree]
type = "directory"
path = "/srv/web-TEXT"
[roles.main.resources.motd]
type = "file"
path = "/etc/web/motd"
text = "motd TEXT"
[roles.main.resources.code]
type = "archive"
archive = "code"
path = "/opt/web"
[roles.main.units.runner]
kind = "process"
command = ["sh", "-c", "echo began; exec sleep infinity"]
archive = "code"
stopTimeout = "2s"
[roles.main.units.runner.env]
TEXT = "TEXT"
[roles.main.units.once]
kind = "job"
runOnce = true
command = ["sh", "-c", "echo began"]
[roles.main.units.once.env]
TEXT = "TEXT"
[build.archives.code]
directory = "src"
"""
_CONF = """
module = "conf"
version = "1"
[roles.main.settings]
text = { type = "string" }
[roles.main.units.watcher]
kind = "process"
command = ["sh", "-c", "trap 'echo reloaded' HUP; echo began; while :; do sleep 1000 & wait $!; done"]
reload = { signal = "HUP" }
stopTimeout = "2s"
configData."/etc/conf/config" = { text = "${settings.text}" }
"""
_EXTRA_MODULE = """
module = "extra"
version = "1"
[roles.main.resources.note]
type = "file"
path = "/etc/extra/note"
text = "extra"
[roles.main.units.sleeper]
kind = "process"
command = ["sh", "-c", "echo began; exec sleep infinity"]
stopTimeout = "2s"
"""


def write(directory: Path, text: str) -> None:
    """Text `a` has an instance more than `b`; all else differs in content."""
    whole = _FLEET + (_EXTRA if text == "a" else "")
    files = {
        "fleet.toml": whole,
        "interfaces.toml": "",
        "modules/web/module.toml": _WEB,
        "modules/web/src/code": "code TEXT",
        "modules/conf/module.toml": _CONF,
        "modules/extra/module.toml": _EXTRA_MODULE,
    }
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.replace("TEXT", text))


def machine(fleet: Fleet) -> Path:
    return fleet.directory / ".keyplane/machines/alpha"


def counts(fleet: Fleet, word: str = "began") -> dict[str, int]:
    """How often each unit said a word, by its log."""
    found: dict[str, int] = {}
    for instance, units in ENTRIES.items():
        for unit in units:
            log = machine(fleet) / f"log/{instance}:main@alpha/{unit}.log".replace(":", "+")
            said = log.read_text().splitlines() if log.exists() else []
            found[f"{instance}/{unit}"] = sum(line.endswith(f" {word}") for line in said)
    return found


def standing(fleet: Fleet) -> dict[str, str]:
    """All that stands on the machine: each path, with a link's end and a file's text.

    Nothing where something of it is just going.
    """
    parts = ("root", "artifacts", "run", "agent")
    try:
        return {
            str(path.relative_to(machine(fleet))): _content(part, path)
            for part in parts
            for path in sorted((machine(fleet) / part).rglob("*"))
        }
    except FileNotFoundError:  # it goes while it is looked at
        return {}


def _content(part: str, path: Path) -> str:
    if path.is_symlink():
        return str(path.readlink())
    return path.read_text() if part == "root" and path.is_file() else ""


def processes(fleet: Fleet) -> list[str]:
    """The commands of all that runs under shims, with what tells the two texts apart."""
    found: list[str] = []
    for pid, told in fleet.holders().items():
        command = told.removeprefix("sh -c echo began; exec ")  # it is about to
        if command.startswith(("sleep infinity", "sh -c trap")):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:  # it has ended since
                continue
            found += [
                json.dumps([command, text.decode()])
                for text in [e for e in environment if e.startswith(b"TEXT=")] or [b""]
            ]
    return sorted(found)
