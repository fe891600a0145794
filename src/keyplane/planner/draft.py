"""The plan in the making: what the rounds have found so far.

Each round fills its own part and reads those of the rounds before it. Nothing here outlives one
call of the planner.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from keyplane.documents.rows import any_dropped, is_dropped
from keyplane.model.fleet import External, Fleet, Instance, Placement
from keyplane.model.interface import Interface, ValueType
from keyplane.model.module import (
    Access,
    Body,
    CountRequirement,
    Follow,
    Json,
    Lifecycle,
    Module,
    Reach,
    Role,
    Scope,
)
from keyplane.planner import compiled
from keyplane.planner.compiled import CompiledBody, CompiledRole
from keyplane.planner.notes import Notes
from keyplane.planner.request import PlanRequest
from keyplane.planner.room import Room
from keyplane.planner.rows import Rows
from keyplane.planner.terms import Tree

ANY = "any"
"""The key of a placement-free provider in a set by machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Export:
    """The variant of an export that counts, by the provider's settings."""

    name: str
    type: ValueType
    lifecycle: Lifecycle
    """As authored; a static one that reads a probed value is probed."""
    access: Access
    value: Tree = None
    fact: str | None = None
    source: Mapping[str, Tree] | None = None
    wrong: bool = False
    """A row of the provider's says what is wrong with it."""


@dataclass(slots=True, kw_only=True, eq=False)
class Offer:
    """One provide of one role of an instance, or an external.

    It is known by its identity, and stays itself when the values of its exports change.
    """

    id: str
    """`INSTANCE:ROLE`, or `external:NAME`."""
    provide: str
    interface: str
    scope: Scope
    exports: Mapping[str, Export]
    assignment: "Assignment | None"
    """None: an external."""
    external: External | None = None
    follow: Follow | None = None
    credentials: bool = False

    @property
    def free(self) -> bool:
        """Whether it is one placement-free capability."""
        return self.assignment is None or self.assignment.unitless

    @property
    def sort_key(self) -> tuple[str, str]:
        return self.id, self.provide

    def routable(self, reads: frozenset[str]) -> bool:
        """Whether every export that is read can be read from any machine; none: all of them."""
        if self.free:
            return True
        return all(
            export.access is Access.ROUTABLE
            for name, export in self.exports.items()
            if not reads or name in reads
        )


Members = tuple[tuple[str, tuple[str, ...]], ...]
"""By slot: the machines of its set."""


class Chosen(StrEnum):
    """How a slot came to its provider."""

    BIND = "bind"
    SIBLING = "sibling"
    PIN = "pin"
    ONLY = "only"
    IMPLIED = "implied"


class Target(NamedTuple):
    """One placement that a slot is bound to."""

    offer: Offer
    machine: str | None
    """None: beside the reader, on its own machine. The empty string for an external."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What one slot is bound to. Equal for all placements that are bound alike."""

    targets: tuple[Target, ...]
    """Under `all` in the order of their machines; else one."""
    chosen: Chosen


Bindings = tuple[Binding | None, ...]
"""In the order of the assignment's slots."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlotSpec:
    """What a role consumes: a slot of `uses`, or an interface of `requires`."""

    name: str
    index: int
    interface: str
    reach: Reach
    reads: frozenset[str]
    presence: bool = False
    """Of `requires`: any readable placement will do."""
    follow: Follow | None = None
    count: CountRequirement | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Assignment:
    """One role of one instance: what is the same for all its entries."""

    id: str
    """`INSTANCE:ROLE`."""
    instance: str
    role_name: str
    module: Module
    role: Role
    placement: Placement | None
    """None: only ever implied."""
    bind: Mapping[str, str]
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Those that are sound, defaults filled in."""
    sound: bool = True
    """No setting is missing or invalid."""
    compiled: CompiledRole = field(init=False)
    body: CompiledBody = field(init=False)
    failed: bool = False
    """Its function computed nothing."""
    dropped: dict[tuple[str, ...], Json] = field(default_factory=dict[tuple[str, ...], Json])
    """What its function returned and could not be read."""
    slots: tuple[SlotSpec, ...] = ()
    offers: tuple[Offer, ...] = ()
    export_slots: frozenset[str] = frozenset()
    """The slots that its exports read."""
    machines: tuple[str, ...] = ()
    """Where it is placed, by name."""
    implied: set[str] = field(default_factory=set[str])
    """Where it stands only because an entry needs it."""
    bound: dict[str, Bindings] = field(default_factory=dict[str, Bindings])
    """By machine."""
    by_members: dict[Members, CompiledBody] = field(default_factory=dict[Members, CompiledBody])
    """What its function made of each set of members."""

    def is_dropped(self, draft: "Draft", *path: str) -> bool:
        """Whether the role says it, and it could not be read."""
        place = ("roles", self.role_name, *path)
        return draft.is_dropped(self.module.file, *place) or is_dropped(place, self.dropped)

    @property
    def prefix(self) -> str:
        return f"{self.id}@"

    @property
    def unitless(self) -> bool:
        return not self.body.units and not self.failed

    def slot(self, name: str) -> SlotSpec | None:
        return next((slot for slot in self.slots if slot.name == name), None)


