"""What type checkers see of ``Consumer``; never run, only checked."""

from __future__ import annotations

import json
from typing import Any, assert_type

from kip848_client import Consumer, OffsetAndMetadata, Record, RecordBatchView, TopicPartition
from kip848_client.schema_registry import SchemaDeserializer

__all__ = ["awaited_records_are_typed", "records_are_typed", "settings_are_typed"]


def as_text(data: bytes | None) -> str:
    return "" if data is None else data.decode()


async def as_number(data: bytes | None) -> int:
    return 0 if data is None else int(data)


class Decoder:
    """As a schema registry's."""

    async def __call__(self, data: bytes | None) -> list[str]:
        return [] if data is None else data.decode().split()


async def awaited_records_are_typed() -> None:
    keyed = Consumer("t", group_id="g", key_deserializer=as_number)
    assert_type(keyed, Consumer[int, bytes | None])
    valued = Consumer("t", group_id="g", value_deserializer=Decoder())
    assert_type(valued, Consumer[bytes | None, list[str]])
    by_schema = SchemaDeserializer[dict[str, int] | None](Any)
    assert_type(
        Consumer("t", group_id="g", value_deserializer=by_schema),
        Consumer[bytes | None, dict[str, int] | None],
    )
    mixed = Consumer("t", group_id="g", key_deserializer=as_text, value_deserializer=as_number)
    assert_type(mixed, Consumer[str, int])
    async for record in mixed:
        assert_type(record, Record[str, int])
    for view in (await mixed.getbatches()).values():
        async for record in view.records_async():
            assert_type(record, Record[str, int])


async def records_are_typed() -> None:
    plain = Consumer("t", group_id="g")
    assert_type(plain, Consumer[bytes | None, bytes | None])
    keyed = Consumer("t", group_id="g", key_deserializer=as_text)
    assert_type(keyed, Consumer[str, bytes | None])
    valued = Consumer("t", group_id="g", value_deserializer=len)
    assert_type(valued, Consumer[bytes | None, int])
    both = Consumer("t", group_id="g", key_deserializer=as_text, value_deserializer=len)
    assert_type(both, Consumer[str, int])
    async for record in both:
        assert_type(record, Record[str, int])
        assert_type(record.key, str)
        assert_type(record.value, int)
    assert_type(await both.getone(("t", 0)), Record[str, int])
    assert_type(await both.getmany(timeout_ms=5), dict[TopicPartition, list[Record[str, int]]])
    views = await both.getbatches(timeout_ms=5)
    assert_type(views, dict[TopicPartition, RecordBatchView[str, int]])
    assert_type(list(views[TopicPartition("t", 0)].records()), list[Record[str, int]])
    assert_type(await both.commit(), dict[TopicPartition, OffsetAndMetadata])
    async with both as entered:
        assert_type(entered, Consumer[str, int])


def settings_are_typed() -> None:
    Consumer("t", group_id="g", max_poll_records=5, auto_offset_reset="earliest", strict=True)
    Consumer("t", value_deserializer=json.loads, session_timeout_ms=10_000)
