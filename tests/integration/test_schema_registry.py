"""Keys and values by the schemas of a registry, end to end: a registry over HTTP, the bundled
broker, our producer and our consumer."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
)
from google.protobuf import (  # type: ignore[import-untyped]  # its types are a package apart
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

from kip848_client import (
    Consumer,
    ExactlyOnceProcessor,
    Producer,
    ProducerRecord,
    RecordUnreadable,
    SchemaUnavailable,
    TopicPartition,
)
from kip848_client.schema_registry import SchemaDeserializer, SchemaSerializer
from mock_coordinator import MockBroker
from tests.integration.cluster import eventually
from tests.support.fake_registry import FakeRegistry, fake_registry

pytestmark = pytest.mark.asyncio

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "number", "type": "long"}, {"name": "item", "type": "string"}],
    }
)
ORDER_2 = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "number", "type": "long"},
            {"name": "item", "type": "string"},
            {"name": "gift", "type": "boolean", "default": False},
        ],
    }
)
AS_JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    }
)


def message_class() -> Any:
    """What protoc would make of ``message Order { int64 number = 1; string item = 2; }``."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop")
    file.syntax = "proto3"
    order = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate(
        {"number": kinds.TYPE_INT64, "item": kinds.TYPE_STRING}.items(), start=1
    ):
        order.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


BOOK: dict[str, Any] = {"number": 7, "item": "book"}
TOPICS = {"orders": 1, "invoices": 1}


@asynccontextmanager
async def client_of(
    registry: FakeRegistry, **settings: Any
) -> AsyncGenerator[AsyncSchemaRegistryClient]:
    quickly = {"max.retries": 2, "retries.wait.ms": 1, "retries.max.wait.ms": 2}
    async with AsyncSchemaRegistryClient({"url": registry.url, **quickly, **settings}) as client:
        yield client


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[MockBroker, FakeRegistry, AsyncSchemaRegistryClient]]:
    config = {"group.consumer.assignment.interval.ms": "0"}
    async with (
        asyncio.timeout(30),
        MockBroker(TOPICS, config=config) as broker,
        fake_registry() as registry,
        client_of(registry) as client,
    ):
        yield broker, registry, client


