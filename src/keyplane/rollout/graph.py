"""Layers of a directed graph: each node after all that go before it; circles share a layer."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(nodes: Sequence[Node], after: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The number of each node's strongly connected component.

    `after` gives the nodes that come after one. Numbers fall along the arrows: a component that
    comes after another has the lower number (Tarjan's order, without recursion, as chains are as
    long as a fleet is deep).
    """
    number: dict[Node, int] = {}
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_nodes: list[Node] = []
    is_open: set[Node] = set()
    count = 0
    for root in nodes:
        if root in index:
            continue
        work: list[tuple[Node, int]] = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                index[node] = low[node] = len(index)
                open_nodes.append(node)
                is_open.add(node)
            followers = after.get(node, ())
            while position < len(followers):
                follower = followers[position]
                position += 1
                if follower not in index:
                    work.append((node, position))
                    work.append((follower, 0))
                    break
                if follower in is_open:
                    low[node] = min(low[node], index[follower])
            else:
                if low[node] == index[node]:
                    while True:
                        member = open_nodes.pop()
                        is_open.discard(member)
                        number[member] = count
                        if member == node:
                            break
                    count += 1
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return number


def layers(nodes: Sequence[Node], after: Mapping[Node, Sequence[Node]]) -> list[list[Node]]:
    """Nodes by layer, each as early as it can be; within a layer in the order given."""
    number = components(nodes, after)
    members: dict[int, list[Node]] = {}
    for node in nodes:
        members.setdefault(number[node], []).append(node)
    depth = dict.fromkeys(members, 0)
    for component in sorted(members, reverse=True):
        for node in members[component]:
            for follower in after.get(node, ()):
                if number[follower] != component:
                    depth[number[follower]] = max(depth[number[follower]], depth[component] + 1)
    found: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        found[depth[number[node]]].append(node)
    return found
