"""The core and errors of partitions: who rests, who stops, and what the user is told."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    ErrorDelivered,
    FetchLost,
    FetchSettings,
    Paused,
    Positioned,
    Readable,
    Resumed,
    SendFetch,
    Sought,
    StoredOffset,
)
from kip848_client.core.fetch._error_rules import reaction
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    NoOffsetForPartition,
    OffsetOutOfRange,
    RecordUnreadable,
    TopicAuthorizationFailed,
    TransportError,
)
from tests.unit.core.fetch._harness import Harness, data, row, tp

QUIET = [
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
]


def fail(h: Harness, code: int, times: int) -> None:
    """Answer requests with this error, that often."""
    for _ in range(times):
        while not h.open:
            h.advance(50)
        h.answer(None, row(error_code=code))


@pytest.mark.parametrize("code", QUIET)
def test_an_error_that_passes_is_not_told(code: ErrorCode) -> None:
    h = Harness().assign(0)
    h.answer({0: data(0)})
    fail(h, code, 5)
    assert h.core.pending_error() is None
    assert h.core.position(tp(0)) == 0
    assert h.read() == [(tp(0), 0, 1)], "what is buffered is good"
    h.advance(2_000)
    h.answer({0: data(1)})
    assert h.read() == [(tp(0), 1, 2)]
    assert h.core.snapshot().partitions[tp(0)].failures == 0
    assert not h.notices


@pytest.mark.parametrize("code", QUIET)
def test_a_partition_that_rests_is_forgotten_by_the_session(code: ErrorCode) -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.answer(None, row(error_code=code))
    assert h.asked() == {1: 0}
    h.answer()
    h.answer()
    assert h.asked() == {0: 0, 1: 0}


def test_the_partition_says_how_long_it_rests() -> None:
    h = Harness().assign(0)
    h.answer()
    pauses = []
    for _ in range(6):
        fail(h, ErrorCode.UNKNOWN_SERVER_ERROR, 1)
        start = h.now
        while not h.open:
            h.advance(10)
        pauses.append(h.now - start)
    assert pauses == [100, 200, 400, 800, 1_000, 1_000]


def test_trouble_that_is_long_over_does_not_count() -> None:
    h = Harness().assign(0)
    h.answer()
    for _ in range(4):
        fail(h, ErrorCode.UNKNOWN_SERVER_ERROR, 1)
        h.advance(100)
        assert h.open
        for _ in range(25):
            h.answer()
    assert not h.notices


@pytest.mark.parametrize(
    ("code", "tries", "error"),
    [
        (ErrorCode.CORRUPT_MESSAGE, 3, RecordUnreadable),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, TopicAuthorizationFailed),
        (ErrorCode.INVALID_REQUEST, 1, BrokerError),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0, BrokerError),
        (ErrorCode.GROUP_ID_NOT_FOUND, 10, BrokerError),
        (4_711, 10, BrokerError),
    ],
)
def test_an_error_that_does_not_pass_is_told(code: int, tries: int, error: type[Exception]) -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.post(Paused((tp(1),)))
    fail(h, code, tries)
    assert h.core.pending_error() is None
    while not h.open:
        h.advance(50)
    assert Readable() in h.answer(None, row(error_code=code))
    trouble = h.core.pending_error()
    assert trouble is not None
    assert trouble[0] == tp(0)
    assert isinstance(trouble[1], error)
    assert "t-0" in str(trouble[1])
    assert h.core.pending_error([tp(1)]) is None
    assert h.core.pending_error([tp(0)]) == trouble
    h.post(Resumed((tp(1),)))
    h.answer({1: data(0)})
    assert h.read() == [(tp(1), 0, 1)], "a partition that stops does not stop others"


def test_who_was_told_is_tried_once_more_at_most_once_a_second() -> None:
    h = Harness().assign(0)
    h.answer()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    h.answer(None, row(error_code=code))
    h.advance(30_000)
    assert not h.open, "the application does not ask"
    start, count = h.now, len(h.all(SendFetch))
    told = 0
    while h.now < start + 10_000:
        if h.open:
            h.answer(None, row(error_code=code))
        trouble = h.core.pending_error()
        if trouble is not None:
            told += 1
            h.post(ErrorDelivered(trouble[0]))
            assert h.core.pending_error() is None
        h.advance(10)
    assert 8 <= told <= 11
    assert len(h.all(SendFetch)) - count <= 11
    h.advance(1_000)
    h.answer({0: data(0)})
    assert h.read() == [(tp(0), 0, 1)]


def test_one_refusal_of_a_topic_is_told_once_for_all_its_partitions() -> None:
    h = Harness(partitions=40).assign(*range(40))
    h.answer()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    h.answer(None, *[row(number, error_code=code) for number in range(40)])
    trouble = h.core.pending_error()
    assert trouble is not None
    h.post(ErrorDelivered(trouble[0]))
    assert h.core.pending_error() is None
    h.advance(200)
    assert len(h.asked()) == 40


def test_records_come_before_the_error() -> None:
    """KAFKA-5075, KAFKA-5078."""
    h = Harness().assign(0)
    h.answer({0: data(0)})
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert h.core.pending_error() is None
    assert h.read() == [(tp(0), 0, 1)]
    assert h.core.pending_error() is not None


def test_an_error_of_what_is_paused_waits() -> None:
    h = Harness().assign(0)
    h.answer()
    h.post(Paused((tp(0),)))
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert h.core.pending_error() is None
    assert Readable() in h.post(Resumed((tp(0),)))
    assert h.core.pending_error() is not None


def test_the_loss_of_the_partition_is_the_end_of_its_trouble() -> None:
    h = Harness().assign(0)
    h.answer()
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    h.assign()
    assert h.core.pending_error() is None
    h.advance(20_000)
    assert h.core.deadline_ms is None


def test_an_error_of_the_broker_stops_its_partitions() -> None:
    h = Harness(partitions=2, leader=lambda number: 1 + number).assign(0, 1)
    error = TransportError("the login was refused")
    h.post(FetchLost(h.open.pop(1).fetch, "refused", sent=False, error=error))
    assert h.core.pending_error() == (tp(0), error)
    h.answer({1: data(0)}, node=2)
    assert h.read() == [(tp(1), 0, 1)]
    h.post(ErrorDelivered(tp(0)))
    h.advance(200)
    assert h.asked(1) == {0: 0}


def test_a_request_that_every_broker_finds_malformed_is_told() -> None:
    h = Harness().assign(0)
    h.answer()
    for _ in range(2):
        assert h.core.pending_error() is None
        h.answer(error=ErrorCode.INVALID_REQUEST)
        h.advance(300)
    assert h.core.pending_error() is not None


# -- out of range --------------------------------------------------------------------------------


def out_of_range(policy: str, log: tuple[int, int]) -> Harness:
    """At 5, with 5-7 read, the leader says that 8 is out of range."""
    h = Harness(FetchSettings(reset_policy=policy, has_group=True))
    h.committed[tp(0)] = StoredOffset(5)
    h.log[tp(0)] = log
    h.assign(0)
    h.answer({0: data(5, 3)})
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    return h


@pytest.mark.parametrize(("policy", "expected"), [("earliest", 20), ("latest", 30)])
def test_retention_overtook_us(policy: str, expected: int) -> None:
    """aiokafka #261, aiokafka #718."""
    h = out_of_range(policy, (20, 30))
    assert h.core.position(tp(0)) == 5, "records first"
    assert h.read() == [(tp(0), 5, 8)]
    assert h.core.position(tp(0)) == expected
    assert Positioned(tp(0), expected, -1, committed=False) in h.commands
    assert h.asked() == {0: expected}
    assert len([text for text in h.notices if "out of range" in text]) == 1


