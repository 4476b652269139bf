"""Values of Confluent's own serializers become columns, in whichever version they were written."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import (  # type: ignore[import-untyped]  # its types are a package apart
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)

from kip848_client.errors import ConfigError, SchemaUnavailable
from kip848_client.records._arrow import pyarrow
from kip848_client.spark.pipeline.registry import Registry, RegistryDecoder
from kip848_client.spark.pipeline.registry import _decoder as _decoder_module
from tests.support.fake_registry import FakeRegistry
from tests.support.registry_thread import registry_thread

# pyright sees no parameters of their constructors
_AvroSerializer: Any = AvroSerializer
_JSONSerializer: Any = JSONSerializer
_ProtobufSerializer: Any = ProtobufSerializer
_QUICK: Final = {"max.retries": "1", "retries.wait.ms": "1", "retries.max.wait.ms": "2"}
_HERE: Final = SerializationContext("orders", MessageField.VALUE)
_SUBJECT: Final = "orders-value"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with registry_thread() as found:
        yield found
        for process in _processes:
            process.registry.close()
        for client in _clients:
            client.close()
        _processes.clear()
        _clients.clear()


_clients: list[SchemaRegistryClient] = []
_processes: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor's process keeps its client; this one is not kept for the next test."""
    kept: dict[RegistryDecoder, Any] = {}

    def process_of(decoder: RegistryDecoder) -> Any:
        if decoder not in kept:
            kept[decoder] = _decoder_module._Process(decoder)
            _processes.append(kept[decoder])
        return kept[decoder]

    monkeypatch.setattr(_decoder_module, "_process_of", process_of)


def _decoder(registry: FakeRegistry, form: Any, **named: Any) -> RegistryDecoder:
    options = _QUICK | named.pop("options", {})
    given: dict[str, Any] = {
        "subject": _SUBJECT,
        "version": "latest",
        "message": None,
        "kind": None,
        "bad": "bad",
    }
    with Registry(registry.url, options, form) as client:
        return RegistryDecoder.of(client, registry.url, options, form, **given | named)


def _decoded(decoder: RegistryDecoder, *values: bytes | None) -> tuple[list[Any], list[bool]]:
    pa = pyarrow()
    sent: RegistryDecoder = pickle.loads(pickle.dumps(decoder))  # to an executor
    offsets = pa.array(range(len(values)))
    batch = pa.RecordBatch.from_arrays(
        [offsets, pa.array(values, pa.binary())], ["offset", "value"]
    )
    [found] = sent([batch])
    assert found.schema.names == ["offset", "value", "bad"]
    assert found.column(0).equals(offsets)
    return found.column(1).to_pylist(), found.column(2).to_pylist()


def _client(registry: FakeRegistry) -> SchemaRegistryClient:
    _clients.append(SchemaRegistryClient({"url": registry.url}))
    return _clients[-1]


def _avro(*fields: dict[str, Any], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})


_ID: Final = {"name": "id", "type": "long"}
_NAME: Final = {"name": "name", "type": ["null", "string"], "default": None}
_GIFT: Final = {"name": "gift", "type": "boolean", "default": False}


def _written(registry: FakeRegistry, schema: str, value: Any) -> bytes:
    data = _AvroSerializer(_client(registry), schema)(value, _HERE)
    assert isinstance(data, bytes)
    return data


def test_avro_of_older_and_newer_versions_becomes_the_columns_of_one(
    registry: FakeRegistry,
) -> None:
    old = _written(registry, _avro({"name": "id", "type": "int"}, _NAME), {"id": 1, "name": "a"})
    new = _written(registry, _avro(_ID, _NAME, _GIFT), {"id": 2, "name": None, "gift": True})
    decoder = _decoder(registry, "avro")
    assert decoder.ddl == "struct<`id`:bigint,`name`:string,`gift`:boolean>"
    good = [{"id": 1, "name": "a", "gift": False}, {"id": 2, "name": None, "gift": True}]
    assert _decoded(decoder, old, None, new) == ([good[0], None, good[1]], [False] * 3)
    first = _decoder(registry, "avro", version="1")
    assert first.ddl == "struct<`id`:int,`name`:string>"
    assert _decoded(first, old, new) == ([{"id": 1, "name": "a"}, None], [False, True]), (
        "long to int"
    )
    asked = registry.asked_for("schemas/ids")
    _decoded(decoder, old, new)
    assert registry.asked_for("schemas/ids") == asked, "a process keeps what it has asked for"


