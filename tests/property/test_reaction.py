"""Whatever values do, the reaction engine keeps to its rates and restarts nothing needlessly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from keyplane.converge import reaction, reaction_replay
from keyplane.converge import reaction_limits as limits
from keyplane.converge.reaction_state import Contract, Reacted, State, Ticked, Told
from keyplane.converge.reaction_trace import Trace
from tests.unit.converge.reaction_traces import export, rates, read, value

EXPORTS = ["a", "b", "c"]
ENTRIES = ["x:main@alpha", "y:main@alpha", "z:main@beta"]
ACTING = {"restart", "reload", "live", "start", "stop"}

contracts = st.builds(
    lambda source, reaction, missing, staleness: value(
        source, reaction, onMissing=missing, **({"maxStaleness": staleness} if staleness else {})
    ),
    st.sampled_from(EXPORTS) | st.lists(st.sampled_from(EXPORTS), min_size=2, max_size=2),
    st.sampled_from(["restart", "restart", "reload", "live"]),
    st.sampled_from(["keep-last", "keep-last", "stop", {"default": "d"}]),
    st.sampled_from([None, "7s", "20s", "45s"]),
)
units = st.dictionaries(st.sampled_from(["V", "W"]), contracts, min_size=1)
# Steps of five seconds and windows of as many: much falls on one instant.
events = st.lists(
    st.tuples(st.integers(1, 60), st.sampled_from(EXPORTS), st.sampled_from(["1", "2", "3", None])),
    max_size=40,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A trace of up to three entries on two machines, that goes on until all is quiet."""
    entries = draw(st.lists(st.sampled_from(ENTRIES), min_size=1, unique=True))
    return {
        "rates": rates(
            draw(st.sampled_from(["5s", "10s", "30s"])),
            draw(st.integers(1, 3)),
            draw(st.integers(0, 3)),
            draw(st.sampled_from(["20s", "1m", "5m"])),
        ),
        "entries": {entry: {"web": draw(units)} for entry in entries},
        "initial": {
            export(name): "1" for name in draw(st.lists(st.sampled_from(EXPORTS), unique=True))
        },
        "events": [
            {
                "at": f"{at * 5}s",
                "export": export(name),
                **({"missing": True} if said is None else {"value": said}),
            }
            for at, name, said in draw(events)
        ],
        "until": "1h",
    }


def by_unit(rows: tuple[Reacted, ...]) -> dict[str, list[Reacted]]:
    found: dict[str, list[Reacted]] = {}
    for row in rows:
        found.setdefault(row.entry, []).append(row)
    return found


def initial(trace: Trace, entry: str) -> dict[str, str]:
    """What the unit runs with at the beginning; nothing where a value is not there yet."""
    found: dict[str, str] = {}
    for name, contract in next(iter(trace.contracts[entry].values())).items():
        texts = [trace.initial.get(source) for source in contract.sources]
        if None in texts:
            return {}
        found[name] = " ".join(text for text in texts if text is not None)
    return found


@dataclass(frozen=True)
class Stepped:
    """One step of the engine of one machine."""

    now_ms: int
    before: State
    after: State
    rows: tuple[Reacted, ...]


def machines(trace: Trace) -> Iterator[State]:
    for machine in ("@alpha", "@beta"):
        mine = {one: has for one, has in trace.contracts.items() if one.endswith(machine)}
        yield reaction.begin(rates=trace.rates, contracts=mine, exports=trace.initial)


def steps(trace: Trace, state: State) -> Iterator[Stepped]:
    """Each timer on its time, then all that is told at an instant."""
    for at in [*sorted({heard.at_ms for heard in trace.events}), trace.until_ms]:
        news = tuple(heard.news for heard in trace.events if heard.at_ms == at)
        while (due := limits.due_ms(state)) is not None and due <= at:
            before = state
            state, rows = reaction.step(state, Ticked(now_ms=due))
            yield Stepped(due, before, state, rows)
        before = state
        state, rows = reaction.step(state, Told(now_ms=at, news=news))
        yield Stepped(at, before, state, rows)


@given(documents())
def test_no_restart_without_a_fresh_value(document: dict[str, Any]):
    """An action changes what the unit runs with, and a mere change of state does not."""
    trace = read(document)
    for entry, rows in by_unit(reaction_replay.replay(trace)).items():
        runs = initial(trace, entry)
        for row in rows:
            if row.action == "none":
                assert row.values == runs
            else:
                assert row.action in ACTING
                assert row.values != runs
            runs = dict(row.values)


