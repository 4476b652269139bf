"""Messages of before Kafka 0.11, as Kafka 4 serves them from old segments."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import cramjam
import pytest
from xxhash import xxh32_intdigest

from kip848_client.core.fetch._batch_headers import read_headers
from kip848_client.core.fetch._model import Cursor, Slice
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.errors import BatchUnreadable, RecordUnreadable
from kip848_client.records import Decoding, Gathered, NotUnpacked, RecordsDamaged, SliceReader
from tests.unit.records.batches import Row, batch

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME = 0x08
TIME = 1_400_000_000_000
TP = TopicPartition("old", 0)

Told = tuple[int, bytes | None, bytes | None]


def field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(
    offset: int,
    magic: int,
    key: bytes | None,
    value: bytes | None,
    *,
    time: int = TIME,
    attributes: int = 0,
) -> bytes:
    body = bytes((magic, attributes)) + (struct.pack(">q", time) if magic else b"")
    body += field(key) + field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def lz4(data: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def lz4_of_kafka_0_8(data: bytes) -> bytes:
    """Its checksum of the header counts the magic, too (KAFKA-3160)."""
    frame = bytearray(lz4(data))
    at = 6 + (8 if frame[4] & 8 else 0)
    wrong = xxh32_intdigest(bytes(frame[:at])) >> 8 & 0xFF
    assert wrong != frame[at]
    frame[at] = wrong
    return bytes(frame)


def snappy(data: bytes) -> bytes:
    out = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), 100):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + 100]))
        out += struct.pack(">i", len(block)) + block
    return out


PACKED = {GZIP: gzip.compress, SNAPPY: snappy, LZ4: lz4}


def wrapper(
    base: int,
    magic: int,
    codec: int,
    inside: Sequence[int] = (0, 1, 2),
    *,
    attributes: int = 0,
    pack: Any = None,
    more: bytes = b"",
) -> bytes:
    """Messages in a message: those of magic 1 count from 0."""
    inner = b"".join(
        message(
            at if magic else base + at, magic, b"k%d" % at, b"w%d" % (base + at), time=TIME + at
        )
        for at in inside
    )
    packed = (pack or PACKED[codec])(inner + more)
    return message(
        base + inside[-1], magic, None, packed, time=TIME + 99, attributes=codec | attributes
    )


def reader_of(raw: bytes, start: int = 0, **decoding: Any) -> SliceReader:
    headers = read_headers(raw, start, -1)
    assert headers.garbled is None
    cursor = Cursor(TP, TopicId(bytes(16)), 1, start)
    slice_ = Slice(cursor, start, headers.next_offset, headers.last_epoch, raw, headers.batches)
    return SliceReader(slice_, Decoding(**decoding))


def told(raw: bytes, start: int = 0) -> list[Told]:
    """By lists and by columns, which agree."""
    records = reader_of(raw, start).take()
    found = [(each.offset, each.key, each.value) for each in records]
    reader, columns = reader_of(raw, start), list[Told]()
    while not reader.done:
        gathered = Gathered()
        reader.fill(gathered)
        for part in gathered.parts:
            rows = zip(part.all_offsets(), part.all_keys(), part.all_values(), strict=True)
            columns += rows
    assert columns == found
    return found


def inner(base: int, inside: Sequence[int] = (0, 1, 2)) -> list[Told]:
    return [(base + at, b"k%d" % at, b"w%d" % (base + at)) for at in inside]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_as_they_are(magic: int) -> None:
    raw = b"".join(
        message(offset, magic, key, value)
        for offset, key, value in ((0, None, b"a"), (1, b"k", None), (5, b"", b""))
    )
    assert told(raw) == [(0, None, b"a"), (1, b"k", None), (5, b"", b"")]
    assert told(raw, 1) == [(1, b"k", None), (5, b"", b"")]


@pytest.mark.parametrize("start", [0, 1, 2, 3])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_wrappers(codec: int, magic: int, start: int) -> None:
    raw = wrapper(0, magic, codec) + message(3, magic, b"x", b"end")
    assert told(raw, start) == [*inner(0), (3, b"x", b"end")][start:]


def test_the_lz4_of_kafka_0_8() -> None:
    assert told(wrapper(0, 0, LZ4, pack=lz4_of_kafka_0_8)) == inner(0)
    with pytest.raises(RecordsDamaged, match="checksum of a frame header"):
        told(wrapper(0, 1, LZ4, pack=lz4_of_kafka_0_8))


def test_wrappers_that_were_compacted() -> None:
    raw = wrapper(0, 1, GZIP, (0, 3, 7)) + wrapper(10, 1, GZIP, (0,)) + message(20, 1, b"x", b"e")
    assert told(raw) == [*inner(0, (0, 3, 7)), *inner(10, (0,)), (20, b"x", b"e")]
    assert told(raw, 4) == [*inner(0, (0, 3, 7)), *inner(10, (0,)), (20, b"x", b"e")][2:]


def test_all_formats_in_one_segment() -> None:
    raw = (
        message(0, 0, b"a", b"0")
        + wrapper(1, 0, GZIP, (0, 1))
        + message(3, 1, b"b", b"1")
        + wrapper(4, 1, SNAPPY, (0, 1))
        + batch([Row(6, b"c", b"2")], codec=ZSTD)
    )
    expected = [(0, b"a", b"0"), *inner(1, (0, 1)), (3, b"b", b"1"), *inner(4, (0, 1))]
    assert told(raw) == [*expected, (6, b"c", b"2")]


def test_times() -> None:
    def times(raw: bytes) -> list[tuple[int | None, int | None]]:
        return [(each.timestamp, each.timestamp_type) for each in reader_of(raw).take()]

    assert times(message(0, 1, None, b"a")) == [(TIME, 0)]
    assert times(message(0, 1, None, b"a", attributes=LOG_APPEND_TIME)) == [(TIME, 1)]
    assert times(wrapper(0, 1, GZIP)) == [(TIME, 0), (TIME + 1, 0), (TIME + 2, 0)]
    assert times(wrapper(0, 1, GZIP, attributes=LOG_APPEND_TIME)) == [(TIME + 99, 1)] * 3
    assert times(message(0, 0, None, b"a") + wrapper(1, 0, GZIP)) == [(None, None)] * 4


def test_a_message_that_is_cut_in_a_wrapper_is_no_message() -> None:
    for count in (1, 11, 20):
        assert told(wrapper(0, 1, GZIP, more=message(3, 1, b"k", b"v")[:count])) == inner(0)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (message(2, 1, None, gzip.compress(wrapper(0, 1, GZIP)), attributes=GZIP), "compressed"),
        (message(2, 1, None, None, attributes=GZIP), "no value"),
        (message(2, 1, None, gzip.compress(b""), attributes=GZIP), "contains no messages"),
        (message(2, 1, None, b"garbage", attributes=GZIP), "gzip"),
        (message(2, 1, None, gzip.compress(bytes(40)), attributes=GZIP), "a length of 0 bytes"),
        (message(1, 1, None, gzip.compress(message(5, 1, b"", b"")), attributes=GZIP), "offsets"),
        (
            message(2, 1, None, gzip.compress(batch([Row(0)])), attributes=GZIP),
            "a message of magic 2",
        ),
        (
            message(
                2,
                1,
                None,
                gzip.compress(message(2, 1, b"k", b"v")[:-6] + b"\x7f12345"),
                attributes=GZIP,
            ),
            "does not fit",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_wrappers_that_are_damaged(raw: bytes, why: str) -> None:
    for read in (by_take, by_fill):
        with pytest.raises(RecordsDamaged, match=why):
            read(reader_of(raw))


def by_take(reader: SliceReader) -> None:
    reader.take()


def by_fill(reader: SliceReader) -> None:
    reader.fill(Gathered())


def test_a_wrong_checksum() -> None:
    raw = bytearray(wrapper(0, 1, GZIP))
    raw[-1] ^= 1
    with pytest.raises(RecordUnreadable, match="checksum"):
        reader_of(bytes(raw)).take()


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_beyond_the_limit_is_one_error(magic: int) -> None:
    """All of it: where its messages begin the last one tells."""
    raw = wrapper(0, magic, GZIP, range(100)) + message(100, magic, b"x", b"end")
    for read in (by_take, by_fill):
        reader = reader_of(raw, decompressed_bytes_max=1_500)
        with pytest.raises(NotUnpacked) as caught:
            read(reader)
        caught.value.work()
        with pytest.raises(BatchUnreadable) as stopped:
            read(reader)
        assert (stopped.value.offset, stopped.value.next_offset) == (0, 100)
    assert told(raw, 100) == [(100, b"x", b"end")]


@pytest.mark.parametrize("codec", [ZSTD, 5])
def test_codecs_that_old_messages_did_not_have(codec: int) -> None:
    raw = message(2, 1, None, b"whatever", attributes=codec)
    with pytest.raises(RecordUnreadable):
        reader_of(raw).take()
