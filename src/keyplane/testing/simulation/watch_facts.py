"""What must hold of facts: when a plan is made by what machines say, and what it may do.

Reads what is recorded and committed, and a fleet's text; works out by itself what was said since
when, who reads it, and who said that it may move him.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.parts.fact_plans import VERB, WHO
from keyplane.ports import fact_order
from keyplane.ports.fact_order import StoredFacts
from keyplane.ports.inventory import Change
from keyplane.testing.simulation import needs

Json = Any
Files = Mapping[str, bytes]

HELD_S = fact_order.HOLD_MS / 1000
STILL_S = 62.0
"""A controller may stand still for so long before it writes down what it has judged."""
SILENT_S = 15.0 + 5.0
"""What is silence by the controller's own measure, and how long a plan takes to be written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A target, and what it was made from."""

    files: Files
    entries: Collection[EntryId]


class FactsWatch:
    """Notes the first promise that is broken."""

    def __init__(self, fault: Callable[[str, str], None], now: Callable[[], float]) -> None:
        self.fault = fault
        self._now = now
        self._since: dict[tuple[MachineName, str], tuple[Json, float]] = {}
        self._former: dict[tuple[MachineName, str], tuple[Json, float, float]] = {}
        """What was said before, since when and until when."""
        self._heard: dict[MachineName, float] = {}
        self.has_others = False
        """Persons too move what is placed by count, and leave too little room for it."""
        self._still_until = 0.0

    def heard(self, machine: MachineName) -> None:
        """Some controller was told anything by it."""
        self._heard[machine] = self._now()

    def stands_still(self, seconds: float) -> None:
        """A controller does, and may write down then what it judged before."""
        self._still_until = max(self._still_until, self._now() + seconds)

    def recorded(self, stored: StoredFacts) -> None:
        """What a machine says is written down."""
        for name, each in stored.facts.items():
            key = stored.machine, name
            known = self._since.get(key)
            if known is None or not fact_order.same(known[0], each.value):
                if known is not None:
                    self._former[key] = (*known, self._now())
                self._since[key] = each.value, self._now()

    def restored(self, known: Mapping[MachineName, StoredFacts]) -> None:
        """Nobody knows any more since when anything was so."""
        self._since.clear()
        self._former.clear()
        for stored in known.values():
            self.recorded(stored)

    def committed(
        self,
        before: Made,
        made: Made,
        change: Change,
        who: str,
        known: Mapping[MachineName, StoredFacts],
    ) -> None:
        """A target in place of another; `known` is by what it was planned before."""
        gone = sorted(set(before.entries) - set(made.entries))
        if (who, change.verb) != (WHO, VERB):
            if change.verb != VERB and not self.has_others:
                self._others_stay(before, made, gone)
            return
        for machine, said in change.facts.items():
            for name, value in said.items():
                self._may_plan(made, machine, name, value, known)
        for entry in gone:
            self._may_go(made, entry)

    def refused(self, codes: Collection[str]) -> None:
        """Somebody's edit was refused for these rows, and its documents are none to be refused."""
        found = sorted({"requirement-unmet", "placement-short"} & set(codes))
        if found and not self.has_others:
            self.fault("facts are in the way of no apply", ", ".join(found))

    def _may_plan(
        self,
        made: Made,
        machine: MachineName,
        name: str,
        value: Json,
        known: Mapping[MachineName, StoredFacts],
    ) -> None:
        what = f"{name} of {machine}"
        if (machine, name) not in needs.read_in(made.files):
            self.fault("a fact that no entry reads makes no plan", what)
        fact = known[machine].facts.get(name) if machine in known else None
        held_s = self._held_s((machine, name), value)
        if fact is not None and fact.planned is not None and held_s < HELD_S:
            self.fault("a fact makes a plan once it has held", f"{what} has for {held_s:.0f} s")
        silent_s = self._now() - self._heard.get(machine, -1e9)
        still_s = STILL_S if self._now() < self._still_until + 5.0 else 0.0
        if silent_s > SILENT_S + still_s:
            self.fault("a silent machine moves nothing", f"{what}, silent for {silent_s:.0f} s")

    def _held_s(self, key: tuple[MachineName, str], value: Json) -> float:
        """For how long it was said; another may have come while the plan was written down."""
        said, since = self._since.get(key, (None, self._now()))
        if fact_order.same(said, value):
            return self._now() - since
        said, since, until = self._former.get(key, (None, 0.0, 0.0))
        is_late = fact_order.same(said, value) and self._now() - until < STILL_S
        return until - since if is_late else 0.0

    def _may_go(self, made: Made, entry: EntryId) -> None:
        """Of an instance that says so, and to another place."""
        instance = split_entry(entry)[0]
        wanted = 0 if instance != needs.FREE else _count(made.files)
        members = [each for each in made.entries if split_entry(each)[0] == instance]
        if instance != needs.FREE or len(members) < wanted:
            self.fault("what facts would stop or move waits for a person", entry)

    def _others_stay(self, before: Made, made: Made, gone: list[EntryId]) -> None:
        """What nobody edits is where it was."""
        for entry in gone:
            if _said_of(before.files, entry) == _said_of(made.files, entry):
                self.fault("an edit carries no move of another", entry)


def _count(files: Files) -> int:
    instance = json.loads(files["fleet.json"])["instances"][needs.FREE]
    return instance["placement"]["count"]["main"]["count"]


def _said_of(files: Files, entry: EntryId) -> Json:
    """All of a text that says where an entry is."""
    instance = split_entry(entry)[0]
    fleet = json.loads(files["fleet.json"])
    module = files.get(f"modules/{instance}/module.json")
    return sorted(fleet["machines"]), fleet["instances"].get(instance), module
