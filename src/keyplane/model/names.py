"""Identifiers, and how they are put together. Names are `[a-z][a-z0-9-]{0,62}`."""

import re
from typing import NewType

MachineName = NewType("MachineName", str)
InstanceName = NewType("InstanceName", str)
ModuleName = NewType("ModuleName", str)
RoleName = NewType("RoleName", str)
SlotName = NewType("SlotName", str)
UnitName = NewType("UnitName", str)
EntryId = NewType("EntryId", str)
"""`INSTANCE:ROLE@MACHINE`."""
Digest = NewType("Digest", str)
"""`sha256-` and 64 hex digits."""

NAME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)


def is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


def entry_id(instance: str, role: str, machine: str) -> EntryId:
    return EntryId(f"{instance}:{role}@{machine}")


def split_entry(entry: str) -> tuple[InstanceName, RoleName, MachineName]:
    """Instance, role and machine of an entry id. The caller holds a well-formed id."""
    pair, _, machine = entry.rpartition("@")
    instance, _, role = pair.partition(":")
    return InstanceName(instance), RoleName(role), MachineName(machine)
