"""What ``getbatches`` hands out: columns, records when asked for, Arrow."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from kip848_client.core.fetch._model import Slice
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError, RecordUnreadable
from kip848_client.records import Decoding, Gathered, Record, RecordBatchView, SliceReader
from kip848_client.records._arrow import (
    _from_zero,
    _number,
    _topic,
    pyarrow,
    record_batch,
)
from kip848_client.records._list_columns import ListColumns
from kip848_client.records._paths import PATHS
from kip848_client.runtime.net._codec import decoded
from tests.unit.records.batches import TP, Row, batch, resealed, slice_of

View = RecordBatchView[Any, Any]
MakeView = Callable[..., View]

SPARK = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
HEADERS: Any = (("a", b"1"), ("", None), ("a", b""))
ROWS = [
    Row(10, b"k1", b"v1", 1_700_000_000_123),
    Row(11, None, b"", 1_700_000_000_124),
    Row(12, b"", None, 5, HEADERS),
    Row(13, b"k4", b"v4" * 300, -1),
]


@pytest.fixture(params=PATHS, ids=lambda compiled: "compiled" if compiled else "listed")
def view_of(request: pytest.FixtureRequest) -> MakeView:
    """Makes views that go one of the two ways."""

    def make(*slices: Slice, limit: int = sys.maxsize, **settings: Any) -> View:
        decoding = Decoding(compiled=request.param, **settings)
        gathered = Gathered(limit)
        for each in slices:
            SliceReader(each, decoding).fill(gathered)
        return RecordBatchView(TP, gathered, decoding)

    return make


def test_columns(view_of: MakeView) -> None:
    view = view_of(slice_of(batch(ROWS), next_offset=20))
    assert len(view) == 4
    assert (view.topic, view.partition, view.tp) == ("t", 3, TP)
    assert (view.next_offset, view.timestamp_type) == (20, 0)
    assert view.offsets == [10, 11, 12, 13]
    assert view.timestamps == [1_700_000_000_123, 1_700_000_000_124, 5, -1]
    assert view.keys == [b"k1", None, b"", b"k4"]
    assert view.values == [b"v1", b"", None, b"v4" * 300]
    assert view.headers == [(), (), HEADERS, ()]
    assert repr(view) == "<RecordBatchView t-3: 4 records before 20>"


@pytest.mark.parametrize("codec", [0, 4])
def test_records_are_those_of_a_list(view_of: MakeView, codec: int) -> None:
    batches = [batch(ROWS, codec=codec), batch([Row(20), Row(21)], codec=codec)]
    listed = SliceReader(slice_of(*batches), Decoding()).take()
    made = list(view_of(slice_of(*batches)).records())
    assert made == listed
    assert all(type(each) is Record for each in made)


def test_several_slices_are_one_view(view_of: MakeView) -> None:
    slices = [
        slice_of(batch(ROWS)),
        slice_of(batch([Row(14)], codec=4), batch([Row(15)], codec=4)),
        slice_of(batch([Row(16, b"x", b"y", 7, (("h", b"1"),))])),
    ]
    view = view_of(*slices)
    assert view.offsets == [10, 11, 12, 13, 14, 15, 16]
    arrow = view.to_arrow()
    assert isinstance(arrow, pa.RecordBatch)
    assert arrow.column("offset").to_pylist() == view.offsets
    assert arrow.column("key").to_pylist() == view.keys
    assert arrow.column("headers").to_pylist()[-1] == [{"key": "h", "value": b"1"}]


def test_deserializers_apply_to_records_alone(view_of: MakeView) -> None:
    rows = [Row(0, b"1", b"a"), Row(1, None, b"b"), Row(2, b"x", b"c")]
    view = view_of(slice_of(batch(rows)), key_deserializer=lambda data: data and int(data))
    assert view.keys == [b"1", None, b"x"]
    records = view.records()
    assert [next(records).key, next(records).key] == [1, None]
    with pytest.raises(RecordUnreadable, match=r"offset 2 cannot be read: ValueError"):
        next(records)
    assert next(view.records()).serialized_key_size == 1


def test_at_most_so_many_records(view_of: MakeView) -> None:
    slice_ = slice_of(batch(ROWS))
    view = view_of(slice_, limit=3)
    assert (view.offsets, view.next_offset, slice_.cursor.consumed) == ([10, 11, 12], 13, 13)
    rest = view_of(slice_)
    assert (rest.offsets, rest.next_offset) == ([13], 14)


def test_a_view_has_one_type_of_timestamps(view_of: MakeView) -> None:
    slice_ = slice_of(batch([Row(0)]), batch([Row(1), Row(2)], log_append_time=77), batch([Row(3)]))
    views = [view_of(slice_) for _ in range(3)]
    assert [each.offsets for each in views] == [[0], [1, 2], [3]]
    assert [each.timestamp_type for each in views] == [0, 1, 0]
    assert views[1].timestamps == [77, 77]
    assert views[1].to_arrow().column("timestampType").to_pylist() == [1, 1]


@pytest.mark.parametrize("compiled", PATHS)
def test_what_is_unpacked_is_bounded(compiled: bool) -> None:
    slice_ = slice_of(*(batch([Row(at, value=bytes(9_000))], codec=4) for at in range(4)))
    reader = SliceReader(slice_, Decoding(compiled=compiled))
    gathered = Gathered(bytes_max=10_000 if compiled else 200)
    reader.fill(gathered)
    assert gathered.full
    assert len(gathered) in (2, 3)
    assert not reader.done


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_arrow_is_what_sparks_kafka_source_gives(view_of: MakeView, codec: int) -> None:
    view = view_of(slice_of(batch(ROWS, codec=codec), batch([Row(20)], codec=codec)))
    arrow = view.to_arrow()
    arrow.validate(full=True)
    assert arrow.schema.equals(SPARK)
    assert str(arrow.schema.field("headers").type) == (
        "list<element: struct<key: string, value: binary>>"
    )
    assert arrow.column("key").to_pylist() == view.keys
    assert arrow.column("value").to_pylist() == view.values
    assert arrow.column("topic").to_pylist() == ["t"] * 5
    assert arrow.column("partition").to_pylist() == [3] * 5
    assert arrow.column("offset").to_pylist() == view.offsets
    assert arrow.column("timestamp")[0].as_py() == datetime(
        2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC
    )
    assert arrow.column("timestamp").cast(pa.int64()).to_pylist() == [
        each * 1000 for each in view.timestamps
    ]
    assert arrow.column("timestampType").to_pylist() == [0] * 5
    assert arrow.column("headers").to_pylist() == [
        None,
        None,
        [{"key": "a", "value": b"1"}, {"key": "", "value": None}, {"key": "a", "value": b""}],
        None,
        None,
    ]


LAST_MS = (2**63 - 1) // 1000
"""The last millisecond that Arrow's microseconds can say."""


