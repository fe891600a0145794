"""Traces in few words, and what comes of them as lines that can be read."""

import json
from typing import Any

from keyplane.converge import reaction_replay, reaction_trace

ENTRY = "app:web@alpha"
SECOND, MINUTE = 1_000, 60_000


def export(name: str) -> str:
    return f"src:main@alpha/provides/src/{name}"


def value(source: str | list[str], reaction: str = "restart", **more: Any) -> dict[str, Any]:
    """The contract of one value; `source` is the short name of an export, or several."""
    named = export(source) if isinstance(source, str) else [export(one) for one in source]
    return {"from": named, "reaction": reaction, **more}


def rates(
    window: str = "30s", burst: int = 3, per_unit: int = 5, budget: str = "1h"
) -> dict[str, Any]:
    return {
        "debounce": {"window": window, "burst": burst},
        "restartBudget": {"perUnit": per_unit, "window": budget},
    }


def trace(
    entries: dict[str, Any],
    initial: dict[str, Any],
    events: str,
    *,
    until: str = "10m",
    **more: Any,
) -> dict[str, Any]:
    """`entries` is of one unit `web` where its keys are no entries.

    `events` are `SECONDS:EXPORT=VALUE` and `SECONDS:EXPORT!` (missing), with spaces between.
    """
    if not any(":" in name for name in entries):
        entries = {ENTRY: {"web": entries}}
    return {
        "rates": rates(),
        "entries": entries,
        "initial": {export(name): one for name, one in initial.items()},
        "events": [_event(text) for text in events.split()],
        "until": until,
        **more,
    }


def _event(text: str) -> dict[str, Any]:
    at, _, what = text.partition(":")
    if what.endswith("!"):
        return {"at": f"{at}s", "export": export(what[:-1]), "missing": True}
    name, _, said = what.partition("=")
    return {"at": f"{at}s", "export": export(name), "value": said}


def read(document: dict[str, Any]) -> reaction_trace.Trace:
    found = reaction_trace.read(json.dumps(document).encode(), file="trace.json")
    assert isinstance(found, reaction_trace.Trace), found
    return found


def lines(document: dict[str, Any]) -> list[str]:
    """Each row as `SECONDS ACTION STATE NAME=VALUE… (COLLAPSED)`, the unit before where not `web`."""
    shown: list[str] = []
    for row in reaction_replay.replay(read(document)):
        unit = [] if row.unit == "web" else [f"{row.unit}:"]
        values = [f"{name}={one}" for name, one in sorted(row.values.items())]
        parts = [*unit, f"{row.at_ms / SECOND:g}", row.action, row.state, *values]
        shown.append(" ".join([*parts, f"({row.collapsed})", *["overdue"] * row.overdue]))
    return shown
