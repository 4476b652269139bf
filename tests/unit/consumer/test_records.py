"""Records and what builds them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client import Record, TopicPartition
from kip848_client._aiokafka._unreadable import Unreadable
from kip848_client.consumer._records import Deserializer, record_builder


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


def built(
    key_deserializer: Deserializer | None,
    value_deserializer: Deserializer | None,
    tp: TopicPartition,
    decoded: object,
) -> Record[Any, Any]:
    record = record_builder(key_deserializer, value_deserializer)(tp, decoded)
    assert isinstance(record, Record)
    return record


def test_a_record_has_aiokafkas_fields() -> None:
    aiokafka = pytest.importorskip("aiokafka")
    theirs = aiokafka.ConsumerRecord.__dataclass_fields__
    assert list(Record._fields) == list(theirs)


def test_without_deserializers_bytes_stay_bytes() -> None:
    record = built(None, None, TopicPartition("t", 3), raw())
    assert record == ("t", 3, 7, 11, 1, b"k", b"v", None, 1, 1, (("h", b"1"),))
    assert isinstance(record, Record)
    assert (record.topic, record.key, record.headers) == ("t", b"k", (("h", b"1"),))


def test_null_keys_and_values_have_size_minus_one() -> None:
    record = built(None, None, TopicPartition("t", 0), raw(None, None))
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)


def test_deserializers_get_bytes_and_none() -> None:
    got: list[bytes | None] = []

    def keep(data: bytes | None) -> int:
        got.append(data)
        return len(got)

    record = built(keep, keep, TopicPartition("t", 0), raw(None, b"vv"))
    assert got == [None, b"vv"]
    assert (record.key, record.value, record.serialized_value_size) == (1, 2, 2)


def test_a_record_cannot_be_changed() -> None:
    record = built(None, None, TopicPartition("t", 3), raw())
    with pytest.raises(AttributeError):
        setattr(record, "value", b"other")  # noqa: B010 - a type checker forbids the other form
    assert not hasattr(record, "__dict__")


@pytest.mark.parametrize("raised", [ValueError("no number"), StopIteration()])
def test_what_a_deserializer_raises_is_returned(raised: Exception) -> None:
    def fail(_data: object) -> object:
        raise raised

    decoded = raw()
    for deserializers in ((fail, None), (None, fail)):
        made = record_builder(*deserializers)(TopicPartition("t", 0), decoded)
        assert isinstance(made, Unreadable)
        assert (made.raw, made.error) == (decoded, raised)
