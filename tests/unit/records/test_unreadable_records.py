"""A record that makes no sense is an error of that record, with its bytes: those before it are
handed out, and those behind it after a seek past it."""

from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.fetch._model import Slice
from kip848_client.errors import RecordUnreadable
from kip848_client.records import (
    AheadReader,
    Decoding,
    Gathered,
    RecordBatchView,
    RecordsDamaged,
    SliceReader,
)
from kip848_client.records._paths import PATHS
from tests.support.odd_records import FIRST_MS, field, raw_batch, raw_record, varint
from tests.unit.records.batches import TP, slice_of

every_path = pytest.mark.parametrize("compiled", PATHS)
every_codec = pytest.mark.parametrize("codec", [0, 1])

BROKEN = {
    "longer than its fields": raw_record(1, tail=b"xx"),
    "a key that does not fit": raw_record(1, key=varint(100) + b"k"),
    "a value that does not fit": raw_record(1, varint(100)),
    "no headers, minus one of them": raw_record(1, header_count=-1),
    "headers that are not there": raw_record(1, header_count=5),
    "a header without a name": raw_record(1, headers=[varint(-1) + field(b"x")]),
    "a number that is too long": raw_record(1, key=varint(1, 6) + b"k"),
    "a timestamp that is too long": raw_record(1, since=varint(1, 11)),
    "nothing": varint(0),
    "an offset beyond the batch": raw_record(
        7, field(b"there"), headers=[field(b"h") + field(b"c")]
    ),
    "the largest offset": raw_record((1 << 31) - 1, field(b"there")),
}


def batch_with(odd: bytes, codec: int = 0) -> bytes:
    payload = raw_record(0, field(b"before")) + odd + raw_record(2, field(b"behind"))
    return raw_batch(payload, 3, codec=codec)


def at(slice_: Slice, offset: int) -> Slice:
    """The slice as it is after a seek."""
    return replace(slice_, cursor=replace(slice_.cursor, consumed=offset))


def values_by(way: str, slice_: Slice, decoding: Decoding) -> list[Any]:
    """The values that one call gives, or all there are one by one."""
    reader = SliceReader(slice_, decoding)
    if way == "one":
        first = reader.one()
        return [first.value] if first else []
    if way == "lists":
        return [each.value for each in reader.take()]
    gathered = Gathered()
    reader.fill(gathered)
    return list(RecordBatchView(TP, gathered, decoding).values)


READ_BY_THE_CODEC = {
    "no headers, minus one of them",
    "a number that is too long",
    "a timestamp that is too long",
}
"""aiokafka's takes them. No broker stores them."""
CASES = [
    pytest.param(compiled, what, id=f"{'compiled' if compiled else 'listed'}-{what}")
    for compiled in PATHS
    for what in BROKEN
    if compiled or what not in READ_BY_THE_CODEC
]


@pytest.mark.parametrize("way", ["one", "lists", "columns"])
@pytest.mark.parametrize(("compiled", "what"), CASES)
@every_codec
def test_the_others_of_its_batch_are_read(compiled: bool, codec: int, what: str, way: str) -> None:
    decoding = Decoding(compiled=compiled)
    slice_ = slice_of(batch_with(BROKEN[what], codec))
    assert values_by(way, slice_, decoding) == [b"before"]
    assert slice_.cursor.consumed == 1
    for _ in range(2):
        with pytest.raises(RecordUnreadable) as caught:
            values_by(way, at(slice_, 1), decoding)
        assert type(caught.value) is RecordUnreadable
        assert caught.value.offset == 1
        assert caught.value.data == BROKEN[what]
    assert values_by(way, at(slice_, 2), decoding) == [b"behind"]


@every_path
def test_a_reader_goes_on_raising_until_it_is_sought_past(compiled: bool) -> None:
    slice_ = slice_of(batch_with(BROKEN["longer than its fields"]))
    reader = SliceReader(slice_, Decoding(compiled=compiled))
    assert reader.one() is not None
    for call in (reader.one, reader.take, lambda: reader.fill(Gathered())) * 2:
        with pytest.raises(RecordUnreadable, match=r"to skip it: seek\(\('t', 3\), 2\)"):
            call()
        assert slice_.cursor.consumed == 1


@every_path
def test_several_of_them(compiled: bool) -> None:
    odd = BROKEN["longer than its fields"]
    payload = odd + odd + raw_record(2, field(b"a")) + odd + raw_record(4, field(b"b")) + odd
    slice_ = slice_of(raw_batch(payload, 6))
    decoding, position, got = Decoding(compiled=compiled), 0, []
    for _ in range(20):
        here = at(slice_, position)
        try:
            records = SliceReader(here, decoding).take()
        except RecordUnreadable as err:
            got.append(err.offset)
            position = err.offset + 1
        else:
            if not records:
                break
            got += [each.value for each in records]
            position = here.cursor.consumed
    assert got == [0, 1, b"a", 3, b"b", 5]


@every_path
def test_an_offset_that_is_taken_twice_hides_no_good_record(compiled: bool) -> None:
    """The place after the last offset of a batch is the next batch's."""
    payload = raw_record(0) + raw_record(2, field(b"two")) + raw_record(9)
    slice_ = slice_of(raw_batch(payload, 3), raw_batch(raw_record(0, field(b"next")), 1, base=3))
    reader = SliceReader(slice_, Decoding(compiled=compiled))
    assert [each.value for each in reader.take()] == [b"v", b"two", b"next"]


