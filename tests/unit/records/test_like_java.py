"""Odd record batches are read as Java's consumer reads them, by both ways of reading.

``tests/vectors/records.jsonl`` holds what Kafka's Java client 4.4.0 makes of batches: the records
that it reads (offset, timestamp, key, value, headers), and the error after them, if there is one.
Java gives an offset that is not after the one before to its consumer, which drops it.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from kip848_client.errors import RecordUnreadable
from kip848_client.records import Decoding, Gathered, Record, RecordBatchView, SliceReader
from kip848_client.records._paths import PATHS
from tests.support.odd_records import Read
from tests.unit.records.batches import TP, slice_of

VECTORS = Path(__file__).parents[2] / "vectors" / "records.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text().splitlines()]
_COUNT_AT = 57


def wanted(case: dict[str, Any]) -> tuple[list[Read], bool]:
    """What a consumer hands out, and whether it can go on after it."""
    raw = bytes.fromhex(case["batch"])
    (base,) = struct.unpack_from(">q", raw)
    (count,) = struct.unpack_from(">i", raw, _COUNT_AT)
    found: list[Read] = []
    position = base
    for offset, timestamp, key, value, headers in case["records"]:
        if offset >= base + count:
            return found, False  # Java goes on behind it, and loses what others have written
        if offset >= position:
            pairs = tuple((name, data(content)) for name, content in headers)
            kind = raw[22] >> 3 & 1
            found.append(Read(offset, timestamp, kind, data(key), data(value), pairs))
            position = offset + 1
    return found, case["error"] is None


def data(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def seen(record: Record[Any, Any]) -> Read:
    return Read(*record[2:7], record.headers)


def more(reader: SliceReader, way: str) -> list[Record[Any, Any]]:
    """The next records."""
    if way == "lists":
        return reader.take(2)
    if way == "one":
        record = reader.one()
        return [] if record is None else [record]
    gathered = Gathered(2)
    reader.fill(gathered)
    view: RecordBatchView[Any, Any] = RecordBatchView(TP, gathered, Decoding())
    view.to_arrow().validate(full=True)
    return list(view.records())


def read(case: dict[str, Any], way: str, *, compiled: bool) -> tuple[list[Read], bool]:
    """What is handed out, and whether that is up to the end."""
    reader = SliceReader(slice_of(bytes.fromhex(case["batch"])), Decoding(compiled=compiled))
    found: list[Read] = []
    try:
        while records := more(reader, way):
            found += map(seen, records)
    except RecordUnreadable:
        return found, False
    return found, True


@pytest.mark.parametrize("way", ["one", "lists", "columns"])
@pytest.mark.parametrize("compiled", PATHS)
def test_what_java_reads_is_read(compiled: bool, way: str) -> None:
    wrong = []
    for case in CASES:
        records, goes_on = wanted(case)
        found, ended = read(case, way, compiled=compiled)
        # of what Java refuses, and no broker stores, some is read
        is_right = found == records and ended if goes_on else found[: len(records)] == records
        if not is_right:
            wrong.append((case["what"], found, records, case["error"]))
    assert not wrong


def test_there_are_cases_of_each_kind() -> None:
    errors = [case["error"] for case in CASES]
    assert errors.count(None) > 200
    assert len(errors) - errors.count(None) > 60
    assert sum("\\ufffd" in json.dumps(case["records"]) for case in CASES) > 50
