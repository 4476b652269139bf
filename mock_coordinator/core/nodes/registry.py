"""The brokers of a cluster: their ids and addresses, and whether they run.

A crash is not noticed at once. ``up`` says whether a node runs, ``fenced`` whether the rest of the
cluster has noticed that it does not: only then does Metadata leave it out, and leaders move away
from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Node", "Nodes"]


@dataclass(slots=True)
class Node:
    """One broker. ``host`` and ``port`` are the address that clients get."""

    node_id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    up: bool = True
    fenced: bool = False


class Nodes:
    """All brokers, by id. There is at least one, and no id twice: ``ValueError`` otherwise."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.node_id: node for node in sorted(nodes, key=lambda n: n.node_id)}
        if not nodes or len(self._nodes) != len(nodes):
            raise ValueError("the node ids of a cluster must be unique")

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, node_id: int) -> Node:
        """By id. Raises ``KeyError``."""
        return self._nodes[node_id]

    def get(self, node_id: int | None) -> Node | None:
        """By id; ``None`` for none."""
        return None if node_id is None else self._nodes.get(node_id)

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids, in order."""
        return tuple(self._nodes)

    @property
    def alive(self) -> tuple[Node, ...]:
        """Those that the cluster believes in, by id."""
        return tuple(node for node in self._nodes.values() if not node.fenced)

    @property
    def controller_id(self) -> int:
        """The node that clients see as the controller. In KRaft any live broker will do, because it
        forwards, and a real one names a random one; here it is the first.

        -1 when all are down.
        """
        return next((node.node_id for node in self.alive), -1)
