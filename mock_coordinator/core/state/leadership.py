"""Whether a node may serve a partition, checked in a broker's order (KIP-320, KIP-392).

A node without a replica knows only that it is not the leader. A node with a replica compares leader
epochs first, and then refuses what only the leader may do; since Fetch 11 that does not include
reading. Errors name the current leader and its address (KIP-951).
"""

from __future__ import annotations

from collections.abc import Iterable

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.nodes.registry import Node
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["current_leader", "endpoints", "epoch_problem", "leader_problem"]


def leader_problem(
    broker: Broker,
    topic: Topic,
    partition: int,
    log: PartitionLog,
    *,
    epoch: int = -1,
    any_replica: bool = False,
) -> ErrorCode | None:
    """Why the broker cannot serve a partition that exists, ``None`` when it can.

    ``epoch`` is the leader epoch that the client believes in, ``any_replica`` that the request need
    not be at the leader.
    """
    state = broker.partition_state(topic, partition)
    if broker.reached is not None and broker.reached not in state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if broker.reached is None and state.leader is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    problem = epoch_problem(epoch, log)
    if problem is None and not any_replica and not broker.leads(topic, partition):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return problem


def epoch_problem(epoch: int, log: PartitionLog) -> ErrorCode | None:
    """Whether the client's idea of the leader epoch is behind ours or ahead of it."""
    if epoch > log.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if 0 <= epoch < log.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return None


def current_leader(broker: Broker, topic: Topic, partition: int) -> tuple[int, int]:
    """The leader's id (-1 for none) and its epoch."""
    state = broker.partition_state(topic, partition)
    return (-1 if state.leader is None else state.leader), state.leader_epoch


def endpoints(broker: Broker, node_ids: Iterable[int]) -> tuple[Node, ...]:
    """The nodes that a refusal named, each once; those that are not there are left out."""
    found = (broker.nodes.get(node_id) for node_id in dict.fromkeys(node_ids))
    return tuple(node for node in found if node is not None and not node.fenced)