@every_path
def test_fields_that_are_known_are_told(compiled: bool) -> None:
    slice_ = slice_of(batch_with(BROKEN["an offset beyond the batch"]))
    with pytest.raises(RecordUnreadable, match="beyond the end of its batch") as caught:
        values_by("one", at(slice_, 1), Decoding(compiled=compiled))
    error = caught.value
    assert (error.key, error.value, error.headers) == (b"k", b"there", (("h", b"c"),))
    assert (error.timestamp, error.timestamp_type) == (FIRST_MS, 0)
    broken = slice_of(batch_with(BROKEN["nothing"]))
    with pytest.raises(RecordUnreadable) as caught:
        values_by("one", at(broken, 1), Decoding(compiled=compiled))
    error = caught.value
    assert (error.key, error.value, error.headers) == (None, None, ())
    assert (error.timestamp, error.timestamp_type, error.data) == (None, None, b"\0")


def refusing(data: bytes | None) -> str:
    if data == b"there":
        raise ValueError("no number")
    return (data or b"").decode()


def cancelled(data: bytes | None) -> str:
    if data == b"there":
        raise asyncio.CancelledError("a lock")
    return (data or b"").decode()


ROW = raw_record(1, field(b"there"), key=field(None), headers=[field(b"\xff") + field(None)])


@pytest.mark.parametrize("deserializer", [refusing, cancelled])
@every_path
def test_a_deserializer_that_raises_leaves_the_bytes(compiled: bool, deserializer: Any) -> None:
    slice_ = slice_of(batch_with(ROW))
    decoding = Decoding(value_deserializer=deserializer, compiled=compiled)
    assert values_by("lists", slice_, decoding) == ["before"]
    gathered = Gathered()
    SliceReader(at(slice_, 1), decoding).fill(gathered)
    view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, decoding)
    for call in (SliceReader(slice_, decoding).one, lambda: list(view.records())):
        with pytest.raises(RecordUnreadable) as caught:
            call()
        error = caught.value
        assert (error.topic, error.partition, error.offset) == ("t", 3, 1)
        assert (error.key, error.value, error.headers) == (None, b"there", (("\ufffd", None),))
        assert (error.timestamp, error.timestamp_type, error.data) == (FIRST_MS, 0, None)
        assert isinstance(error.__cause__, ValueError | asyncio.CancelledError)


@pytest.mark.parametrize("travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
@every_path
def test_the_bytes_travel(compiled: bool, travel: Any) -> None:
    decoding = Decoding(value_deserializer=refusing, compiled=compiled)
    with pytest.raises(RecordUnreadable) as caught:
        SliceReader(at(slice_of(batch_with(ROW)), 1), decoding).one()
    found = travel(caught.value)
    assert type(found) is RecordUnreadable
    assert (found.value, found.headers) == (b"there", (("\ufffd", None),))
    assert vars(found) == vars(caught.value)


def test_a_record_that_makes_no_sense_stops_no_reader_that_awaits() -> None:
    slice_ = slice_of(batch_with(BROKEN["nothing"]))
    reader = AheadReader(slice_, Decoding())
    raw = reader.next_unmade()
    assert raw is not None
    reader.made(raw, None, "before")
    assert reader.next_unmade() is None
    assert [each.value for each in reader.take()] == ["before"]
    for _ in range(2):
        assert reader.next_unmade() is None
        with pytest.raises(RecordUnreadable) as caught:
            reader.take()
        assert caught.value.offset == 1


@every_path
def test_damaged_bytes_say_where_the_next_batch_begins(compiled: bool) -> None:
    cut = raw_record(0, field(b"before")) + raw_record(1)[:-2]
    slice_ = slice_of(raw_batch(cut, 4))
    decoding = Decoding(compiled=compiled)
    assert values_by("lists", slice_, decoding) == [b"before"]
    with pytest.raises(
        RecordsDamaged, match=r"to skip the rest of this batch: seek\(\('t', 3\), 4\)"
    ):
        values_by("lists", slice_, decoding)


WIDE = [0x80, 0xFF]


@pytest.mark.parametrize("attributes", WIDE)
@pytest.mark.parametrize("late_ms", [0, 3, 1000], ids=["at once", "in 3 ms", "a ms each"])
@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("gap", [False, True], ids=["whole", "compacted"])
@every_codec
@every_path
def test_attributes_are_one_byte(
    compiled: bool, codec: int, gap: bool, append_time: bool, late_ms: int, attributes: int
) -> None:
    """aiokafka's codec takes them for a varint, and the fields after them for the ones before: a
    key whose length is the offset looks right then."""
    count = 60
    times = [min(at, late_ms) for at in range(count)]
    for odd in (0, 1, 7, count - 1):
        payload = b"".join(
            raw_record(
                at,
                field(b"value of %d" % at),
                field(bytes([0]) * at),
                attributes=attributes if at == odd else 0,
                since=varint(times[at]),
            )
            for at in range(count)
        )
        raw = raw_batch(
            payload,
            count,
            codec=codec,
            later_ms=times[-1],
            attributes=8 if append_time else 0,
            span=count + gap,
        )
        decoding = Decoding(compiled=compiled)
        for way in ("lists", "columns"):
            found = values_by(way, slice_of(raw), decoding)
            assert found == [b"value of %d" % at for at in range(count)]
        records = SliceReader(slice_of(raw), decoding).take()
        assert [each.offset for each in records] == list(range(count))
        late = [times[-1]] * count if append_time else times
        assert [each.timestamp - FIRST_MS for each in records] == late
