"""No answer leads to a loop, and none that is good makes anybody wait."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    LATEST,
    FetchSettings,
    ListOffsets,
    OffsetsAsked,
    OffsetsFound,
    PartitionAnswer,
    SendFetch,
    Sought,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, data, row, tp

COMMITTED = FetchSettings(read_committed=True, reset_policy="earliest")
PLAIN = FetchSettings(reset_policy="earliest")


def reading(settings: FetchSettings = PLAIN, *, partitions: int = 1) -> Harness:
    """All partitions are at offset 10, at broker 1."""
    harness = Harness(settings, partitions=partitions).assign(*range(partitions))
    for number in range(partitions):
        harness.post(Sought(tp(number), 10))
    harness.answer()
    return harness


def requests_in(harness: Harness, ms: int, *rows: PartitionAnswer, error: int = 0) -> int:
    """How many requests broker 1 gets when it answers each of them so, at once."""
    before, end = len(harness.all(SendFetch)), harness.now + ms
    while harness.now < end:
        if 1 in harness.open:
            harness.answer(None, *rows, after_ms=1, error=error)
        harness.advance(5)
    return len(harness.all(SendFetch)) - before


# -- the general rule ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        row(),
        row(high_watermark=5_000),
        row(last_stable_offset=3),
        row(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        row(error_code=ErrorCode.UNKNOWN_TOPIC_ID),
        row(error_code=ErrorCode.INCONSISTENT_TOPIC_ID),
        row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(1, 5)),
        row(error_code=ErrorCode.FENCED_LEADER_EPOCH, leader=(-1, 5)),
        row(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH),
        row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
        row(error_code=ErrorCode.OFFSET_NOT_AVAILABLE),
        row(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
        row(preferred_replica=1),
        row(preferred_replica=77),
    ],
    ids=lambda each: f"{each.error_code}-{each.last_stable_offset}-{each.preferred_replica}",
)
@pytest.mark.parametrize("settings", [PLAIN, COMMITTED], ids=["plain", "committed"])
def test_an_answer_that_comes_at_once_and_brings_nothing_is_no_loop(
    told: PartitionAnswer, settings: FetchSettings
) -> None:
    """At first after 100 ms, later after a second. A position that is out of range and is not is
    another case: each check has a rest of its own."""
    harness = reading(settings)
    harness.log[tp()] = (0, 100)
    count = requests_in(harness, 10_000, told)
    assert 5 <= count <= (100 if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE else 25)


def test_a_broker_that_rests_does_not_hold_others_up() -> None:
    harness = Harness(PLAIN, partitions=2, leader=lambda n: n + 1).assign(0, 1)
    for node in (1, 2):
        harness.answer(node=node)
    harness.answer(None, error=ErrorCode.UNKNOWN_SERVER_ERROR, after_ms=1, node=1)
    assert 1 not in harness.open
    harness.answer({1: data(0, 4)}, node=2)
    assert harness.asked(2) == {1: 4}


def test_answers_that_bring_something_follow_each_other_at_once() -> None:
    harness = reading()
    for offset in range(10, 30):
        harness.answer({0: data(offset)})
        harness.read()
        assert harness.asked() == {0: offset + 1}
    assert harness.now == 1_500


def test_after_a_rest_progress_makes_it_forgotten() -> None:
    harness = reading()
    requests_in(harness, 3_000, row())
    harness.advance(2_000)
    harness.answer({0: data(10)})
    harness.answer(None, row(), after_ms=1)
    assert not harness.open
    harness.advance(100)
    assert harness.open


# -- read_committed ------------------------------------------------------------------------------


def test_beyond_the_last_stable_offset_a_partition_rests_alone() -> None:
    """A position got elsewhere; brokers answer at once and with nothing, for ever."""
    harness = reading(COMMITTED, partitions=2)
    harness.answer(None, row(0, last_stable_offset=5), after_ms=1)
    assert harness.asked() == {1: 10}, "its neighbour goes on, and may wait at the broker"
    harness.advance(100)
    harness.answer()
    assert harness.asked() == {0: 10, 1: 10}


def test_at_the_last_stable_offset_nothing_rests() -> None:
    """There brokers wait properly."""
    harness = reading(COMMITTED)
    harness.answer(None, row(0, last_stable_offset=10))
    assert harness.asked() == {0: 10}


def test_the_end_that_a_user_asks_for_has_his_isolation() -> None:
    """klag-exporter #104: a lag that never ends under read_committed."""
    for settings in (PLAIN, COMMITTED):
        harness = reading(settings)
        harness.log[tp()] = (0, 70)
        harness.post(OffsetsAsked(1, {tp(): LATEST}, harness.now + 1_000))
        assert harness.all(ListOffsets)[-1].read_committed is settings.read_committed
        assert harness.all(OffsetsFound)[-1].found[tp()].offset == 70
