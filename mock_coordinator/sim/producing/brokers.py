"""The brokers of a world of producers: what they answer is the mock's, but for moments in which a
node refuses, before or after it has done what was asked, and quotas that are used up."""

from __future__ import annotations

from typing import Any, Final

from kip848_client._types import TopicPartition
from kip848_client.wire._fields import Message
from kip848_client.wire.messages.transactions import InitProducerIdRequest
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.sim.nodes import Nodes, Waiting, node_name
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.options import ProduceOptions
from mock_coordinator.sim.producing.refusals import BEFORE, LATE, refusal_of

__all__ = ["Brokers"]

_THROTTLE_MS_MAX: Final = 1_000


class Brokers(Nodes[ProduceOptions]):
    """All nodes."""

    def __init__(self, context: ProduceContext) -> None:
        self._context = context
        self._rng = context.kernel.rng("brokers")
        ids = context.kernel.rng("uuid")
        options = context.options
        config = BrokerConfig(
            context.profile,
            {
                "transaction.state.log.num.partitions": "2",
                "offsets.topic.num.partitions": "2",
                "default.replication.factor": str(options.brokers),
                "message.max.bytes": str(options.message_bytes),
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            },
        )
        core = ClusterCore.create(
            config, lambda: ids.randbytes(16), context.kernel.now_ms, brokers=options.brokers
        )
        self.groups: set[str] = set()
        """That offsets are committed for."""
        self._journal_ends: dict[str, int] = {}
        self._seen: dict[tuple[str, TopicPartition], int] = {}
        super().__init__(context, core)

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

    # -- troubles ----------------------------------------------------------------------------

    def refusal(self, waiting: Waiting) -> Message | None:
        """What a node answers that does not even look at the request."""
        context, codes = self._context, BEFORE.get(type(waiting.request))
        if codes is None or not context.happens("refuse", context.options.refuse):
            return None
        code = self._rng.choice(codes)
        self._tell(waiting, f"refuses {code.name}")
        context.probes.reached("a request refused")
        return refusal_of(waiting.request, code)

    def spoilt(self, waiting: Waiting, response: Any) -> Any:
        """An answer as it leaves a troubled node."""
        context, request = self._context, waiting.request
        if isinstance(request, InitProducerIdRequest) and not response.error_code:
            context.writing.initialised(request.transactional_id, waiting.connection.client)
        codes = LATE.get(type(request))
        if codes is None or waiting.packet.again:
            return response
        if context.happens("throttle", context.options.throttle):
            throttle_ms = self._rng.randint(1, _THROTTLE_MS_MAX)
            self._tell(waiting, f"throttles for {throttle_ms} ms")
            context.probes.reached("a client throttled")
            response.throttle_time_ms = throttle_ms
            client, node = waiting.connection.client, node_name(waiting.node_id)
            context.network.clog(client, node, throttle_ms)
        if context.happens("refuse late", context.options.refuse_late) and _is_good(response):
            code = self._rng.choice(codes)
            self._tell(waiting, f"refuses late {code.name}")
            context.probes.reached("an answer refused late")
            return refusal_of(request, code)
        return response

    def _tell(self, waiting: Waiting, what: str) -> None:
        name = type(waiting.request).__name__.removesuffix("Request")
        who = waiting.connection.client
        self._context.tell(node_name(waiting.node_id), "trouble", f"{what} {name} of {who}")


def _is_good(response: Any) -> bool:
    """Whether all that was asked for was done."""
    if getattr(response, "error_code", 0):
        return False
    rows = [
        *(row for each in getattr(response, "responses", ()) for row in each.partition_responses),
        *(row for each in getattr(response, "topics", ()) for row in each.partitions),
    ]
    added = getattr(response, "results_by_topic_v3_and_below", ())
    codes = [row.error_code for row in rows]
    codes += [row.partition_error_code for each in added for row in each.results_by_partition]
    return not any(codes)
