"""Queries of offsets and topics, whether consumed or not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic, TypeVar

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._engine import Engine
from kip848_client.consumer._offset_types import OffsetAndTimestamp
from kip848_client.core.fetch import EARLIEST, LATEST
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, ConsumerNotStarted, NotAssigned, not_assigned
from kip848_client.observe.core.watching import lag_of
from kip848_client.runtime.arguments import (
    checked_partition,
    checked_partitions,
    checked_times,
    checked_topic,
)
from kip848_client.runtime.client._runtime import ClientRuntime

__all__ = ["OffsetQueries"]

K = TypeVar("K")
V = TypeVar("V")


class OffsetQueries(Generic[K, V]):
    """The read-only queries of ``Consumer``."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._runtime = ClientRuntime(
            "consumer", closed=ConsumerClosed, not_started=ConsumerNotStarted
        )
        self._engine: Engine[K, V] | None = None
        self._manual: tuple[TopicPartition, ...] | None = None

    @property
    def config(self) -> ConsumerConfig:
        """The settings. Frozen."""
        return self._config

    # -- assignment ------------------------------------------------------------------------------

    def assignment(self) -> frozenset[TopicPartition]:
        """Get the partitions that are assigned now.

        A new partition appears in it directly before ``on_partitions_assigned`` is called. A
        partition that is revoked or lost leaves it when ``on_partitions_revoked`` or
        ``on_partitions_lost`` has returned, so that the listener can still commit and look at
        positions; records are not delivered from the step in which its revocation begins. Before
        ``start`` it has what ``assign`` got.

        Returns:
            The partitions. Raises nothing.
        """
        if self._engine is None:
            return frozenset(self._manual or ())
        return self._engine.core.assigned

    # -- offsets ---------------------------------------------------------------------------------

    async def committed(self, partition: tuple[str, int]) -> int | None:
        """Look up the group's committed offset of any partition (Kafka's OffsetFetch).

        Args:
            partition: Topic and partition; it need not be assigned to this consumer.

        Returns:
            The offset of the next record to read, ``None`` without one.

        Raises:
            LocalProtocolError: There is no ``group_id``.
            RequestTimedOut: The coordinator gave no answer within ``default_api_timeout_ms``.
            BrokerError: The coordinator refused.
        """
        engine = self._run()
        tp = checked_partition(partition)
        found = (await engine.committed((tp,))).get(tp)
        return None if found is None else found.offset

    async def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """Look up the first offset of partitions (Kafka's ListOffsets).

        Args:
            partitions: Topics and partitions; they need not be assigned to this consumer.

        Returns:
            The first offset in the log, by partition.

        Raises:
            RequestTimedOut: The leaders gave no answer within ``default_api_timeout_ms``.
            BrokerError: A leader refused.
        """
        return await self._offsets_at(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Look up the end of partitions (Kafka's ListOffsets).

        Args:
            partitions: Topics and partitions; they need not be assigned to this consumer.

        Returns:
            By partition the offset of the next record to be written. With ``read_committed``: the
            last stable offset, where the first open transaction begins.

        Raises:
            RequestTimedOut: The leaders gave no answer within ``default_api_timeout_ms``.
            BrokerError: A leader refused.
        """
        return await self._offsets_at(partitions, LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[Any, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the first record at or after each time (Kafka's ListOffsets).

        Args:
            timestamps: A time by partition, in milliseconds since 1970. The partitions need not be
                assigned to this consumer.

        Returns:
            By partition the offset and the timestamp of that record, ``None`` where there is none.

        Raises:
            ConfigError: A time is negative, or not an integer.
            RequestTimedOut: The leaders gave no answer within ``default_api_timeout_ms``.
            BrokerError: A leader refused.
        """
        found = await self._run().positions.at(checked_times(timestamps))
        return {
            tp: OffsetAndTimestamp(each.offset, each.timestamp) if each.offset >= 0 else None
            for tp, each in found.items()
        }

    def highwater(self, partition: tuple[str, int]) -> int | None:
        """Get a partition's high watermark as of its last fetch, without a request.

        Args:
            partition: Topic and partition.

        Returns:
            The offset behind the last record that all in-sync replicas have; ``None`` before the
            first fetch.

        Raises:
            NotAssigned: The partition is not assigned to this consumer.
        """
        return self._look().core.high_watermark(self._assigned(partition))

    def last_stable_offset(self, partition: tuple[str, int]) -> int | None:
        """Get a partition's last stable offset as of its last fetch, without a request.

        Args:
            partition: Topic and partition.

        Returns:
            Where the first open transaction begins, or the high watermark if there is none;
            ``None`` before the first fetch.

        Raises:
            NotAssigned: The partition is not assigned to this consumer.
        """
        return self._look().core.last_stable_offset(self._assigned(partition))

    def lag(self) -> dict[TopicPartition, int | None]:
        """Get how far each assigned partition is behind its end, without a request.

        The end is that of the last fetch: the high watermark, or with ``read_committed`` the last
        stable offset. A paused partition is not fetched, so its lag is as old as the pause.

        Returns:
            A number of offsets by partition, ``None`` where it is not known yet.

        Raises:
            ConsumerNotStarted: ``start`` was not called.
            ConsumerClosed: The consumer was stopped.
        """
        core = self._look().core
        committed = self._config.isolation_level == "read_committed"
        return {tp: lag_of(core, tp, committed=committed) for tp in sorted(core.assigned)}

    def last_poll_timestamp(self, partition: tuple[str, int]) -> int | None:
        """Get when a broker last answered a fetch of a partition.

        Args:
            partition: Topic and partition.

        Returns:
            Milliseconds since 1970; ``None`` before the first answer.

        Raises:
            NotAssigned: The partition is not assigned to this consumer.
        """
        return self._look().fetched_at_ms(self._assigned(partition))

    # -- topics ----------------------------------------------------------------------------------

    async def topics(self) -> frozenset[str]:
        """List the topics of the cluster (Kafka's Metadata).

        Returns:
            The names of all topics that we may describe, without internal ones.

        Raises:
            TransportError: No broker answers.
            BrokerError: The brokers refused.
        """
        found = await self._run().topics.list_topics()
        return frozenset(each.name for each in found if each.name and not each.is_internal)

    def partitions_for_topic(self, topic: str) -> frozenset[int] | None:
        """Get the partitions of a topic that is consumed, without a request.

        Args:
            topic: The name.

        Returns:
            The numbers of its partitions; ``None`` when they are not known: it is not consumed,
            does not exist, or was not looked up yet.

        Raises:
            ConfigError: The name is not legal.
            ConsumerNotStarted: ``start`` was not called.
            ConsumerClosed: The consumer was stopped.
        """
        return self._look().topics.partitions_of(checked_topic(topic))

    # -- inside ----------------------------------------------------------------------------------

    def _run(self) -> Engine[K, V]:
        """Return the engine if it works. Raises the error that ended it."""
        engine = self._look()
        engine.errors.check_fatal()
        return engine

    def check_home(self) -> None:
        """Check that the caller is in the consumer's event loop, thread and process.

        Every method that does something calls it. Before ``start`` every place is right.

        Raises:
            LocalProtocolError: The consumer was started in another event loop, thread or process.
        """
        self._runtime.check_home()

    def _look(self) -> Engine[K, V]:
        """Return the engine, even if it has failed."""
        self._runtime.check_started()
        if self._engine is None or self._runtime.is_closed:
            raise self._runtime.closed()
        return self._engine  # even while closing: the listener may commit

    async def _offsets_at(
        self, partitions: Iterable[tuple[str, int]], at: int
    ) -> dict[TopicPartition, int]:
        positions = self._run().positions
        found = await positions.at(dict.fromkeys(checked_partitions(partitions), at))
        return {tp: each.offset for tp, each in found.items()}

    def _assigned(self, partition: tuple[str, int]) -> TopicPartition:
        tp = checked_partition(partition)
        engine = self._engine
        ours = tp in self.assignment() if engine is None else engine.core.generation(tp)
        if not ours:
            raise not_assigned(tp.topic, tp.partition)
        return tp

    def _chosen(self, partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
        chosen = [self._assigned(tp) for tp in partitions or sorted(self.assignment())]
        if not chosen:
            raise NotAssigned("no partition is assigned to this consumer yet")
        return chosen
