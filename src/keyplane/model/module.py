"""Modules as authored: roles with their settings, slots, provides, units and all the rest.

Strings hold their `${…}` references unresolved. Shapes are checked by `documents`, meaning by the
planner. A field that was not written is None or empty; descriptions are dropped on reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from keyplane.model.duration import Duration
from keyplane.model.interface import ValueType

Json = Any
"""None, bool, int, float, str, list or dict, as JSON has them."""


class Reach(StrEnum):
    ONE = "one"
    LOCAL = "local"
    ALL = "all"


class Follow(StrEnum):
    KEY = "key"
    VALUES = "values"


class Scope(StrEnum):
    """Where the answer to a requirement, or the holder of a seat, may live."""

    MACHINE = "machine"
    MESH = "mesh"


class Lifecycle(StrEnum):
    STATIC = "static"
    PROBED = "probed"
    DYNAMIC = "dynamic"


class Access(StrEnum):
    ROUTABLE = "routable"
    MACHINE_LOCAL = "machine-local"


class RequirementSeverity(StrEnum):
    REQUIRE = "require"
    WANT = "want"


class Predicate(StrEnum):
    EXISTS = "exists"
    ABSENT = "absent"
    EQUALS = "equals"
    ONE_OF = "one-of"
    IN_BOUNDS = "in-bounds"
    MATCHES = "matches"


class ReactionKind(StrEnum):
    RESTART = "restart"
    RELOAD = "reload"
    LIVE = "live"


class UnitKind(StrEnum):
    PROCESS = "process"
    CONTAINER = "container"
    SERVICE = "service"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A typed setting."""

    type: ValueType
    default: Json = None
    has_default: bool = False
    enum: tuple[Json, ...] | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A predicate on a fact of the machine. Operands may hold references."""

    subject: str
    predicate: Predicate
    severity: RequirementSeverity = RequirementSeverity.REQUIRE
    value: Json = None
    """Operand of `equals`."""
    values: tuple[Json, ...] | str | None = None
    """Operand of `one-of`."""
    pattern: str | None = None
    """Operand of `matches`."""
    bounds: str | None = None
    """Operand of `in-bounds`, such as `">= 2, < 8"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequirement:
    """`requires.count` of a slot: how many placements have to be readable."""

    predicate: Predicate
    severity: RequirementSeverity = RequirementSeverity.REQUIRE
    value: Json = None
    values: tuple[Json, ...] | None = None
    bounds: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What a role consumes: `uses.NAME`."""

    interface: str
    request: Mapping[str, Json] = field(default_factory=dict[str, Json])
    reach: Reach = Reach.ONE
    follow: Follow | None = None
    """None: as the provide says, or else `key`."""
    count: CountRequirement | None = None


class OnMissing(StrEnum):
    KEEP_LAST = "keep-last"
    STOP = "stop"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a consumer does when a dynamic value changes, and how stale it may run."""

    reaction: ReactionKind | None
    """None: not stated; `reaction-missing` where the value turns out dynamic."""
    on_missing: OnMissing = OnMissing.KEEP_LAST
    default: Json = None
    """The value taken when missing, with `OnMissing.DEFAULT`."""
    max_staleness: Duration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    protocol: str
    """`tcp` or `udp`."""
    port: int | None = None
    """A number that the protocol fixes; it is a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a dynamic export's value comes from: exactly one of the three."""

    file: str | None = None
    command: tuple[str, ...] | None = None
    every: Duration | None = None
    """With `command`."""
    published: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportVariant:
    """One way in which an export is given; the first whose `when` fits the settings counts."""

    lifecycle: Lifecycle
    when: Mapping[str, Json] = field(default_factory=dict[str, Json])
    value: Json = None
    """With `static`; may hold references."""
    fact: str | None = None
    """With `probed`: the fact on the provider's machine."""
    source: Source | None = None
    """With `dynamic`."""
    access: Access | None = None
    """None: by the provide's scope (mesh: routable, machine: machine-local)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provide:
    interface: str
    scope: Scope = Scope.MACHINE
    follow: Follow | None = None
    credentials: bool = False
    grants: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigData:
    """A configuration file of a unit: shipped as it is, or a text with references."""

    file: str | None = None
    """Relative to the module's directory."""
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What runs. Fields that its kind does not have are None or empty.

    Everything that may hold references is kept as written. `fields` has the fields of the
    closure in their authored spelling (`command`, `user`, `image`, …); the rest is typed, as
    each is judged by a rule of its own.
    """

    kind: UnitKind
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """command, archive, bundle, nix, user, workingDirectory, image, publish, mounts, unit, file,
    runOnce, schedule, whileStopped, limits."""
    env: Mapping[str, Json] = field(default_factory=dict[str, Json])
    config_data: Mapping[str, ConfigData] = field(default_factory=dict[str, ConfigData])
    live: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """health, reload, restart, stopTimeout, handover, replaces: applied with no restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A file, directory, archive, package, account or hosts region that an entry owns."""

    type: str
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The other fields in their authored spelling; defaults are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    length: int | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    history: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    name: str
    listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    command: tuple[Json, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    scope: str
    """`machine` or `fleet`."""
    verbs: Mapping[str, Verb] = field(default_factory=dict[str, Verb])


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What an `impl` function computes, or a plain document states."""

    units: Mapping[str, Unit] = field(default_factory=dict[str, Unit])
    exports: Mapping[str, Mapping[str, tuple[ExportVariant, ...]]] = field(
        default_factory=dict[str, Mapping[str, tuple[ExportVariant, ...]]]
    )
    """By provide, then export."""
    requirements: tuple[Requirement, ...] = ()
    """Without the capabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    uses: Mapping[str, Slot] = field(default_factory=dict[str, Slot])
    provides: Mapping[str, Provide] = field(default_factory=dict[str, Provide])
    reactions: Mapping[str, Reaction] = field(default_factory=dict[str, Reaction])
    """By `SLOT.EXPORT` or `secrets.NAME`."""
    listens: Mapping[str, Listen] = field(default_factory=dict[str, Listen])
    requires: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=dict[str, Resource])
    volumes: Mapping[str, Volume] = field(default_factory=dict[str, Volume])
    secrets: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    state: Mapping[str, Bucket] = field(default_factory=dict[str, Bucket])
    reads: tuple[str, ...] = ()
    zone: Zone | None = None
    seats: Mapping[str, Seat] = field(default_factory=dict[str, Seat])
    body: Body = field(default_factory=Body)
    """Empty where `impl` is true: then the evaluator computes it."""
    impl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How upgrades roll out. A field that is None is not stated here."""

    upgrade: str | None = None
    max_unavailable: int | None = None
    settle: Duration | None = None
    deadline: Duration | None = None
    on_failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What the module's repository makes. Each map is by artifact name."""

    archives: Mapping[str, str] = field(default_factory=dict[str, str])
    """The directory of each, relative to the module's directory."""
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    upstream: Mapping[str, str] = field(default_factory=dict[str, str])
    """The image reference of each."""
    bundles: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    nix: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    name: str
    version: str
    file: str
    """The document's path, relative to the fleet directory; its directory holds shipped files."""
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    policy: Policy = field(default_factory=Policy)
    build: Build = field(default_factory=Build)
