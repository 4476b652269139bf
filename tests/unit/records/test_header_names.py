"""The names of headers are any bytes, and become what Java's consumer makes of them.

``tests/vectors/header-names.jsonl`` holds what ``RecordHeader.key()`` of Kafka's Java client 4.4.0
answers (on Java 17): the bytes as hex, and the name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kip848_client.records import Decoding, Gathered, RecordBatchView, SliceReader
from kip848_client.records._header_names import header_name
from kip848_client.records._paths import PATHS
from tests.support.odd_records import field, raw_batch, raw_record
from tests.unit.records.batches import TP, slice_of

VECTORS = Path(__file__).parents[2] / "vectors" / "header-names.jsonl"
NAMES = {
    bytes.fromhex(row["hex"]): row["read"]
    for row in map(json.loads, VECTORS.read_text().splitlines())
}
EDGES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
"""Where what UTF-8 allows begins and ends."""

every_path = pytest.mark.parametrize("compiled", PATHS)


def names() -> Iterator[bytes]:
    for length in (1, 2, 3):
        yield from map(bytes, product(EDGES, repeat=length))
    yield from map(bytes, product(b"\xf0\xf1\xf3\xf4\xf5", EDGES, b"\x7f\x80\xbf\xc0", b"\x41\x80"))
    for before in range(18):  # the extension takes eight at a time
        for odd in (b"", b"\xff", "ä".encode(), "ä".encode()[:1]):
            yield b"x" * before + odd
            yield b"x" * before + odd + b"x" * 9


def readers(found: Sequence[bytes], *, compiled: bool) -> Iterator[SliceReader]:
    """Readers of the same batch: a record per name."""
    payload = b"".join(
        raw_record(at, headers=[field(name) + field(b"x")]) for at, name in enumerate(found)
    )
    for _ in range(2):
        slice_ = slice_of(raw_batch(payload, len(found)))
        yield SliceReader(slice_, Decoding(compiled=compiled))


def test_names_are_read_as_java_reads_them() -> None:
    wrong = {name: header_name(name) for name, read in NAMES.items() if header_name(name) != read}
    assert not wrong


@every_path
def test_they_are_the_same_in_every_view(compiled: bool) -> None:
    found = sorted({*NAMES, *names()})
    wanted = [((header_name(name), b"x"),) for name in found]
    one_by_one, in_columns = readers(found, compiled=compiled)
    assert [each.headers for each in one_by_one.take()] == wanted
    gathered = Gathered()
    in_columns.fill(gathered)
    view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, Decoding(compiled=compiled))
    assert list(view.headers) == wanted
    assert [each.headers for each in view.records()] == wanted
    arrow = view.to_arrow()
    arrow.validate(full=True)
    pairs = [{"key": name, "value": content} for ((name, content),) in wanted]
    assert arrow.column("headers").to_pylist() == [[pair] for pair in pairs]


@every_path
def test_a_name_may_be_long(compiled: bool) -> None:
    """What is replaced takes three times as much room."""
    found = [b"\xff" * 100_000, b"ok"]
    _, in_columns = readers(found, compiled=compiled)
    gathered = Gathered()
    in_columns.fill(gathered)
    view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, Decoding())
    assert list(view.headers) == [(("\ufffd" * 100_000, b"x"),), (("ok", b"x"),)]
    assert view.to_arrow().column("headers").to_pylist()[0][0]["key"] == "\ufffd" * 100_000
