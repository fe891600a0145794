"""How facts are shown."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from keyplane.cli import rows
from keyplane.parts.fact_messages import FactsWaiting

Json = Any

LISTED_MAX = 6
"""Members of a list that are shown: a machine has thousands of commands."""
VALUE_COLUMNS = 80
FACTS_MAX = 4
"""Facts of one machine that a line names."""


def value(fact: Json) -> str:
    """As JSON; of a long list how many there are."""
    if isinstance(fact, list):
        listed = cast("list[Json]", fact)
        if len(listed) > LISTED_MAX:
            return f"{len(listed)} names"
    shown = rows.plain(msgspec.json.encode(fact).decode())
    return shown if len(shown) <= VALUE_COLUMNS else f"{shown[:VALUE_COLUMNS]}…"


def waiting(found: Iterable[FactsWaiting]) -> Iterator[str]:
    """What machines say and plans do not go by, what it is about, and what ends that."""
    for each in found:
        changes = [_change(name, said, each.planned.get(name)) for name, said in each.said.items()]
        more = len(changes) - FACTS_MAX
        told = "; ".join(changes[:FACTS_MAX]) + (f"; and {more} more" if more > 0 else "")
        yield f"{each.machine} says what nothing is planned by: {told}"
        for entry, how in each.entries.items():
            told = how if how.startswith(entry) else f"{entry}: {how}"
            yield f"  {rows.plain(told)}; it goes on as it runs"
        if each.why:
            yield f"  {rows.plain(each.why)}"
        if each.command:
            yield f"  `{each.command}` plans by it all the same"


def _change(name: str, said: Json, planned: Json) -> str:
    """`gpu is false, was true`; of two lists what only one of them has."""
    name = rows.plain(name)
    if isinstance(said, list) and isinstance(planned, list):
        now, before = set(cast("list[str]", said)), set(cast("list[str]", planned))
        gained = [f"with {rows.plain(_names(now - before))}"] if now - before else []
        lost = [f"without {rows.plain(_names(before - now))}"] if before - now else []
        return f"{name} {' and '.join(gained + lost)}"
    is_ = "is gone" if said is None else f"is {value(said)}"
    return f"{name} {is_}" if planned is None else f"{name} {is_}, was {value(planned)}"


def _names(names: set[str]) -> str:
    shown = sorted(names)[:LISTED_MAX]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