def test_one_bad_record_hides_no_other(registry: FakeRegistry) -> None:
    schema = _avro(_ID, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}})
    good = _written(registry, schema, {"id": 7, "at": datetime(2026, 1, 1, tzinfo=UTC)})
    other = registry.add("other-value", json.dumps("string"))
    as_json = registry.add("json-value", '{"type": "object"}', "JSON")
    bad = [
        b"",
        b"\0",
        b"\1" + good[1:],
        good[:-1],
        good + b"\0",
        b"\0\0\0\0\x63" + good[5:],
        b"\0" + other.to_bytes(4) + b"\2a",
        b"\0" + as_json.to_bytes(4) + b"{}",
        good[:5] + b"\2" + b"\xfe" + b"\xff" * 8 + b"\1",  # a time that no calendar has
        b"plain text",
    ]
    values, marks = _decoded(_decoder(registry, "avro"), good, *bad, good)
    assert marks == [False, *[True] * len(bad), False]
    assert [each for each in values if each is not None] == [
        {"id": 7, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    ] * 2


def test_what_avro_has_of_types(registry: FakeRegistry) -> None:
    fields: list[dict[str, Any]] = [
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "here", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "again", "type": "Kind"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "tags", "type": {"type": "map", "values": "float"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [_ID, _NAME]},
            },
        },
    ]
    value: dict[str, Any] = {
        "price": Decimal("12.30"),
        "day": date(2026, 11, 26),
        "key": UUID(int=5),
        "noon": datetime(2026, 1, 1, 12).time(),  # noqa: DTZ001 - a time without a zone
        "here": datetime(2026, 1, 1, 12),  # noqa: DTZ001 - a time without a zone
        "kind": "B",
        "again": "A",
        "hash": b"ab",
        "tags": {"a": 1.5},
        "lines": [{"id": 1, "name": "x"}, {"id": 2, "name": None}],
    }
    decoder = _decoder_after(registry, _avro(*fields), value)
    assert decoder[0].ddl == (
        "struct<`price`:decimal(6,2),`day`:date,`key`:string,`noon`:int,`here`:timestamp_ntz,"
        "`kind`:string,`again`:string,`hash`:binary,`tags`:map<string,float>,"
        "`lines`:array<struct<`id`:bigint,`name`:string>>>"
    )
    wanted = value | {"key": str(UUID(int=5)), "noon": 12 * 3_600_000, "tags": [("a", 1.5)]}
    assert _decoded(*decoder) == ([wanted], [False])


def _decoder_after(
    registry: FakeRegistry, schema: str, value: Any
) -> tuple[RegistryDecoder, bytes]:
    data = _written(registry, schema, value)
    return _decoder(registry, "avro"), data


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (_avro({"name": "x", "type": ["long", "string"]}), r"a union of 2 types at shop.Order"),
        (_avro({"name": "x", "type": ["null", "shop.Order"]}), "shop.Order contains itself"),
        (_avro({"name": "x", "type": "Absent"}), "not an Avro schema"),
        ("{", "not an Avro schema"),
    ],
)
def test_an_avro_schema_that_spark_has_no_type_for_is_refused(
    registry: FakeRegistry, schema: str, reason: str
) -> None:
    registry.add(_SUBJECT, schema)
    with pytest.raises(ConfigError, match=reason):
        _decoder(registry, "avro")


