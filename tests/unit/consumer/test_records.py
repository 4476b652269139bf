"""Records and what builds them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client import Record, TopicPartition
from kip848_client.consumer._records import record_builder


def raw(key: bytes | None = b"k", value: bytes | None = b"v") -> Any:
    return SimpleNamespace(
        offset=7,
        timestamp=11,
        timestamp_type=1,
        key=key,
        value=value,
        checksum=None,
        headers=[("h", b"1")],
    )


def test_a_record_has_aiokafkas_fields() -> None:
    aiokafka = pytest.importorskip("aiokafka")
    theirs = aiokafka.ConsumerRecord.__dataclass_fields__
    assert list(Record._fields) == list(theirs)


def test_without_deserializers_bytes_stay_bytes() -> None:
    record = record_builder(None, None)(TopicPartition("t", 3), raw())
    assert record == ("t", 3, 7, 11, 1, b"k", b"v", None, 1, 1, (("h", b"1"),))
    assert isinstance(record, Record)
    assert (record.topic, record.key, record.headers) == ("t", b"k", (("h", b"1"),))


def test_null_keys_and_values_have_size_minus_one() -> None:
    record = record_builder(None, None)(TopicPartition("t", 0), raw(None, None))
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)


def test_deserializers_get_bytes_and_none() -> None:
    got: list[bytes | None] = []

    def keep(data: bytes | None) -> int:
        got.append(data)
        return len(got)

    record = record_builder(keep, keep)(TopicPartition("t", 0), raw(None, b"vv"))
    assert got == [None, b"vv"]
    assert (record.key, record.value, record.serialized_value_size) == (1, 2, 2)


def test_a_record_cannot_be_changed() -> None:
    record = record_builder(None, None)(TopicPartition("t", 3), raw())
    with pytest.raises(AttributeError):
        setattr(record, "value", b"other")  # noqa: B010 - a type checker forbids the other form
    assert not hasattr(record, "__dict__")
