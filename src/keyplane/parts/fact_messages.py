"""What people are told of facts that plans do not go by yet."""

from typing import Any

import msgspec

Json = Any


class FactsWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """What one machine says, and nothing is planned by."""

    machine: str
    said: dict[str, Json]
    """By fact; null for one that is gone."""
    planned: dict[str, Json]
    """What plans go by in its place; null for none."""
    entries: dict[str, str]
    """What it would stop or move, or has no place for, each with how: a clause."""
    why: str
    """What it waits for, where that is no person's word on these facts."""
    command: str
    """What has it planned by; empty where nothing would come of that."""
