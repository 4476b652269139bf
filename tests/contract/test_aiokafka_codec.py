"""What we use of aiokafka's record codec does what we take it for."""

from __future__ import annotations

import struct
from typing import Literal

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from kip848_client._aiokafka._codec import corrupt, decoded, legacy_crc_is_right, unpacked


def built(codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset in range(3):
        builder.append(offset, 1000 + offset, None, b"%d" % offset, [("h", b"x")])
    return bytes(builder.build())


def test_the_codec_is_compiled() -> None:
    assert DefaultRecordBatch.__module__ == "aiokafka.record._crecords.default_records"


def test_records_have_our_fields() -> None:
    first, *_, last = list(decoded(built(), 2))
    assert (last.offset, last.timestamp, last.timestamp_type) == (2, 1002, 0)
    assert (last.key, last.value, last.headers, last.checksum) == (None, b"2", [("h", b"x")], None)
    assert first.offset == 0


def test_a_batch_is_read_once_however_often_it_is_asked_for() -> None:
    records = decoded(built(), 2)
    assert next(records).offset == 0
    assert [each.offset for each in iter(records)] == [1, 2]
    assert list(records) == []


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_every_compression_unpacks_to_what_was_packed(codec: int) -> None:
    packed = built(codec)
    (attributes,) = struct.unpack_from(">h", packed, 21)
    assert attributes & 7 == codec
    payload = unpacked(packed[61:], attributes)
    assert type(payload) is bytes
    assert payload == built()[61:]


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(Exception, match="Unknown compression codec 0x07"):
        unpacked(b"", 7)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_older_formats(magic: Literal[0, 1]) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(0, 1000, b"k", b"v")
    raw = bytes(builder.build())
    (record,) = decoded(raw, magic)
    assert (record.offset, record.key, record.value, record.headers) == (0, b"k", b"v", [])
    assert record.timestamp == (1000 if magic else None)
    assert record.checksum is not None
    assert legacy_crc_is_right(raw, magic)
    assert not legacy_crc_is_right(raw[:-1] + b"w", magic)


def test_our_own_complaints_are_kafkas() -> None:
    assert getattr(corrupt("why"), "errno", None) == 2
