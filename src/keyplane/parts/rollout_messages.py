"""What people ask of rollouts, and what they are told of them."""

from typing import Literal

import msgspec

from keyplane.parts import control_messages as messages


class RolloutRow(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    state: str
    open: bool
    who: str
    created_ms: int
    generation: str
    step: int
    """How many steps it has come to."""
    steps: int
    said: str
    """Where it stands, or why it ended so."""


class RolloutRows(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first."""

    rollouts: list[RolloutRow]


class RolloutMachine(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollout does on a machine in one of its steps."""

    machine: str
    step: int
    state: str
    """`done`, `waits`, `next`, `skipped`, `held`, `unsent` or `returned`."""
    entries: list[str]
    said: str = ""
    """What it waits for."""


class RolloutView(msgspec.Struct, frozen=True, kw_only=True):
    rollout: RolloutRow
    machines: list[RolloutMachine]
    end: messages.Ended | None
    changed: bool = True
    """Of the answer to a word: false where it was so already."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `freeze` and `thaw`."""

    frozen: str
    """By whom, and why; empty where the fleet is not."""
    changed: bool = True
    """False where it was so already."""


class RolloutAct(msgspec.Struct, frozen=True, kw_only=True):
    """A person's word on a rollout, or, without a number, on all there will be."""

    verb: Literal["pause", "resume", "stop", "close", "freeze", "thaw"]
    who: str = ""
    number: int | None = None
    why: str = ""


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """Send the target once more: what failed in a rollout, or to machines that are named."""

    who: str = ""
    retry: int | None = None
    machines: list[str] = []
    all: bool = False
    behind: bool = False
    why: str = ""
    request: str = ""
    repeated: bool = False
    """As of `Apply`."""
