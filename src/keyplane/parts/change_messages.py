"""What people ask to be changed, and what they are told of changes that were made."""

from typing import Any

import msgspec

Json = Any


class Descent(msgspec.Struct, frozen=True, kw_only=True):
    """Which revision a directory's text was made from, as the directory remembers it."""

    revision: int
    digest: str
    """Of that revision's text."""
    sent: str | None = None
    """Of the text that was sent from it last, whatever came of that."""
    at_ms: int = 0
    """When the directory learned of it."""


class Directory(msgspec.Struct, frozen=True, kw_only=True, tag="directory"):
    """A directory's whole text is to be the fleet's."""

    files: dict[str, bytes]
    descent: Descent | None = None
    over: int | None = None
    """The revision that somebody looked at, and goes over."""
    verb: str = "apply"


class SetValue(msgspec.Struct, frozen=True, kw_only=True, tag="set"):
    place: str
    """`INSTANCE[.ROLE].SETTING`."""
    value: str


class Assign(msgspec.Struct, frozen=True, kw_only=True, tag="assign"):
    instance: str
    """`INSTANCE[:ROLE]`."""
    machine: str


class Unassign(msgspec.Struct, frozen=True, kw_only=True, tag="unassign"):
    instance: str
    machine: str


class Pin(msgspec.Struct, frozen=True, kw_only=True, tag="pin"):
    machine: str
    interface: str
    provider: str


class Unpin(msgspec.Struct, frozen=True, kw_only=True, tag="unpin"):
    machine: str
    interface: str


class Cordon(msgspec.Struct, frozen=True, kw_only=True, tag="cordon"):
    """Nothing new is placed there by count."""

    machine: str


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag="drain"):
    """Nor does anything stay that is placed there by count."""

    machine: str


class Uncordon(msgspec.Struct, frozen=True, kw_only=True, tag="uncordon"):
    machine: str


class RemoveMachine(msgspec.Struct, frozen=True, kw_only=True, tag="machine remove"):
    """Out of the fleet, with its assignments and every pin of it and to it."""

    machine: str
    lost: bool = False
    """It will not be heard again: what it has is not waited for, and not asked after."""


class Rollback(msgspec.Struct, frozen=True, kw_only=True, tag="rollback"):
    generation: str | None = None
    """Or its beginning; None: the one before the target."""


class TakeFacts(msgspec.Struct, frozen=True, kw_only=True, tag="facts"):
    """Plans are to go by what machines say, whatever that stops or moves."""

    machines: list[str] = []
    """Of these alone; of all, if none is named."""


Edit = SetValue | Assign | Unassign | Pin | Unpin | RemoveMachine
Cordoning = Cordon | Drain | Uncordon
Asked = Directory | Edit | Cordoning | Rollback | TakeFacts


class RevisionRow(msgspec.Struct, frozen=True, kw_only=True):
    revision: int
    at_ms: int
    who: str
    verb: str
    """Empty for one that an earlier release wrote."""
    why: str
    parent: int | None
    generation: str | None
    moved: int | None
    """Entries that its generation moved; None where that was not written down."""


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """A revision, and the lines in which it is not the one before."""

    revision: RevisionRow
    difference: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    revisions: list[RevisionRow]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    revision: RevisionRow
    digest: str
    files: dict[str, bytes]
    difference: str
    """To the revision before, as a unified diff."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    at_ms: int
    who: str
    what: str
    detail: Json


class AuditLog(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[AuditRow]
