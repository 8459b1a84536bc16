"""Directed acyclic graphs of named nodes: an order in which all of them can be taken, or the cycle that forbids one.

Everything here walks iteratively, so that the depth of a graph is never the depth of a stack. It knows names only, not
what stands behind them.
"""

from collections import deque
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


class Cycle(ValueError):
    """The graph has a cycle: `nodes` are its nodes, each before the next, and the first one again at the end."""

    def __init__(self, nodes: list[object]) -> None:
        self.nodes = nodes
        shown = nodes if len(nodes) <= _SHOWN else [*nodes[: _SHOWN - 2], "...", nodes[-1]]
        super().__init__(" -> ".join(map(str, shown)))


_SHOWN = 12  # nodes of a cycle in its text


def in_order(after: Mapping[Node, Collection[Node]]) -> list[Node]:
    """Return the nodes such that each comes behind all that it is `after`; otherwise they keep the order given.

    Every node is a key. O(nodes + edges). Raises `Cycle`, and KeyError for a name that is no node. Source: Kahn,
    "Topological sorting of large networks", 1962.
    """
    before: dict[Node, list[Node]] = {node: [] for node in after}
    missing: dict[Node, int] = {}
    for node, parents in after.items():
        distinct = set(parents)
        missing[node] = len(distinct)
        for parent in distinct:
            before[parent].append(node)
    free = deque(node for node in after if not missing[node])
    ordered: list[Node] = []
    while free:
        ordered.append(node := free.popleft())
        for child in before[node]:
            missing[child] -= 1
            if not missing[child]:
                free.append(child)
    if len(ordered) < len(after):
        cycle = _cycle_in({node: after[node] for node, count in missing.items() if count}, missing)
        raise Cycle(list(cycle))
    return ordered


def _cycle_in(after: Mapping[Node, Collection[Node]], missing: Mapping[Node, int]) -> list[Node]:
    """Return a cycle, given the nodes that could not be taken: each of them has a parent among them."""
    node = next(iter(after))
    seen: dict[Node, int] = {}
    path: list[Node] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(parent for parent in after[node] if missing[parent])
    cycle = path[seen[node] :]
    return [*reversed(cycle), cycle[-1]]
