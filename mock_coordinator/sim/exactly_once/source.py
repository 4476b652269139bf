"""Who writes what is processed."""

from __future__ import annotations

from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.sim.exactly_once.brokers import DEAD, OUT, Brokers
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.values import input_value

__all__ = ["Source"]

_PRODUCE = 12
"""The last version that names topics."""
_RECORDS_MAX = 8


class Source:
    """One producer, which nothing happens to."""

    def __init__(self, context: ProcessContext, brokers: Brokers) -> None:
        self._context = context
        self._brokers = brokers
        self._rng = context.kernel.rng("source")
        self.written = 0

    def write(self) -> None:
        """A few records, somewhere."""
        context, rng = self._context, self._rng
        topic = rng.choice([t for t in self._brokers.topics if t.name not in (OUT, DEAD)])
        partition = rng.randrange(topic.partitions)
        if self._brokers.leader(topic, partition) is None:
            return
        first = self.written
        self.written += rng.randint(1, _RECORDS_MAX)
        poison = context.options.poison if context.options.dead_letters else 0
        records = [
            NewRecord(input_value(number, poison=rng.random() < poison))
            for number in range(first, self.written)
        ]
        batch = ProduceRequestPartitionProduceData(
            index=partition, records=encode_batch(records, context.kernel.now_ms)
        )
        row = ProduceRequestTopicProduceData(name=topic.name, partition_data=(batch,))
        request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(row,))
        response = self._brokers.operate(request, _PRODUCE)
        if response.responses[0].partition_responses[0].error_code:
            self.written = first
