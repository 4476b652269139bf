"""Placement of a new topic's replicas: on one broker after the other, racks in turn.

A KRaft controller begins at a random broker and continues from there, taking racks in turn, live
brokers first. After each full turn it shifts the followers by one, so that the partitions of one
leader do not all have the same second replica. Here the start is not random, but the number of
topics created before: a test finds its leaders in the same place each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_coordinator.core.nodes.registry import Node

__all__ = ["placed", "racks_in_turn"]


def racks_in_turn(nodes: Sequence[Node]) -> list[Node]:
    """The nodes such that neighbours are in different racks, as far as there are enough racks; the
    first stays the first."""
    racks: dict[str, list[Node]] = {}
    for node in nodes:
        racks.setdefault(node.rack or "", []).append(node)
    queues = list(racks.values())
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[i] for i in range(longest) for queue in queues if i < len(queue)]


def placed(
    nodes: Sequence[Node], begin: int, partitions: range, replication_factor: int
) -> list[tuple[int, ...]]:
    """The replicas of these partitions, first the one that is to lead.

    ``begin`` decides where partition 0 is; partitions that are added later go on from there. Nodes
    that are down get only what the others cannot take.
    """
    by_rack = sorted(nodes, key=lambda node: (node.rack or "", node.node_id))
    ring = racks_in_turn([node for node in by_rack if node.up and not node.fenced])
    spare = racks_in_turn([node for node in by_rack if node not in ring])
    result: list[tuple[int, ...]] = []
    for partition in partitions:
        order = spare
        if ring:
            first = (begin + partition) % len(ring)
            shift = (begin + partition) // len(ring)
            rest = ring[first + 1 :] + ring[:first]
            turned = rest[shift % len(rest) :] + rest[: shift % len(rest)] if rest else []
            order = [*racks_in_turn([ring[first], *turned]), *spare]
        result.append(tuple(node.node_id for node in order[:replication_factor]))
    return result
