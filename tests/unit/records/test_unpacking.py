"""Compressed batches: small ones are unpacked in passing, large ones when they are told to, and
none beyond the limit."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.compression import SMALL_BYTES
from kip848_client.core.fetch._model import Slice
from kip848_client.errors import BatchUnreadable, RecordUnreadable
from kip848_client.records import (
    AheadReader,
    Decoding,
    Gathered,
    NotMade,
    NotUnpacked,
    RecordsDamaged,
    SliceReader,
)
from kip848_client.records._paths import PATHS
from tests.unit.records.batches import Row, batch, resealed, slice_of

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LARGE = bytes(SMALL_BYTES)
SMALL = batch([Row(0), Row(1)], codec=ZSTD)
BIG = batch([Row(2, value=b"2"), Row(3, value=LARGE), Row(4, value=b"4")], codec=ZSTD)
AFTER = batch([Row(5)], codec=ZSTD)

Way = Callable[[SliceReader], list[int]]


def by_one(reader: SliceReader) -> list[int]:
    record = reader.one()
    return [] if record is None else [record.offset]


def by_take(reader: SliceReader) -> list[int]:
    return [record.offset for record in reader.take()]


def by_fill(reader: SliceReader) -> list[int]:
    gathered = Gathered()
    reader.fill(gathered)
    return [offset for part in gathered.parts for offset in part.all_offsets()]


each_path = pytest.mark.parametrize("compiled", PATHS)
each_way = pytest.mark.parametrize("way", [by_one, by_take, by_fill])


def all_of(reader: SliceReader, way: Way) -> tuple[list[int], list[tuple[int, Exception]]]:
    """The offsets that were read, and at which position each error came; large batches are
    unpacked on demand."""
    offsets: list[int] = []
    stops: list[tuple[int, Exception]] = []
    while not reader.done:
        try:
            found = way(reader)
        except NotUnpacked as err:
            stops.append((len(offsets), err))
            assert len(stops) < 9
            err.work()
        except RecordUnreadable as err:
            stops.append((len(offsets), err))
            break
        else:
            offsets += found
            if not found:
                break
    return offsets, stops


@each_path
@each_way
def test_a_large_batch_waits_for_its_turn_and_for_a_thread(way: Way, *, compiled: bool) -> None:
    reader = SliceReader(slice_of(SMALL, BIG, AFTER), Decoding(compiled=compiled))
    offsets, stops = all_of(reader, way)
    assert offsets == [0, 1, 2, 3, 4, 5]
    ((at, error),) = stops
    assert at == 2, "what comes before it is handed out first"
    assert isinstance(error, NotUnpacked)


@each_path
def test_what_was_not_unpacked_is_asked_for_again(*, compiled: bool) -> None:
    slice_ = slice_of(BIG)
    reader = SliceReader(slice_, Decoding(compiled=compiled))
    with pytest.raises(NotUnpacked):
        reader.take()
    with pytest.raises(NotUnpacked) as caught:
        reader.take()
    assert slice_.cursor.consumed == 2
    caught.value.work()
    assert by_take(reader) == [2, 3, 4]
    reader.go_back(3, 5)
    with pytest.raises(NotUnpacked):
        reader.one()


@each_path
@each_way
def test_records_beyond_the_limit_are_one_error(way: Way, *, compiled: bool) -> None:
    slice_ = slice_of(SMALL, BIG, AFTER)
    decoding = Decoding(compiled=compiled, decompressed_bytes_max=2_000)
    offsets, stops = all_of(SliceReader(slice_, decoding), way)
    assert offsets == [0, 1, 2], "what comes before the limit is handed out"
    error = stops[-1][1]
    assert isinstance(error, BatchUnreadable)
    assert not isinstance(error, RecordsDamaged)
    assert (error.topic, error.partition) == tuple(slice_.tp)
    assert (error.offset, error.next_offset) == (3, 5)
    assert str(error) == (
        "t-3: the records from offset 3 to 4 cannot be read: the batch unpacks to more than 2,000 "
        "bytes (max_decompressed_batch_bytes=2000). Raise that limit, or skip the batch: "
        "seek(('t', 3), 5)"
    )
    assert slice_.cursor.consumed == 3
    slice_.cursor.consumed = 5  # that is what a seek comes to
    assert by_take(SliceReader(slice_, decoding)) == [5]
    slice_.cursor.consumed = 4  # behind the record that is too large, and in its batch
    _, stops = all_of(SliceReader(slice_, decoding), way)
    error = stops[-1][1]
    assert isinstance(error, BatchUnreadable)
    assert (error.offset, error.next_offset) == (4, 5)
    assert "the record at offset 4 cannot be read" in str(error)


@each_path
@each_way
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_has_just_the_limit_is_read(codec: int, way: Way, *, compiled: bool) -> None:
    rows = [Row(offset, value=b"v" * 900) for offset in range(4)]
    size = len(batch(rows)) - 61
    slice_ = slice_of(batch(rows, codec=codec))
    reader = SliceReader(slice_, Decoding(compiled=compiled, decompressed_bytes_max=size))
    assert all_of(reader, way)[0] == [0, 1, 2, 3]
    slice_ = slice_of(batch(rows, codec=codec))
    reader = SliceReader(slice_, Decoding(compiled=compiled, decompressed_bytes_max=size - 1))
    offsets, stops = all_of(reader, way)
    assert offsets == ([] if codec == SNAPPY else [0, 1, 2])
    assert isinstance(stops[-1][1], BatchUnreadable)


@each_path
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_is_not_known_is_no_damage(codec: int, *, compiled: bool) -> None:
    raw = bytearray(batch([Row(7), Row(8)]))
    struct.pack_into(">h", raw, 21, codec)
    reader = SliceReader(slice_of(resealed(raw)), Decoding(compiled=compiled))
    with pytest.raises(BatchUnreadable) as caught:
        reader.one()
    assert (caught.value.offset, caught.value.next_offset) == (7, 9)
    told = str(caught.value)
    assert f"compression codec {codec} is unknown to this version (known: 0 none" in told
    assert "seek(('t', 3), 9)" in told
    assert "damaged" not in told


@each_path
def test_damaged_compressed_bytes_are_damage(*, compiled: bool) -> None:
    raw = bytearray(batch([Row(7, value=b"v" * 100)], codec=ZSTD))
    raw[61:65] = bytes(4)
    reader = SliceReader(slice_of(resealed(raw)), Decoding(compiled=compiled))
    with pytest.raises(RecordsDamaged, match=r"CORRUPT_MESSAGE.*zstd: a frame does not start"):
        reader.one()


# -- where deserializers are awaited ---------------------------------------------------------------


def ahead(*batches: bytes, **decoding: Any) -> tuple[Slice, AheadReader]:
    slice_ = slice_of(*batches)
    return slice_, AheadReader(slice_, Decoding(**decoding))


def make(reader: AheadReader) -> None:
    while (raw := reader.next_unmade()) is not None:
        reader.made(raw, raw.key, raw.value)


def test_ahead_of_a_large_batch_the_records_before_it_are_made() -> None:
    slice_, reader = ahead(SMALL, BIG, AFTER)
    make(reader)
    assert [each.offset for each in reader.take()] == [0, 1]
    with pytest.raises(NotUnpacked) as caught:
        reader.take()
    with pytest.raises(NotMade):
        reader.take()
    make(reader)
    with pytest.raises(NotUnpacked) as caught:
        reader.one()
    caught.value.work()
    make(reader)
    assert [each.offset for each in reader.take()] == [2, 3, 4, 5]
    assert slice_.cursor.consumed == 6


def test_a_view_and_records_share_what_was_unpacked() -> None:
    _, reader = ahead(BIG)
    make(reader)
    with pytest.raises(NotUnpacked) as caught:
        reader.take()
    caught.value.work()
    gathered = Gathered()
    reader.fill(gathered)
    assert gathered.rows == 3


def test_ahead_of_the_limit() -> None:
    _, reader = ahead(BIG, decompressed_bytes_max=2_000)
    make(reader)
    with pytest.raises(NotUnpacked) as caught:
        reader.one()
    caught.value.work()
    make(reader)
    assert [each.offset for each in reader.take()] == [2]
    with pytest.raises(BatchUnreadable):
        reader.one()


# -- memory ----------------------------------------------------------------------------------------


def test_a_failure_in_the_thread_is_told_by_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: Any, **__: Any) -> Any:
        raise MemoryError

    reader = SliceReader(slice_of(BIG), Decoding())
    with pytest.raises(NotUnpacked) as caught:
        reader.one()
    monkeypatch.setattr("kip848_client.records._unpacking.unpack", out_of_memory)
    caught.value.work()
    with pytest.raises(RecordsDamaged, match="MemoryError"):
        reader.one()


def test_slices_that_share_bytes_do_not_share_what_was_unpacked() -> None:
    slice_ = slice_of(BIG)
    first = SliceReader(slice_, Decoding())
    second = SliceReader(replace(slice_, cursor=replace(slice_.cursor)), Decoding())
    with pytest.raises(NotUnpacked) as caught:
        first.one()
    caught.value.work()
    with pytest.raises(NotUnpacked):
        second.one()
    assert by_one(first) == [2]
