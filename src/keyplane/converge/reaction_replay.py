"""A trace run through the reaction engine on a virtual clock, and its rows as a document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import msgspec

from keyplane.converge import reaction
from keyplane.converge import reaction_limits as limits
from keyplane.converge.reaction_state import Reacted, State, Ticked, Told
from keyplane.converge.reaction_trace import Trace
from keyplane.model import duration
from keyplane.model.reaction import Contracts


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One action or change of state, as `keyplane react --json` prints it."""

    at: str
    entry: str
    unit: str
    action: str
    collapsed: int
    state: str
    values: Mapping[str, str]
    overdue: bool = False


def replay(trace: Trace) -> tuple[Reacted, ...]:
    """What each machine would do, by time, entry and unit."""
    found = [
        reacted
        for contracts in _by_machine(trace.contracts).values()
        for reacted in _on_one(trace, contracts)
    ]
    return tuple(sorted(found, key=lambda row: (row.at_ms, row.entry, row.unit)))


def document(rows: tuple[Reacted, ...]) -> list[Row]:
    return [
        Row(
            at=duration.print_ms(row.at_ms),
            entry=row.entry,
            unit=row.unit,
            action=row.action,
            collapsed=row.collapsed,
            state=row.state,
            values=row.values,
            overdue=row.overdue,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Window:
    """One that was open on a machine."""

    machine: str
    opened_ms: int
    closed_ms: int


def windows(trace: Trace) -> tuple[Window, ...]:
    """All that were open, one that is open at the end up to there."""
    found: list[Window] = []
    for machine, contracts in _by_machine(trace.contracts).items():
        opened: int | None = None
        for state, at_ms in _states(trace, contracts):
            if opened is not None and state.opened_ms != opened:
                found.append(Window(machine, opened, at_ms))
            opened = state.opened_ms
        if opened is not None:
            found.append(Window(machine, opened, trace.until_ms))
    return tuple(sorted(found, key=lambda window: (window.machine, window.opened_ms)))


def _states(trace: Trace, contracts: Contracts) -> Iterator[tuple[State, int]]:
    """Each state that the engine comes to, and when."""
    state = reaction.begin(rates=trace.rates, contracts=contracts, exports=trace.initial)
    events = [*trace.events, None]
    for heard in events:
        until_ms = trace.until_ms if heard is None else min(heard.at_ms, trace.until_ms)
        while (due_ms := limits.due_ms(state)) is not None and due_ms <= until_ms:
            state, _ = reaction.step(state, Ticked(now_ms=due_ms))
            yield state, due_ms
        if heard is not None and heard.at_ms <= trace.until_ms:
            state, _ = reaction.step(state, Told(now_ms=heard.at_ms, news=(heard.news,)))
            yield state, heard.at_ms


def unread(trace: Trace) -> list[str]:
    """Exports of which the trace tells and that no unit reads: most likely misspelt."""
    read = {
        source
        for units in trace.contracts.values()
        for names in units.values()
        for contract in names.values()
        for source in contract.sources
    }
    told = {*trace.initial, *(heard.news.export for heard in trace.events)}
    return sorted(told - read)


def _by_machine(contracts: Contracts) -> dict[str, Contracts]:
    """Each machine has windows of its own."""
    machines = sorted({entry.rpartition("@")[2] for entry in contracts if "@" in entry})
    found: dict[str, Contracts] = {
        machine: {
            entry: units for entry, units in contracts.items() if entry.endswith("@" + machine)
        }
        for machine in machines
    }
    nowhere = {entry: units for entry, units in contracts.items() if "@" not in entry}
    return {"": nowhere, **found}


def _on_one(trace: Trace, contracts: Contracts) -> Iterator[Reacted]:
    state = reaction.begin(rates=trace.rates, contracts=contracts, exports=trace.initial)
    for at_ms, heard in groupby(trace.events, key=lambda heard: heard.at_ms):
        if at_ms > trace.until_ms:
            break
        state, rows = _run(state, at_ms)
        yield from rows
        told = Told(now_ms=at_ms, news=tuple(one.news for one in heard))
        state, rows = reaction.step(state, told)
        yield from rows
    yield from _run(state, trace.until_ms)[1]


def _run(state: State, until_ms: int) -> tuple[State, tuple[Reacted, ...]]:
    """Let time pass up to an instant, that one included."""
    found: list[Reacted] = []
    while (due_ms := limits.due_ms(state)) is not None and due_ms <= until_ms:
        state, rows = reaction.step(state, Ticked(now_ms=due_ms))
        found.extend(rows)
    return state, tuple(found)
