"""What people's commands and the controller say to each other, over HTTP."""

from typing import Any, Literal

import msgspec

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.plan import Diff, Plan
from keyplane.parts.change_messages import Asked, Edited
from keyplane.parts.fact_messages import FactsWaiting
from keyplane.parts.volume_messages import Inherited, Question

Json = Any


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet's whole text."""

    files: dict[str, bytes]
    """By path relative to the fleet directory."""


class Propose(msgspec.Struct, frozen=True, kw_only=True):
    """Asks what it would do."""

    asked: Asked
    volumes: dict[str, str] = {}
    """What is to become of the data of entries that move; see `Apply`."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What it would do."""

    fleet: str | None
    former: str | None = None
    """What the fleet is called until then; None: the same."""
    revision: int | None
    """The newest one, which this was made from."""
    digest: str
    """Of the newest one's text; empty before the first."""
    will: str = ""
    """What it is to change, as a person is asked; empty: as `said` has it."""
    said: str = ""
    """What it changed, once it is done, where nobody gave the whole text."""
    nothing: bool = False
    """The text says so already, as `said` has it; nothing was planned."""
    parent: str | None
    """The target's generation that this was planned from."""
    generation: str
    diagnostics: list[Diagnostic]
    diff: Diff
    entries: int
    volumes: list[Question] = []
    """Entries that come to a machine while their data is elsewhere, and what was said of each."""
    inherited: list[Inherited] = []
    """Entries that come to where others leave their data, and start on it."""


class Shown(Proposal, frozen=True, kw_only=True, tag_field="event", tag="diff"):
    """A proposal as the first line of what `apply --json` prints."""

    @classmethod
    def of(cls, proposal: Proposal) -> "Shown":
        return cls(**{name: getattr(proposal, name) for name in proposal.__struct_fields__})


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Do it, as it was proposed."""

    asked: Asked
    parent: str | None
    revision: int | None
    generation: str
    """Of the proposal that the person saw, as are the two before; others now refuse it."""
    why: str = ""
    push: bool = False
    """Every machine is named: what is else only recorded is sent."""
    volumes: dict[str, str] = {}
    """By entry, `INSTANCE:ROLE`, instance, or `*` for all: `hand-over`, `restore`,
    `restore:BACKUP` or `start-empty`."""
    request: str = ""
    """Names this request among all."""
    repeated: bool = False
    """It was said before, and nobody heard what became of it: if it was taken, it is that one."""


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="begun"):
    rollout: int
    entries: int
    """How many entries the rollout switches or removes."""
    revision: int | None = None
    """Of the text that it makes the target."""


class EntryMoved(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="entry"):
    """An entry is now in a state that it was not in before."""

    entry: str
    state: str
    detail: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    entry: str
    cause: str
    log: list[str] = []


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="step"):
    """The rollout is at another point: it sends, watches, pauses or takes back a step."""

    step: int
    """From 1 on."""
    steps: int
    phase: str
    machines: list[str]
    said: str


class HeldEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is not sent, or not taken away, though the target has it so."""

    entry: str
    by: str | None
    """What is held and has to go before it; None: `why` tells."""
    why: str = ""
    """A clause; empty where its own policy only records it."""
    what: str = ""
    """Module, version and build that it is to be; empty where it is to go, or is not known."""
    had: str = ""
    """The same of what it is; empty where it is new."""
    command: str = ""
    """What sends it; empty where no word of a person does."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="end"):
    """The last event: what a rollout did, and what it did not do."""

    outcome: Literal["done", "failed", "superseded", "stopped", "rolled-back", "rollback-failed"]
    started: int
    restarted: int
    reloaded: int
    stopped: int
    untouched: int
    milliseconds: int
    applied: int = 0
    """Entries that are another now, of which every process stayed."""
    failures: list[Failure] = []
    unsent: list[str] = []
    """Entries that were never switched."""
    skipped: list[str] = []
    """Machines that were not heard: they come to it by themselves when they are back."""
    held: list[HeldEntry] = []
    why: str = ""


Event = Begun | EntryMoved | Stepped | Ended


class UnitStatus(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    pid: int | None = None
    start_ticks: int | None = None
    restarts: int = 0
    cause: str | None = None
    reaction: str | None = None
    """How it stands with its dynamic values; null if it has none."""
    overdue: bool = False
    stale_since: dict[str, str] = {}
    """Since when each value that may be wrong may be so."""


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """By a person."""

    who: str
    since: str


class Drifted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody changed on the machine."""

    path: str
    what: str
    since: str
    repaired: bool
    problem: str | None = None
    """Why it is not put right yet."""


class EntryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as its machine last reported it."""

    entry: str
    machine: str
    state: str
    """As reported; `unreported` where the machine said nothing of it yet."""
    current: bool
    """What runs is what the target says."""
    units: dict[str, UnitStatus]
    listens: dict[str, int]
    cause: str | None = None
    notes: list[str] = []
    stopped: Stopped | None = None
    drift: list[Drifted] = []


class MachineStatus(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    heard_ms_ago: int | None
    """When its agent last said anything; None: not since the controller started."""
    reported_ms_ago: int | None = None
    """When its last report came; it stands until the machine says something else."""
    silent: bool = False
    """It missed three heartbeats: what is shown of it is what was, and may not be now."""
    silent_since: str | None = None
    """The last that is known of it, as a time of day."""
    cordon: str = ""
    """`cordoned` or `drained`: nothing new is placed there by count."""
    offered: str
    accepted: str | None
    refused: str | None = None
    anew: bool = False
    """Its agent was started since its last report, and has not told yet what it found: what is
    shown of it is what was before."""


class RolloutStatus(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    state: str
    why: str = ""
    paused: str = ""
    """Why it is, or is to be before its next step."""
    held: list[HeldEntry] = []
    closed: bool = False
    """A person put it away."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Computed from reports, never from what was sent."""

    fleet: str | None
    generation: str | None
    revision: int | None
    entries: list[EntryStatus]
    machines: list[MachineStatus]
    rollout: RolloutStatus | None
    diagnostics: list[Diagnostic]
    frozen: str = ""
    """Who froze the fleet, and why; empty where nobody did."""
    facts: list[FactsWaiting] = []


class MachineSaid(msgspec.Struct, frozen=True, kw_only=True):
    """What the fleet's text says of a machine."""

    address: str
    tags: list[str]
    platform: str
    local: bool
    pins: dict[str, str]
    """By interface: the machine that answers it here."""


class MachineRow(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    status: MachineStatus
    entries: int
    well: int
    """How many of the entries are as the target says, and healthy."""
    said: MachineSaid | None
    """None where the text of the target does not name it any more."""


class MachineRows(msgspec.Struct, frozen=True, kw_only=True):
    machines: list[MachineRow]


class MachineEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A slot of an entry of this machine that is answered from elsewhere."""

    entry: str
    slot: str
    provider: str
    machine: str | None
    """None: an external, which is on none."""
    provide: str
    chosen: str


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One value that stands on this machine and is another's export."""

    entry: str
    unit: str | None
    name: str
    """The variable, path or field that holds it."""
    plane: str
    lifecycle: str
    provider: str
    machine: str | None
    export: str
    """`PROVIDE/EXPORT`."""
    value: Json
    """None for a dynamic value."""
    cost: str


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    status: MachineStatus
    said: MachineSaid | None
    entries: list[EntryStatus]
    edges: list[MachineEdge]
    takes: list[Taken]
    facts: dict[str, Json]
    """What the machine says of itself, and what a file says where it does not."""
    facts_at: str | None
    """When the machine last said something else, or what the file says of that."""
    facts_since: dict[str, str]
    """Since when each is so, of those that the machine says."""
    facts_planned: dict[str, Json]
    """By what plans go, where that is another value; null for none."""


class Say(msgspec.Struct, frozen=True, kw_only=True):
    """A person says that an entry stops, or starts again."""

    entry: str
    stop: bool
    who: str = ""
    """The account at the other end of the socket, as the kernel names it to the controller."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded, and holds; its machine heeds it with this offer."""

    entry: str
    machine: str
    offer: str | None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan | None
    facts: dict[str, dict[str, Json]] = {}
    """By machine: what plans go by of what it says of itself."""
    waiting: list[FactsWaiting] = []


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Which agents the controller heard lately and knows the state of; what it works towards."""

    machines: list[str]
    generation: str | None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused; the body of every answer that is no success."""

    code: str
    message: str
    diagnostics: list[Diagnostic] = []
    edits: list[Edited] = []
    """Those of others, the oldest first, that stand in the way."""
    difference: str = ""
    """What the text would make of the newest revision, where nobody knows which it was made from."""
    revision: int | None = None
    """The newest one."""
    ways: list[str] = []
    """Ways out, where there are no rows that say them."""


def encode(message: msgspec.Struct) -> bytes:
    return msgspec.json.encode(message)


def encode_text(message: msgspec.Struct) -> bytes:
    """As msgpack, which carries files as they are."""
    return msgspec.msgpack.encode(message)