def test_avro_with_references(registry: FakeRegistry) -> None:
    customer = _avro(_NAME, name="Customer")
    registry.add("customer", customer)
    client = _client(registry)
    references = [SchemaReference("shop.Customer", "customer", 1)]
    schema = TheirSchema(_avro(_ID, {"name": "by", "type": "shop.Customer"}), "AVRO", references)
    data = _AvroSerializer(client, schema)({"id": 1, "by": {"name": "x"}}, _HERE)
    decoder = _decoder(registry, "avro")
    assert decoder.ddl == "struct<`id`:bigint,`by`:struct<`name`:string>>"
    assert _decoded(decoder, data) == ([{"id": 1, "by": {"name": "x"}}], [False])


_JSON_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "http://shop/order.json",
    "title": "Order",
    "type": "object",
    "definitions": {"line": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    },
    "required": ["id"],
}


def test_json_is_validated_by_the_schema_that_it_was_written_with(registry: FakeRegistry) -> None:
    serializer = _JSONSerializer(json.dumps(_JSON_SCHEMA), _client(registry))
    value = {"id": 1, "price": 2, "name": "a", "lines": [{"n": 3}], "tags": {"k": None}, "x": 1}
    data = serializer(value, _HERE)
    assert isinstance(data, bytes)
    decoder = _decoder(registry, "json")
    frame = data[:5]
    bad = [
        frame + b"{}",
        frame + b'{"id": "x"}',
        frame + b'{"id": 99999999999999999999}',
        frame + b'{"id": 1, "price": NaN}',
        frame + b'{"id": 1, "name": "\\ud800"}',
        frame + b"\xff",
        frame + b"[" * 100_000,
    ]
    values, marks = _decoded(decoder, data, *bad, frame + b'{"id": 2.0}')
    assert marks == [False, *[True] * len(bad), False]
    assert values[0] == {
        "id": 1,
        "price": 2.0,
        "name": "a",
        "lines": [{"n": 3}],
        "tags": [("k", None)],
    }
    assert values[-1]["id"] == 2


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, "2 types at a"),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, "without properties at a"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, "which leads nowhere"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"type": "wrong"}, "not a JSON Schema"),
    ],
)
def test_a_json_schema_that_spark_has_no_type_for_is_refused(
    registry: FakeRegistry, schema: dict[str, Any], reason: str
) -> None:
    registry.add(_SUBJECT, json.dumps(schema), "JSON")
    with pytest.raises(ConfigError, match=reason):
        _decoder(registry, "json")


