"""What is said when one points at a part of the picture: all that there was no room for."""

from collections.abc import Iterable, Mapping, Sequence

from keyplane.drawing.layout import PlacedMachine
from keyplane.drawing.nets import Net
from keyplane.drawing.sketch import Link, Node, Sketch, Strand

LINES_MAX = 12
"""Lines of one kind in a title; a browser cuts a long one off without a word."""


def by_consumer(links: Iterable[Link]) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in links:
        found.setdefault(link.consumer, []).append(link)
    return found


def of_node(node: Node, reads: Mapping[str, Sequence[Link]]) -> str:
    said = [node.id]
    if node.module:
        said.append(f"module {node.module} {node.version}, key {node.key}")
    if node.units:
        said.append(f"units: {', '.join(node.units)}")
    if node.listens:
        said.append(f"listens: {', '.join(node.listens)}")
    said += _some([f"error: {error}" for error in node.errors])
    said += _some([_link(link) for link in reads.get(node.id, ())])
    return "\n".join(said)


def of_machine(machine: PlacedMachine) -> str:
    said = [
        f"{machine.name} {machine.address}".rstrip(),
        count(machine.entries, "entry", "entries"),
    ]
    if machine.errors:
        said.append(f"{machine.errors} with error rows")
    return "\n".join(said)


def of_net(net: Net) -> str:
    providers = sorted({link.provider for link in net.links})
    origin = providers[0] if len(providers) == 1 else f"{len(providers)} providers"
    readers = count(len({link.consumer for link in net.links}), "reader", "readers")
    links = [f"{link.consumer}.{_link(link)}" for link in net.links]
    return "\n".join([f"{net.strand}: {origin}, {readers}", *_some(links)])


def of_all(sketch: Sketch) -> str:
    """The description for those who do not see the picture."""
    values = len([link for link in sketch.links if link.strand is not Strand.PRESENCE])
    return (
        f"{count(len(sketch.machines), 'machine', 'machines')} as boxes with "
        f"{count(len([1 for node in sketch.nodes if node.machine]), 'entry', 'entries')} in them, "
        f"{count(len([1 for node in sketch.nodes if not node.machine]), 'external', 'externals')}, "
        f"{count(values, 'line', 'lines')} for values from providers on the left of a line to "
        f"readers on its right, {count(sketch.errors, 'error row', 'error rows')}."
    )


def count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _link(link: Link) -> str:
    reads = f": {', '.join(link.reads)}" if link.reads else ""
    origin = f"{link.slot} from {link.provider} {link.provide}"
    return f"{origin} ({link.strand}, {link.chosen}){reads}"


def _some(lines: Sequence[str]) -> list[str]:
    if len(lines) <= LINES_MAX:
        return list(lines)
    return [*lines[: LINES_MAX - 1], f"and {len(lines) - LINES_MAX + 1} more"]
