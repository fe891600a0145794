"""Dynamic values in the text of a simulated fleet: databases say their address, apps read it."""

from dataclasses import dataclass, replace
from typing import Any

from keyplane.testing.simulation.chance import Chance

Json = Any

EXPORT = "address"
VARIABLE = "PEER"


def path_of(instance: str) -> str:
    """Where an instance writes what it exports."""
    return f"/run/{instance}/{EXPORT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How an app takes a new address of its database."""

    reaction: str
    on_missing: str
    max_staleness: str | None


class Readings:
    """What is drawn of them for one run."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.patient = chance.happens(0.5)
        """No value is ever too stale, so that no window closes early."""
        self._pace: Json = {}
        self.draw_pace()

    def draw_pace(self) -> None:
        chance = self._chance
        self._pace = {
            "debounce": {"window": chance.pick(("2s", "5s")), "burst": chance.count(1, 3)},
            "restartBudget": {
                "perUnit": chance.count(1, 3),
                "window": chance.pick(("20s", "1m")),
            },
        }

    def draw(self) -> Reading:
        chance = self._chance
        return Reading(
            reaction=chance.pick(("restart", "restart", "reload", "live")),
            on_missing=chance.pick(("keep-last", "stop")),
            max_staleness=None if self.patient else chance.pick(("3s", "30s")),
        )

    def draw_again(self, reading: Reading) -> Reading:
        """The same reaction: what was taken live is in no variable of a process that runs."""
        return replace(self.draw(), reaction=reading.reaction)

    def pace(self, machine: Json) -> Json:
        return {**machine, "reactions": self._pace}


def interface() -> str:
    return f'{EXPORT} = "string"\n'


def provide(exports: Json, instance: str) -> None:
    exports[EXPORT] = {"lifecycle": "dynamic", "source": {"file": path_of(instance)}}


def read(role: Json, unit: Json, reading: Reading) -> None:
    made: Json = {"reaction": reading.reaction, "onMissing": reading.on_missing}
    if reading.max_staleness is not None:
        made["maxStaleness"] = reading.max_staleness
    role["reactions"] = {f"upstream.{EXPORT}": made}
    unit["env"][VARIABLE] = "${results.upstream." + EXPORT + "}"
