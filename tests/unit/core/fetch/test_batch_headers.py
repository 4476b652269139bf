"""What the headers of an answer's batches say, whatever bytes a broker sends."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.fetch._batch_headers import BatchHeaders, read_headers
from tests.unit.core.fetch._bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    batch,
    marker,
    message,
)


def handed_out(headers: BatchHeaders) -> list[int]:
    """Base offsets of the batches of which something may be handed out."""
    return [each.base_offset for each in headers.batches if not each.skip]


class TestOrdinary:
    def test_no_bytes(self) -> None:
        assert read_headers(b"", 7, 3) == BatchHeaders((), 7, 3)

    def test_all_that_a_header_says(self) -> None:
        raw = batch(10, 3, epoch=4, attributes=0x0B, body=b"12345", times=(1000, 3000))
        (found,) = read_headers(raw, 10, 0).batches
        assert found._asdict() == {
            "start": 0,
            "end": 66,
            "base_offset": 10,
            "next_offset": 13,
            "records": 3,
            "attributes": 0x0B,
            "base_timestamp": 1000,
            "max_timestamp": 3000,
            "leader_epoch": 4,
            "magic": 2,
            "skip": False,
        }

    def test_batches_lie_side_by_side(self) -> None:
        first, second = batch(0, 2, epoch=1), batch(2, 5, epoch=2)
        headers = read_headers(first + second, 0, -1)
        assert [(each.start, each.end) for each in headers.batches] == [
            (0, len(first)),
            (len(first), len(first) + len(second)),
        ]
        assert (headers.next_offset, headers.last_epoch, headers.garbled) == (7, 2, None)

    def test_the_first_batch_may_begin_below_what_was_asked(self) -> None:
        headers = read_headers(batch(0, 10), 4, 0)
        assert (handed_out(headers), headers.next_offset) == ([0], 10)

    def test_a_batch_that_ends_below_what_was_asked_is_left_out(self) -> None:
        headers = read_headers(batch(0, 4, epoch=1) + batch(4, 2, epoch=1), 4, 1)
        assert (handed_out(headers), headers.next_offset) == ([4], 6)
        alone = read_headers(batch(0, 4), 4, 1)
        assert (alone.batches, alone.next_offset, alone.garbled) == ((), 4, None)

    def test_control_batches_are_skipped_whatever_the_isolation(self) -> None:
        """kafkajs #403, kafkajs #1256: an answer of control batches alone moves the offset."""
        headers = read_headers(marker(5, 1, COMMIT) + marker(6, 2, ABORT), 5, 0)
        assert (handed_out(headers), headers.next_offset, len(headers.batches)) == ([], 7, 2)


class TestCompacted:
    def test_offsets_are_missing_between_batches_and_inside(self) -> None:
        raw = batch(0, 3, records=2) + batch(9, 2) + batch(20, 1)
        headers = read_headers(raw, 0, 0)
        assert (handed_out(headers), headers.next_offset) == ([0, 9, 20], 21)

    def test_the_first_batch_begins_after_what_was_asked(self) -> None:
        headers = read_headers(batch(8, 2), 3, 0)
        assert (handed_out(headers), headers.next_offset) == ([8], 10)

    def test_the_last_offset_counts_not_the_last_record(self) -> None:
        """sarama #1005: a batch that lost its last records, or all of them."""
        assert read_headers(batch(0, 10, records=1), 0, 0).next_offset == 10
        empty = read_headers(batch(6, 2, records=0, body=b""), 6, 0)
        assert (empty.next_offset, empty.batches[0].records) == (8, 0)

    def test_a_control_batch_without_its_marker(self) -> None:
        raw = batch(3, records=0, attributes=TRANSACTIONAL | CONTROL, producer=1, body=b"")
        headers = read_headers(raw + batch(4), 3, 0, ((1, 0),))
        assert (handed_out(headers), headers.next_offset) == ([4], 5)


class TestCut:
    @pytest.mark.parametrize("left", [1, 11, 16, 17, 25, 26, 60, 61, 67])
    def test_a_cut_last_batch_is_no_error(self, left: int) -> None:
        """sarama #1657."""
        whole = batch(0, 2, epoch=1)
        headers = read_headers(whole + batch(2, 9, epoch=2)[:left], 0, 0)
        assert (handed_out(headers), headers.next_offset) == ([0], 2)
        assert (headers.last_epoch, headers.garbled) == (1, None)

    @pytest.mark.parametrize("left", [1, 16, 17, 60, 61, 67])
    def test_a_cut_first_batch_is_one(self, left: int) -> None:
        """Brokers send the first batch whole, whatever the limits."""
        headers = read_headers(batch(5, 2)[:left], 5, 4)
        assert headers.garbled is not None
        assert headers.garbled.offset == 5
        assert f"{left} bytes" in headers.garbled.why
        assert (headers.batches, headers.next_offset, headers.last_epoch) == ((), 5, 4)


