"""What a consumer can be asked about offsets and topics, whether it consumes them or not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic, TypeVar

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._engine import Engine
from kip848_client.consumer._records import OffsetAndTimestamp
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

__all__ = ["Inquiry"]

K = TypeVar("K")
V = TypeVar("V")


class Inquiry(Generic[K, V]):
    """The part of ``Consumer`` that looks things up and changes nothing."""

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

    # -- what is assigned ------------------------------------------------------------------------

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned now. It changes only before the listener's calls."""
        if self._engine is None:
            return frozenset(self._manual or ())
        return self._engine.core.assigned

    # -- offsets ---------------------------------------------------------------------------------

    async def committed(self, partition: tuple[str, int]) -> int | None:
        """The group's committed offset of any partition, ``None`` without one. Raises
        ``LocalProtocolError`` without a ``group_id``."""
        engine = self._run()
        tp = checked_partition(partition)
        found = (await engine.committed((tp,))).get(tp)
        return None if found is None else found.offset

    async def beginning_offsets(
        self, partitions: Iterable[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """The first offset there is, of any partitions."""
        return await self._offsets_at(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """The offset of the next record to be written (with ``read_committed``: to become stable),
        of any partitions."""
        return await self._offsets_at(partitions, LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[Any, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (ms since 1970), ``None`` where there is none."""
        found = await self._run().positions.at(checked_times(timestamps))
        return {
            tp: OffsetAndTimestamp(each.offset, each.timestamp) if each.offset >= 0 else None
            for tp, each in found.items()
        }

    def highwater(self, partition: tuple[str, int]) -> int | None:
        """The partition's end when it was last fetched, or ``None``. Raises ``NotAssigned``."""
        return self._look().core.high_watermark(self._assigned(partition))

    def last_stable_offset(self, partition: tuple[str, int]) -> int | None:
        """Where the first open transaction began, or the end, when it was last fetched, or
        ``None``. Raises ``NotAssigned``."""
        return self._look().core.last_stable_offset(self._assigned(partition))

    def lag(self) -> dict[TopicPartition, int | None]:
        """How many offsets the position is behind the end of each assigned partition, as it was
        fetched last (with ``read_committed``: behind its last stable offset). ``None`` where that
        is not known yet; of a partition that is paused it is as old as the pause. Asks nobody."""
        core = self._look().core
        committed = self._config.isolation_level == "read_committed"
        return {tp: lag_of(core, tp, committed=committed) for tp in sorted(core.assigned)}

    def last_poll_timestamp(self, partition: tuple[str, int]) -> int | None:
        """When the partition was last fetched (ms since 1970), or ``None``. Raises
        ``NotAssigned``."""
        return self._look().fetched_at_ms(self._assigned(partition))

    # -- topics ----------------------------------------------------------------------------------

    async def topics(self) -> frozenset[str]:
        """Every topic of the cluster that we may see, internal ones left out."""
        found = await self._run().topics.list_topics()
        return frozenset(each.name for each in found if each.name and not each.is_internal)

    def partitions_for_topic(self, topic: str) -> frozenset[int] | None:
        """The partitions of a topic that is consumed; ``None`` when it is not known."""
        return self._look().topics.partitions_of(checked_topic(topic))

    # -- inside ----------------------------------------------------------------------------------

    def _run(self) -> Engine[K, V]:
        """The engine, which must be working. Raises what ended it."""
        engine = self._look()
        engine.errors.check_fatal()
        return engine

    def check_home(self) -> None:
        """Raise ``LocalProtocolError`` outside of the event loop, thread and process in which the
        consumer was started. Every call that does something checks this."""
        self._runtime.check_home()

    def _look(self) -> Engine[K, V]:
        """The engine, to look at or to take leave of."""
        self._runtime.check_started()
        if self._engine is None or self._runtime.is_closed:
            raise self._runtime.closed()
        return self._engine  # also while it closes: the listener may commit

    async def _offsets_at(
        self, partitions: Iterable[tuple[str, int]], at: int
    ) -> dict[TopicPartition, int]:
        positions = self._run().positions
        found = await positions.at(dict.fromkeys(checked_partitions(partitions), at))
        return {tp: each.offset for tp, each in found.items()}

    def _assigned(self, partition: tuple[str, int]) -> TopicPartition:
        tp = checked_partition(partition)
        engine = self._engine
        ours = tp in self.assignment() if engine is None else engine.core.tenure(tp)
        if not ours:
            raise not_assigned(tp.topic, tp.partition)
        return tp

    def _chosen(self, partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
        chosen = [self._assigned(tp) for tp in partitions or sorted(self.assignment())]
        if not chosen:
            raise NotAssigned("no partition is assigned to this consumer yet")
        return chosen
