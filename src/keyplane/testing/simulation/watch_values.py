"""What must hold of dynamic values: by what agents save, start and stop."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from keyplane.converge import saved as saved_state
from keyplane.converge.reaction_state import ReactionState, State, Unit
from keyplane.model.fleet import Rates
from keyplane.model.module import ReactionKind
from keyplane.model.names import EntryId, MachineName, UnitName
from keyplane.parts.agent import VALUES_SAVED_S
from keyplane.testing.simulation.readings import VARIABLE

SLACK_S = 0.1 + VALUES_SAVED_S
"""Between what is decided and what is written of it: of a restart that is withdrawn so late."""

UnitKey = tuple[MachineName, EntryId, UnitName]


@dataclass(slots=True)
class _Seen:
    """What is known of one unit."""

    engine: Unit
    """As its agent saved it last."""
    ran_under: int | None = None
    """The turn under which it was started last."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    decided: list[float] = field(default_factory=list[float])
    """When a restart was, since the rates were others."""


class ValuesWatch:
    """Notes the first promise that is broken."""

    def __init__(self, fault: Callable[[str, str], None]) -> None:
        self.fault = fault
        self._units: dict[UnitKey, _Seen] = {}
        self._rates = dict[MachineName, Rates]()
        self._missing: set[str] = set()
        """Exports of which their provider's agent ever said that they are missing."""
        self.patient = False

    def published(self, content: bytes) -> None:
        """What a provider's agent says, before anybody hears of it."""
        words: dict[str, dict[str, object]] = json.loads(content)
        self._missing.update(export for export, word in words.items() if word["value"] is None)

    def saved(self, machine: MachineName, content: bytes, *, now: float, is_held: bool) -> None:
        """What an agent makes of values; `is_held` if it may have waited long to be written."""
        state = saved_state.decode_reactions(content)
        assert state is not None
        if is_held or self._rates.get(machine) != state.rates:
            for key, seen in self._units.items():
                if key[0] == machine:
                    seen.decided.clear()
        self._rates[machine] = state.rates
        for unit in state.units:
            key = (machine, unit.entry, unit.name)
            seen = self._units.get(key)
            if seen is None or unit.turn < seen.engine.turn:
                self._units[key] = _Seen(unit)
                continue
            before, seen.engine = seen.engine, unit
            # A stop and a start between two saves are no restart, and spend nothing.
            is_act = unit.acted_ms != before.acted_ms
            if is_act and unit.turn > before.turn and before.is_up and unit.is_up:
                self._restarts(key, seen, state, now=now, is_held=is_held)
        here = {(machine, unit.entry, unit.name) for unit in state.units}
        for key in [key for key in self._units if key[0] == machine and key not in here]:
            del self._units[key]

    def _restarts(
        self, key: UnitKey, seen: _Seen, state: State, *, now: float, is_held: bool
    ) -> None:
        what = f"{key[1]}/{key[2]} on {key[0]}"
        window_s = state.rates.debounce.window.milliseconds / 1000
        if seen.decided and self.patient and now - seen.decided[-1] < window_s - SLACK_S:
            self.fault("a unit restarts once for a window", what)
        if is_held:
            return
        budget = state.rates.restart_budget
        since = now - budget.window.milliseconds / 1000 + SLACK_S
        seen.decided = [*(at for at in seen.decided if at > since), now]
        if len(seen.decided) > budget.per_unit:
            self.fault("a restart budget is never exceeded", f"{what}: {len(seen.decided)}")

    def starting(
        self, machine: MachineName, entry: EntryId, unit: UnitName, env: dict[str, str]
    ) -> None:
        seen = self._units.get((machine, entry, unit))
        if seen is not None:
            seen.ran_under, seen.env = seen.engine.turn, env

    def is_due(self, machine: MachineName, entry: EntryId, unit: UnitName) -> bool:
        """Whether what runs of a unit is stopped for its values; what is wrong with that is noted."""
        if self.is_in_want(machine, entry, unit):
            return True
        seen = self._units.get((machine, entry, unit))
        if seen is None or seen.ran_under == seen.engine.turn:
            return False
        value = seen.engine.values.get(VARIABLE)
        if (
            value is not None
            and value.contract.reaction is ReactionKind.RESTART
            and value.runs is not None  # else one that was declared anew, and runs with what it had
            and value.runs == seen.env.get(VARIABLE)
        ):
            self.fault("no unit is restarted without a fresh value", f"{entry}/{unit} on {machine}")
        return True

    def is_in_want(self, machine: MachineName, entry: EntryId, unit: UnitName) -> bool:
        """Whether all that runs of a unit is stopped for want of a value; is that wrong, it is noted."""
        seen = self._units.get((machine, entry, unit))
        if seen is None or seen.engine.state is not ReactionState.STOPPED:
            return False
        sources = {s for v in seen.engine.values.values() for s in v.contract.sources}
        if not sources & self._missing:
            what = f"{entry}/{unit} on {machine}"
            self.fault("no unit is stopped but on its provider's word", what)
        return True