Lookup = Callable[[Assignment, SlotSpec, str], Binding | None]


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """All that is known of the plan so far."""

    request: PlanRequest
    fleet: Fleet
    notes: Notes = field(default_factory=Notes)
    """Of the step that is being done."""
    noted: dict[tuple[str, str], Notes] = field(default_factory=dict[tuple[str, str], Notes])
    """Of each step."""
    assignments: dict[str, Assignment] = field(default_factory=dict[str, Assignment])
    """By `INSTANCE:ROLE`, in order; implied ones join while binding."""
    would_be: dict[str, Assignment] = field(default_factory=dict[str, Assignment])
    """Those that nothing has implied yet, though it was looked at what they would require."""
    offers: dict[str, list[Offer]] = field(default_factory=dict[str, list[Offer]])
    """By interface: all that could answer, placed or not, in order."""
    counted: dict[tuple[str, int], dict[str, tuple[Target, ...]]] = field(
        default_factory=dict[tuple[str, int], dict[str, tuple[Target, ...]]]
    )
    """By role and slot with `requires.count`, then machine: all placements that are readable."""
    room: Room = field(default_factory=Room)
    texts: dict[str, int] = field(default_factory=dict[str, int])
    """By role: how many characters its entries hold."""
    spent: dict[tuple[str, str], list[str]] = field(
        default_factory=dict[tuple[str, str], list[str]]
    )
    """By module and role: for which assignments its function came to a limit, as they were met."""
    crowded: bool = False
    """Roles were refused because of what others hold."""
    shipped: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    ports: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """By machine, then `INSTANCE:ROLE/LISTEN`. Machines alike share theirs."""
    unread: dict[tuple[str, str], frozenset[str]] = field(
        default_factory=dict[tuple[str, str], frozenset[str]]
    )
    """By file and role: the values that stand where a unit could not be read."""
    lookup: "Lookup" = field(init=False)
    """What a slot of an assignment is bound to at a machine."""
    _by_holder: dict[tuple[str, str], list[Offer]] = field(
        default_factory=dict[tuple[str, str], list[Offer]]
    )
    """By interface, then instance or external."""
    _anywhere: dict[str, list[Offer]] = field(default_factory=dict[str, list[Offer]])
    _beside: dict[tuple[str, str], list[Offer]] = field(
        default_factory=dict[tuple[str, str], list[Offer]]
    )
    """By interface and machine."""
    _installable: dict[str, list[tuple[Module, str, str]]] | None = None
    _roles: dict[int, tuple[Role, CompiledRole]] = field(
        default_factory=dict[int, tuple[Role, CompiledRole]]
    )
    _bodies: dict[int, tuple[Body, CompiledBody]] = field(
        default_factory=dict[int, tuple[Body, CompiledBody]]
    )
    """By identity; role and body are held, so that their identities stay their own."""

    _clean: dict[tuple[int, int], tuple[CompiledRole, CompiledBody]] = field(
        default_factory=dict[tuple[int, int], tuple[CompiledRole, CompiledBody]]
    )
    """By identity, held for the same reason."""

    @contextmanager
    def noting(self, step: tuple[str, str]) -> Generator[Notes]:
        """Put what is noted from here on with the step; what it noted before is dropped."""
        before = self.notes
        self.notes = self.noted[step] = Notes()
        try:
            yield self.notes
        finally:
            self.notes = before

    @property
    def rows(self) -> Rows:
        return self.notes.rows

    @property
    def interfaces(self) -> Mapping[str, Interface]:
        return self.request.documents.interfaces

    @property
    def instances(self) -> Mapping[str, Instance]:
        return self.fleet.instances

    def add_offer(self, offer: Offer) -> None:
        self.offers.setdefault(offer.interface, []).append(offer)
        holder = offer.id if offer.assignment is None else offer.assignment.instance
        self._by_holder.setdefault((offer.interface, holder), []).append(offer)
        if offer.assignment is None:
            self._anywhere.setdefault(offer.interface, []).append(offer)

    def stand(self, assignment: Assignment, machines: tuple[str, ...]) -> None:
        """Place an assignment: what it offers can be read from now on."""
        assignment.machines = machines
        for offer in assignment.offers if machines else ():
            if offer.scope is Scope.MESH:
                self._anywhere.setdefault(offer.interface, []).append(offer)
                continue
            for machine in machines:
                self._beside.setdefault((offer.interface, machine), []).append(offer)

    def offers_at(self, interface: str, machine: str) -> list[Offer]:
        """What placed roles and externals offer to a reader on the machine."""
        beside = self._beside.get((interface, machine))
        anywhere = self._anywhere.get(interface, [])
        return anywhere if beside is None else [*anywhere, *beside]

    def offers_of(self, interface: str, instance: str) -> list[Offer]:
        """What an instance offers of an interface."""
        return self._by_holder.get((interface, instance), [])

    def offers_bound(self, interface: str, said: str) -> list[Offer]:
        """What a bind names: `INSTANCE`, `INSTANCE:ROLE` or `external:NAME`."""
        if said in self.instances or said.startswith("external:"):
            return self.offers_of(interface, said)
        instance = said.partition(":")[0]
        return [offer for offer in self.offers_of(interface, instance) if offer.id == said]

    def beside_modules(self, interface: str) -> list[tuple[Module, str, str]]:
        """The modules, roles and provides of the catalogue that provide it with machine scope."""
        if self._installable is None:
            self._installable = {}
            for _, module in sorted(self.request.documents.modules.items()):
                for role_name, role in sorted(module.roles.items()):
                    for name, provide in sorted(role.provides.items()):
                        if provide.scope is Scope.MACHINE:
                            found = self._installable.setdefault(provide.interface, [])
                            found.append((module, role_name, name))
        return self._installable.get(interface, [])

    def compile_role(self, role: Role) -> CompiledRole:
        """Instances of one module share what was compiled of it."""
        found = self._roles.get(id(role))
        if found is None:
            found = self._roles[id(role)] = role, compiled.role_of(role)
        return found[1]

    def compile_body(self, role: Role, body: Body) -> CompiledBody:
        if role.impl:  # made for one call; nothing shares it
            return compiled.body_of(role, body)
        found = self._bodies.get(id(body))
        if found is None or found[0] is not body:
            found = self._bodies[id(body)] = body, compiled.body_of(role, body)
        return found[1]

    def forget_compiled(self) -> None:
        self._roles.clear()
        self._bodies.clear()
        self._clean.clear()

    def is_clean(self, assignment: Assignment) -> bool:
        """Whether nothing was wrong with the same role and body in another instance."""
        return (id(assignment.compiled), id(assignment.body)) in self._clean

    def hold_clean(self, assignment: Assignment) -> None:
        if not assignment.role.impl:
            both = assignment.compiled, assignment.body
            self._clean[id(both[0]), id(both[1])] = both

    def is_dropped(self, file: str, *path: str) -> bool:
        """Whether a document names it and it could not be read, which is a row already."""
        dropped = self.request.documents.dropped.get(file)
        return dropped is not None and is_dropped(path, dropped)

    def has_dropped(self, file: str, *path: str) -> bool:
        """Whether anything at the path or below it could not be read."""
        dropped = self.request.documents.dropped.get(file, ())
        return any_dropped(path, dropped)

    def is_interface_dropped(self, *path: str) -> bool:
        """The same of an interface, or of a part of one, whichever file declares it."""
        files = self.request.documents.dropped
        return any(
            self.is_dropped(file, *path) for file in files if file.endswith("interfaces.toml")
        )

    def file(self, module: str, path: str) -> bytes | None:
        """The bytes of a shipped file; None where it could not be read, which is a row."""
        found = self.shipped.get((module, path))
        return found if found is not None else self.request.documents.shipped.get((module, path))

    def look_at_fact(self, machine: str, name: str) -> Json:
        """A fact whose value goes into what is being worked out."""
        self.notes.facts.add((machine, name))
        return self.fact(machine, name)

    def fact(self, machine: str, name: str) -> Json:
        """What the machine last said; None where it said nothing."""
        snapshot = self.request.documents.facts.get(machine)
        return None if snapshot is None else snapshot.facts.get(name)