def _proto(*, newer: bool = False) -> Any:
    """``message Other {int64 x = 1;} message Order {...}``; a newer one has a field more."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop")
    file.syntax = "proto3"
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    other = file.message_type.add(name="Other")
    other.field.add(name="x", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    line.field.add(name="n", number=1, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    kind = order.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="SOME", number=1)
    fields: list[tuple[str, Any, str | None, Any]] = [
        ("id", kinds.TYPE_INT64, None, kinds.LABEL_OPTIONAL),
        ("lines", kinds.TYPE_MESSAGE, ".shop.Order.Line", kinds.LABEL_REPEATED),
        ("kind", kinds.TYPE_ENUM, ".shop.Order.Kind", kinds.LABEL_OPTIONAL),
        ("at", kinds.TYPE_MESSAGE, ".google.protobuf.Timestamp", kinds.LABEL_OPTIONAL),
        ("note", kinds.TYPE_MESSAGE, ".google.protobuf.StringValue", kinds.LABEL_OPTIONAL),
        ("raw", kinds.TYPE_BYTES, None, kinds.LABEL_OPTIONAL),
    ]
    if newer:
        fields.append(("gift", kinds.TYPE_BOOL, None, kinds.LABEL_OPTIONAL))
    for number, (name, type_, type_name, label) in enumerate(fields, 1):
        order.field.add(name=name, number=number, type=type_, type_name=type_name, label=label)
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))


def test_protobuf_is_read_by_the_message_of_one_version(registry: FakeRegistry) -> None:
    client = _client(registry)

    def written(message: Any) -> bytes:
        serializer = _ProtobufSerializer(
            type(message), client, {"use.deprecated.format": False, "skip.known.types": True}
        )
        data = serializer(message, _HERE)
        assert isinstance(data, bytes)
        return data

    old, new = _proto(), _proto(newer=True)
    order = old("Order")(id=1, lines=[{"n": 2**64 - 1}], kind=1, raw=b"x")
    order.at.seconds = 1
    order.note.value = "n"
    first = written(order)
    second = written(new("Order")(id=2, gift=True))
    other = written(new("Other")(x=3))
    decoder = _decoder(registry, "protobuf", message="shop.Order")
    assert decoder.ddl == (
        "struct<`id`:bigint,`lines`:array<struct<`n`:decimal(20,0)>>,`kind`:string,`at`:timestamp,"
        "`note`:string,`raw`:binary,`gift`:boolean>"
    )
    values, marks = _decoded(
        decoder, first, second, other, first[:6] + b"\xff", b"\0\0\0\0\1", None
    )
    assert marks == [False, False, True, True, True, False]
    assert values[0] == {
        "id": 1,
        "lines": [{"n": Decimal(2**64 - 1)}],
        "kind": "SOME",
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "note": "n",
        "raw": b"x",
        "gift": False,
    }
    assert (values[1]["id"], values[1]["gift"], values[1]["at"]) == (2, True, None)
    assert _decoder(registry, "protobuf").ddl == "struct<`x`:bigint>", "the first of the file"
    with pytest.raises(ConfigError, match=r"no message shop.Nothing .*shop.Other, shop.Order"):
        _decoder(registry, "protobuf", message="shop.Nothing")


def test_a_protobuf_schema_that_is_none_is_refused(registry: FakeRegistry) -> None:
    registry.add(_SUBJECT, base64.b64encode(b"\xff").decode(), "PROTOBUF")
    with pytest.raises(ConfigError, match="not a Protobuf schema"):
        _decoder(registry, "protobuf")


def test_a_registry_that_is_down_is_no_reason_to_call_records_bad(registry: FakeRegistry) -> None:
    data = _written(registry, _avro(_ID), {"id": 1})
    decoder = _decoder(registry, "avro", options={"timeout": "7"})
    registry.spoiled = 503, b'{"error_code": 50301, "message": "not now"}'
    with pytest.raises(SchemaUnavailable, match=r"decode.registry\) gave no schema: .*not now"):
        _decoded(decoder, data)
    with pytest.raises(SchemaUnavailable, match="a restart may succeed"):
        _decoder(registry, "avro")
    registry.spoiled = None
    assert _decoded(decoder, data) == ([{"id": 1}], [False])


def test_a_login_is_sent_and_never_shown(registry: FakeRegistry) -> None:
    registry.add(_SUBJECT, _avro(_ID))
    login = base64.b64encode(b"me:very-secret").decode()
    registry.authorization = f"Basic {login}"
    options = {"basic.auth.user.info": "me:very-secret"}
    decoder = _decoder(registry, "avro", options=options)
    assert "very-secret" not in repr(decoder)
    with pytest.raises(SchemaUnavailable, match=r"Unauthorized .*check decode.registry_options"):
        _decoder(registry, "avro")
    for wrong, text in (
        ({"basic.auth.user.info": "secret"}, "form"),
        ({"no.such": "1"}, "no.such"),
    ):
        with pytest.raises(ConfigError, match=f"decode.registry_options: ValueError: .*{text}"):
            _decoder(registry, "avro", options=wrong)


def test_a_subject_or_a_version_that_is_not_there_is_named(registry: FakeRegistry) -> None:
    with pytest.raises(ConfigError, match="has no version latest of subject orders-value"):
        _decoder(registry, "avro")
    registry.add(_SUBJECT, _avro(_ID))
    with pytest.raises(ConfigError, match="has no version 2 of subject"):
        _decoder(registry, "avro", version="2")
    with pytest.raises(ConfigError, match="the schema is of type AVRO, not JSON"):
        _decoder(registry, "json")
