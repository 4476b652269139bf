"""Reading a slice: one by one, in lists, in columns; what cannot be read; where the cursor is."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakSet

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from kip848_client.core.fetch._model import BatchRef, Slice
from kip848_client.errors import BrokerError, RecordUnreadable
from kip848_client.records import (
    Decoding,
    Gathered,
    Record,
    RecordBatchView,
    RecordsDamaged,
    SliceReader,
)
from kip848_client.records._paths import PATHS
from tests.unit.records.batches import TP, Row, batch, resealed, slice_of

Offsets = list[int]
MakeReader = Callable[..., SliceReader]
Way = Callable[[SliceReader], Offsets]


@pytest.fixture(params=PATHS, ids=lambda compiled: "compiled" if compiled else "listed")
def reader_of(request: pytest.FixtureRequest) -> MakeReader:
    """Makes readers that go one of the two ways."""
    compiled: bool = request.param

    def make(slice_: Slice, **decoding: Any) -> SliceReader:
        return SliceReader(slice_, Decoding(compiled=compiled, **decoding))

    return make


def one_by_one(reader: SliceReader) -> Offsets:
    taken: Offsets = []
    while (record := reader.one()) is not None:
        taken.append(record.offset)
    return taken


def in_lists(reader: SliceReader) -> Offsets:
    taken: Offsets = []
    while records := reader.take(2):
        taken += [record.offset for record in records]
    return taken


def in_columns(reader: SliceReader) -> Offsets:
    taken: Offsets = []
    while True:
        gathered = Gathered(2)
        reader.fill(gathered)
        if not len(gathered):
            return taken
        view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, Decoding())
        assert len(view) == len(view.offsets) <= 2
        taken += view.offsets


WAYS: tuple[Way, ...] = (one_by_one, in_lists, in_columns)
every_way = pytest.mark.parametrize("way", WAYS)


class Value:
    """What a deserializer makes."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def rows(*offsets: int) -> list[Row]:
    return [Row(offset) for offset in offsets]


def legacy(offset: int, magic: Literal[0, 1]) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(offset, 1000, b"k", b"v")
    return bytes(builder.build())


def numbered(data: bytes) -> int:
    return int(data)


def test_a_record_has_what_the_batch_says(reader_of: MakeReader) -> None:
    headers: Any = (("a", b"1"), ("b", None))  # Kafka's header values may be null
    slice_ = slice_of(batch([Row(7, b"key", None, 99, headers), Row(8, None, b"value", 98)]))
    first, second = reader_of(slice_).take()
    assert first == Record("t", 3, 7, 99, 0, b"key", None, None, 3, -1, headers)
    assert second == Record("t", 3, 8, 98, 0, None, b"value", None, -1, 5, ())
    assert type(first) is Record


@pytest.mark.parametrize("compiled", PATHS)
def test_a_record_comes_into_being_when_it_is_asked_for(compiled: bool) -> None:
    """A list of a batch's records cost 20 times the reading, in a process where much else is
    alive: kept objects are work for the garbage collector."""
    alive: WeakSet[Value] = WeakSet()
    made = 0

    def value_of(data: bytes) -> Value:
        nonlocal made
        made += 1
        alive.add(value := Value(data))
        return value

    slice_ = slice_of(batch([Row(offset, value=b"v") for offset in range(1_000)]))
    reader = SliceReader(slice_, Decoding(compiled=compiled, value_deserializer=value_of))
    gc.collect()  # what others have left would hide what is kept here
    before = len(gc.get_objects())
    for count in range(1, 51):
        record = reader.one()
        assert record is not None
        assert (made, len(alive)) == (count, 1), "one at a time"
    assert len(gc.get_objects()) - before < 500, "nobody keeps what they are made of either"


def test_with_log_append_time_all_have_the_batchs(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch(rows(0, 1), log_append_time=77))
    assert [(each.timestamp, each.timestamp_type) for each in reader_of(slice_).take()] == [
        (77, 1),
        (77, 1),
    ]


@every_way
def test_nothing_before_the_position(reader_of: MakeReader, way: Way) -> None:
    """Dekaf #2074."""
    slice_ = slice_of(batch(rows(0, 1, 2)), batch(rows(3, 4, 5)), batch(rows(6, 7)), first=4)
    assert way(reader_of(slice_)) == [4, 5, 6, 7]


