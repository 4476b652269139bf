"""Metrics of fetching and delivery. Decides nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kip848_client.core.fetch import (
    BATCH_HEADER_BYTES,
    Command,
    Event,
    FetchAnswered,
    FetchCore,
    FetchLost,
    SendFetch,
    Slice,
)
from kip848_client.core.types import TopicPartition
from kip848_client.observe.core.metrics import ClientMetrics, Reading, rows
from kip848_client.observe.core.watching._partition_trends import PartitionTrends

__all__ = ["FetchMeter", "lag_of", "records_in"]

_INT32: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_MAGIC: Final = 2
_COUNT_AT: Final = 57


class FetchMeter:
    """Measures the latency of Fetch requests, and counts delivered records."""

    def __init__(self, metrics: ClientMetrics, core: FetchCore, *, committed: bool) -> None:
        self._metrics = metrics
        self._core = core
        self._committed = committed
        self._fetches = metrics.sensor(rows.FETCH)
        self._latency = metrics.sensor(rows.FETCH_LATENCY)
        self._size = metrics.sensor(rows.FETCH_SIZE)
        self._throttle = metrics.sensor(rows.THROTTLE)
        self._bytes = metrics.sensor(rows.BYTES_CONSUMED)
        self._records = metrics.sensor(rows.RECORDS_CONSUMED)
        self._per_request = metrics.sensor(rows.RECORDS_PER_REQUEST)
        self._trends: PartitionTrends | None = None
        if metrics.per_partition:
            self._trends = PartitionTrends(metrics, lambda: frozenset(core.assigned))
        self._sent: dict[int, int] = {}
        """Send times of unanswered Fetch requests, by number."""
        metrics.gauge(rows.ASSIGNED_PARTITIONS, lambda: {(): len(core.assigned)})
        metrics.gauge(rows.RECORDS_LAG, lambda: _by_label(self._lags()))
        metrics.gauge(rows.RECORDS_LEAD, lambda: _by_label(self._leads()))
        metrics.gauge(rows.RECORDS_LAG_MAX, lambda: _one(max(self._lags().values(), default=None)))
        metrics.gauge(
            rows.RECORDS_LEAD_MIN, lambda: _one(min(self._leads().values(), default=None))
        )

    def on_step(self, now_ms: int, event: Event, commands: Iterable[Command]) -> None:
        """Process a step of the core."""
        match event:
            case FetchAnswered(fetch, answer):
                self._fetches.record(now_ms)
                self._latency.record(now_ms, now_ms - self._sent.pop(fetch, now_ms))
                self._size.record(now_ms, answer.size_bytes)
                self._throttle.record(now_ms, answer.throttle_time_ms)
                records = sum(records_in(each.records) for each in answer.partitions)
                if records:
                    self._per_request.record(now_ms, records)
            case FetchLost(fetch):
                self._sent.pop(fetch, None)
            case _:
                pass
        for command in commands:
            if isinstance(command, SendFetch):
                self._sent[command.fetch] = now_ms

    def handed_out(self, piece: Slice) -> None:
        """Record a slice that was delivered to its end."""
        now_ms, tp = self._metrics.now_ms(), piece.tp
        size_bytes = len(piece.raw)
        records = sum(each.records for each in piece.batches if not each.skip)
        self._bytes.record(now_ms, size_bytes)
        self._records.record(now_ms, records)
        self._metrics.record(rows.TOPIC_BYTES_CONSUMED, now_ms, size_bytes, tp.topic)
        self._metrics.record(rows.TOPIC_RECORDS_CONSUMED, now_ms, records, tp.topic)
        if self._trends is not None:
            lag = lag_of(self._core, tp, committed=self._committed)
            self._trends.note(now_ms, tp, lag, self._lead(tp))

    def _lags(self) -> dict[TopicPartition, int]:
        lags: dict[TopicPartition, int] = {}
        for tp in sorted(self._core.assigned):
            lag = lag_of(self._core, tp, committed=self._committed)
            if lag is not None:
                lags[tp] = lag
        return lags

    def _leads(self) -> dict[TopicPartition, int]:
        leads: dict[TopicPartition, int] = {}
        for tp in sorted(self._core.assigned):
            lead = self._lead(tp)
            if lead is not None:
                leads[tp] = lead
        return leads

    def _lead(self, tp: TopicPartition) -> int | None:
        start, position = self._core.log_start_offset(tp), self._core.position(tp)
        return None if start is None or position is None else max(0, position - start)


def lag_of(core: FetchCore, tp: TopicPartition, *, committed: bool) -> int | None:
    """Return how many offsets a position is behind the end of its partition as last fetched
    (``committed``: behind the last stable offset); ``None`` while either is unknown."""
    end = core.last_stable_offset(tp) if committed else core.high_watermark(tp)
    position = core.position(tp)
    return None if end is None or position is None else max(0, end - position)


def records_in(raw: bytes) -> int:
    """Return the number of records in the complete batches of an answer, by their headers."""
    count, at = 0, 0
    while at + BATCH_HEADER_BYTES <= len(raw):
        (length,) = _INT32.unpack_from(raw, at + _LENGTH_AT)
        end = at + _LENGTH_AT + _INT32.size + length
        if raw[at + _MAGIC_AT] != _MAGIC or length <= 0 or end > len(raw):
            break  # truncated, broken or from before Kafka 0.11: not counted
        count += _INT32.unpack_from(raw, at + _COUNT_AT)[0]
        at = end
    return count


def _by_label(found: dict[TopicPartition, int]) -> Reading:
    return {(tp.topic, str(tp.partition)): value for tp, value in found.items()}


def _one(value: int | None) -> Reading:
    return {} if value is None else {(): value}
