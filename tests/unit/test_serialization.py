"""Serializers and deserializers that are told whose bytes they make or get."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client import ConfigError, Consumer, Producer
from kip848_client.serialization import (
    ContextDeserializer,
    ContextSerializer,
    SerializationContext,
)
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio


class Told(ContextDeserializer[SerializationContext]):
    async def deserialize(
        self, data: bytes | None, context: SerializationContext
    ) -> SerializationContext:
        await asyncio.sleep(0)
        assert data in (None, b"v")
        return context


class Stamped(ContextSerializer[str]):
    """Says in a header what it was told."""

    async def serialize(self, data: str, context: SerializationContext) -> bytes | None:
        await asyncio.sleep(0)
        before = len(context.headers)
        context.headers.append((context.field, f"{context.topic} {before}".encode()))
        return data.encode() if data else None


class Spoiling(ContextSerializer[Any]):
    async def serialize(self, data: Any, context: SerializationContext) -> bytes | None:
        assert data == "v"
        wrong: Any = context.headers
        wrong.append("no header")
        return b""


async def test_a_producer_tells_its_serializers() -> None:
    async with MockBroker({"t": 1}) as broker:
        given = [("h", b"1")]
        async with Producer(
            bootstrap_servers=broker.bootstrap, key_serializer=Stamped(), value_serializer=Stamped()
        ) as producer:
            await producer.send_and_wait("t", "v", key="k", headers=given)
            await producer.send_and_wait("t", "")
            (first, second) = broker.records("t")
            assert (first.key, first.value, second.value) == (b"k", b"v", None)
            assert list(first.headers) == [("h", b"1"), ("key", b"t 1"), ("value", b"t 2")]
            assert given == [("h", b"1")]  # what the application has is left alone


async def test_what_a_serializer_does_to_headers_is_checked() -> None:
    async with (
        MockBroker({"t": 1}) as broker,
        Producer(bootstrap_servers=broker.bootstrap, value_serializer=Spoiling()) as producer,
    ):
        with pytest.raises(ConfigError, match="headers are a list of"):
            await producer.send("t", "v")
        with pytest.raises(ConfigError, match="not a topic name"):
            await producer.send("no topic", "v")
        assert not broker.records("t")


async def test_a_consumer_tells_its_deserializers() -> None:
    async with MockBroker({"t": 1}) as broker:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            await producer.send_and_wait("t", b"v", headers=[("h", b"1")])
        async with Consumer(
            "t",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            key_deserializer=Told(),
            value_deserializer=Told(),
        ) as consumer:
            record = await consumer.getone()
            assert record.key == ("t", "key", [("h", b"1")])
            assert record.value == ("t", "value", [("h", b"1")])
            assert record.headers == (("h", b"1"),)