@every_way
def test_gaps_markers_and_empty_batches_move_the_cursor(reader_of: MakeReader, way: Way) -> None:
    slice_ = slice_of(
        batch(rows(0, 2, 3), next_offset=6, epoch=4),
        batch(rows(6, 7), epoch=5),
        batch(rows(9), epoch=6),
        skip=(1, 2),
        next_offset=12,
    )
    reader = reader_of(slice_)
    assert way(reader) == [0, 2, 3]
    assert reader.done
    assert slice_.cursor.consumed >= 6
    assert slice_.cursor.consumed_epoch in (4, 6)


def test_a_full_list_takes_the_markers_behind_it_along(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch(rows(0, 1), epoch=4), batch(rows(2), epoch=5), skip=(1,))
    assert len(reader_of(slice_).take(2)) == 2
    assert (slice_.cursor.consumed, slice_.cursor.consumed_epoch) == (3, 5)


def test_the_cursor_follows_record_by_record_with_the_epoch(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch(rows(0, 1), epoch=4), batch(rows(5), epoch=6))
    reader, cursor = reader_of(slice_), slice_.cursor
    seen: list[tuple[int, int]] = []
    while reader.one() is not None:
        seen.append((cursor.consumed, cursor.consumed_epoch))
    assert seen == [(1, 4), (2, 4), (6, 6)]
    assert reader.done


def test_ways_of_reading_may_be_mixed(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch(rows(0, 1, 2, 3, 4)), batch(rows(5, 6)))
    reader = reader_of(slice_)
    first = reader.one()
    assert first is not None
    assert first.offset == 0
    assert [each.offset for each in reader.take(2)] == [1, 2]
    gathered = Gathered(2)
    reader.fill(gathered)
    assert list(gathered.parts[0].all_offsets()) == [3, 4]
    assert one_by_one(reader) == [5, 6]


def test_a_deserializer_that_raises_stops_at_its_record(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch([Row(0, value=b"0"), Row(1, value=b"x"), Row(2, value=b"2")]))
    reader = reader_of(slice_, value_deserializer=numbered)
    assert [each.value for each in reader.take()] == [0]
    for ask in (reader.take, reader.one, reader.take, reader.one):
        with pytest.raises(RecordUnreadable) as told:
            ask()
        assert not isinstance(told.value, RecordsDamaged)
        assert (told.value.topic, told.value.partition, told.value.offset) == ("t", 3, 1)
        assert isinstance(told.value.__cause__, ValueError)
        assert str(told.value) == (
            "t-3: the record at offset 1 cannot be read: ValueError: invalid literal for int() "
            "with base 10: b'x' (to skip it: seek(('t', 3), 2))"
        )
        assert slice_.cursor.consumed == 1


def test_a_deserializer_that_succeeds_at_last_goes_on(reader_of: MakeReader) -> None:
    fails = [True]

    def moody(data: bytes | None) -> bytes | None:
        if data == b"x" and fails:
            fails.pop()
            raise KeyboardInterrupt
        return data

    slice_ = slice_of(batch([Row(0, b"a"), Row(1, b"x"), Row(2, b"b")]))
    reader = reader_of(slice_, key_deserializer=moody)
    assert reader.one() is not None
    with pytest.raises(KeyboardInterrupt):
        reader.one()
    assert one_by_one(reader) == [1, 2]


def test_a_list_that_is_interrupted_loses_nothing(reader_of: MakeReader) -> None:
    def interrupted(data: bytes | None) -> bytes | None:
        if data == b"x" and fails:
            fails.pop()
            raise KeyboardInterrupt
        return data

    fails = [True]
    slice_ = slice_of(batch(rows(0, 1)), batch([Row(2, b"a"), Row(3, b"x"), Row(4, b"b")]), first=1)
    reader = reader_of(slice_, key_deserializer=interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.take()
    assert slice_.cursor.consumed == 1
    assert [each.offset for each in reader.take()] == [1, 2, 3, 4]


def test_deserializers_get_none_for_null(reader_of: MakeReader) -> None:
    slice_ = slice_of(batch([Row(0, None, None)]))
    reader = reader_of(slice_, key_deserializer=repr, value_deserializer=repr)
    (record,) = reader.take()
    assert (record.key, record.value) == ("None", "None")
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)


