"""Reading that is interrupted loses nothing: memory that runs out, Ctrl-C, a deserializer that asks
for records itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pytest

from kip848_client.core.fetch._model import BatchRef
from kip848_client.errors import RecordUnreadable
from kip848_client.records import Decoding, Gathered, Record, SliceReader
from kip848_client.records._columns import OpenBatch
from kip848_client.records._paths import COMPILED, PATHS, open_batch
from tests.unit.records.batches import Row, batch, slice_of

every_path = pytest.mark.parametrize("compiled", PATHS)
by_the_extension = pytest.mark.skipif(not COMPILED, reason="the extension was not built")
T = TypeVar("T")

HEADERS: Any = (("name", b"content"), ("nothing", None))  # Kafka's header values may be null


def offsets_of(gathered: Gathered) -> list[int]:
    return [offset for part in gathered.parts for offset in part.all_offsets()]


def with_memory_for(allocations: int, call: Callable[[], T]) -> T:
    """One allocation fails, all others succeed. Raises ``MemoryError``, unless there were fewer."""
    hooks = pytest.importorskip("_testcapi", reason="this Python was built without its tests")
    hooks.set_nomemory(allocations, allocations + 1)
    try:
        return call()
    finally:
        hooks.remove_mem_hooks()


@every_path
def test_a_view_that_is_interrupted_loses_nothing(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slice_ = slice_of(batch([Row(0), Row(1)]), batch([Row(2)]))
    reader = SliceReader(slice_, Decoding(compiled=compiled))
    opened = SliceReader._opened

    def interrupted(self: SliceReader, ref: BatchRef) -> OpenBatch:
        if ref.base_offset == 2:
            raise KeyboardInterrupt
        return opened(self, ref)

    assert reader.one() is not None
    with monkeypatch.context() as patched:
        patched.setattr(SliceReader, "_opened", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.fill(Gathered())
    assert (slice_.cursor.consumed, slice_.cursor.consumed_epoch) == (1, 5)
    gathered = Gathered()
    reader.fill(gathered)
    assert offsets_of(gathered) == [1, 2]


@by_the_extension
def test_columns_that_cannot_grow_are_as_before() -> None:
    """Whoever looks at a column keeps it from growing: as if memory had run out."""
    values = [b"v" * 10] * 4 + [b"v" * 400]
    rows = [Row(at, value=value, headers=HEADERS) for at, value in enumerate(values)]
    slice_ = slice_of(batch(rows))
    opened: Any = open_batch(slice_.raw, slice_.batches[0], slice_.cursor, Decoding())
    parts: list[Any] = []
    opened.expected_bytes = 100
    assert opened.fill(parts, 1) == 1
    (columns,) = parts
    looking = memoryview(columns.value_buffers()[4])
    with pytest.raises(BufferError):
        opened.fill(parts, 4)
    assert (len(columns), slice_.cursor.consumed) == (1, 1)
    assert list(columns.all_headers()) == [HEADERS]
    looking.release()
    assert opened.fill(parts, 4) == 4
    assert list(columns.all_offsets()) == [0, 1, 2, 3, 4]
    assert list(columns.all_headers()) == [HEADERS] * 5
    assert list(columns.all_values()) == values


def by_view(reader: SliceReader, allocations: int) -> list[int]:
    gathered = Gathered()
    with_memory_for(allocations, partial(reader.fill, gathered))
    return offsets_of(gathered)


def by_list(reader: SliceReader, allocations: int) -> list[int]:
    records = with_memory_for(allocations, reader.take)
    assert all(record.headers == HEADERS for record in records)
    return [record.offset for record in records]


def one_by_one(reader: SliceReader, allocations: int) -> list[int]:
    room: list[int] = [-1] * ROWS

    def take() -> None:
        for index, record in zip(INDICES, reader.current, strict=False):
            room[index] = record.offset

    with suppress(MemoryError):  # what was there before is there
        with_memory_for(allocations, take)
    reader.resume()
    return [offset for offset in room if offset >= 0] + by_list(reader, PLENTY)


ROWS = 20
INDICES = range(ROWS)
PLENTY = 1 << 20


@by_the_extension
@pytest.mark.parametrize("way", [by_view, by_list, one_by_one])
def test_memory_that_runs_out_loses_nothing(way: Callable[[SliceReader, int], list[int]]) -> None:
    rows = [Row(at, b"k" * at or None, b"v" * 900, 1000 + at, HEADERS) for at in range(ROWS)]
    raw = batch(rows)
    for allocations in range(400):
        reader = SliceReader(slice_of(raw), Decoding())
        assert reader.one() is not None
        try:
            taken = way(reader, allocations)
        except MemoryError:
            taken = way(reader, PLENTY)
        assert taken == list(range(1, ROWS)), allocations


@every_path
def test_a_deserializer_that_asks_for_records_is_told_so(compiled: bool) -> None:
    """It would be given the record that it is to deserialize."""
    asks = [True]

    def curious(data: bytes | None) -> bytes | None:
        if data == b"b" and asks:
            asks.pop()
            reader.one()
        return data

    slice_ = slice_of(batch([Row(0, value=b"a"), Row(1, value=b"b"), Row(2, value=b"c")]))
    reader = SliceReader(slice_, Decoding(compiled=compiled, value_deserializer=curious))
    assert reader.one() is not None
    with pytest.raises(RecordUnreadable) as told:
        reader.one()
    assert told.value.offset == slice_.cursor.consumed == 1
    assert [record.offset for record in reader.take()] == [1, 2]


@by_the_extension
def test_nobody_sees_a_record_that_is_not_whole() -> None:
    """The garbage collector runs what others have written, and that may look at all objects."""
    seen: list[str] = []

    def look(phase: str, info: dict[str, int]) -> None:
        seen.extend(repr(each) for each in gc.get_objects() if type(each) is Record)

    headers: Any = HEADERS * 20  # so many that making room for them asks for the collector
    slice_ = slice_of(batch([Row(0, headers=headers)]))
    opened = open_batch(slice_.raw, slice_.batches[0], slice_.cursor, Decoding())
    before = gc.get_threshold()
    gc.callbacks.append(look)
    try:
        gc.set_threshold(1)
        kept = list(opened)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(look)
    assert kept[0].headers == headers
    assert not [each for each in seen if "<NULL>" in each]
