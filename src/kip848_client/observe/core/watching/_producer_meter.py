"""Translates events and commands of the producer core into metrics. Decides nothing.

It sees batches and requests, never a single record: it is not on the path of a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kip848_client.core.cluster import ClusterEvent, LeadersLearnt, LearnLeaders
from kip848_client.core.produce import (
    AbortRequested,
    BatchFailed,
    BatchSplit,
    BeginRequested,
    Command,
    CommitRequested,
    Done,
    Event,
    Failed,
    FlushRequested,
    OffsetsAdded,
    ProduceAnswered,
    ProduceLost,
    ProducerCore,
    SealedBatch,
    SendProduce,
    StartRequested,
    TopicWanted,
    WaitEnded,
)
from kip848_client.observe.core.metrics import (
    ClientMetrics,
    Reading,
    Row,
    Sensor,
    Statistic,
    producer_rows,
)

__all__ = ["ProducerMeter"]

_NS_A_MS: Final = 1_000_000
_NS_A_S: Final = 1_000_000_000
_CALLS: Final[Mapping[type[Event], Row]] = {
    StartRequested: producer_rows.TXN_INIT,
    TopicWanted: producer_rows.METADATA_WAIT,
    FlushRequested: producer_rows.FLUSH,
    BeginRequested: producer_rows.TXN_BEGIN,
    OffsetsAdded: producer_rows.TXN_SEND_OFFSETS,
    CommitRequested: producer_rows.TXN_COMMIT,
    AbortRequested: producer_rows.TXN_ABORT,
}
"""Events of waiting calls, whose tickets mark their end."""
_FROM_THE_START: Final = (
    *(producer_rows.RECORD_SEND, producer_rows.RECORD_RETRY, producer_rows.RECORD_ERROR),
    *(producer_rows.BATCH_SPLIT, producer_rows.BUFFER_EXHAUSTED),
    *(producer_rows.METADATA_WAIT, producer_rows.FLUSH),
)
_OF_TRANSACTIONS: Final = (
    *(producer_rows.TXN_INIT, producer_rows.TXN_BEGIN, producer_rows.TXN_SEND_OFFSETS),
    *(producer_rows.TXN_COMMIT, producer_rows.TXN_ABORT),
)


class ProducerMeter:
    """Measures the latency of requests and calls, and counts sent data."""

    def __init__(
        self, metrics: ClientMetrics, core: ProducerCore, *, is_transactional: bool
    ) -> None:
        self._metrics = metrics
        self._is_transactional = is_transactional
        for row in (*_FROM_THE_START, *(_OF_TRANSACTIONS if is_transactional else ())):
            metrics.sensor(row)  # 0 before the first record, not missing
        self._sent: dict[int, int] = {}
        """Send times of unanswered Produce requests, by number."""
        self._calls: dict[int, tuple[Row, int]] = {}
        """Row and start time of waiting calls, by ticket."""
        self._ratios: dict[str, Sensor] = {}
        """Compression ratio of batches, by topic."""
        self._learnt_ms: int | None = None
        self._waiting = 0
        self._waited = metrics.sensor(producer_rows.BUFFER_WAIT)
        gauge = metrics.gauge
        gauge(producer_rows.IN_FLIGHT, lambda: {(): core.on_the_wire})
        gauge(producer_rows.BUFFER_TOTAL, lambda: {(): core.buffer_bytes})
        gauge(
            producer_rows.BUFFER_AVAILABLE,
            lambda: {(): max(0, core.buffer_bytes - core.held_bytes)},
        )
        gauge(producer_rows.WAITING, lambda: {(): self._waiting})
        gauge(producer_rows.BUFFER_WAIT_RATIO, self._wait_ratio)
        gauge(producer_rows.METADATA_AGE, self._metadata_age)
        gauge(producer_rows.TOPIC_COMPRESSION_RATE, self._topic_ratios)

    def on_step(
        self, now_ms: int, event: Event | ClusterEvent, commands: Iterable[Command | LearnLeaders]
    ) -> None:
        """Process a step of the core."""
        self._on_event(now_ms, event)
        for command in commands:
            match command:
                case SendProduce():
                    self._on_produce(now_ms, command)
                case Done(ticket):
                    self._ended(now_ms, ticket)
                case Failed(ticket):
                    self._calls.pop(ticket, None)
                case BatchFailed():
                    self._count(now_ms, producer_rows.RECORD_ERROR, command.records)
                    topic = producer_rows.TOPIC_RECORD_ERROR
                    self._count(now_ms, topic, command.records, command.topic)
                case BatchSplit():
                    self._count(now_ms, producer_rows.BATCH_SPLIT, 1)
                case _:
                    pass

    # -- buffer space, reported only by waiting callers ------------------------------------------

    def waits_for_room(self) -> int:
        """Note a caller that waits for buffer space. Returns the argument of ``goes_on``."""
        self._waiting += 1
        return self._metrics.now_ms()

    def goes_on(self, since_ms: int) -> None:
        """Note that the caller no longer waits."""
        self._waiting -= 1
        now_ms = self._metrics.now_ms()
        self._waited.record(now_ms, (now_ms - since_ms) * _NS_A_MS)

    def found_no_room(self) -> None:
        """Note that the waiting caller was refused."""
        self._count(self._metrics.now_ms(), producer_rows.BUFFER_EXHAUSTED, 1)

    # -- inside ------------------------------------------------------------------------------

    def _on_event(self, now_ms: int, event: Event | ClusterEvent) -> None:
        match event:
            case ProduceAnswered(produce):
                sent_ms = self._sent.pop(produce, None)
                if sent_ms is not None:
                    self._count(now_ms, producer_rows.REQUEST_LATENCY, now_ms - sent_ms)
                    self._count(now_ms, producer_rows.THROTTLE, event.throttle_time_ms)
            case ProduceLost(produce):
                self._sent.pop(produce, None)
            case WaitEnded(ticket):
                self._calls.pop(ticket, None)
            case LeadersLearnt():
                self._learnt_ms = now_ms
            case (
                StartRequested(ticket)
                | TopicWanted(ticket)
                | FlushRequested(ticket)
                | BeginRequested(ticket)
                | OffsetsAdded(ticket)
                | CommitRequested(ticket)
                | AbortRequested(ticket)
            ):
                if self._is_transactional or not isinstance(event, StartRequested):
                    self._calls[ticket] = _CALLS[type(event)], now_ms
            case _:
                pass

    def _ended(self, now_ms: int, ticket: int) -> None:
        row, asked_ms = self._calls.pop(ticket, (None, now_ms))
        if row is not None:
            self._count(now_ms, row, (now_ms - asked_ms) * _NS_A_MS)

    def _on_produce(self, now_ms: int, command: SendProduce) -> None:
        self._sent[command.produce] = now_ms
        records = 0
        for batch in command.batches:
            records += batch.records
            self._on_batch(now_ms, batch)
        self._count(now_ms, producer_rows.RECORDS_PER_REQUEST, records)

    def _on_batch(self, now_ms: int, batch: SealedBatch) -> None:
        topic, size_bytes = batch.tp.topic, len(batch.data)
        count = self._count
        count(now_ms, producer_rows.RECORD_SEND, batch.records)
        count(now_ms, producer_rows.TOPIC_RECORD_SEND, batch.records, topic)
        count(now_ms, producer_rows.TOPIC_BYTES, size_bytes, topic)
        if batch.is_again:
            count(now_ms, producer_rows.RECORD_RETRY, batch.records)
            count(now_ms, producer_rows.TOPIC_RECORD_RETRY, batch.records, topic)
        count(now_ms, producer_rows.QUEUE_TIME, now_ms - batch.created_ms)
        count(now_ms, producer_rows.BATCH_SIZE, size_bytes)
        count(now_ms, producer_rows.RECORD_SIZE, batch.raw_bytes / batch.records)
        ratio = size_bytes / batch.raw_bytes
        count(now_ms, producer_rows.COMPRESSION_RATE, ratio)
        if topic not in self._ratios:
            self._ratios[topic] = Sensor(now_ms, buckets=False)
        self._ratios[topic].record(now_ms, ratio)

    def _count(self, now_ms: int, row: Row, value: float, *labels: str) -> None:
        self._metrics.record(row, now_ms, value, *labels)

    def _wait_ratio(self) -> Reading:
        return {(): self._waited.read(Statistic.RATE, self._metrics.now_ms()) / _NS_A_S}

    def _metadata_age(self) -> Reading:
        if self._learnt_ms is None:
            return {}
        return {(): (self._metrics.now_ms() - self._learnt_ms) / 1_000}

    def _topic_ratios(self) -> Reading:
        now_ms = self._metrics.now_ms()
        ratios = list(self._ratios.items())
        return {(topic,): each.read(Statistic.AVG, now_ms) for topic, each in ratios}