@every_way
def test_a_wrong_checksum_is_told_and_told_again(reader_of: MakeReader, way: Way) -> None:
    bad = bytearray(batch(rows(2, 3)))
    bad[-3] ^= 1
    slice_ = slice_of(batch(rows(0, 1)), bytes(bad))
    reader = reader_of(slice_)
    assert [each.offset for each in reader.take()] == [0, 1]
    for _ in range(3):
        with pytest.raises(RecordsDamaged) as told:
            way(reader)
        assert (told.value.topic, told.value.partition, told.value.offset) == ("t", 3, 2)
        assert "records of t-3 from offset 2 on: CORRUPT_MESSAGE" in str(told.value)
        assert isinstance(told.value.__cause__, BrokerError)
        assert slice_.cursor.consumed == 2


@every_way
@pytest.mark.parametrize("what", ["it is for nobody", "it has no records"])
def test_that_a_batch_is_passed_over_is_not_believed_of_a_damaged_header(
    reader_of: MakeReader, way: Way, what: str
) -> None:
    """A flipped bit may turn records into a marker, or into none."""
    bad = bytearray(batch(rows(2, 3)))
    if what == "it has no records":
        bad[57:61] = bytes(4)
    else:
        bad[22] ^= 0x20
    slice_ = slice_of(batch(rows(0, 1)), bytes(bad), skip={1} if bad[22] else ())
    reader = reader_of(slice_)
    assert [each.offset for each in reader.take(2)] == [0, 1]
    with pytest.raises(RecordsDamaged) as told:
        way(reader)
    assert (told.value.offset, slice_.cursor.consumed) == (2, 2)
    assert reader_of(slice_, check_crcs=False).take() == []


def test_checksums_may_be_left_alone(reader_of: MakeReader) -> None:
    bad = bytearray(batch([Row(0, value=b"abc")]))
    bad[-3] ^= 1
    (record,) = reader_of(slice_of(bytes(bad)), check_crcs=False).take()
    assert record.value != b"abc"


@every_way
def test_damage_inside_of_a_batch_comes_after_what_is_before_it(
    reader_of: MakeReader, way: Way
) -> None:
    good = batch(rows(0, 1, 2))
    size = (len(good) - 61) // 3
    bad = bytearray(good)
    bad[61 + 2 * size] = 0x7F  # the last record claims to be longer than the batch
    slice_ = slice_of(resealed(bad))
    reader = reader_of(slice_)
    with pytest.raises(RecordsDamaged) as told:
        way(reader)
    assert told.value.offset == slice_.cursor.consumed == 2


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@every_way
def test_compressed(reader_of: MakeReader, codec: int, way: Way) -> None:
    slice_ = slice_of(*(batch(rows(at, at + 1, at + 2), codec=codec) for at in (0, 3, 6)), first=1)
    assert way(reader_of(slice_)) == [1, 2, 3, 4, 5, 6, 7, 8]


@every_way
def test_bytes_that_do_not_unpack(reader_of: MakeReader, way: Way) -> None:
    bad = bytearray(batch(rows(0, 1), codec=4))
    bad[61:65] = b"nope"
    with pytest.raises(RecordsDamaged):
        way(reader_of(slice_of(resealed(bad))))


@every_way
def test_an_offset_that_the_batch_does_not_have(reader_of: MakeReader, way: Way) -> None:
    slice_ = slice_of(batch(rows(0, 1, 5), next_offset=4))
    reader = reader_of(slice_)
    for _ in range(2):
        with pytest.raises(RecordUnreadable, match="beyond the end of its batch"):
            way(reader)
        assert slice_.cursor.consumed == 2


@pytest.mark.parametrize("magic", [0, 1])
@every_way
def test_the_older_formats(reader_of: MakeReader, way: Way, magic: Literal[0, 1]) -> None:
    raw = b"".join(legacy(offset, magic) for offset in (4, 5, 6))
    size = len(raw) // 3
    found = tuple(
        BatchRef(at * size, (at + 1) * size, 4 + at, 5 + at, 1, 0, -1, -1, -1, magic, False)
        for at in range(3)
    )
    slice_ = replace(slice_of(batch(rows(4))), raw=raw, batches=found, next_offset=7)
    assert way(reader_of(slice_)) == [4, 5, 6]
    assert slice_.cursor.consumed == 7


def test_a_wrong_checksum_in_an_older_format(reader_of: MakeReader) -> None:
    raw = legacy(4, 1)[:-1] + b"x"
    found = (BatchRef(0, len(raw), 4, 5, 1, 0, -1, -1, -1, 1, False),)
    slice_ = replace(slice_of(batch(rows(4))), raw=raw, batches=found)
    with pytest.raises(RecordsDamaged):
        reader_of(slice_).take()
