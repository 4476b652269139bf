"""What a reader of a log may see, by hand: versions of a log that was cut, and what may be left
out."""

from __future__ import annotations

import pytest

from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import read_header
from mock_coordinator.sim.log_truth import PartitionTruth, Reader, WrongRecord

_TRANSACTIONAL = 0x10


class Written:
    """A log and its history."""

    def __init__(self) -> None:
        self.log = PartitionLog()
        self.history = PartitionTruth()

    def plain(self, *values: bytes) -> None:
        batch = encode_batch([NewRecord(value) for value in values], 0)
        self.log.append(batch, len(values), 0)
        self.history.look(self.log)

    def in_transaction(self, producer_id: int, *values: bytes) -> None:
        batch = encode_batch(
            [NewRecord(value) for value in values],
            0,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            attributes=_TRANSACTIONAL,
        )
        base = self.log.append(batch, len(values), 0)
        self.log.producers.appended(read_header(batch), base, 0)
        self.history.look(self.log)

    def end(self, producer_id: int, *, committed: bool) -> None:
        self.log.end_transaction(0, producer_id, 0, 0, committed=committed)
        self.history.look(self.log)

    def cut(self, offset: int) -> None:
        self.log.truncate(offset)
        self.history.cut(self.log.high_watermark)

    def reader(
        self, offset: int = 0, *, read_committed: bool = True, blank: bool = False
    ) -> Reader:
        return Reader(self.history, read_committed, offset, blank=blank)


def test_records_come_in_order_and_each_once() -> None:
    written = Written()
    written.plain(b"a", b"b", b"c")
    reader = written.reader()
    reader.read(0, b"a")
    with pytest.raises(WrongRecord, match="offset 0 once more"):
        reader.read(0, b"a")
    with pytest.raises(WrongRecord, match="leaving out"):
        reader.read(2, b"c")
    with pytest.raises(WrongRecord, match="b'x' at 1"):
        reader.read(1, b"x")
    with pytest.raises(WrongRecord, match="goes back"):
        reader.skip_to(0)


def test_markers_and_aborted_records_are_left_out_under_read_committed() -> None:
    written = Written()
    written.in_transaction(1, b"a")
    reader = written.reader()
    with pytest.raises(WrongRecord):
        reader.read(0, b"a")  # nobody knows yet
    written.end(1, committed=False)
    written.in_transaction(1, b"b")
    written.end(1, committed=True)
    reader.read(2, b"b")
    reader.skip_to(4)
    everything = written.reader(read_committed=False)
    everything.read(0, b"a")
    everything.read(2, b"b")
    with pytest.raises(WrongRecord):
        written.reader(read_committed=False).read(2, b"b")


def test_what_was_compacted_may_be_left_out_and_nothing_else() -> None:
    written = Written()
    written.plain(b"a")
    written.plain(b"b")
    written.plain(b"c")
    written.history.compacted(1)
    reader = written.reader()
    reader.read(0, b"a")
    reader.read(2, b"c")
    with pytest.raises(WrongRecord):
        written.reader().read(1, b"b")


def test_what_was_cut_off_is_not_followed_by_what_came_in_its_place() -> None:
    written = Written()
    for value in (b"a", b"b", b"c"):
        written.plain(value)
    ahead, behind = written.reader(), written.reader()
    for offset, value in enumerate((b"a", b"b", b"c")):
        ahead.read(offset, value)
    behind.read(0, b"a")
    written.cut(1)
    for value in (b"x", b"y", b"z"):
        written.plain(value)
    with pytest.raises(WrongRecord):
        ahead.read(3, b"z")
    behind.read(1, b"x")
    with pytest.raises(WrongRecord):
        behind.read(2, b"c")


def test_what_was_fetched_before_the_cut_may_be_read_after_it() -> None:
    written = Written()
    for value in (b"a", b"b", b"c"):
        written.plain(value)
    reader = written.reader()
    reader.read(0, b"a")
    written.cut(1)
    written.plain(b"x")
    reader.read(1, b"b")
    reader.read(2, b"c")


def test_a_position_without_a_past_may_begin_in_any_version() -> None:
    written = Written()
    for value in (b"a", b"b", b"c"):
        written.plain(value)
    knowing, blank = written.reader(2), written.reader(2, blank=True)
    written.cut(1)
    for value in (b"x", b"y"):
        written.plain(value)
    blank.read(2, b"y")
    with pytest.raises(WrongRecord):
        knowing.read(2, b"y")
