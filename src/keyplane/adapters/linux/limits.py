"""A unit's `limits`, kept by control groups where we may make them.

Memory, processor and tasks are limits of the unit as a whole. Without control groups only
memory is kept, for each of its processes alone; the rest is noted, never silently dropped.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keyplane.ports.host import HostError

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    memory: int | None = None
    """Bytes."""
    cpu: int | None = None
    """Per cent of one processor."""
    tasks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How limits are kept: control groups to enter, or bytes for each process, and notes."""

    groups: tuple[Path, ...] = ()
    memory: int | None = None
    notes: tuple[str, ...] = ()


def parse(limits: Mapping[str, object]) -> Limits:
    memory, cpu, tasks = (limits.get(name) for name in ("memory", "cpu", "tasks"))
    return Limits(
        memory=None if memory is None else _bytes(str(memory)),
        cpu=None if cpu is None else _whole("cpu", str(cpu).removesuffix("%")),
        tasks=None if tasks is None else _whole("tasks", str(tasks)),
    )


def keep(limits: Limits, run_directory: Path) -> Kept:
    if limits == Limits():
        return Kept()
    try:
        return Kept(groups=_make_groups(limits, _name(run_directory)))
    except OSError:
        notes = [f"limits.{name}" for name in ("cpu", "tasks") if getattr(limits, name) is not None]
        text = "no control group could be made: "
        kept = "limits.memory is kept for each process alone"
        lost = f"{' and '.join(notes)} not kept" if notes else None
        said = [part for part in (limits.memory and kept, lost) if part]
        return Kept(memory=limits.memory, notes=(text + ", ".join(said),))


def drop(run_directory: Path) -> None:
    """The groups of one that ended; there may be none."""
    name = _name(run_directory)
    places = [_GROUPS] if _unified() else [_GROUPS / kind for kind in ("memory", "cpu", "pids")]
    for place in places:
        with contextlib.suppress(OSError):
            (place / "keyplane" / name).rmdir()


def _bytes(text: str) -> int:
    matched = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text.strip(), re.ASCII)
    if matched is None:
        raise HostError(f"limits.memory `{text}` is no size such as `256M`")
    return int(matched[1]) * _SIZES[matched[2]]


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise HostError(f"limits.{name} `{text}` is no positive whole number")
    return int(text)


def _name(run_directory: Path) -> str:
    return hashlib.sha256(os.fsencode(run_directory)).hexdigest()[:24]


def _unified() -> bool:
    return (_GROUPS / "cgroup.controllers").exists()


def _make_groups(limits: Limits, name: str) -> tuple[Path, ...]:
    quota = None if limits.cpu is None else _PERIOD_US * limits.cpu // 100
    if _unified():
        own = _GROUPS / "keyplane"
        own.mkdir(exist_ok=True)
        for place in (_GROUPS, own):
            (place / "cgroup.subtree_control").write_text("+memory +cpu +pids", encoding="ascii")
        values = {
            "memory.max": limits.memory,
            "cpu.max": None if quota is None else f"{quota} {_PERIOD_US}",
            "pids.max": limits.tasks,
        }
        return (_make_group(own / name, values),)
    wanted = {
        "memory": {"memory.limit_in_bytes": limits.memory},
        "cpu": {"cpu.cfs_quota_us": quota},
        "pids": {"pids.max": limits.tasks},
    }
    return tuple(
        _make_group(_GROUPS / kind / "keyplane" / name, values)
        for kind, values in wanted.items()
        if any(value is not None for value in values.values())
    )


def _make_group(group: Path, values: Mapping[str, object]) -> Path:
    if not group.parent.parent.is_dir():
        raise FileNotFoundError(group)
    group.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        if value is not None:
            (group / name).write_text(str(value), encoding="ascii")
    return group
