"""The brokers of a world of processors: those of producers, with coordinators of groups whose
records are read as they are written. No outdated heartbeat reaches them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kip848_client.core.types import TopicPartition
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator.core.groups import StateRecord
from mock_coordinator.core.groups.records.state_records import OffsetCommit
from mock_coordinator.sim.checkers import Tag
from mock_coordinator.sim.client_connection import unpack_request
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.options import ProcessOptions
from mock_coordinator.sim.network import Connection, Packet
from mock_coordinator.sim.producing.broker_faults import FaultyNodes

__all__ = ["DEAD", "OUT", "Brokers"]

OUT = "out"
"""What processors write to."""
DEAD = "dead"
"""Where they put records that their function cannot process."""
_JOURNALS = 2


class Brokers(FaultyNodes[ProcessOptions]):
    """All nodes."""

    def __init__(self, context: ProcessContext) -> None:
        self._context = context
        options = context.options
        settings = {
            "transaction.state.log.num.partitions": "2",
            "offsets.topic.num.partitions": str(_JOURNALS),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(options.session_timeout_ms),
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": str(options.heartbeat_interval_ms),
            "group.consumer.assignment.interval.ms": "0",
        }
        super().__init__(context, settings, options, context.writing)
        for partition in range(_JOURNALS):
            self.core.broker.disk.journal(partition).watched_by(self._written)

    # -- what is written ---------------------------------------------------------------------

    def _written(self, _partition: int, records: Sequence[StateRecord]) -> None:
        context = self._context
        of_groups = [each for each in records if not isinstance(each, OffsetCommit)]
        context.checkers.written(context.kernel.now_ms, of_groups)
        context.checks.written(context.checkers.groups, records)

    def note(self) -> None:
        """Have what was appended read."""
        for topic, partition, log in self.logs():
            if topic.name in (OUT, DEAD):
                self._context.writing.look(TopicPartition(topic.name, partition), log)
                continue
            history = self._context.truth.of(topic.topic_id, partition)
            if history.end != log.high_watermark:
                history.look(log)

    def ends(self) -> Iterator[tuple[TopicPartition, int]]:
        """Where the partitions that are read end."""
        for topic, partition, log in self.logs():
            if topic.name not in (OUT, DEAD):
                yield TopicPartition(topic.name, partition), log.high_watermark

    # -- requests ----------------------------------------------------------------------------

    def _receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        tag = packet.tag
        if isinstance(tag, Tag):
            is_heartbeat = isinstance(unpack_request(packet), ConsumerGroupHeartbeatRequest)
            if is_heartbeat and self.is_outdated(packet, tag.member, tag.number):
                return
        super()._receive(node_id, connection, packet)
