"""Codecs side by side: ours, kio's, and aiokafka's Struct, on ConsumerGroupHeartbeat v1.

All of them write the same bytes, which is checked before anything is timed. ``exchange`` is what
a heartbeat costs in all: encode and decode of request and response.
"""

# aiokafka's schema types know no types of their own making, which two of them here are
# pyright: reportIncompatibleMethodOverride=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

from aiokafka.protocol.types import (
    AbstractType,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)
from kio.schema.consumer_group_heartbeat.v1 import request as kio_request
from kio.schema.consumer_group_heartbeat.v1 import response as kio_response
from kio.serial import entity_reader, entity_writer

from benchmarks.timing import best_us, machine, say, table
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

__all__ = ["main"]


class _Uuid(AbstractType):  # type: ignore[misc]  # aiokafka is untyped
    """aiokafka has no uuid type; sixteen raw bytes are one."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: Any) -> bytes:
        raw: bytes = data.read(16)
        return raw


class _NullableStruct(AbstractType):  # type: ignore[misc]  # aiokafka is untyped
    """aiokafka has no nullable struct either: one marker byte, then the struct."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def encode(self, value: tuple[Any, ...] | None) -> bytes:
        if value is None:
            null: bytes = Int8.encode(-1)
            return null
        encoded: bytes = Int8.encode(1) + self._schema.encode(value)
        return encoded

    def decode(self, data: Any) -> Any:
        return None if Int8.decode(data) < 0 else self._schema.decode(data)


_TOPIC = Schema(("topic_id", _Uuid), ("partitions", CompactArray(Int32)), ("tags", TaggedFields))
_AIOKAFKA_REQUEST = Schema(
    ("group_id", CompactString("utf-8")),
    ("member_id", CompactString("utf-8")),
    ("member_epoch", Int32),
    ("instance_id", CompactString("utf-8")),
    ("rack_id", CompactString("utf-8")),
    ("rebalance_timeout_ms", Int32),
    ("subscribed_topic_names", CompactArray(CompactString("utf-8"))),
    ("subscribed_topic_regex", CompactString("utf-8")),
    ("server_assignor", CompactString("utf-8")),
    ("topic_partitions", CompactArray(_TOPIC)),
    ("tags", TaggedFields),
)
_AIOKAFKA_RESPONSE = Schema(
    ("throttle_time_ms", Int32),
    ("error_code", Int16),
    ("error_message", CompactString("utf-8")),
    ("member_id", CompactString("utf-8")),
    ("member_epoch", Int32),
    ("heartbeat_interval_ms", Int32),
    (
        "assignment",
        _NullableStruct(Schema(("topic_partitions", CompactArray(_TOPIC)), ("tags", TaggedFields))),
    ),
    ("tags", TaggedFields),
)


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    topics: int
    partitions: int


_CASES = (
    _Case("steady state", 0, 0),
    _Case("1 x 100", 1, 100),
    _Case("10 x 10", 10, 10),
    _Case("100 x 1", 100, 1),
)


def _messages(
    case: _Case,
) -> tuple[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse]:
    ids = [index.to_bytes(16, "big") for index in range(1, case.topics + 1)]
    numbers = tuple(range(case.partitions))
    request = ConsumerGroupHeartbeatRequest(group_id="my-group", member_id="x" * 22, member_epoch=5)
    response = ConsumerGroupHeartbeatResponse(
        member_id="x" * 22, member_epoch=5, heartbeat_interval_ms=5000
    )
    if case.topics:
        request.rebalance_timeout_ms = 300_000
        request.subscribed_topic_names = tuple(f"topic-{n}" for n in range(case.topics))
        request.topic_partitions = tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=numbers)
            for topic in ids
        )
        response.assignment = ConsumerGroupHeartbeatResponseAssignment(
            topic_partitions=tuple(
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic, partitions=numbers)
                for topic in ids
            )
        )
    return request, response


def _ours(message: Any) -> tuple[Callable[[], bytes], Callable[[bytes], object]]:
    return lambda: encode(message, 1), lambda raw: decode(type(message), 1, raw)


def _kio(raw: bytes, entity: Any) -> tuple[Callable[[], bytes], Callable[[bytes], object]]:
    read, write = entity_reader(entity), entity_writer(entity)
    value, _ = read(raw, 0)

    def encode_it() -> bytes:
        buffer = BytesIO()
        write(buffer, value)
        return buffer.getvalue()

    return encode_it, lambda data: read(data, 0)


def _aiokafka(raw: bytes, schema: Schema) -> tuple[Callable[[], bytes], Callable[[bytes], object]]:
    value = schema.decode(BytesIO(raw))
    return lambda: schema.encode(value), lambda data: schema.decode(BytesIO(data))


def _measure(case: _Case) -> dict[str, list[float]]:
    """Per library: encode and decode of the request, then of the response, in microseconds."""
    times: dict[str, list[float]] = {"kip848": [], "kio": [], "aiokafka": []}
    pairs = zip(
        _messages(case),
        (kio_request.ConsumerGroupHeartbeatRequest, kio_response.ConsumerGroupHeartbeatResponse),
        (_AIOKAFKA_REQUEST, _AIOKAFKA_RESPONSE),
        strict=True,
    )
    message: Any
    for message, entity, schema in pairs:
        raw = encode(message, 1)
        contenders = {
            "kip848": _ours(message),
            "kio": _kio(raw, entity),
            "aiokafka": _aiokafka(raw, schema),
        }
        for name, (write, read) in contenders.items():
            if write() != raw:
                raise AssertionError(f"{name} writes other bytes for {case.name}")
            times[name].append(best_us(write))
            times[name].append(best_us(partial(read, raw)))
    return times


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 when an exchange of 10 x 10 is not 3x faster than kio's."""
    del argv
    rows: list[list[str]] = []
    ratio = 0.0
    for case in _CASES:
        times = _measure(case)
        ours = sum(times["kip848"])
        for name, parts in times.items():
            rows.append(
                [
                    f"{case.name:<13}{name}",
                    *(f"{part:.2f}" for part in parts),
                    f"{sum(parts):.1f}",
                    f"{sum(parts) / ours:.1f}x",
                ]
            )
        if case.name == "10 x 10":
            ratio = sum(times["kio"]) / ours
    say(f"ConsumerGroupHeartbeat v1, microseconds a message ({machine()})")
    headings = ["case", "req enc", "req dec", "resp enc", "resp dec", "exchange", "to ours"]
    say(table(headings, rows))
    say(f"bar: exchange of 10 x 10 partitions >= 3x faster than kio: {ratio:.1f}x")
    return 0 if ratio >= 3 else 1
