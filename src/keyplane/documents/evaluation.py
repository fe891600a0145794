"""Roles that a Starlark function computes: what it is asked, and what comes back.

The function itself runs behind `Run`, in a process of its own; this package only says what goes
in and reads what comes out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keyplane.model.diagnostic import Diagnostic
from keyplane.model.interface import Interface
from keyplane.model.module import Body, Json, Module


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """One call of a role's function, for one instance."""

    instance: str
    module: Module
    role: str
    settings: Mapping[str, Json]
    """Every setting of the role with its real value, defaults filled in."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """For each slot under `reach = "all"`: the machines of its set (`any` is placement-free)."""
    interfaces: Mapping[str, Interface]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """What the function said. Deterministic: equal requests have equal results."""

    body: Body | None
    """None where the function failed; the diagnostics say why."""
    shipped: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The files of the module that this body ships, as `Documents.shipped` has them."""
    dropped: Mapping[tuple[str, ...], Json] = field(default_factory=dict[tuple[str, ...], Json])
    """What of it could not be read, as `Documents.dropped` has it."""
    diagnostics: tuple[Diagnostic, ...] = ()
    spent: bool = False
    """It came to a limit, which may have taken seconds."""


Evaluate = Callable[[EvaluationRequest], EvaluationResult]
"""To be called for roles with `impl` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function to run, with all that it may read."""

    sources: Mapping[str, str]
    """The text of each Starlark file that it may load, by path in the fleet directory."""
    file: str
    function: str
    """`module` or `fleet`."""
    role: str | None = None
    """The role whose `impl` is called, with `context`; None: the document itself."""
    context: Json = None
    """A tree of `{"struct": {…}}`, `{"dict": {…}}`, `{"value": …}` and `{"facts": [mark, mark]}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a function returned, as plain JSON values."""

    tree: Json
    impls: tuple[str, ...] = ()
    """For a module: the roles that have an `impl`; the function itself is left out of the tree."""
    used_ms: int = field(default=0, compare=False)
    """Of processor time; for equal calls it is not the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why there is no value."""

    message: str
    file: str
    line: int
    column: int
    source: str
    """The line itself."""
    spent: bool = False
    """It came to a limit of steps, processor time or memory."""
    used_ms: int = field(default=0, compare=False)
    """Of processor time."""


Run = Callable[[Call], Value | Fault]
