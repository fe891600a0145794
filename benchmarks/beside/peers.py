"""Tools that Keyplane is measured against, each in an environment of its own below `.tools`."""

import subprocess
import sys
from pathlib import Path

_TOOLS = Path(__file__).resolve().parents[2] / ".tools"


class AbsentError(Exception):
    """A peer is not there; says why, and what would bring it."""


def environment(name: str, version: str) -> Path:
    """With that release from PyPI, once; made beside its place, then renamed.

    Call programs by its interpreter: scripts name the place where the environment was made.
    """
    wanted = _TOOLS / f"{name}-{version}"
    if wanted.is_dir():
        return wanted
    _TOOLS.mkdir(exist_ok=True)
    fresh = _TOOLS / f"{name}.new"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(fresh)], check=True)
    install = ["-m", "pip", "install", "--quiet", f"{name}=={version}"]
    found = subprocess.run(
        [str(fresh / "bin/python"), *install], capture_output=True, text=True, check=False
    )
    if found.returncode:
        last = (found.stderr.strip() or "pip failed").splitlines()[-1]
        raise AbsentError(f"{name} {version} could not be installed: {last}")
    fresh.rename(wanted)
    return wanted