NONSENSE: Final = {
    "magic 3": batch(2, magic=3),
    "magic -1": batch(2, magic=-1),
    "too short": batch(2, length=48),
    "length -1": batch(2, length=-1),
    "the least length": batch(2, length=-(2**31)),
    "a negative offset": batch(-1),
    "no offsets": batch(2, 0, records=0),
    "more records than offsets": batch(2, records=2),
    "a negative count": batch(2, records=-1),
    "ends before it begins": batch(2, offsets=-5, records=0),
    "the last offset": batch(2**63 - 1),
    "beyond the last offset": batch(2**63 - 1, 2**31 - 1, records=1),
    "overlaps the one before": batch(1, 5),
    "inside the one before": batch(1, 1),
    "an old message, too short": message(2, 0)[:8] + b"\0\0\0\x0d" + message(2, 0)[12:],
    "one with a timestamp, too short": message(2, 1)[:8] + b"\0\0\0\x15" + message(2, 1)[12:],
    "an old message of a negative offset": message(-5, 1),
}


class TestGarbled:
    @pytest.mark.parametrize("bad", NONSENSE.values(), ids=NONSENSE)
    def test_what_no_batch_can_say(self, bad: bytes) -> None:
        headers = read_headers(batch(0, 2, epoch=3) + bad, 0, 0)
        assert headers.garbled is not None
        assert (handed_out(headers), headers.next_offset, headers.last_epoch) == ([0], 2, 3)
        assert headers.garbled.offset == 2

    def test_at_the_very_beginning(self) -> None:
        headers = read_headers(batch(7, magic=9), 5, 2)
        assert headers.garbled is not None
        assert (headers.garbled.offset, headers.garbled.why) == (5, "a batch of magic 9")

    @given(st.binary(max_size=200), st.integers(0, 2**40))
    def test_any_bytes_give_an_answer(self, raw: bytes, offset: int) -> None:
        assert_sane(read_headers(raw, offset, 0, ((0, 0),)), raw, offset)

    @settings(max_examples=300)
    @given(st.data())
    def test_any_damage_gives_an_answer(self, data: st.DataObject) -> None:
        raw = bytearray(
            batch(0, 2)
            + batch(2, 3, attributes=TRANSACTIONAL, producer=4)
            + marker(5, 4, ABORT)
            + message(6, 1)
            + batch(7, 2)
        )
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        del raw[data.draw(st.integers(0, len(raw))) :]
        assert_sane(read_headers(bytes(raw), 0, 0, ((4, 2),)), bytes(raw), 0)


def assert_sane(headers: BatchHeaders, raw: bytes, offset: int) -> None:
    """Batches lie in the bytes, one after the other, and so do their offsets."""
    at, reached = 0, offset
    for each in headers.batches:
        assert at <= each.start < each.end <= len(raw)
        assert each.next_offset > reached
        assert each.base_offset >= reached or each is headers.batches[0]
        assert 0 <= each.records <= each.next_offset - each.base_offset
        at, reached = each.end, each.next_offset
    assert headers.next_offset == reached < 2**63
    assert headers.garbled is None or headers.garbled.offset == reached
    if raw and not headers.batches:
        assert headers.garbled is not None or headers.next_offset == offset