@pytest.mark.parametrize("first", [0, LAST_MS, LAST_MS + 1, -LAST_MS - 1, 2**63 - 1])
@pytest.mark.parametrize("codec", [0, 4])
def test_times_that_arrow_cannot_say_are_null(view_of: MakeView, first: int, codec: int) -> None:
    """And those beside them are what they are. Kafka stores any int64."""
    times = [first, 0, LAST_MS, LAST_MS + 1, -LAST_MS, -LAST_MS - 1, 2**62, -(2**62), 5, -1]
    times += [1_764_111_600_000_000_000, 253_402_300_800_000, 2**63 - 1, -(2**63), first]
    batches = [
        retimed(batch([Row(at, timestamp=0)], codec=codec), ms) for at, ms in enumerate(times)
    ]
    view = view_of(slice_of(*batches))
    assert view.timestamps == times
    arrow = view.to_arrow()
    arrow.validate(full=True)
    assert arrow.column("timestamp").cast(pa.int64()).to_pylist() == [
        ms * 1000 if abs(ms) <= LAST_MS else None for ms in times
    ]
    assert arrow.column("value").to_pylist() == view.values == [b"v"] * len(times)
    assert arrow.slice(3, 5).column("timestamp").null_count == sum(
        abs(ms) > LAST_MS for ms in times[3:8]
    )


