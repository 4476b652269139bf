"""What we use of aiokafka's record codec does what we take it for."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kip848_client.runtime.net._codec import corrupt, decoded


def built() -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset in range(3):
        builder.append(offset, 1000 + offset, None, b"%d" % offset, [("h", b"x")])
    return bytes(builder.build())


def test_the_codec_is_compiled() -> None:
    assert DefaultRecordBatch.__module__ == "aiokafka.record._crecords.default_records"


def test_records_have_our_fields() -> None:
    first, *_, last = list(decoded(built()))
    assert (last.offset, last.timestamp, last.timestamp_type) == (2, 1002, 0)
    assert (last.key, last.value, last.headers, last.checksum) == (None, b"2", [("h", b"x")], None)
    assert first.offset == 0


def test_a_batch_is_read_once_however_often_it_is_asked_for() -> None:
    records = decoded(built())
    assert next(records).offset == 0
    assert [each.offset for each in iter(records)] == [1, 2]
    assert list(records) == []


def test_our_own_complaints_are_kafkas() -> None:
    assert getattr(corrupt("why"), "errno", None) == 2