def test_stale_news_reset_nothing() -> None:
    h = out_of_range("latest", (0, 30))
    h.read()
    h.advance(200)
    assert h.asked() == {0: 8}
    assert h.core.position(tp(0)) == 8
    h.answer({0: data(8)})
    assert h.read() == [(tp(0), 8, 9)]
    assert not h.notices


def test_without_a_policy_the_user_decides() -> None:
    h = out_of_range("none", (20, 30))
    h.read()
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], OffsetOutOfRange)
    assert (trouble[1].offset, trouble[1].start, trouble[1].end) == (8, 20, 30)
    assert h.core.position(tp(0)) == 8
    h.post(ErrorDelivered(tp(0)))
    h.advance(1_500)
    assert h.core.pending_error() is not None, "it is still so"
    h.post(Sought(tp(0), 20))
    assert h.core.pending_error() is None
    assert h.asked() == {0: 20}


def test_nothing_committed_and_no_policy() -> None:
    h = Harness(FetchSettings(reset_policy="none", has_group=True)).assign(0)
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], NoOffsetForPartition)
    h.post(ErrorDelivered(tp(0)))
    assert h.core.pending_error() is not None, "it is still so"
    h.post(ErrorDelivered(tp(0)))
    h.committed[tp(0)] = StoredOffset(4)
    h.advance(900)
    assert not h.open
    h.advance(200)
    assert h.asked() == {0: 4}


def test_no_error_is_called_by_its_number_only() -> None:
    """Each code that Kafka names for Fetch has a row, beside those of sessions."""
    for code in (*QUIET, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.CORRUPT_MESSAGE):
        assert reaction(code) is not reaction(4_711)
