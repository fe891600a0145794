"""The plan document of CONTRACT §4, as values.

Field names are the document's, in camel case on the wire. `Plan` is complete: what executes it
chooses nothing. Contents of files are not in a plan, only their digests; they travel in
`Contents` beside it.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from keyplane.model.diagnostic import Diagnostic

Json = Any

FORMAT = "keyplane.plan/1"

Contents = Mapping[str, bytes]
"""The bytes behind each digest that a plan names for configData and resources (`sha256-…`)."""


class Dynamic(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """A contract for a value that no plan can hold."""

    from_: str | list[str] = msgspec.field(name="from")
    """A list where there are several sources: one for each distinct reference of the template, in
    order of appearance. With no template their values are joined by one space."""
    transport: str | UnsetType = UNSET
    """`bus`."""
    reaction: str | UnsetType = UNSET
    """Unset where none was stated; an error row says so."""
    on_missing: Any = UNSET
    """`keep-last`, `stop` or `{"default": VALUE}`."""
    max_staleness: str | UnsetType = UNSET
    template: str | UnsetType = UNSET


class Hole(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A probed value whose fact its machine does not say, or says no more."""

    fact: str
    machine: str
    type: str
    template: str | UnsetType = UNSET


class HoleValue(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    hole: Hole


# No value of a plan is part of a reference cycle: `gc=False` spares the collector a walk over
# some hundred thousand of them.
class Unit(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """A unit with every field resolved. What was not written is left out."""

    digest: str
    kind: str
    env: dict[str, str | HoleValue] = msgspec.field()
    config_data: dict[str, str | HoleValue] = msgspec.field()
    dynamic: dict[str, Dynamic] = msgspec.field()
    command: list[str] | UnsetType = UNSET
    archive: str | UnsetType = UNSET
    bundle: str | UnsetType = UNSET
    nix: str | UnsetType = UNSET
    user: str | UnsetType = UNSET
    working_directory: str | UnsetType = UNSET
    image: str | UnsetType = UNSET
    publish: dict[str, Json] | list[str] | UnsetType = UNSET
    """By listen: `HOST:CONTAINER`, with `/udp` where the protocol is that. A list: long forms."""
    mounts: dict[str, Json] | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    file_digest: str | UnsetType = UNSET
    """Of the shipped unit file that `file` names."""
    run_once: bool | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    while_stopped: str | UnsetType = UNSET
    limits: dict[str, Json] | UnsetType = UNSET
    health: dict[str, Json] | UnsetType = UNSET
    reload: dict[str, Json] | UnsetType = UNSET
    restart: str | UnsetType = UNSET
    stop_timeout: str | UnsetType = UNSET
    handover: str | UnsetType = UNSET
    replaces: str | UnsetType = UNSET
    stop_first: str | UnsetType = UNSET
    """Why the old one is stopped first although the unit asks for the new one to be started first:
    what both cannot have, such as `volume data, port 5432`."""
    secret_reactions: dict[str, Json] | UnsetType = UNSET
    """What the unit does when a secret that it reads is made anew, by the secret's name."""


class Entry(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """One role of one instance on one machine."""

    key: str
    closure: str
    module: str
    version: str
    dependencies: list[str]
    units: dict[str, Unit]
    requirements: list[dict[str, Json]]
    resources: dict[str, dict[str, Json]]
    listens: dict[str, int]
    volumes: dict[str, Json]
    secrets: list[str]
    artifacts: dict[str, str]
    holes: list[str]
    publishes: dict[str, dict[str, Json]] | UnsetType = UNSET
    """By `PROVIDE/EXPORT`: the type and the source that the agent publishes a dynamic export from."""
    grants: dict[str, str] | UnsetType = UNSET
    """By provide: the path at which its consumers' contributions stand."""
    credentials: dict[str, str] | UnsetType = UNSET
    """By slot: the path of the file with this consumer's own credential."""
    secret_options: dict[str, dict[str, Json]] | UnsetType = UNSET
    """Length and owner of each secret that states one."""
    state: dict[str, dict[str, Json]] | UnsetType = UNSET
    """The buckets that it writes: name on the bus, and history."""
    reads: list[str] | UnsetType = UNSET
    """The buckets that it reads, by their names on the bus."""
    zone: dict[str, Json] | UnsetType = UNSET
    seats: dict[str, dict[str, Json]] | UnsetType = UNSET


class Edge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    consumer: str
    slot: str
    provider: str
    provide: str
    chosen: Literal["bind", "sibling", "pin", "only", "implied"]


class Export(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    lifecycle: str
    access: str
    readers: list[str]


class Allocations(msgspec.Struct, frozen=True, kw_only=True):
    ports: dict[str, dict[str, int]]
    """By machine, then `INSTANCE:ROLE/LISTEN`."""


class PlannedMachine(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    address: str
    rates: dict[str, Json]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A generation: the keyed entries of a fleet, and what was wrong with its documents."""

    format: str
    fleet: str | None
    generation: str
    entries: dict[str, Entry]
    allocations: Allocations
    edges: list[Edge]
    exports: dict[str, Export]
    machines: dict[str, PlannedMachine]
    diagnostics: list[Diagnostic]


class Move(msgspec.Struct, frozen=True, kw_only=True):
    entry: str
    from_: str = msgspec.field(name="from")
    to: str


class Retag(msgspec.Struct, frozen=True, kw_only=True):
    export: str
    from_: str = msgspec.field(name="from")
    to: str
    consumers: list[str]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two plans, CONTRACT §6."""

    deactivate: list[str]
    activate: list[str]
    reload: list[str]
    rewire: list[str]
    untouched: list[str]
    moves: list[Move]
    retags: list[Retag]
    units: dict[str, list[str]]
    why: dict[str, list[str]]


NO_DIFFERENCE = Diff(
    deactivate=[],
    activate=[],
    reload=[],
    rewire=[],
    untouched=[],
    moves=[],
    retags=[],
    units={},
    why={},
)
