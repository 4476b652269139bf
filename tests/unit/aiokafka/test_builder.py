"""Batches on their way out: what is put in comes out, by aiokafka's reader and by ours."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.produce._model import BatchBuilder, MakeBuilder, ProducerId
from kip848_client.errors import ConfigError
from kip848_client.records import Decoding, SliceReader
from kip848_client.records._paths import PATHS
from kip848_client.runtime.net._builder import AiokafkaBuilder, builder_maker
from tests.support.examples import examples
from tests.unit.records.batches import slice_of

CODECS = (None, "none", "gzip", "snappy", "lz4", "zstd")
US = (77, 3)
_ROW = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
ROWS: list[_ROW] = [
    (1_000, b"k", b"x" * 50, []),
    (999, None, b"x" * 50, [("h", b"1"), ("h", None)]),
    (1_005, b"", None, [("\u00fc", b"")]),
    (1_005, None, None, []),
]


def filled(rows: list[_ROW] = ROWS, codec: str | None = None) -> AiokafkaBuilder:
    """A builder with these records."""
    builder = builder_maker(codec)(100_000)
    for row in rows:
        assert builder.append(*row)
    builder.seal()
    return builder


def test_it_is_what_the_core_takes() -> None:
    make: MakeBuilder = builder_maker(None)
    builder: BatchBuilder = make(100)
    assert builder.append(1, None, b"v", [])
    assert builder.bytes_for(ProducerId(1, 2), 3, transactional=False)


def read(data: bytes) -> list[_ROW]:
    """By aiokafka; the checksum is right."""
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return [(each.timestamp, each.key, each.value, each.headers) for each in batch]


def read_by_us(data: bytes, *, compiled: bool) -> list[Any]:
    reader = SliceReader(slice_of(data), Decoding(compiled=compiled))
    found = reader.take(1_000)
    return [(each.timestamp, each.key, each.value, list(each.headers)) for each in found]


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_put_in_comes_out(codec: str | None) -> None:
    data = filled(codec=codec).bytes_for(US, 5, transactional=False)
    assert type(data) is bytes
    assert read(data) == ROWS
    for compiled in PATHS:
        assert read_by_us(data, compiled=compiled) == ROWS


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 41),
            st.none() | st.binary(max_size=200),
            st.none() | st.binary(max_size=200),
            st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=3),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_whatever_is_put_in_comes_out_whole_and_in_parts(rows: list[_ROW]) -> None:
    builder = filled(rows)
    assert read(builder.bytes_for(US, 5, transactional=False)) == rows
    parts = builder.split()
    assert sum(each.records for each in parts) == builder.records == len(rows)
    assert [row for each in parts for row in read(each.bytes_for(US, 5, transactional=False))] == (
        rows
    )


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("transactional", [False, True])
def test_who_sends_it_is_in_the_header_and_may_change(
    codec: str | None, *, transactional: bool
) -> None:
    builder = filled([(1_000, b"k", b"x" * 500, [])], codec)
    for who, first, flag in (
        (US, 5, transactional),
        ((1 << 62, 32_767), (1 << 31) - 1, not transactional),
        ((-1, -1), -1, False),
        (US, 5, transactional),
    ):
        data = builder.bytes_for(who, first, transactional=flag)
        batch = DefaultRecordBatch(data)
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch) == who
        assert batch.base_sequence == first
        assert batch.is_transactional is flag
        assert batch.compression_type == (1 if codec else 0)
        assert len(read(data)) == 1


def test_bytes_that_were_given_stay_what_they_were() -> None:
    builder = filled()
    before = builder.bytes_for(US, 5, transactional=False)
    kept = bytes(bytearray(before))
    builder.bytes_for((9, 9), 9, transactional=True)
    assert before == kept


def test_a_record_that_does_not_fit_is_not_in_it() -> None:
    builder = builder_maker(None)(200)
    assert builder.append(1, None, b"x" * 100, [])
    assert not builder.append(1, None, b"y" * 100, [])
    assert builder.append(1, None, b"z", ())
    assert builder.records == 2
    values = [each[2] for each in read(builder.bytes_for(US, 0, transactional=False))]
    assert values == [b"x" * 100, b"z"]


def test_the_first_record_always_fits() -> None:
    builder = builder_maker(None)(100)
    assert builder.append(1, None, b"x" * 1_000, [])
    assert builder.size_bytes > 1_000


def test_a_single_record_is_not_split() -> None:
    builder = filled(ROWS[:1])
    assert list(builder.split()) == [builder]


def test_parts_of_records_that_filled_a_batch_have_them_all() -> None:
    """Times are told from the first record of the part: they may take more bytes than before."""
    builder = builder_maker(None)(400)
    count = 0
    while builder.append(0 if count < 5 else (1 << 40) - (count << 30), None, b"", []):
        count += 1
    assert [each.records for each in builder.split()] == [(count + 1) // 2, count // 2]


def test_a_compression_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'brotli'.*gzip"):
        builder_maker("brotli")


def test_the_header_is_where_we_write() -> None:
    """What we patch of aiokafka's bytes."""
    data = filled().bytes_for((5, 6), 7, transactional=True)
    crc, attributes, last, *_ = struct.unpack_from(">IhI", data, 17)
    assert (attributes, last) == (0x10, len(ROWS) - 1)
    assert struct.unpack_from(">qhi", data, 43) == (5, 6, 7)
    assert crc