class TestAborted:
    def test_from_the_first_record_to_the_marker(self) -> None:
        raw = (
            batch(0, 1, attributes=TRANSACTIONAL, producer=1)
            + batch(1, 2, attributes=TRANSACTIONAL, producer=2)
            + batch(3, 1)
            + marker(4, 1, ABORT)
            + batch(5, 1, attributes=TRANSACTIONAL, producer=1)
            + marker(6, 1, COMMIT)
            + marker(7, 2, COMMIT)
        )
        headers = read_headers(raw, 0, 0, ((1, 0),))
        assert (handed_out(headers), headers.next_offset) == ([1, 3, 5], 8)

    def test_what_the_producer_wrote_without_a_transaction_stays(self) -> None:
        raw = batch(0, producer=1) + batch(1, attributes=TRANSACTIONAL, producer=1)
        assert handed_out(read_headers(raw, 0, 0, ((1, 0),))) == [0]

    def test_a_producer_that_aborts_twice(self) -> None:
        raw = (
            batch(0, attributes=TRANSACTIONAL, producer=1)
            + marker(1, 1, ABORT)
            + batch(2, attributes=TRANSACTIONAL, producer=1)
            + marker(3, 1, COMMIT)
            + batch(4, 3, attributes=TRANSACTIONAL, producer=1)
            + marker(7, 1, ABORT)
        )
        # the list has no promised order
        for listed in (((1, 0), (1, 4)), ((1, 4), (1, 0))):
            assert handed_out(read_headers(raw, 0, 0, listed)) == [2]

    def test_a_transaction_that_began_before_the_answer(self) -> None:
        raw = batch(9, attributes=TRANSACTIONAL, producer=1) + marker(10, 1, ABORT) + batch(11)
        assert handed_out(read_headers(raw, 9, 0, ((1, 3),))) == [11]

    def test_an_answer_that_begins_with_the_marker(self) -> None:
        """aiokafka #781, platformatic #391: listed or not, it ends what nobody has seen."""
        raw = marker(4, 1, ABORT) + batch(5, attributes=TRANSACTIONAL, producer=1)
        for listed in ((), ((1, 3),), ((2, 3),)):
            headers = read_headers(raw, 4, 0, listed)
            assert (handed_out(headers), headers.next_offset) == ([5], 6)

    def test_the_first_offset_may_lie_inside_a_batch(self) -> None:
        raw = batch(0, 5, attributes=TRANSACTIONAL, producer=1)
        assert handed_out(read_headers(raw, 0, 0, ((1, 4),))) == []
        assert handed_out(read_headers(raw, 0, 0, ((1, 5),))) == [0]

    def test_an_answer_of_aborted_batches_alone_moves_on(self) -> None:
        """pinot #12318, librdkafka #2993."""
        raw = b"".join(batch(n, attributes=TRANSACTIONAL, producer=1) for n in range(50))
        headers = read_headers(raw, 0, 0, ((1, 0),))
        assert (handed_out(headers), headers.next_offset, len(headers.batches)) == ([], 50, 50)

    def test_each_answer_stands_alone(self) -> None:
        raw = batch(0, attributes=TRANSACTIONAL, producer=1)
        assert handed_out(read_headers(raw, 0, 0, ((1, 0),))) == []
        assert handed_out(read_headers(raw, 0, 0)) == [0]

    @pytest.mark.parametrize(
        "odd",
        [
            marker(1, 1, COMMIT),
            marker(1, 1, 2),
            marker(1, 1, ABORT, key=b""),
            marker(1, 1, ABORT, key=b"\0\0\0"),
            marker(1, 1, ABORT, key=b"\0\0\0\0\0"),
            marker(1, 1, ABORT)[:61],
            batch(1, attributes=TRANSACTIONAL | CONTROL, producer=1, body=b"\xff" * 30),
            batch(1, attributes=TRANSACTIONAL | CONTROL, producer=1, body=b"\xff\xff\0\x80"),
            batch(1, attributes=TRANSACTIONAL | CONTROL | 1, producer=1, body=bytes(30)),
        ],
    )
    def test_only_an_abort_marker_ends_it(self, odd: bytes) -> None:
        """Other control records are skipped, types that nobody knows among them."""
        if len(odd) == 61:
            odd = odd[:8] + b"\0\0\0\x31" + odd[12:]
        after = batch(2, attributes=TRANSACTIONAL, producer=1)
        headers = read_headers(odd + after, 1, 0, ((1, 0),))
        assert (handed_out(headers), headers.next_offset, headers.garbled) == ([], 3, None)


class TestBefore011:
    @pytest.mark.parametrize("magic", [0, 1])
    def test_messages_one_by_one(self, magic: int) -> None:
        raw = message(3, magic) + message(4, magic, value=b"") + batch(5, 2, epoch=1)
        headers = read_headers(raw, 3, 0, ((1, 0),))
        assert [each.magic for each in headers.batches] == [magic, magic, 2]
        assert [each.base_offset for each in headers.batches] == [3, 4, 5]
        assert [each.max_timestamp for each in headers.batches[:2]] == [50 if magic else -1] * 2
        assert (headers.next_offset, headers.last_epoch, headers.garbled) == (7, 1, None)

    def test_they_have_no_epoch(self) -> None:
        assert read_headers(message(3, 1), 3, 9).last_epoch == -1

    @pytest.mark.parametrize("magic", [0, 1])
    def test_a_compressed_one_has_the_offset_of_the_last_inside(self, magic: int) -> None:
        headers = read_headers(message(9, magic, attributes=1) + message(10, magic), 4, 0)
        wrapper = headers.batches[0]
        assert (wrapper.base_offset, wrapper.next_offset, wrapper.records) == (4, 10, 6)
        assert headers.next_offset == 11

    @pytest.mark.parametrize("left", [17, 25, 26, 30])
    def test_a_cut_one(self, left: int) -> None:
        headers = read_headers(message(3, 1) + message(4, 1)[:left], 3, 0)
        assert (headers.next_offset, headers.garbled) == (4, None)

    def test_magic_0_and_1_know_no_control_batches(self) -> None:
        headers = read_headers(message(0, 1, attributes=TRANSACTIONAL | CONTROL), 0, 0, ((1, 0),))
        assert handed_out(headers) == [0]
