"""Both ways of reading on whatever bytes: they agree, and nothing crashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.fetch._model import Slice
from kip848_client.errors import RecordUnreadable
from kip848_client.records import (
    Decoding,
    Gathered,
    Record,
    RecordBatchView,
    RecordsDamaged,
    SliceReader,
)
from kip848_client.records._paths import PATHS
from tests.support.examples import examples
from tests.unit.records.batches import TP, Row, batch, slice_of

Records = list[Record[Any, Any]]

nullable = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), nullable), max_size=3).map(tuple)
times = st.integers(min_value=-1, max_value=1 << 50)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Row], bytes]:
    offsets = sorted(draw(st.sets(st.integers(5, 400), min_size=1, max_size=8)))
    rows = [
        Row(offset, draw(nullable), draw(nullable), draw(times), draw(headers))
        for offset in offsets
    ]
    append_time = draw(st.none() | times)
    return rows, batch(rows, log_append_time=append_time, next_offset=draw(st.integers(401, 500)))


def payload_changed(slice_: Slice, change: Sequence[tuple[int, int]], cut: int) -> Slice:
    """The slice with other bytes in its payload, and fewer of them."""
    raw = bytearray(slice_.raw)
    for at, byte in change:
        raw[61 + at % (len(raw) - 61)] = byte
    end = max(61, len(raw) - cut)
    (ref,) = slice_.batches
    return replace(slice_, raw=bytes(raw[:end]), batches=(ref._replace(end=end),))


def taken(slice_: Slice, *, compiled: bool) -> tuple[Records, bool]:
    """All records there are, and whether bytes were damaged. A record that makes no sense is
    left out."""
    cursor = replace(slice_.cursor)
    reader = SliceReader(
        replace(slice_, cursor=cursor), Decoding(check_crcs=False, compiled=compiled)
    )
    records: Records = []
    while True:
        try:
            while (record := reader.one()) is not None:
                assert cursor.consumed == record.offset + 1
                records.append(record)
        except RecordsDamaged:
            with pytest.raises(RecordsDamaged):
                reader.take()
            return records, True
        except RecordUnreadable as err:
            with pytest.raises(RecordUnreadable):
                reader.take()
            reader.go_back(err.offset + 1, cursor.consumed_epoch)
            continue
        return records, False


def viewed(slice_: Slice, limit: int, *, compiled: bool) -> tuple[Records, bool]:
    """The same from views of at most so many records, Arrow looked at as well."""
    cursor = replace(slice_.cursor)
    decoding = Decoding(check_crcs=False, compiled=compiled)
    reader = SliceReader(replace(slice_, cursor=cursor), decoding)
    records: Records = []
    while True:
        gathered = Gathered(limit)
        try:
            reader.fill(gathered)
        except RecordsDamaged:
            return records, True
        except RecordUnreadable as err:
            reader.go_back(err.offset + 1, cursor.consumed_epoch)
            continue
        if not len(gathered):
            return records, False
        view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, decoding)
        records += view.records()
        arrow = view.to_arrow()
        arrow.validate(full=True)
        assert arrow.column("value").to_pylist() == view.values
        assert arrow.column("key").to_pylist() == view.keys


@pytest.mark.parametrize("compiled", PATHS)
@given(batches(), st.integers(1, 9), st.integers(0, 500))
@settings(max_examples=examples(100))
def test_what_was_sent_is_read(
    compiled: bool, made: tuple[list[Row], bytes], limit: int, position: int
) -> None:
    rows, raw = made
    slice_ = slice_of(raw, first=position)
    wanted = [
        (row.offset, row.key, row.value, row.headers) for row in rows if row.offset >= position
    ]
    for records, damaged in (
        taken(slice_, compiled=compiled),
        viewed(slice_, limit, compiled=compiled),
    ):
        assert not damaged
        assert [(each.offset, each.key, each.value, each.headers) for each in records] == wanted
    assert taken(slice_, compiled=compiled) == viewed(slice_, limit, compiled=compiled)


@given(
    batches(),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=3),
    st.integers(0, 40),
    st.integers(1, 9),
)
@settings(max_examples=examples(400))
def test_damaged_bytes(
    made: tuple[list[Row], bytes], change: list[tuple[int, int]], cut: int, limit: int
) -> None:
    """The extension refuses what the codec refuses, and more: lengths below -1, which the codec
    takes for null, and attributes of several bytes. Before that they read the same."""
    slice_ = payload_changed(slice_of(made[1]), change, cut)
    listed, listed_damaged = taken(slice_, compiled=False)
    compiled, compiled_damaged = taken(slice_, compiled=True)
    if compiled_damaged:
        assert listed[: len(compiled)] == compiled
    else:
        assert (listed, listed_damaged) == (compiled, False)
    assert viewed(slice_, limit, compiled=True)[0] == compiled
    assert viewed(slice_, limit, compiled=False)[0] == listed


@given(st.binary(max_size=300), st.integers(-5, 1 << 31), st.integers(1, 9))
@settings(max_examples=examples(300))
def test_any_bytes(payload: bytes, count: int, limit: int) -> None:
    whole = slice_of(batch([Row(0)]))
    (ref,) = whole.batches
    raw = whole.raw[:61] + payload
    ref = ref._replace(end=len(raw), records=count, next_offset=1 << 62)
    slice_ = replace(whole, raw=raw, batches=(ref,), next_offset=ref.next_offset)
    listed, _ = taken(slice_, compiled=False)
    compiled, _ = taken(slice_, compiled=True)
    assert listed[: len(compiled)] == compiled
    assert viewed(slice_, limit, compiled=True)[0] == compiled
