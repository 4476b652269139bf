"""Records whose deserializers are awaited: the cursor moves when they are handed out, as that of
``SliceReader`` does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kip848_client.core.fetch._model import Slice
from kip848_client.errors import RecordUnreadable
from kip848_client.records import (
    AheadReader,
    Decoding,
    Gathered,
    NotMade,
    Record,
    RecordsDamaged,
    SliceReader,
    is_async,
)
from tests.unit.records.batches import Row, batch, resealed, slice_of

DECODING = Decoding()
CONTROL = 0x20
"""Of a batch that is a marker of a transaction."""


async def decode(data: bytes | None) -> str:
    return "" if data is None else data.decode()


def make(reader: AheadReader, limit: int = 1_000) -> None:
    """What the driver does, for deserializers that decode."""
    while reader.ready < limit and (raw := reader.next_unmade()) is not None:
        try:
            reader.made(raw, raw.key, None if raw.value is None else raw.value.decode())
        except UnicodeDecodeError as err:
            reader.refused(raw, err)


def with_markers(*batches: bytes) -> Slice:
    skip = [number for number, each in enumerate(batches) if each[22] & CONTROL]
    return slice_of(*batches, skip=skip)


def of_both(*batches: bytes) -> tuple[tuple[Slice, AheadReader], tuple[Slice, SliceReader]]:
    ahead, plain = with_markers(*batches), with_markers(*batches)
    return (ahead, AheadReader(ahead, DECODING)), (plain, SliceReader(plain, DECODING))


def marker(offset: int) -> bytes:
    raw = bytearray(batch([Row(offset)]))
    raw[22] |= CONTROL
    return resealed(raw)


SHAPES = [
    [batch([Row(0), Row(1)]), batch([Row(2)], epoch=6)],
    [batch([Row(0), Row(3)], next_offset=9), batch([Row(12)])],
    [batch([Row(0)]), marker(1), batch([Row(2), Row(3)]), marker(4)],
    [marker(0)],
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [1, 2, 1_000])
def test_it_gives_what_a_plain_reader_gives(shape: list[bytes], limit: int) -> None:
    (mine, ahead), (theirs, plain) = of_both(*shape)
    while not plain.done:
        expected = plain.take(limit)
        taken: list[Record[Any, Any]] = []
        while len(taken) < len(expected):
            make(ahead, limit)
            taken += ahead.take(limit - len(taken))
        assert [each.offset for each in taken] == [each.offset for each in expected]
        assert [each.value for each in taken] == ["v"] * len(expected)
        if not plain.done:
            assert mine.cursor.consumed_epoch == theirs.cursor.consumed_epoch
    make(ahead)
    assert ahead.take() == plain.take() == []
    assert ahead.done
    assert mine.cursor == theirs.cursor


def test_one_by_one_to_the_end() -> None:
    (mine, ahead), (theirs, plain) = of_both(batch([Row(0), Row(1)]), marker(2))
    with pytest.raises(NotMade) as told:
        ahead.one()
    assert told.value.readers == (ahead,)
    for _ in range(2):
        make(ahead, 1)
        record, expected = ahead.one(), plain.one()
        assert record is not None
        assert expected is not None
        assert (record.offset, record.value) == (expected.offset, "v")
        assert record[:5] == expected[:5]
        assert record[7:] == expected[7:]
        assert list(ahead.current) == []
        assert mine.cursor == theirs.cursor
    make(ahead, 1)
    assert ahead.one() is None
    assert plain.one() is None
    assert ahead.done
    assert mine.cursor == theirs.cursor


def test_what_is_made_is_not_handed_out() -> None:
    slice_ = slice_of(batch([Row(0), Row(1), Row(2)]))
    reader = AheadReader(slice_, DECODING)
    make(reader)
    assert (reader.ready, slice_.cursor.consumed, reader.done) == (3, 0, False)
    assert [each.offset for each in reader.take(2)] == [0, 1]
    assert (slice_.cursor.consumed, reader.done) == (2, False)


def test_what_comes_before_a_refused_record_is_handed_out() -> None:
    slice_ = slice_of(batch([Row(0), Row(1, value=b"\xff"), Row(2)]))
    reader = AheadReader(slice_, DECODING)
    make(reader)
    assert [each.offset for each in reader.take()] == [0]
    for again in (reader.take, reader.one):
        with pytest.raises(RecordUnreadable, match="offset 1 ") as told:
            again()
        assert isinstance(told.value.__cause__, UnicodeDecodeError)
        assert (told.value.offset, slice_.cursor.consumed) == (1, 1)
        with pytest.raises(NotMade):  # it is tried again with the next call
            again()
        make(reader)
    slice_.cursor.consumed = 2
    reader = AheadReader(slice_, DECODING)
    make(reader)
    assert [each.offset for each in reader.take()] == [2]


def test_damaged_bytes_are_told_where_they_begin() -> None:
    broken = bytearray(batch([Row(5)]))
    broken[-1] ^= 1
    slice_ = with_markers(batch([Row(0)]), marker(1), bytes(broken))
    reader = AheadReader(slice_, DECODING)
    make(reader)
    assert [each.offset for each in reader.take()] == [0]
    with pytest.raises(RecordsDamaged):
        reader.take()
    assert slice_.cursor.consumed == 2


def test_columns_drop_what_was_made() -> None:
    slice_ = slice_of(batch([Row(0), Row(1), Row(2)]))
    reader = AheadReader(slice_, DECODING)
    make(reader, 2)
    raw = reader.next_unmade()
    assert raw is not None
    gathered = Gathered(1)
    reader.fill(gathered)
    assert [list(part.all_offsets()) for part in gathered.parts] == [[0]]
    reader.made(raw, None, "late")
    reader.refused(raw, ValueError())
    assert reader.ready == 0
    make(reader)
    assert [each.offset for each in reader.take()] == [1, 2]
    assert reader.done


def test_a_partition_that_went_wants_nothing() -> None:
    slice_ = slice_of(batch([Row(0)]))
    reader = AheadReader(slice_, DECODING)
    assert reader.wants
    slice_.cursor.readable = False
    assert not reader.wants


class Decoder:
    async def __call__(self, data: bytes | None) -> str:
        return await decode(data)


@pytest.mark.parametrize(
    "function", [decode, partial(decode), Decoder(), partial(Decoder()), Decoder().__call__]
)
def test_what_is_awaited(function: object) -> None:
    assert is_async(function)


@pytest.mark.parametrize("function", [None, len, int, partial(int, base=8), bytes.decode, Decoder])
def test_what_is_not(function: object) -> None:
    assert not is_async(function)
