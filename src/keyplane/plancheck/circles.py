"""Which entries depend on each other in a circle."""

from collections.abc import Mapping, Sequence


def circles(dependencies: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """For each entry that is in a circle, all that are in it (Kosaraju's two passes)."""
    finished: list[str] = []
    seen: set[str] = set()
    for root in sorted(dependencies):
        _visit(root, dependencies, seen, finished)
    back: dict[str, list[str]] = {}
    for consumer, providers in dependencies.items():
        for provider in providers:
            back.setdefault(provider, []).append(consumer)
    seen = set()
    found: dict[str, frozenset[str]] = {}
    for root in reversed(finished):
        members: list[str] = []
        _visit(root, back, seen, members)
        if len(members) > 1:
            found.update(dict.fromkeys(members, frozenset(members)))
    return found


def _visit(
    root: str, arrows: Mapping[str, Sequence[str]], seen: set[str], finished: list[str]
) -> None:
    """Depth first from the root, without recursion; each node is noted after all it leads to."""
    if root in seen:
        return
    seen.add(root)
    work = [(root, iter(arrows.get(root, ())))]
    while work:
        node, rest = work[-1]
        following = next((one for one in rest if one not in seen), None)
        if following is None:
            finished.append(node)
            work.pop()
        else:
            seen.add(following)
            work.append((following, iter(arrows.get(following, ()))))
