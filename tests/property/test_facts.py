"""Facts, whatever machines say: what plans hang on, when a word counts, and whom it would cost."""

import asyncio
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from keyplane import wire
from keyplane.model.names import MachineName, split_entry
from keyplane.parts import by_facts, fact_edits, fact_victims
from keyplane.parts.fact_messages import FactsWaiting
from keyplane.parts.knowing import Knowing
from keyplane.parts.planning import Base, Planned
from keyplane.parts.revising import Made
from keyplane.ports import fact_order
from keyplane.ports.inventory import StoredPlan
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory
from tests.unit.parts.fact_fleet import HEARD, instance, known, named, planned, text

MODULES = {"lacks": ["ext4"], "fits": ["ext4", "wireguard"]}
HOLD_MS = 60_000
ALPHA = MachineName("alpha")

facts = st.fixed_dictionaries(
    {},
    optional={
        "kernel.modules": st.sampled_from(list(MODULES.values())),
        "cache.key": st.sampled_from(["one", "two"]),
        "disk.bytes": st.integers(1, 3),
    },
)
fleets = st.fixed_dictionaries({str(machine): facts for machine in HEARD})


def fleet_of(*, count: int, free: bool, gate: str, cache: str) -> dict[str, bytes]:
    instances = [
        instance("vpn", f"count {{ count = {count} }}"),
        instance("roamer", "count { count = 1 }", "roamer", *['onFact = "apply"'] * free),
        named("gate", gate),
        named("cache", cache),
        named("reader", "gamma"),
        named("plain", "alpha"),
    ]
    made = text(*instances)
    vpn = made["modules/vpn/module.toml"].replace(b"roles.node", b"roles.main")
    for name in ("roamer", "gate"):
        made[f"modules/{name}/module.toml"] = vpn.replace(b'"vpn"', f'"{name}"'.encode())
    return made


places = st.sampled_from(["alpha", "beta"])
texts = st.builds(fleet_of, count=st.integers(1, 2), free=st.booleans(), gate=places, cache=places)
FITS = {"kernel.modules": MODULES["fits"]}


def scene(before: Planned) -> tuple[StoredPlan, Base]:
    """A target that was sent in full."""
    target = StoredPlan(plan=before.plan, revision=1, entries=before.entries, contents={})
    return target, Base(entries=before.entries, edges=before.plan.edges, plan=before.plan)


def moved(was: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (machine, fact)
        for machine in was
        for fact in sorted(was[machine].keys() | now[machine].keys())
        if was[machine].get(fact) != now[machine].get(fact)
    ]


@settings(deadline=None, max_examples=60)
@given(texts, fleets, fleets)
def test_a_plan_is_another_only_by_facts_that_it_hangs_on(
    files: dict[str, bytes], was: dict[str, Any], now: dict[str, Any]
) -> None:
    """What else machines say differently shows nowhere, in no entry and in no row."""
    before = planned(files, known(**was))
    read = by_facts.said_in(before.facts)
    same = {
        machine: {
            **{fact: value for fact, value in said.items() if fact not in read(machine)},
            **{fact: value for fact, value in was[machine].items() if fact in read(machine)},
        }
        for machine, said in now.items()
    }
    after = planned(files, known(**same))
    assert after.plan == before.plan
    assert after.facts == before.facts


@settings(deadline=None, max_examples=60)
@given(texts, fleets, fleets)
def test_whoever_would_lose_his_place_is_a_victim(
    files: dict[str, bytes], was: dict[str, Any], now: dict[str, Any]
) -> None:
    """All but what says that facts may move it, and has another place; and nobody else is one."""
    before = planned(files, known(**was))
    target, base = scene(before)
    trial = planned(files, known(**now), before)
    found = fact_victims.victims(target, base, trial)
    lost = before.entries.keys() - trial.entries.keys()
    instances = trial.documents.fleet.instances if trial.documents.fleet else {}
    free = {e for e in lost if instances[split_entry(e)[0]].on_fact == "apply"}
    assert lost - free <= found.keys() <= lost
    stays = {split_entry(entry)[0] for entry in trial.entries}
    assert all(split_entry(entry)[0] in stays for entry in free - found.keys())
    assert {e for e, each in found.items() if each.loses} <= lost - free


@example(  # another, which any fact may move, would go along with it
    fleet_of(count=1, free=True, gate="beta", cache="alpha"),
    {"alpha": FITS, "beta": {}, "gamma": FITS},
    {"alpha": {}, "beta": {}, "gamma": {}},
    "vpn",
)
@settings(deadline=None, max_examples=60)
@given(texts, fleets, fleets, st.sampled_from(["vpn", "roamer", "gate", "cache", "plain"]))
def test_an_edit_moves_nothing_but_what_it_is_of(
    files: dict[str, bytes], was: dict[str, Any], now: dict[str, Any], module: str
) -> None:
    """Whatever waits."""
    before = planned(files, known(**was))
    target, base = scene(before)
    waiting: list[FactsWaiting] = []
    for machine, fact in moved(was, now):
        said = {fact: now[machine].get(fact)}
        by = fact_order.taken(known(**was)[MachineName(machine)], said)
        trial = planned(files, {**known(**was), MachineName(machine): by}, before)
        if found := fact_victims.victims(target, base, trial):
            row = FactsWaiting(
                machine=machine,
                said=said,
                planned={},
                entries={entry: each.how for entry, each in found.items()},
                why="",
                command="",
            )
            waiting.append(row)
    path = f"modules/{module}/module.toml"
    edited = {**files, path: files[path].replace(b'["run"]', b'["run", "newer"]')}
    without = planned(edited, known(**was), before)
    edits = fact_edits.edited(before.plan, without.plan)
    assert {split_entry(entry)[0] for entry in edits} <= {module}

    async def plan(made: Made, _: StoredPlan | None, __: Base) -> Planned:
        return planned(edited, by_facts.taken(known(**was), made.take), before)

    made = Made(files=edited, newest=None, verb="apply")
    made, after = asyncio.run(fact_edits.meant(plan, made, target, base, waiting))
    assert without.entries.keys() - after.entries.keys() <= edits
    assert fact_edits.is_all_of_them(edits, without.plan, after.plan)
    assert made.take in ({}, fact_edits.to_take(waiting, edits))


words = st.lists(
    st.tuples(st.sampled_from([1_000, 20_000, 59_000, 61_000]), st.sampled_from(["a", "b", None])),
    max_size=12,
)


@settings(deadline=None, max_examples=100)
@given(words)
def test_a_word_counts_once_it_has_held(said: list[tuple[int, str | None]]) -> None:
    """But at once where nothing was planned by before; and one that is taken is due no more."""

    async def main() -> None:
        inventory, clock = MemoryInventory(), ManualClock()
        knowing = Knowing(inventory=inventory, clock=clock, hold_ms=HOLD_MS)
        planned_by, value, since = None, None, 0
        for wait_ms, now in said:
            told = wire.Facts(boot="b", facts={} if now is None else {"key": now})
            await knowing.on_facts(ALPHA, wire.encode_facts(told))
            if now != value:
                value, since = now, clock.monotonic_ms()
            await knowing.due([ALPHA])  # as a controller does each second
            clock.advance(wait_ms)
            due = await knowing.due([ALPHA])
            held = clock.monotonic_ms() - since >= HOLD_MS
            is_due = value != planned_by and (planned_by is None or held)
            assert due == ({ALPHA: {"key": value}} if is_due else {})
            assert await knowing.due([]) == {}
            if is_due:
                await knowing.take(due)
                planned_by = value
                assert await knowing.due([ALPHA]) == {}

    asyncio.run(main())
