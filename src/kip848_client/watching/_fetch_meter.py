"""Metrics of fetching, and of what is handed out. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from kip848_client._types import TopicPartition
from kip848_client.fetching import (
    Command,
    Event,
    FetchAnswered,
    FetchCore,
    FetchLost,
    SendFetch,
    Slice,
)
from kip848_client.metrics import ClientMetrics, Reading, rows

__all__ = ["FetchMeter", "lag_of"]


class FetchMeter:
    """Measures from Fetch to answer, and counts what was handed out."""

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
        self._sent: dict[int, int] = {}
        """When a Fetch was sent that is not answered, by its number."""
        metrics.gauge(rows.ASSIGNED_PARTITIONS, lambda: {(): len(core.assigned)})
        metrics.gauge(rows.RECORDS_LAG, lambda: _by_label(self._lags()))
        metrics.gauge(rows.RECORDS_LEAD, lambda: _by_label(self._leads()))
        metrics.gauge(rows.RECORDS_LAG_MAX, lambda: _one(max(self._lags().values(), default=None)))
        metrics.gauge(
            rows.RECORDS_LEAD_MIN, lambda: _one(min(self._leads().values(), default=None))
        )

    def took(self, now_ms: int, event: Event, commands: Iterable[Command]) -> None:
        """The core has taken an event and asked for these."""
        match event:
            case FetchAnswered(fetch, answer):
                self._fetches.record(now_ms)
                self._latency.record(now_ms, now_ms - self._sent.pop(fetch, now_ms))
                self._size.record(now_ms, answer.size_bytes)
                self._throttle.record(now_ms, answer.throttle_time_ms)
            case FetchLost(fetch):
                self._sent.pop(fetch, None)
            case _:
                pass
        for command in commands:
            if isinstance(command, SendFetch):
                self._sent[command.fetch] = now_ms

    def handed_out(self, piece: Slice) -> None:
        """All of a slice was handed out."""
        now_ms = self._metrics.now_ms()
        self._bytes.record(now_ms, len(piece.raw))
        self._records.record(now_ms, sum(each.records for each in piece.batches if not each.skip))

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
            start, position = self._core.log_start_offset(tp), self._core.position(tp)
            if start is not None and position is not None:
                leads[tp] = max(0, position - start)
        return leads


def lag_of(core: FetchCore, tp: TopicPartition, *, committed: bool) -> int | None:
    """How many offsets a position is behind the end of its partition as it was fetched last
    (``committed``: behind the last stable offset); ``None`` while one of both is not known."""
    end = core.last_stable_offset(tp) if committed else core.high_watermark(tp)
    position = core.position(tp)
    return None if end is None or position is None else max(0, end - position)


def _by_label(found: dict[TopicPartition, int]) -> Reading:
    return {(tp.topic, str(tp.partition)): value for tp, value in found.items()}


def _one(value: int | None) -> Reading:
    return {} if value is None else {(): value}