def test_times_within_a_batch_that_arrow_cannot_say_are_null(view_of: MakeView) -> None:
    """A record's time is that of its batch and a difference: here the sum goes over the limit."""
    times = [LAST_MS - 1 + at for at in range(4)] + [5]
    view = view_of(slice_of(batch([Row(at, timestamp=ms) for at, ms in enumerate(times)])))
    assert view.timestamps == times
    assert view.to_arrow().column("timestamp").cast(pa.int64()).to_pylist() == [
        ms * 1000 if ms <= LAST_MS else None for ms in times
    ]


def test_a_brokers_time_that_arrow_cannot_say_is_null(view_of: MakeView) -> None:
    rows = [Row(0), Row(1)]
    view = view_of(slice_of(batch(rows, log_append_time=LAST_MS + 1)))
    assert view.timestamps == [LAST_MS + 1] * 2
    assert view.to_arrow().column("timestamp").to_pylist() == [None, None]


def retimed(raw: bytes, first_ms: int) -> bytes:
    """The batch with another first and last timestamp in its header."""
    changed = bytearray(raw)
    struct.pack_into(">qq", changed, 27, first_ms, first_ms)
    return resealed(changed)


def test_arrow_of_null_keys_and_values_only(view_of: MakeView) -> None:
    arrow = view_of(slice_of(batch([Row(0, None, None), Row(1, None, None)]))).to_arrow()
    arrow.validate(full=True)
    assert arrow.schema.equals(SPARK)
    assert arrow.column("key").to_pylist() == arrow.column("value").to_pylist() == [None, None]


def test_arrow_of_every_number_of_rows(view_of: MakeView) -> None:
    for count in range(1, 40):
        rows = [
            Row(
                at,
                None if at % 3 == 0 else b"k%d" % at,
                b"v%d" % at,
                at,
                (("h", None if at % 2 else b"%d" % at),) * (at % 4),
            )
            for at in range(count)
        ]
        view = view_of(slice_of(batch(rows)))
        arrow = view.to_arrow()
        arrow.validate(full=True)
        assert arrow.column("key").to_pylist() == [row.key for row in rows]
        assert arrow.column("value").to_pylist() == [row.value for row in rows]
        assert view.headers == [row.headers for row in rows]
        assert arrow.column("headers").to_pylist() == [
            [{"key": key, "value": value} for key, value in row.headers] or None for row in rows
        ]


def test_arrow_of_no_records(view_of: MakeView) -> None:
    arrow = view_of().to_arrow()
    assert arrow.num_rows == 0
    assert arrow.schema.equals(SPARK)


def test_what_arrow_batches_share_is_kept_while_it_is_small(view_of: MakeView) -> None:
    tp = TopicPartition("x" * 249, 3)
    for kept in (_topic, _number, _from_zero):
        kept.cache_clear()
    before = pa.total_allocated_bytes()
    for rows in (17_000, 1_000, 1_001):
        view = view_of(slice_of(batch([Row(at, None, b"v") for at in range(rows)])))
        arrow = record_batch(tp, 0, view._parts)
        assert arrow.column("topic").to_pylist() == [tp.topic] * rows
    assert _topic.cache_info().hits == 1
    del arrow
    assert pa.total_allocated_bytes() - before < 2 << 20


