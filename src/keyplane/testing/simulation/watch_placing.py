"""What must hold of machines that are cordoned, drained or gone, whatever happens.

Reads the texts of revisions and what was committed; of the product's own words it reads only how a
rollout says that it ended.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.ports.guarding import Cordon
from keyplane.ports.inventory import Change, StoredPlan

Json = Any
FLEET = "fleet.json"
UNCORDONING = ("uncordon", "machine remove")
"""What takes a cordon away, once its target is committed."""


class PlacingWatch:
    def __init__(self, fault: Callable[[str, str], None]) -> None:
        self._fault = fault
        self._lost: frozenset[str] = frozenset()

    def committed(
        self,
        stored: StoredPlan,
        before: Mapping[EntryId, object],
        change: Change,
        cordons: Mapping[MachineName, Cordon],
    ) -> None:
        """A plan of a text; `before` are the entries of the target that it replaces."""
        fleet = json.loads(change.files[FLEET])
        machine = str(change.detail.get("machine", ""))
        for entry in stored.entries:
            instance, _, where = split_entry(entry)
            cordon = cordons.get(where)
            by_count = "count" in fleet["instances"].get(instance, {}).get("placement", {})
            if cordon is None or not by_count or (change.verb in UNCORDONING and where == machine):
                continue
            if cordon.drain or entry not in before:
                said = f"{entry} is, and {where} is {'drained' if cordon.drain else 'cordoned'}"
                self._fault("nothing is placed by count where it may not be", said)
        if change.verb == "machine remove":
            self._is_gone(machine, fleet)
        lost = {machine} if change.forgets is not None else set[str]()
        self._lost = (self._lost | lost) - stored.plan.machines.keys()

    def _is_gone(self, machine: str, fleet: Json) -> None:
        """No machine, no pin of it or to it, no place."""
        found = [f"machines.{machine}"] if machine in fleet["machines"] else []
        for name, each in fleet["machines"].items():
            if machine in each.get("pins", {}).values():
                found.append(f"a pin of {name}")
        for name, each in fleet["instances"].items():
            roles = [role for kind in each["placement"].values() for role in kind.values()]
            found += [f"a place of {name}" for r in roles if machine in r.get("machines", ())]
        if found:
            said = f"{machine} is still named by {', '.join(found)}"
            self._fault("nothing names a machine that was removed", said)

    def ended(self, number: int, skipped: tuple[MachineName, ...]) -> None:
        if missed := self._lost.intersection(skipped):
            said = f"rollout {number} says that {', '.join(sorted(missed))} is"
            self._fault("a machine that is lost is not missed", said)

    def restored(self) -> None:
        self._lost = frozenset()
