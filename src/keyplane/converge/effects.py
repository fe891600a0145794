"""What the brain asks of its shell. Each effect is idempotent and acts on one resource.

The shell may run the effects of one step at once: no two in flight have the same resource. It
answers each with `events.EffectDone` or `EffectFailed`, and Observe and Probe with the events
that carry what was seen; WakeAt is answered by a `Ticked` at that time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from keyplane.model.declaration import Health, Reload, Report
from keyplane.model.host import ProcessSpec
from keyplane.model.names import Digest, EntryId, UnitName


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Look at these paths, at all processes, and at the artifacts that are present."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """Take an unpacked archive out of the cache."""

    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    entry: EntryId
    path: str
    content: bytes
    mode: str
    owner: str | None
    group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDirectory:
    entry: EntryId
    path: str
    mode: str
    owner: str | None
    group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackArchive:
    entry: EntryId
    path: str
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePath:
    entry: EntryId
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveVolume:
    """Put what a volume holds into the store. Nothing writes there meanwhile."""

    entry: EntryId
    path: str
    number: int
    """Of the order."""
    gives: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeVolume:
    """Have a volume hold just this; what was there is put aside. Done once for each number."""

    entry: EntryId
    path: str
    digest: Digest | None
    """None: nothing."""
    number: int
    mode: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    spec: ProcessSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StopProcess:
    entry: EntryId
    unit: UnitName
    digest: Digest
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetProcess:
    """Drop the remains of a process that ended."""

    entry: EntryId
    unit: UnitName
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadProcess:
    spec: ProcessSpec
    how: Reload
    config: Mapping[str, Digest]
    """What it takes up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    spec: ProcessSpec
    health: Health
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendReport:
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt:
    """Replaces any earlier one."""

    at_ms: int


OfPath: TypeAlias = WriteFile | MakeDirectory | UnpackArchive | RemovePath
OfUnit: TypeAlias = StartProcess | StopProcess | ForgetProcess | ReloadProcess
OfArchive: TypeAlias = Fetch | LetGo
OfVolume: TypeAlias = SaveVolume | TakeVolume
Effect: TypeAlias = Observe | OfArchive | OfPath | OfUnit | OfVolume | Probe | SendReport | WakeAt

OBSERVE = "observe"
REPORT = "report"


def unit_resource(entry: EntryId, unit: UnitName) -> str:
    return f"unit:{entry}/{unit}"


def path_resource(path: str) -> str:
    return f"path:{path}"


def volume_resource(path: str) -> str:
    return f"volume:{path}"


def archive_resource(digest: Digest) -> str:
    return f"archive:{digest}"


def probe_resource(entry: EntryId, unit: UnitName) -> str:
    return f"probe:{entry}/{unit}"


def resource(effect: Effect) -> str:
    """What it acts on; one effect at a time acts on each."""
    match effect:
        case Observe():
            return OBSERVE
        case Fetch(digest=digest) | LetGo(digest=digest):
            return archive_resource(digest)
        case WriteFile() | MakeDirectory() | UnpackArchive() | RemovePath():
            return path_resource(effect.path)
        case SaveVolume(path=path) | TakeVolume(path=path):
            return volume_resource(path)
        case StartProcess(spec=spec) | ReloadProcess(spec=spec):
            return unit_resource(spec.entry, spec.unit)
        case StopProcess() | ForgetProcess():
            return unit_resource(effect.entry, effect.unit)
        case Probe(spec=spec):
            return probe_resource(spec.entry, spec.unit)
        case SendReport():
            return REPORT
        case WakeAt():
            return "wake"
        case _:
            assert_never(effect)


def attempt(effect: Effect) -> str:
    """What is counted when it fails: a reload that fails must not hold back a stop."""
    match effect:
        case ReloadProcess():
            return f"reload-{resource(effect)}"
        case StopProcess() | ForgetProcess():
            return f"stop-{resource(effect)}"
        case LetGo():
            return f"let-go-{resource(effect)}"
        case _:
            return resource(effect)
