"""The deployment as authored: machines, instances, externals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.model import duration
from keyplane.model.duration import Duration
from keyplane.model.module import ExportVariant, Json, Policy


def _duration(text: str) -> Duration:
    parsed = duration.parse(text)
    assert parsed is not None
    return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    window: Duration = field(default_factory=lambda: _duration("30s"))
    burst: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartBudget:
    per_unit: int = 5
    window: Duration = field(default_factory=lambda: _duration("1h"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast a machine reacts to dynamic values. Never in a key."""

    debounce: Debounce = field(default_factory=Debounce)
    restart_budget: RestartBudget = field(default_factory=RestartBudget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    name: str
    address: str
    tags: tuple[str, ...] = ()
    rates: Rates = field(default_factory=Rates)
    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    """By interface: the machine that answers it here."""
    platform: str = "linux/amd64"
    local: bool = False
    exec: bool = False


class Strategy(StrEnum):
    EVERY = "every"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a role runs. At most one of `machines` and `tags` is given; neither: all machines."""

    strategy: Strategy
    machines: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    count: int | None = None
    spread: str | None = None


class OnFact(StrEnum):
    HOLD = "hold"
    APPLY = "apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    name: str
    module: str
    settings: Mapping[str, Mapping[str, Json]] = field(
        default_factory=dict[str, Mapping[str, Json]]
    )
    """By role, then setting."""
    placement: Mapping[str, Placement] = field(default_factory=dict[str, Placement])
    """By role."""
    bind: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """By role, then slot: `INSTANCE`, `INSTANCE:ROLE` or `external:NAME`."""
    floor: Mapping[str, int] = field(default_factory=dict[str, int])
    on_fact: OnFact = OnFact.HOLD
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A provider outside the fleet. Exports are variants as a role's are."""

    name: str
    interface: str
    exports: Mapping[str, tuple[ExportVariant, ...]] = field(
        default_factory=dict[str, tuple[ExportVariant, ...]]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    name: str
    file: str
    machines: Mapping[str, Machine] = field(default_factory=dict[str, Machine])
    instances: Mapping[str, Instance] = field(default_factory=dict[str, Instance])
    externals: Mapping[str, External] = field(default_factory=dict[str, External])


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSnapshot:
    """What a machine last said of itself."""

    machine: str
    facts: Mapping[str, Json]
    at: str = ""
