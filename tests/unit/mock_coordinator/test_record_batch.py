"""Record batches: what is written can be read, and what does not add up is refused."""

from __future__ import annotations

import gzip
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.compression import pack
from mock_coordinator import NewRecord
from mock_coordinator.batches import encode_batch
from mock_coordinator.core.logs.record_batch import (
    HEADER_BYTES,
    BatchError,
    UnreadableBatchError,
    checksum_is_right,
    read_header,
    records_of,
    restamped,
    with_base_offset,
)

NOW = 1_750_000_000_000
NULLABLE = st.none() | st.binary(max_size=40)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        value=NULLABLE,
        key=NULLABLE,
        timestamp_ms=st.integers(0, 2 * NOW),
        headers=st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@given(RECORDS)
def test_what_is_written_is_read(records: list[NewRecord]) -> None:
    data = encode_batch(records, NOW)
    header = read_header(data)
    assert header.size_bytes == len(data)
    assert header.count == len(records)
    assert checksum_is_right(header, data)
    found = records_of(header, data)
    assert found is not None
    again = [
        NewRecord(r.value, r.key, header.base_timestamp + r.timestamp_delta, list(r.headers))
        for r in found
    ]
    assert again == records
    assert header.max_timestamp == max(r.timestamp_ms or 0 for r in records)


@given(RECORDS, st.data())
def test_a_changed_byte_is_noticed(records: list[NewRecord], data: st.DataObject) -> None:
    batch = bytearray(encode_batch(records, NOW))
    at = data.draw(st.integers(21, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    assert not checksum_is_right(read_header(bytes(batch)), bytes(batch))


@given(RECORDS, st.data())
def test_damaged_records_are_refused_and_nothing_else(
    records: list[NewRecord], data: st.DataObject
) -> None:
    batch = bytearray(encode_batch(records, NOW))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(st.integers(0, 255))
    header = read_header(bytes(batch))
    try:
        found = records_of(header, bytes(batch))
        assert found is not None
        assert len(list(found)) == header.count
    except BatchError:
        pass


def test_its_place_in_a_log_is_not_part_of_the_checksum() -> None:
    data = encode_batch([NewRecord(b"x")], NOW)
    moved = with_base_offset(data, 77, 3)
    header = read_header(moved)
    assert (header.base_offset, header.leader_epoch) == (77, 3)
    assert checksum_is_right(header, moved)
    assert moved[16:] == data[16:]


@pytest.mark.parametrize("log_append_time", [True, False])
def test_restamping_keeps_the_checksum_right(*, log_append_time: bool) -> None:
    data = encode_batch([NewRecord(b"x")], NOW)
    stamped = restamped(data, log_append_time=log_append_time, max_timestamp=5)
    header = read_header(stamped)
    assert header.is_log_append_time is log_append_time
    assert header.max_timestamp == 5
    assert checksum_is_right(header, stamped)


def compressed(codec: int, payload: bytes, data: bytes) -> bytes:
    body = struct.pack(">h", codec) + data[23:HEADER_BYTES] + payload
    return data[:8] + struct.pack(">i", len(body) + 9) + data[12:21] + body


def test_a_compressed_batch_is_opened() -> None:
    data = encode_batch([NewRecord(b"x" * 100), NewRecord(b"y")], NOW)
    packed = compressed(1, gzip.compress(data[HEADER_BYTES:]), data)
    found = records_of(read_header(packed), packed)
    assert found is not None
    assert [r.value for r in found] == [b"x" * 100, b"y"]


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
def test_what_cannot_be_opened_is_refused(codec: int) -> None:
    data = encode_batch([NewRecord(b"x")], NOW)
    packed = compressed(codec, b"garbage", data)
    with pytest.raises(UnreadableBatchError):
        records_of(read_header(packed), packed)


def test_a_batch_that_unpacks_to_too_much_is_believed() -> None:
    data = encode_batch([NewRecord(b"x")], NOW)
    packed = compressed(4, pack(4, bytes(65 << 20)), data)
    assert records_of(read_header(packed), packed) is None


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("bytes remain", b"\x0c\0\0\0\1\1\0" + b"x"),
        ("a header without a name", b"\x10\0\0\0\1\1\2\1\1"),
        ("a number without end", b"\xff" * 12),
        ("a negative length", b"\1"),
        ("cut short", b"\x0c\0\0"),
        ("a key that is too long", b"\x0c\0\0\0\x40\1\0"),
        ("longer than its fields", b"\x0e\0\0\0\1\1\0\0"),
    ],
)
def test_records_that_do_not_add_up(name: str, payload: bytes) -> None:
    del name
    data = encode_batch([NewRecord(b"x")], NOW)[:HEADER_BYTES] + payload
    data = data[:8] + struct.pack(">i", len(data) - 12) + data[12:]
    found = records_of(read_header(data), data)
    assert found is not None
    with pytest.raises(BatchError):
        list(found)


def test_a_header_needs_61_bytes() -> None:
    with pytest.raises(BatchError):
        read_header(b"\0" * 60)
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([], NOW)
