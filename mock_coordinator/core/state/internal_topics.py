"""The coordinators' topics, which are created by the first request that needs them."""

from __future__ import annotations

from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

__all__ = ["create_offsets_topic", "create_transactions_topic"]


def create_offsets_topic(broker: Broker, now_ms: int) -> None:
    """Make ``__consumer_offsets`` visible, as the first FindCoordinator of a group does."""
    config = {"cleanup.policy": "compact", "compression.type": "producer"}
    partitions = broker.config.integer("offsets.topic.num.partitions")
    _create_internal(broker, now_ms, OFFSETS_TOPIC, partitions, config)


def create_transactions_topic(broker: Broker, now_ms: int) -> None:
    """Make ``__transaction_state`` visible, as the first FindCoordinator of a transaction does."""
    config = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(broker.config.integer("transaction.state.log.min.isr")),
        "segment.bytes": str(broker.config.integer("transaction.state.log.segment.bytes")),
        "unclean.leader.election.enable": "false",
    }
    partitions = broker.config.integer("transaction.state.log.num.partitions")
    _create_internal(broker, now_ms, TRANSACTIONS_TOPIC, partitions, config)


def _create_internal(
    broker: Broker, now_ms: int, name: str, partitions: int, config: dict[str, str]
) -> None:
    if broker.catalog.topic(name) is None:
        broker.catalog.create(
            name,
            partitions,
            broker.new_topic_id(),
            config=config,
            internal=True,
            created_ms=now_ms,
        )