def test_more_than_a_column_can_have_is_told(
    view_of: MakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has 2 GB to spare for a test; this is what pyarrow does then."""
    listed = ListColumns()
    listed.add(next(decoded(batch(ROWS[:1]))), 10)
    array = pa.array
    with monkeypatch.context() as patch:
        patch.setattr(pa, "array", lambda rows, kind: pa.chunked_array([array(rows, kind)] * 2))
        with pytest.raises(OverflowError, match="max_records"):
            record_batch(TP, 0, [listed])
    view = view_of(slice_of(batch(ROWS)))
    two = (view._parts[0], view._parts[0])
    assert record_batch(TP, 0, two).num_rows == 8
    table = pa.Table

    class Chunked:
        def __init__(self, batches: list[pa.RecordBatch]) -> None:
            self.batches = batches

        @classmethod
        def from_batches(cls, batches: list[pa.RecordBatch]) -> Chunked:
            return cls(batches)

        def combine_chunks(self) -> Any:
            return table.from_batches(self.batches)

    monkeypatch.setattr(pa, "Table", Chunked)
    with pytest.raises(OverflowError, match="max_records"):
        record_batch(TP, 0, two)


def test_a_view_has_no_more_rows_than_arrow_has_room_for_the_topic() -> None:
    assert Gathered().records_max * 249 < 2**31
    assert Gathered(sys.maxsize).records_max * 249 < 2**31
    assert Gathered(5).records_max == 5


def test_a_view_can_be_sent_to_another_process(view_of: MakeView) -> None:
    rows = [*ROWS, Row(20, headers=(("b", None),))]
    view = view_of(slice_of(batch(rows[:4]), batch(rows[4:])), value_deserializer=len_of)
    for other in (pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
        assert list(other.records()) == list(view.records())
        assert other.to_arrow().equals(view.to_arrow())
        assert (other.tp, other.next_offset, len(other)) == (TP, 21, 5)


def len_of(value: bytes | None) -> int:
    return len(value or b"")


def test_changed_lists_do_not_change_the_view(view_of: MakeView) -> None:
    view = view_of(slice_of(batch(ROWS)))
    before = list(view.records())
    for column in (view.keys, view.values, view.offsets, view.timestamps, view.headers):
        assert isinstance(column, list)
        column.clear()
    assert list(view.records()) == before


def test_changed_arrow_buffers_do_not_change_the_view(view_of: MakeView) -> None:
    """They are the view's own memory: where its bytes end is there, too."""
    view = view_of(slice_of(batch(ROWS)))
    before = list(view.records())
    arrow = view.to_arrow()
    for name in ("key", "value", "offset", "headers"):
        for buffer in filter(None, arrow.column(name).buffers()):
            with contextlib.suppress(TypeError):  # it can only be read
                memoryview(buffer).cast("B")[:] = bytes(buffer.size)
    assert list(view.records()) == before


def test_a_view_outlives_its_slice(view_of: MakeView) -> None:
    slice_ = slice_of(batch(ROWS))
    view = view_of(slice_)
    arrow = view.to_arrow()
    del slice_
    gc.collect()
    assert view.values[0] == b"v1"
    del view
    gc.collect()
    assert arrow.column("value")[0].as_py() == b"v1"


def test_damage_ends_a_view_and_is_told_next(view_of: MakeView) -> None:
    good = batch([Row(0), Row(1), Row(2)])
    bad = bytearray(good)
    bad[61 + 2 * (len(good) - 61) // 3] = 0x7F
    slice_ = slice_of(resealed(bad))
    assert view_of(slice_).offsets == [0, 1]
    with pytest.raises(RecordUnreadable):
        view_of(slice_)


def test_without_pyarrow_the_error_names_the_extra(
    view_of: MakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(slice_of(batch(ROWS)))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    pyarrow.cache_clear()
    with pytest.raises(ConfigError, match=r"\.\[arrow\].*kip848-client"):
        view.to_arrow()
    assert view.keys[0] == b"k1"