def reading(broker: MockBroker, *topics: str, **settings: Any) -> Consumer[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(
        *(topics or ("orders",)),
        bootstrap_servers=broker.bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        **settings,
    )
    return consumer


def framed(number: int, data: bytes = b"") -> bytes:
    return b"\0" + number.to_bytes(4) + data


async def written(broker: MockBroker, serializer: Any, *values: Any, **how: Any) -> None:
    async with Producer(
        bootstrap_servers=broker.bootstrap, value_serializer=serializer
    ) as producer:
        for value in values:
            await producer.send_and_wait("orders", value, **how)


async def test_avro_from_a_producer_to_a_consumer() -> None:
    async with world() as (broker, registry, client):
        await written(
            broker,
            SchemaSerializer[dict[str, Any]](AsyncAvroSerializer, client, ORDER),
            BOOK,
            None,
            BOOK,
        )
        assert registry.subjects == {"orders-value": [1]}
        raw = [record.value for record in broker.records("orders")]
        assert raw == [framed(1, b"\x0e\x08book"), None, framed(1, b"\x0e\x08book")]
        value = SchemaDeserializer[dict[str, Any] | None](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=value) as consumer:
            assert [(await consumer.getone()).value for _ in raw] == [BOOK, None, BOOK]


async def test_the_readers_schema_is_used() -> None:
    async with world() as (broker, _, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client, ORDER_2)
        async with reading(broker, value_deserializer=value) as consumer:
            assert (await consumer.getone()).value == {**BOOK, "gift": False}


async def test_json_schema() -> None:
    async with world() as (broker, registry, client):
        serializer = SchemaSerializer[dict[str, Any]](AsyncJSONSerializer, AS_JSON, client)
        await written(broker, serializer, {"number": 7})
        assert registry.schemas[1]["schemaType"] == "JSON"
        with pytest.raises(Exception, match="is not of type 'integer'"):
            await written(broker, serializer, {"number": "seven"})
        assert len(broker.records("orders")) == 1
        value = SchemaDeserializer[Any](AsyncJSONDeserializer, None, schema_registry_client=client)
        async with reading(broker, value_deserializer=value) as consumer:
            assert (await consumer.getone()).value == {"number": 7}


async def test_protobuf() -> None:
    order = message_class()
    async with world() as (broker, registry, client):
        await written(
            broker, SchemaSerializer[Any](AsyncProtobufSerializer, order, client), order(**BOOK)
        )
        assert registry.schemas[1]["schemaType"] == "PROTOBUF"
        value = SchemaDeserializer[Any](
            AsyncProtobufDeserializer, order, schema_registry_client=client
        )
        async with reading(broker, value_deserializer=value) as consumer:
            assert (await consumer.getone()).value == order(**BOOK)


async def test_topic_field_and_headers_are_told() -> None:
    """One serializer for keys and values of two topics: a subject for each. And the id of the
    schema may be in a header, which the serializer adds."""
    async with world() as (broker, registry, client):
        of_key = SchemaSerializer[Any](AsyncAvroSerializer, client, '"long"')
        of_value = SchemaSerializer[Any](AsyncAvroSerializer, client, ORDER)
        async with Producer(
            bootstrap_servers=broker.bootstrap, key_serializer=of_key, value_serializer=of_value
        ) as producer:
            for topic in TOPICS:
                await producer.send_and_wait(topic, BOOK, key=3, headers=[("h", b"1")])
        assert set(registry.subjects) == {f"{t}-{f}" for t in TOPICS for f in ("key", "value")}
        key = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        settings: dict[str, Any] = {"key_deserializer": key, "value_deserializer": value}
        async with reading(broker, *TOPICS, **settings) as consumer:
            for _ in TOPICS:
                record = await consumer.getone()
                assert (record.key, record.value) == (3, BOOK)
                assert record.headers == (("h", b"1"),)


async def test_the_views_of_getbatches_are_told_it_too() -> None:
    async with world() as (broker, _, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=value) as consumer:
            (view,) = (await consumer.getbatches(timeout_ms=5_000)).values()
            assert [each.value async for each in view.records_async()] == [BOOK]


async def test_a_header_that_a_serializer_adds_is_sent() -> None:
    async with world() as (broker, registry, client):
        guid = "12345678-1234-5678-1234-567812345678"
        registry.add("orders-value", ORDER)
        registry.schemas[1]["guid"] = guid
        conf = {
            "auto.register.schemas": False,
            "use.latest.version": True,
            "schema.id.serializer": header_schema_id_serializer,
        }
        await written(
            broker, SchemaSerializer[Any](AsyncAvroSerializer, client, ORDER, conf=conf), BOOK
        )
        (record,) = broker.records("orders")
        (name, told) = record.headers[0]
        assert name == "__value_schema_id"
        assert told is not None
        assert told[1:].hex() == guid.replace("-", "")


async def test_schemas_that_were_had_once_need_no_registry() -> None:
    async with world() as (broker, registry, client):
        serializer = SchemaSerializer[Any](AsyncAvroSerializer, client, ORDER)
        deserializer = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        await written(broker, serializer, BOOK)
        async with reading(broker, value_deserializer=deserializer) as consumer:
            await consumer.getone()
            asked = list(registry.asked)
            registry.spoiled = (500, b"{}")
            await written(broker, serializer, *[BOOK] * 20)
            for _ in range(20):
                assert (await consumer.getone()).value == BOOK
            assert registry.asked == asked


TROUBLES = {
    "down": (503, b'{"error_code": 50301, "message": "starting"}', True),
    "failing": (500, b"Internal Server Error", True),
    "busy": (429, b"{}", True),
    "refusing": (401, b'{"error_code": 401, "message": "who are you"}', False),
    "a page": (200, b"<html>maintenance</html>", True),
    "a list": (200, b"[1, 2]", True),
    "nothing": (200, b"{}", False),
}


@pytest.mark.parametrize(("status", "body", "retriable"), TROUBLES.values(), ids=list(TROUBLES))
async def test_no_record_is_lost_by_a_registry_in_trouble(
    status: int, body: bytes, retriable: bool
) -> None:
    async with world() as (broker, registry, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        await client.clear_caches()
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=value) as consumer:
            registry.spoiled = (status, body)
            for _ in range(2):
                with pytest.raises(RecordUnreadable, match=r"orders-0: .*offset 0") as told:
                    await consumer.getone()
                cause = told.value.__cause__
                assert isinstance(cause, SchemaUnavailable)
                assert cause.retriable is retriable
                assert registry.url in str(told.value)
                assert "seek(('orders', 0), 1)" in str(told.value)
                assert await consumer.position(TopicPartition("orders", 0)) == 0
            registry.spoiled = None
            assert (await consumer.getone()).value == BOOK


async def test_a_schema_that_is_none_does_not_stay() -> None:
    """The client of the registry keeps what it was told, whatever it is."""
    async with world() as (broker, registry, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        await client.clear_caches()
        registry.schemas[1]["schema"] = "}{"
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=value) as consumer:
            with pytest.raises(RecordUnreadable, match=r"a schema that cannot be read") as told:
                await consumer.getone()
            cause = told.value.__cause__
            assert isinstance(cause, SchemaUnavailable)
            assert not cause.retriable
            registry.schemas[1]["schema"] = ORDER
            assert (await consumer.getone()).value == BOOK


async def test_requests_that_fail_are_tried_again_so_many_times() -> None:
    async with world() as (broker, registry, client):
        serializer = SchemaSerializer[Any](AsyncAvroSerializer, client, ORDER)
        registry.spoiled = (503, b"{}")
        with pytest.raises(SchemaUnavailable, match=r"value of orders: .*503") as told:
            await written(broker, serializer, BOOK)
        assert told.value.retriable
        assert len(registry.asked) == 3  # max.retries and the first one
        assert not broker.records("orders")
        registry.spoiled = None
        await written(broker, serializer, BOOK)
        assert len(broker.records("orders")) == 1


async def test_a_registry_that_cannot_be_reached() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = FakeRegistry(f"http://user:secret@127.0.0.1:{unused.getsockname()[1]}")
        async with MockBroker(TOPICS) as broker, client_of(nobody) as client:
            broker.produce("orders", framed(1, b"data"))
            value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
            async with reading(broker, value_deserializer=value) as consumer:
                with pytest.raises(RecordUnreadable, match="ConnectError") as told:
                    await consumer.getone()
    assert isinstance(told.value.__cause__, SchemaUnavailable)
    assert told.value.__cause__.retriable
    assert "http://127.0.0.1" in str(told.value)
    assert "secret" not in str(told.value)


async def test_a_slow_registry_is_waited_for_so_long() -> None:
    async with world() as (broker, registry, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        await client.clear_caches()
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client, timeout_ms=50)
        async with reading(broker, value_deserializer=value) as consumer:
            registry.well.clear()
            with pytest.raises(RecordUnreadable, match=r"within 50 ms \(timeout_ms\)") as told:
                await consumer.getone()
            assert isinstance(told.value.__cause__, SchemaUnavailable)
            assert told.value.__cause__.retriable
            registry.well.set()
            assert (await consumer.getone()).value == BOOK


async def test_a_call_that_is_cancelled_loses_nothing() -> None:
    async with world() as (broker, registry, client):
        await written(broker, SchemaSerializer(AsyncAvroSerializer, client, ORDER), BOOK)
        await client.clear_caches()
        value = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=value) as consumer:
            registry.well.clear()
            before = len(registry.asked)
            asking = asyncio.create_task(consumer.getone())
            await eventually(lambda: len(registry.asked) > before)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            registry.well.set()
            assert (await consumer.getone()).value == BOOK


