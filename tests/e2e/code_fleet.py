"""A fleet of one unit that runs a script out of an archive."""

from pathlib import Path

FLEET = """
fleet = "code"
[machines.alpha]
address = "127.77.0.1"
local = true
[instances.code]
module = "code"
placement.every.main = { machines = ["alpha"] }
"""
MODULE = """
module = "code"
version = "1"
[roles.main.units.run]
kind = "process"
command = ["sh", "run.sh"]
archive = "code"
[build.archives.code]
directory = "src"
"""
RUN = "echo version 0; exec sleep infinity\n"


def write(directory: Path) -> Path:
    """Its text; the folder of what is packed."""
    source = directory / "modules" / "code" / "src"
    source.mkdir(parents=True)
    (directory / "fleet.toml").write_text(FLEET)
    (source.parent / "module.toml").write_text(MODULE)
    (source / "run.sh").write_text(RUN)
    return source
