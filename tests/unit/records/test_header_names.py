"""The name of a header is UTF-8, or its record is damaged. The extension looks at bytes itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from kip848_client.records import Decoding, RecordsDamaged, SliceReader
from kip848_client.records._paths import PATHS
from tests.unit.records.batches import Row, batch, slice_of

EDGES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
"""Where what UTF-8 allows begins and ends."""


def names() -> Iterator[bytes]:
    for length in (1, 2, 3):
        yield from map(bytes, product(EDGES, repeat=length))
    yield from map(bytes, product(b"\xf0\xf1\xf3\xf4\xf5", EDGES, b"\x7f\x80\xbf\xc0", b"\x41\x80"))
    for before in range(18):  # it takes eight at a time
        for odd in (b"", b"\xff", "ä".encode(), "ä".encode()[:1]):
            yield b"x" * before + odd
            yield b"x" * before + odd + b"x" * 9


def is_read(name: bytes, *, compiled: bool) -> bool:
    record = bytes([0, 0, 0, 1, 1, 2, 2 * len(name), *name, 1])
    whole = slice_of(batch([Row(0)]))
    raw = whole.raw[:61] + bytes([2 * len(record)]) + record
    ref = whole.batches[0]._replace(end=len(raw))
    slice_ = replace(whole, cursor=replace(whole.cursor), raw=raw, batches=(ref,))
    reader = SliceReader(slice_, Decoding(check_crcs=False, compiled=compiled))
    try:
        (found,) = reader.take()
    except RecordsDamaged:
        return False
    assert repr(found.headers) == repr(((name.decode(), None),))
    return True


def decodes(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("compiled", PATHS)
def test_a_record_is_read_if_python_decodes_the_names_of_its_headers(compiled: bool) -> None:
    wrong = [name for name in names() if is_read(name, compiled=compiled) != decodes(name)]
    assert not wrong
