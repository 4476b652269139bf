"""Finds the consumer of this process that an application means by the name of its group.

aiokafka's ``send_offsets_to_transaction`` takes a name. Without a member, the coordinator cannot
refuse one that has lost its partitions; so we look for the consumer that read them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakSet

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.core.types import TopicPartition

__all__ = ["enlist", "member_for"]

_alive: WeakSet[ConsumerAdapter] = WeakSet()


def enlist(consumer: ConsumerAdapter) -> None:
    """Register a consumer that was started."""
    _alive.add(consumer)


def member_for(
    group_id: str, servers: object, partitions: Collection[Any]
) -> ConsumerAdapter | None:
    """The consumer of the group that owns, or owned, these partitions; ``None`` if there is none.
    One that has lost them is correct, too: it refuses to commit them."""
    best, most = None, 0
    for consumer in sorted(_alive, key=id):
        if consumer.may_name(group_id, servers):
            count = sum(consumer.may_commit(TopicPartition(*tp)) for tp in partitions)
            owned = sum(tp in consumer.assignment() for tp in partitions)
            if count + owned > most:
                best, most = consumer, count + owned
    return best
