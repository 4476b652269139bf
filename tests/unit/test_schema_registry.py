"""What ``SchemaDeserializer`` and ``SchemaSerializer`` take, and what is said where the extra is
not installed. What they do: ``tests/integration/test_schema_registry.py``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
)

from kip848_client import ConfigError, LocalProtocolError
from kip848_client.schema_registry import SchemaDeserializer, SchemaSerializer
from kip848_client.serialization import SerializationContext


@pytest.mark.parametrize("kind", [None, "avro", len, AvroDeserializer, AsyncAvroSerializer])
def test_only_their_asynchronous_deserializers(kind: Any) -> None:
    with pytest.raises(ConfigError, match="such as AsyncAvroDeserializer"):
        SchemaDeserializer(kind)


def test_only_their_asynchronous_serializers() -> None:
    kind: Any = AsyncAvroDeserializer
    with pytest.raises(ConfigError, match="such as AsyncAvroSerializer"):
        SchemaSerializer(kind)


@pytest.mark.parametrize("timeout_ms", [0, -1, True, 0.5, None])
def test_a_time_is_a_number_of_milliseconds(timeout_ms: Any) -> None:
    with pytest.raises(ConfigError, match="timeout_ms must be a positive number of milliseconds"):
        SchemaDeserializer(AsyncAvroDeserializer, timeout_ms=timeout_ms)


@pytest.mark.parametrize("missing", ["confluent_kafka", "cachetools", "httpx2"])
def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [each for each in sys.modules if each.startswith("confluent_kafka")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "httpx2":
        monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[schema-registry\]'"):
        SchemaDeserializer(AsyncAvroDeserializer)


def test_arguments_that_are_wrong_are_told_with_the_first_record() -> None:
    value = SchemaDeserializer[Any](AsyncAvroDeserializer, None, conf={"no.such": 1})
    context = SerializationContext("orders", "value", [])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Unrecognized properties: no\.such"):
            asyncio.run(value.deserialize(b"", context))


def test_whoever_does_not_tell_the_topic_hears_of_it() -> None:
    with pytest.raises(LocalProtocolError, match="SchemaDeserializer needs the topic"):
        asyncio.run(SchemaDeserializer[Any](AsyncAvroDeserializer)(b""))
    with pytest.raises(LocalProtocolError, match="SchemaSerializer needs the topic"):
        SchemaSerializer[Any](AsyncAvroSerializer)({})
