"""What the producer's core takes for granted of sequence numbers without a transactional id: asked
of Kafka and of the bundled broker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from kip848_client.error_codes import ErrorCode
from tests.integration.test_transactions_like_kafka import MockSide
from tests.support.raw_transactions import RawTransactions
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(120)]

LAST = (1 << 31) - 1
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class _Writer:
    """Writes batches as one producer id; each answer is (error code, base offset)."""

    def __init__(self, raw: RawTransactions, topic: str) -> None:
        self.raw = raw
        self._topic = topic
        answer, producer = raw.init(None)
        while answer[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            answer, producer = raw.init(None)
        self.number = producer[0]

    def write(
        self, sequence: int, records: int = 1, *, epoch: int = 0, partition: int = 0
    ) -> tuple[int, int]:
        values = [b"x"] * records
        ((_, _, code, offset, *_),) = self.raw.produce(
            None,
            (self.number, epoch),
            sequence,
            {(self._topic, partition): values},
            12,
            transactional=False,
        )
        return code, offset


def ask(raw: RawTransactions, topic: str) -> dict[str, object]:
    """All questions."""
    one = _Writer(raw, topic)
    told: dict[str, object] = {
        "first": one.write(0, 2),
        "next": one.write(2),
        "again": one.write(0, 2),
        "a gap": one.write(4),
        "elsewhere": one.write(0, partition=1),
    }
    told["four more"] = [one.write(number) for number in (3, 4, 5, 6)]
    told["the fifth last again"] = one.write(2)
    told["the sixth last again"] = one.write(0, 2)
    told["the next epoch, not from 0"] = one.write(7, epoch=1)
    told["the next epoch"] = one.write(0, epoch=1)
    told["the epoch before"] = one.write(7)
    told["the epoch before, elsewhere"] = one.write(1, partition=1)
    told["an epoch that was left out"] = one.write(0, epoch=9)
    stranger = _Writer(raw, topic)
    told["a stranger, not from 0"] = stranger.write(LAST - 1, 1)
    told["across the end"] = stranger.write(LAST, 3)
    told["after the end"] = stranger.write(2)
    return told


EXPECTED = {
    "first": (0, 0),
    "next": (0, 2),
    "again": (0, 0),
    "a gap": (OUT_OF_ORDER, -1),
    "elsewhere": (0, 0),
    "four more": [(0, 3), (0, 4), (0, 5), (0, 6)],
    "the fifth last again": (0, 2),
    "the sixth last again": (OUT_OF_ORDER, -1),
    "the next epoch, not from 0": (OUT_OF_ORDER, -1),
    "the next epoch": (0, 7),
    "the epoch before": (ErrorCode.INVALID_PRODUCER_EPOCH, -1),
    "the epoch before, elsewhere": (0, 1),
    "an epoch that was left out": (0, 8),
    "a stranger, not from 0": (0, 9),
    "across the end": (0, 10),
    "after the end": (0, 13),
}


@pytest.mark.smoke
def test_sequence_numbers_of_kafka_are_what_we_take_them_for(
    real_kafka: RealKafka, unique: Callable[[str], str]
) -> None:
    topic = unique("sequences")
    topic_id = real_kafka.create_topic(topic, 2)
    with closing(RawTransactions(real_kafka.connect, {topic: topic_id})) as raw:
        assert ask(raw, topic) == EXPECTED


def test_sequence_numbers_of_the_bundled_broker_are_those_of_kafka(real_kafka: RealKafka) -> None:
    side = MockSide(real_kafka.profile, "sequences")
    raw = RawTransactions(side.connect, side.topic_ids())
    assert ask(raw, "sequences") == EXPECTED


@pytest.mark.parametrize("crash", [False, True])
def test_a_restarted_broker_knows_the_last_batch_alone(kafka_version: str, *, crash: bool) -> None:
    """So an OUT_OF_ORDER_SEQUENCE_NUMBER does not say that a batch is not written."""
    with RealKafka.start(kafka_version) as broker:
        ids = {"t": broker.create_topic("t", 1)}
        with closing(RawTransactions(broker.connect, ids)) as raw:
            writer = _Writer(raw, "t")
            assert [writer.write(number) for number in range(4)] == [(0, n) for n in range(4)]
        broker.restart(crash=crash)
        broker.await_topic("t", 1)
        with closing(RawTransactions(broker.connect, ids)) as raw:
            writer.raw = raw
            assert writer.write(2) == (OUT_OF_ORDER, -1)
            assert writer.write(3) == (0, 3)
            assert writer.write(4) == (0, 4)
