"""The brokers of a world of producers, whose logs are read as they grow."""

from __future__ import annotations

from kip848_client.core.types import TopicPartition
from mock_coordinator.sim.producing.broker_faults import FaultyNodes
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.options import ProduceOptions

__all__ = ["Brokers"]


class Brokers(FaultyNodes[ProduceOptions]):
    """All nodes."""

    def __init__(self, context: ProduceContext) -> None:
        self._context = context
        options = context.options
        settings = {
            "transaction.state.log.num.partitions": "2",
            "offsets.topic.num.partitions": "2",
            "message.max.bytes": str(options.message_bytes),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        }
        self.groups: set[str] = set()
        """That offsets are committed for."""
        self._journal_ends: dict[str, int] = {}
        self._seen: dict[tuple[str, TopicPartition], int] = {}
        super().__init__(context, settings, options, context.writing)

    def note(self) -> None:
        """Have what was appended read."""
        writing = self._context.writing
        for topic, partition, log in self.logs():
            writing.look(TopicPartition(topic.name, partition), log)
        for group in sorted(self.groups):
            self._note_offsets(group)

    def _note_offsets(self, group: str) -> None:
        """What a reader of the group's offsets sees, if there is anything new."""
        partition = self.core.groups.partition_of(group)
        end = self.core.broker.disk.journal(partition).log.high_watermark
        if self._journal_ends.get(group) == end:
            return
        snapshot = self.core.groups.snapshot(group)
        if snapshot is None:
            return
        self._journal_ends[group] = end
        for topic, offsets in snapshot.offsets.items():
            for index, committed in offsets.items():
                tp = TopicPartition(topic, index)
                if self._seen.get((group, tp)) != committed.offset:
                    self._seen[group, tp] = committed.offset
                    self._context.writing.offset_seen(group, tp, committed.offset)
