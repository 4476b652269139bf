"""Which broker to read a partition from: its leader, or the replica that the leader named
(KIP-392).

A named replica is used for a lease; then the leader is asked again, because it may know a better
one by now. The lease ends sooner when another broker leads, when the replica is gone, or on any
error from it. Then the replica is *avoided* for some time. Since the leader would name it again at
once, requests to a leader that include such a partition omit the client's rack.
"""

from __future__ import annotations

from kip848_client.core.cluster import NO_NODE, Leaders, PartitionLeader
from kip848_client.core.fetch._partition import Partition

__all__ = ["Replicas"]


class Replicas:
    """Chooses the replica to read, for all partitions."""

    def __init__(self, leaders: Leaders, lease_ms: int) -> None:
        self._leaders = leaders
        self._lease_ms = lease_ms

    def target(self, now_ms: int, partition: Partition, leader: PartitionLeader) -> int:
        """Return the broker to fetch from."""
        if leader.leader != partition.led_by:
            partition.led_by = leader.leader
            partition.read_from = partition.avoided = NO_NODE
        replica = partition.read_from
        if replica == NO_NODE:
            return leader.leader
        if now_ms < partition.lease_until_ms and self._is_there(replica):
            return replica
        partition.read_from = NO_NODE
        return leader.leader

    def named(self, now_ms: int, partition: Partition, replica: int) -> bool:
        """Handle a replica named by the leader; returns whether to use it."""
        if self.avoids(now_ms, partition):
            return False  # the request omitted our rack
        partition.lease_until_ms = now_ms + self._lease_ms
        if not self._is_there(replica):
            partition.avoided = replica
            return False
        partition.read_from = replica
        return True

    def failed(self, now_ms: int, partition: Partition, node: int, pause_ms: int) -> bool:
        """Handle a failed request to ``node``; returns whether it is a replica: then the leader is
        asked next, and the replica not before ``pause_ms`` have passed."""
        if node == NO_NODE or partition.read_from != node:
            return False
        partition.read_from = NO_NODE
        partition.avoided = node
        partition.lease_until_ms = now_ms + min(pause_ms, self._lease_ms)
        return True

    def avoids(self, now_ms: int, partition: Partition) -> bool:
        """Whether the leader must not name a replica for the partition."""
        return partition.avoided != NO_NODE and now_ms < partition.lease_until_ms

    def _is_there(self, node: int) -> bool:
        return not self._leaders.nodes or node in self._leaders.nodes
