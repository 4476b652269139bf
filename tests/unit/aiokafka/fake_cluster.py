"""A leader for the fetcher, made of logs in memory: aiokafka's own client is what is replaced."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kip848_client import TopicPartition
from kip848_client.error_codes import ErrorCode
from mock_coordinator.batches import NewRecord, encode_batch

__all__ = ["FakeClient"]

Row = tuple[int, int, int, int, int, list[Any], int, bytes]


class FakeClient:
    """Answers fetches from ``logs`` (values by partition, one batch each); a fetch that finds
    nothing waits until ``grow`` or for 50 ms. ``errors`` are given instead, once each. ``gate``,
    when set, holds every answer back."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._retry_backoff = 0.02
        self._metadata_max_age_ms = 300_000
        self.cluster = SimpleNamespace(
            leader_for_partition=lambda _tp: 1, broker_metadata=lambda _node: object()
        )
        self.logs: dict[TopicPartition, list[bytes]] = {}
        self.errors: dict[TopicPartition, int] = {}
        self.fetches: list[dict[TopicPartition, int]] = []
        self.metadata_updates = 0
        self.corrupt = False
        self.too_large = False
        self.gate: asyncio.Event | None = None
        self._grown = asyncio.Event()
        self.on_refused: Any = None

    def force_metadata_update(self) -> asyncio.Future[bool]:
        self.metadata_updates += 1
        done: asyncio.Future[bool] = self._loop.create_future()
        done.set_result(True)
        return done

    def grow(self, tp: TopicPartition, *values: bytes) -> None:
        self.logs.setdefault(tp, []).extend(values)
        self._grown.set()
        self._grown = asyncio.Event()

    async def send(self, node_id: int, request: Any) -> Any:
        assert node_id == 1
        wanted = {
            TopicPartition(topic, partition): offset
            for topic, rows in request.topics
            for partition, offset, _ in rows
        }
        self.fetches.append(wanted)
        if not self._has_news(wanted):
            try:
                async with asyncio.timeout(0.05):
                    await self._grown.wait()
            except TimeoutError:
                pass
        answer = self._answer(wanted)
        if self.gate is not None:
            await self.gate.wait()
        for tp, code in answer[1].items():
            self.on_refused(tp)
            assert code not in (
                0,
                ErrorCode.OFFSET_OUT_OF_RANGE,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
        return answer[0]

    def _has_news(self, wanted: dict[TopicPartition, int]) -> bool:
        return any(
            tp in self.errors or offset != len(self.logs.get(tp, ()))
            for tp, offset in wanted.items()
        )

    def _answer(self, wanted: dict[TopicPartition, int]) -> tuple[Any, dict[TopicPartition, int]]:
        topics: dict[str, list[Row]] = {}
        refused: dict[TopicPartition, int] = {}
        for tp, offset in wanted.items():
            values = self.logs.get(tp, [])
            code = self.errors.pop(tp, 1 if offset > len(values) else 0)
            if code not in (0, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                refused[tp] = code
            data = b"" if code or offset == len(values) else _batch(values, offset)
            if self.corrupt and data:
                data = data[:-1] + b"\xff"
            if self.too_large:
                data = data[:20]
            end = len(values)
            topics.setdefault(tp.topic, []).append((tp.partition, code, end, end, 0, [], -1, data))
        return SimpleNamespace(API_VERSION=11, topics=list(topics.items())), refused


def _batch(values: list[bytes], offset: int) -> bytes:
    data = bytearray(encode_batch([NewRecord(value) for value in values[offset:]], 1_000))
    data[:8] = offset.to_bytes(8, "big")  # the base offset is outside of the checksum
    return bytes(data)
