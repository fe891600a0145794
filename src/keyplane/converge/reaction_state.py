"""What the reaction engine of one machine knows, as values. Decides nothing but the table.

All of it is frozen and serialises; times are milliseconds of whatever clock feeds the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from keyplane.converge.frozen import replace
from keyplane.model.fleet import Rates
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import EntryId, UnitName
from keyplane.model.reaction import Contract, Contracts

UnitId = tuple[EntryId, UnitName]


class ReactionState(StrEnum):
    """What a unit is, as far as its dynamic values go."""

    WAITING = "waiting"
    """No first value yet."""
    RUNNING = "running"
    STALE = "running-stale"
    STOPPED = "stopped"
    FAILED = "failed"


class Action(StrEnum):
    """What is done to a unit. `NONE`: only its state changed."""

    NONE = "none"
    LIVE = "live"
    RELOAD = "reload"
    RESTART = "restart"
    START = "start"
    STOP = "stop"


class Turn(StrEnum):
    """What makes a unit go from one state to another."""

    STARTED = "it is started with values that are all current"
    STARTED_ON_LAST = "it is started, one source being gone"
    FRESH = "all that it runs with is current again"
    GONE = "a source is gone and its last value is kept"
    SILENT = "a source was not heard for too long"
    TRIPPED = "more windows in a row than the burst"
    EXHAUSTED = "the restart budget is used up"
    FROZEN = "a value changed, and the fleet is frozen"
    MISSED = "a value is missing that it stops without"
    ENDED = "it is seen to have failed"
    UP = "it is seen to run"
    UP_ON_LAST = "it is seen to run, with values that are not all current"


TRANSITIONS: Mapping[tuple[ReactionState, Turn], ReactionState] = {
    (ReactionState.WAITING, Turn.STARTED): ReactionState.RUNNING,
    (ReactionState.WAITING, Turn.STARTED_ON_LAST): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.GONE): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.SILENT): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.TRIPPED): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.EXHAUSTED): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.FROZEN): ReactionState.STALE,
    (ReactionState.RUNNING, Turn.MISSED): ReactionState.STOPPED,
    (ReactionState.RUNNING, Turn.ENDED): ReactionState.FAILED,
    (ReactionState.STALE, Turn.FRESH): ReactionState.RUNNING,
    (ReactionState.STALE, Turn.MISSED): ReactionState.STOPPED,
    (ReactionState.STALE, Turn.ENDED): ReactionState.FAILED,
    (ReactionState.STOPPED, Turn.STARTED): ReactionState.RUNNING,
    (ReactionState.STOPPED, Turn.STARTED_ON_LAST): ReactionState.STALE,
    (ReactionState.FAILED, Turn.STARTED): ReactionState.RUNNING,
    (ReactionState.FAILED, Turn.STARTED_ON_LAST): ReactionState.STALE,
    (ReactionState.FAILED, Turn.UP): ReactionState.RUNNING,
    (ReactionState.FAILED, Turn.UP_ON_LAST): ReactionState.STALE,
    (ReactionState.FAILED, Turn.MISSED): ReactionState.STOPPED,
}
"""A turn that is not listed for a state leaves it: a unit that is stale already may trip too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was last said of an export."""

    value: str | None
    """None: it never had one."""
    missing: bool = False
    number: int = 0
    """What was said under a lower one is older."""
    unheard: bool = False
    """It is remembered from an earlier life, and nothing was heard of it in this one."""
    silent_since_ms: int | None = None
    """Nothing is heard of its provider since then. Mere staleness: it says nothing of the value."""

    @property
    def is_unsure(self) -> bool:
        return self.unheard or self.silent_since_ms is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One dynamic value of a unit: what it runs with, and what it should run with."""

    contract: Contract
    runs: str | None = None
    """None: it runs with none."""
    wants: str | None = None
    """By what is known now. None: there is none to run with."""
    missing_since_ms: int | None = None
    """A source is gone since then."""
    kept: bool = False
    """It runs on what a source said last that is gone, or came back with another value that was
    not taken up yet."""
    wrong_since_ms: int | None = None
    """Since when the value that runs is not the one that should."""

    @property
    def is_pending(self) -> bool:
        """There is a value to take up."""
        return self.wants is not None and self.wants != self.runs

    @property
    def is_barred(self) -> bool:
        """The unit must not run."""
        return self.missing_since_ms is not None and self.contract.on_missing is OnMissing.STOP

    @property
    def is_live(self) -> bool:
        return self.contract.reaction is ReactionKind.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A breaker that tripped, or a budget that was used up: no restart and no reload for now."""

    since_ms: int
    quiet_from_ms: int
    """The later of that and the last change of a value that restarts or reloads."""
    overdue: bool = False
    """A value is older than its `maxStaleness`, and there is no budget to take it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    entry: EntryId
    name: UnitName
    values: Mapping[str, Value]
    state: ReactionState = ReactionState.WAITING
    collapsed: int = 0
    """Changes of its values since its last action."""
    in_row: int = 0
    """Windows in a row in which it was restarted or reloaded."""
    acted_ms: int | None = None
    """When the last of them closed."""
    restarts_ms: tuple[int, ...] = ()
    """The last ones, as many as the budget allows at once."""
    hold: Hold | None = None
    turn: int = 0
    """Rises with each start and restart that is asked: what runs under a lower one is to go."""
    on_last: bool = False
    """It was started with values, or went on with them for too long, that nobody confirmed."""
    halted: bool = False
    """Somebody keeps it stopped: nothing is done until that ends."""

    @property
    def is_up(self) -> bool:
        """It has values that it runs with."""
        return self.state not in (ReactionState.WAITING, ReactionState.STOPPED)

    @property
    def is_ready(self) -> bool:
        """Each of its values has something to run with."""
        return all(value.wants is not None for value in self.values.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The whole engine of one machine."""

    rates: Rates
    units: tuple[Unit, ...] = ()
    """By entry and name."""
    exports: Mapping[str, Known] = field(default_factory=dict[str, Known])
    """Those that some unit reads."""
    opened_ms: int | None = None
    """When the open window was opened."""
    frozen: bool = False
    """Nothing is done to any unit, until a person says so."""
    now_ms: int = field(default=0, compare=False)
    """Of the last event that changed anything."""
    readers: Mapping[str, tuple[UnitId, ...]] = field(default_factory=dict[str, tuple[UnitId, ...]])
    """By export. It follows from the contracts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What the agent of a provider says of one export."""

    export: str
    value: str | None
    """None: the source is gone. That nothing is heard is never told as this."""
    number: int = 0
    stored: bool = False
    """Told from memory, and not by the provider just now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was heard at one instant, in order."""

    now_ms: int
    news: tuple[News, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """Time has passed; `reaction_limits.due_ms` says which time is waited for."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Other contracts, other rates, or a freeze. Units that stay keep what they run with."""

    now_ms: int
    rates: Rates
    contracts: Contracts
    frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A unit was seen to have failed, or to run again, for reasons that are not its values'."""

    now_ms: int
    entry: EntryId
    unit: UnitName
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A unit that does not run is about to be started, for whatever cause, and takes up what is known.

    No action of the engine's, so it spends no budget and is in no row.
    """

    now_ms: int
    entry: EntryId
    unit: UnitName


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """A unit is kept stopped, by a person for one, or is so no longer."""

    now_ms: int
    entry: EntryId
    unit: UnitName
    is_halted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sounded:
    """Exports of which nothing is heard any more, or something is again."""

    now_ms: int
    exports: tuple[str, ...]
    is_silent: bool


Event = Told | Ticked | Declared | Seen | Started | Halted | Sounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacted:
    """One action on a unit, or one change of its state."""

    at_ms: int
    entry: EntryId
    unit: UnitName
    action: Action
    collapsed: int
    state: ReactionState
    """After it."""
    values: Mapping[str, str]
    """What the unit runs with after it."""
    overdue: bool = False


def shifted(state: State, by_ms: int) -> State:
    """All its times, moved."""
    if not by_ms:
        return state

    def moved(time_ms: int | None) -> int | None:
        return None if time_ms is None else time_ms + by_ms

    units = tuple(
        replace(
            unit,
            acted_ms=moved(unit.acted_ms),
            restarts_ms=tuple(time + by_ms for time in unit.restarts_ms),
            hold=unit.hold
            and replace(
                unit.hold,
                since_ms=unit.hold.since_ms + by_ms,
                quiet_from_ms=unit.hold.quiet_from_ms + by_ms,
            ),
            values={
                name: replace(
                    value,
                    missing_since_ms=moved(value.missing_since_ms),
                    wrong_since_ms=moved(value.wrong_since_ms),
                )
                for name, value in unit.values.items()
            },
        )
        for unit in state.units
    )
    return replace(state, units=units, opened_ms=moved(state.opened_ms))
