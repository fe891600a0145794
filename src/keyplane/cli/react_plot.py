"""A replayed trace as a picture: a line for each export, each machine's windows, and each unit."""

from keyplane.converge import reaction_replay
from keyplane.converge.reaction_state import Action, Reacted
from keyplane.converge.reaction_trace import Trace
from keyplane.drawing import timeline
from keyplane.drawing.timeline import Lane, Mark, Span
from keyplane.model import duration


def picture(name: str, trace: Trace) -> str:
    rows = reaction_replay.replay(trace)
    last = max((row.at_ms for row in rows), default=0)
    heard = max((heard.at_ms for heard in trace.events), default=0)
    # What comes after all is over is empty.
    until = min(trace.until_ms, max(1, round(1.15 * max(last, heard))))
    windows = reaction_replay.windows(trace)
    lanes = [_export(export, trace) for export in _exports(trace)]
    for machine in sorted({window.machine for window in windows}):
        spans = [
            Span(
                from_ms=window.opened_ms,
                to_ms=min(window.closed_ms, until),
                said=f"a window, closed after {duration.print_ms(window.closed_ms - window.opened_ms)}",
                kind="window",
            )
            for window in windows
            if window.machine == machine and window.opened_ms <= until
        ]
        lanes.append(Lane(name=f"windows of {machine or 'the machine'}", spans=spans))
    for entry, units in trace.contracts.items():
        for unit in units:
            mine = [row for row in rows if (row.entry, row.unit) == (entry, unit)]
            lanes.append(_unit(f"{entry} {unit}", mine, until, is_new=_is_new(trace, entry, unit)))
    return timeline.draw(name, until, lanes, _ticks(until))


def _exports(trace: Trace) -> list[str]:
    return sorted({heard.news.export for heard in trace.events} | trace.initial.keys())


def _export(export: str, trace: Trace) -> Lane:
    marks = [
        Mark(
            at_ms=heard.at_ms,
            said="missing" if heard.news.value is None else heard.news.value,
            kind="missing" if heard.news.value is None else "value",
        )
        for heard in trace.events
        if heard.news.export == export
    ]
    if export in trace.initial:
        marks.insert(0, Mark(at_ms=0, said=trace.initial[export]))
    return Lane(name=export, marks=marks)


def _is_new(trace: Trace, entry: str, unit: str) -> bool:
    """It has no first value yet when the trace begins."""
    contracts = next(u for e, u in trace.contracts.items() if e == entry)
    values = next(v for name, v in contracts.items() if name == unit)
    sources = {source for contract in values.values() for source in contract.sources}
    return not sources <= trace.initial.keys()


def _unit(name: str, rows: list[Reacted], until: int, *, is_new: bool) -> Lane:
    spans: list[Span] = []
    state, since = ("waiting" if is_new else "running"), 0
    for row in rows:
        if row.state.value != state:
            spans.append(Span(from_ms=since, to_ms=row.at_ms, said=state, kind=state))
            state, since = row.state.value, row.at_ms
    spans.append(Span(from_ms=since, to_ms=until, said=state, kind=state))
    marks = [
        Mark(at_ms=row.at_ms, said=row.action.value, kind="act")
        for row in rows
        if row.action is not Action.NONE
    ]
    return Lane(name=name, spans=spans, marks=marks)


def _ticks(until: int) -> list[Mark]:
    step = max(1, until // timeline.TICKS)
    for unit in (86_400_000, 3_600_000, 60_000, 10_000, 1_000, 100, 10):
        if step >= unit:
            step -= step % unit
            break
    return [Mark(at_ms=at, said=duration.print_ms(at)) for at in range(step, until + 1, step)]