async def test_senders_that_are_cancelled_do_not_stop_the_others() -> None:
    async with world() as (broker, registry, client):
        serializer = SchemaSerializer[Any](AsyncAvroSerializer, client, ORDER)
        async with Producer(
            bootstrap_servers=broker.bootstrap, value_serializer=serializer
        ) as producer:
            registry.well.clear()
            first, second = (
                asyncio.create_task(producer.send_and_wait("orders", BOOK)) for _ in range(2)
            )
            await eventually(lambda: bool(registry.asked))
            first.cancel()
            registry.well.set()
            assert (await second).offset == 0
            with pytest.raises(asyncio.CancelledError):
                await first
        assert len(broker.records("orders")) == 1


ODD = {
    "an id that nobody knows": (framed(99, b"data"), "99 not found"),
    "another magic byte": (b"\x05" + bytes(9), "magic byte"),
    "no frame": (b"abc", "6 bytes"),
    "data that ends": (framed(1, b"\x0e\x7f"), ""),
}


@pytest.mark.parametrize(("data", "why"), ODD.values(), ids=list(ODD))
async def test_a_record_that_no_schema_fits_can_be_left_out(data: bytes, why: str) -> None:
    async with world() as (broker, registry, client):
        registry.add("orders-value", ORDER)
        for value in (framed(1, b"\x0e\x08book"), data, framed(1, b"\x0e\x08book")):
            broker.produce("orders", value)
        theirs = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
        async with reading(broker, value_deserializer=theirs) as consumer:
            assert (await consumer.getone()).value == BOOK
            with pytest.raises(RecordUnreadable, match=r"orders-0: .*offset 1") as told:
                await consumer.getone()
            error = told.value
            assert why in str(error)
            known = isinstance(error.__cause__, SchemaUnavailable)
            assert known is (why == "99 not found")
            with pytest.raises(RecordUnreadable, match=r"orders-0: .*offset 1"):
                await consumer.getone()
            consumer.seek((error.topic, error.partition), error.offset + 1)
            assert (await consumer.getone()).value == BOOK


async def test_an_exactly_once_processor_waits_for_the_registry() -> None:
    """A serializer's error says that the record is at fault; a registry that is down does not."""
    async with world() as (broker, registry, client):
        for number in range(3):
            broker.produce("orders", b"%d" % number)
        serializer = SchemaSerializer[Any](AsyncAvroSerializer, client, '"string"')
        registry.spoiled = (503, b"{}")

        def invoice(record: Any) -> ProducerRecord:
            return ProducerRecord("invoices", value=record.value.decode())

        async with ExactlyOnceProcessor(
            "orders",
            invoice,
            consumer=reading_committed(broker),
            producer=Producer(
                bootstrap_servers=broker.bootstrap,
                transactional_id="x",
                value_serializer=serializer,
            ),
        ) as processor:
            running = asyncio.create_task(processor.run())
            await eventually(lambda: len(registry.asked) > 6)
            assert not running.done()
            registry.spoiled = None
            await eventually(lambda: len(broker.records("invoices")) >= 3)
            await processor.stop()
            await running
        values = [each.value for each in broker.records("invoices")]
        assert values == [framed(1, b"\x02%d" % n) for n in range(3)]


def reading_committed(broker: MockBroker) -> Consumer[bytes | None, bytes | None]:
    return Consumer(
        bootstrap_servers=broker.bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
