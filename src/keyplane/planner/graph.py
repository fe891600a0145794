"""Strongly connected components, providers before readers."""

from collections.abc import Iterable, Mapping, Sequence


def components(nodes: Sequence[str], edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Tarjan's components of the graph, each after those that it points to. No recursion.

    Nodes are taken in the given order and edges in theirs, so that equal graphs give equal lists.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    standing: set[str] = set()
    found: list[list[str]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        standing.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    standing.add(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other in standing:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                    standing.difference_update(component)
                    found.append(sorted(component))
    return found
