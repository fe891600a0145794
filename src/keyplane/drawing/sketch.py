"""What a picture shows of a plan: machines, entries, and which values go from one to another.

It decides what belongs in the picture, and nothing of where it stands.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keyplane.model import plan as plans
from keyplane.model.diagnostic import Severity
from keyplane.model.names import split_entry

EXTERNAL = "external:"


class Strand(StrEnum):
    """What a line stands for: the plane of the values on it, or that there are none."""

    CLOSURE = "closure"
    ENV = "env"
    CONFIG = "config"
    DYNAMIC = "dynamic"
    PLACEMENT = "placement"
    PRESENCE = "presence"
    """The provider has to be there; no value of it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of an entry that comes from elsewhere."""

    name: str
    """`UNIT.VARIABLE` or alike."""
    plane: str
    sources: tuple[str, ...]
    """`PROVIDER/provides/PROVIDE/EXPORT`, or a reference as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a slot gets of one provider on one plane."""

    consumer: str
    slot: str
    provider: str
    provide: str
    strand: Strand
    chosen: str
    reads: tuple[str, ...]
    """Each `EXPORT as NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An entry, or an external."""

    id: str
    name: str
    """Without the machine."""
    machine: str | None
    """None: an external."""
    module: str = ""
    version: str = ""
    key: str = ""
    units: tuple[str, ...] = ()
    listens: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    fleet: str
    generation: str
    machines: tuple[tuple[str, str], ...]
    """Each with its address."""
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    errors: int
    elsewhere: tuple[str, ...]
    """Error rows of what is not in the picture."""


def sketch(plan: plans.Plan, values: Mapping[str, Sequence[Value]]) -> Sketch:
    """A sketch of the plan; `values` are those that each entry gets from elsewhere."""
    errors = [row for row in plan.diagnostics if row.severity is Severity.ERROR]
    by_subject: dict[str, list[str]] = {}
    for row in errors:
        by_subject.setdefault(row.subject, []).append(f"{row.code}: {row.message}")
    nodes = [_node(name, entry, by_subject) for name, entry in sorted(plan.entries.items())]
    externals = {edge.provider for edge in plan.edges if edge.provider.startswith(EXTERNAL)}
    nodes += [Node(id=name, name=name, machine=None) for name in sorted(externals)]
    there = {node.id for node in nodes}
    shown = {node.id for node in nodes} | {node.name for node in nodes}
    machines = set(plan.machines) | {node.machine for node in nodes if node.machine is not None}
    return Sketch(
        fleet=plan.fleet or "",
        generation=plan.generation[7:19],
        machines=tuple(
            (name, plan.machines[name].address if name in plan.machines else "")
            for name in sorted(machines, key=natural)
        ),
        nodes=tuple(nodes),
        links=tuple(_links(plan, values, there)),
        errors=len(errors),
        elsewhere=tuple(
            f"{row.subject}: {row.message}" for row in errors if row.subject not in shown
        ),
    )


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that puts `web-2` before `web-10`."""
    found: list[tuple[int, int | str]] = []
    digits = ""
    for char in name:
        if char in "0123456789":
            digits += char
            continue
        if digits:
            found.append((0, int(digits)))
            digits = ""
        found.append((1, char))
    if digits:
        found.append((0, int(digits)))
    return (*found, (-1, name))


def _node(name: str, entry: plans.Entry, by_subject: Mapping[str, list[str]]) -> Node:
    instance, role, machine = split_entry(name)
    of_role = f"{instance}:{role}"
    return Node(
        id=name,
        name=of_role,
        machine=machine,
        module=entry.module,
        version=entry.version,
        key=entry.key.removeprefix("sha256-")[:12],
        units=tuple(sorted(entry.units)),
        listens=tuple(f"{listen}:{port}" for listen, port in sorted(entry.listens.items())),
        errors=(*by_subject.get(of_role, ()), *by_subject.get(name, ())),
    )


def _links(
    plan: plans.Plan, values: Mapping[str, Sequence[Value]], there: set[str]
) -> Iterator[Link]:
    read = {name: _read(of_entry) for name, of_entry in values.items()}
    edges = sorted(plan.edges, key=lambda edge: (edge.consumer, edge.slot, edge.provider))
    for edge in edges:
        if edge.consumer not in there or edge.provider not in there:
            continue
        of_entry = read.get(edge.consumer, {})
        found = {
            **of_entry.get(f"{edge.provider}/provides/{edge.provide}", {}),
        }
        for strand, names in of_entry.get(f"slot {edge.slot}", {}).items():
            found[strand] = [*found.get(strand, ()), *names]
        for strand in Strand:
            reads = found.get(strand)
            if reads is None and (found or strand is not Strand.PRESENCE):
                continue
            yield Link(
                consumer=edge.consumer,
                slot=edge.slot,
                provider=edge.provider,
                provide=edge.provide,
                strand=strand,
                chosen=edge.chosen,
                reads=tuple(dict.fromkeys(reads or ())),
            )


def _read(values: Sequence[Value]) -> dict[str, dict[Strand, list[str]]]:
    """What an entry reads, by the provide or the slot that it is from, then by strand."""
    found: dict[str, dict[Strand, list[str]]] = {}
    for value in values:
        for source in value.sources:
            origin, _, export = source.rpartition("/")
            if "/provides/" not in origin:
                # `bound.SLOT.address` and `credentials.SLOT` are of a slot, whoever fills it.
                root, _, rest = source.partition(".")
                if root not in ("bound", "credentials"):
                    continue
                origin, export = f"slot {rest.partition('.')[0]}", source
            strands = found.setdefault(origin, {})
            strands.setdefault(Strand(value.plane), []).append(f"{export} as {value.name}")
    return found