@given(documents())
def test_the_budget_is_never_exceeded(document: dict[str, Any]):
    """In no rolling window of it, forced restarts included."""
    trace = read(document)
    budget = trace.rates.restart_budget
    for rows in by_unit(reaction_replay.replay(trace)).values():
        times = [row.at_ms for row in rows if row.action == "restart"]
        for at in times:
            within = [one for one in times if at - budget.window.milliseconds < one <= at]
            assert len(within) <= budget.per_unit


@given(documents())
def test_a_unit_is_acted_on_at_most_once_for_each_window(document: dict[str, Any]):
    """Restarts and reloads come at the close of one, or as the release of what was held."""
    trace = read(document)
    for begun in machines(trace):
        for step in steps(trace, begun):
            acted = [row for row in step.rows if row.action != "none"]
            assert len({row.entry for row in acted}) == len(acted)
            closed = step.after.opened_ms is None
            held = {unit.entry for unit in step.before.units if unit.hold is not None}
            for row in acted:
                assert closed or row.action == "start" or row.entry in held


@given(documents())
def test_a_row_is_never_longer_than_the_burst(document: dict[str, Any]):
    """However near each other the windows are, the one after a whole burst does not act."""
    document["rates"]["restartBudget"]["perUnit"] = 100
    for name in document["entries"]:
        for contract in document["entries"][name]["web"].values():
            contract.pop("maxStaleness", None)
    trace = read(document)
    window, burst = trace.rates.debounce.window.milliseconds, trace.rates.debounce.burst
    for rows in by_unit(reaction_replay.replay(trace)).values():
        strong = [row.at_ms for row in rows if row.action in ("restart", "reload")]
        for first, last in zip(strong, strong[burst:], strict=False):
            # Windows of full length, each opened at once: one more than the burst needs a rest,
            # of a quiet window or of one that opened later.
            assert last - first > burst * window


@given(documents())
def test_what_is_told_in_the_end_is_what_runs_in_the_end(document: dict[str, Any]):
    """Unless there is no budget at all: with time, each unit has its values, or has none."""
    document["rates"]["restartBudget"]["perUnit"] += 1
    trace = read(document)
    final = dict(trace.initial)
    gone: set[str] = set()
    for heard in trace.events:
        if heard.news.value is None:
            gone.add(heard.news.export)
        else:
            final[heard.news.export] = heard.news.value
            gone.discard(heard.news.export)
    rows = by_unit(reaction_replay.replay(trace))
    for entry, units_ in trace.contracts.items():
        runs = dict(rows[entry][-1].values) if entry in rows else initial(trace, entry)
        wanted = {
            name: _wanted(contract, final, gone)
            for name, contract in units_[next(iter(units_))].items()
        }
        assert runs == ({} if None in wanted.values() else wanted)


def _wanted(contract: Contract, told: Mapping[str, str], gone: set[str]) -> str | None:
    if gone.intersection(contract.sources):
        if contract.on_missing == "stop":
            return None
        if contract.on_missing == "default":
            return contract.default
    if not told.keys() >= {*contract.sources}:
        return None
    return " ".join(told[source] for source in contract.sources)


@given(documents(), st.randoms())
def test_the_order_of_one_instant_changes_nothing(document: dict[str, Any], random: Any):
    """Of different exports: what one export says keeps its order."""
    before = reaction_replay.replay(read(document))
    order = random.sample(EXPORTS, len(EXPORTS))
    shuffled = sorted(
        document["events"], key=lambda event: order.index(event["export"].rpartition("/")[2])
    )
    assert reaction_replay.replay(read({**document, "events": shuffled})) == before


@given(documents())
def test_a_state_that_was_saved_goes_on_as_it_would_have(document: dict[str, Any]):
    """After each step, the state as bytes and back is the state; every timer is in the future."""
    trace = read(document)
    for begun in machines(trace):
        for step in steps(trace, begun):
            assert msgspec.json.decode(msgspec.json.encode(step.after), type=State) == step.after
            due = limits.due_ms(step.after)
            assert due is None or due > step.now_ms


@given(documents())
def test_two_replays_are_the_same(document: dict[str, Any]):
    assert reaction_replay.replay(read(document)) == reaction_replay.replay(read(document))
