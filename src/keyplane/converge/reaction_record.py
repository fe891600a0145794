"""What a machine heard of dynamic values, bounded, and as a trace that `keyplane react` replays."""

from collections.abc import Mapping
from typing import Any

import msgspec

from keyplane.model import duration, reaction
from keyplane.model.declaration import Declaration
from keyplane.model.module import OnMissing
from keyplane.model.reaction import Contract

Json = Any

KEPT_MAX = 2_000
"""Some 200 KiB: a day of an address that changes every minute, and a burst of any kind."""
AFTER_MS = 600_000
"""A trace goes on so long after the last word: what was held by then is let go."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One word that was another one than before."""

    at_ms: int
    """By the wall clock."""
    export: str
    value: str | None
    """None: missing."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Of one machine. `initial` is what was known before the first of `words`."""

    initial: Mapping[str, str] = {}
    words: tuple[Heard, ...] = ()


_RECORD = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    return msgspec.json.encode(record)


def decode(data: bytes | None) -> Record:
    """An empty one where it was lost."""
    try:
        return Record() if data is None else _RECORD.decode(data)
    except msgspec.MsgspecError:
        return Record()


def add(record: Record, heard: Heard) -> Record:
    """With one more; the oldest become what was known before."""
    words = (*record.words, heard)
    initial = dict(record.initial)
    while len(words) > KEPT_MAX:
        if words[0].value is not None:
            initial[words[0].export] = words[0].value
        words = words[1:]
    return Record(initial=initial, words=words)


def trace(record: Record, declaration: Declaration) -> dict[str, Json]:
    """The document of what was heard, under the contracts and rates of now.

    Of the whole machine: its windows are opened by all its units. A first value that was there
    before the first word is one that the units ran with.
    """
    entries: dict[str, Json] = {}
    for entry, declared in sorted(declaration.entries.items()):
        units = {
            name: {value: _contract(unit.dynamic[value]) for value in sorted(unit.dynamic)}
            for name, unit in sorted(declared.units.items())
            if unit.dynamic
        }
        if units:
            entries[entry] = units
    rates = declaration.rates
    began = record.words[0].at_ms - 1 if record.words else 0
    last = record.words[-1].at_ms if record.words else 0
    return {
        "rates": {
            "debounce": {"window": duration.print_ms(rates.window_ms), "burst": rates.burst},
            "restartBudget": {
                "perUnit": rates.restarts_per_unit,
                "window": duration.print_ms(rates.budget_ms),
            },
        },
        "entries": entries,
        "initial": dict(sorted(record.initial.items())),
        "events": [_event(heard, began) for heard in record.words],
        "until": duration.print_ms(last - began + AFTER_MS),
    }


def _event(heard: Heard, began_ms: int) -> dict[str, Json]:
    at = duration.print_ms(max(1, heard.at_ms - began_ms))
    said: dict[str, Json] = {"at": at, "export": heard.export}
    return said | ({"missing": True} if heard.value is None else {"value": heard.value})


def _contract(contract: Contract) -> dict[str, Json]:
    sources = contract.sources
    said: dict[str, Json] = {
        "from": sources[0] if len(sources) == 1 else list(sources),
        "reaction": contract.reaction.value,
        "onMissing": {"default": contract.default}
        if contract.on_missing is OnMissing.DEFAULT
        else contract.on_missing.value,
    }
    if contract.max_staleness_ms is not None:
        said["maxStaleness"] = duration.print_ms(contract.max_staleness_ms)
    if contract.parts != reaction.joined(len(sources)):
        # The engine knows references by their order alone.
        said["template"] = "".join(
            part if isinstance(part, str) else f"${{results.value-{part}}}"
            for part in contract.parts
        )
    return said
