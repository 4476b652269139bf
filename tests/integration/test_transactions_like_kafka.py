"""Transactions of the bundled broker beside those of a real one: the same random requests, the same
answers.

Each seed is a sequence of some 40 requests of three transactional producers, in old and new
versions of the protocol: stale and future epochs, strangers, wrong sequence numbers, aborts,
offsets of two groups, markers written by hand, transactions that time out. Every field of every
answer is compared, except ids and times, and so is what is in the partitions in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kip848_client.errors import TransportError
from kip848_client.wire import api_named
from kip848_client.wire.messages.topics import CreateTopicsRequestCreatableTopic
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.transactions import TransactionLog
from mock_coordinator.core.transactions.records import TransactionState
from tests.support.raw_transactions import RawTransactions
from tests.support.real_kafka import RealKafka
from tests.support.transaction_log import RealTransactionLog
from tests.support.transaction_sequences import (
    LONG_MS,
    PARTITIONS,
    SHORT_MS,
    Player,
    Step,
    sequence_of,
)
from tests.support.wire_connection import ConnectionLostError

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(300)]

CONFIGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.max.timeout.ms": str(LONG_MS),
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
SEEDS = range(40)
LOG_SEEDS = range(100, 110)


class MockSide:
    """The bundled broker in this process, on a clock of its own."""

    def __init__(self, profile: str, topic: str) -> None:
        self.clock = VirtualClock(int(time.time() * 1000))
        self.broker = MockBroker(
            {topic: PARTITIONS}, profile=profile, config=CONFIGS, listen=False, clock=self.clock
        )
        self._connection = self.broker.connect()

    def request(self, message: Any, version: int) -> Any:
        try:
            return self._connection.ask(message, version)
        except TransportError as err:
            raise ConnectionLostError(str(err)) from err

    def connect(self) -> MockSide:
        self._connection = self.broker.connect()
        return self

    def close(self) -> None:
        """Nothing: the broker goes with this object."""

    def topic_ids(self) -> dict[str, bytes]:
        answer = self.request(api_named("Metadata").request(topics=None), 12)
        return {topic.name: bytes(topic.topic_id) for topic in answer.topics}

    def wait_out(self, _transactional_id: str) -> None:
        self.clock.advance(SHORT_MS + 500)


@contextmanager
def started(version: str) -> Generator[RealKafka]:
    """A broker whose transaction coordinator answers."""
    with RealKafka.start(version, CONFIGS) as broker:
        with broker.connect() as connection:
            find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("warm-up",))
            _until(lambda: connection.request(find, 4).coordinators[0].error_code == 0)
        with closing(RawTransactions(broker.connect, {})) as raw:
            _until(lambda: raw.init("warm-up")[0][0] == 0)
        yield broker


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, "the transaction coordinator does not come up"
        time.sleep(0.05)


def play_on_kafka(kafka: RealKafka, steps: list[Step], topic: str) -> list[Any]:
    topic_id = _create(kafka, topic)
    with closing(RawTransactions(kafka.connect, {topic: topic_id})) as raw:

        def wait_out(transactional_id: str) -> None:
            raw.settle(transactional_id, until="CompleteAbort")

        return Player(raw, wait_out, topic, topic).play(steps)


def _create(kafka: RealKafka, name: str) -> bytes:
    """Create a topic and wait until its leaders serve it, which groups may not know yet."""
    topic = CreateTopicsRequestCreatableTopic(
        name=name, num_partitions=PARTITIONS, replication_factor=1
    )
    request = api_named("CreateTopics").request(topics=(topic,), timeout_ms=10_000)
    with kafka.connect() as connection:
        answer = connection.request(request, 7).topics[0]
        assert answer.error_code == 0, answer
    with closing(RawTransactions(kafka.connect, {})) as raw:
        _until(lambda: all(raw.fetch(name, index)[0] == 0 for index in range(PARTITIONS)))
    return bytes(answer.topic_id)


def play_on_mock(profile: str, steps: list[Step], topic: str) -> list[Any]:
    side = MockSide(profile, topic)
    raw = RawTransactions(side.connect, side.topic_ids())
    return Player(raw, side.wait_out, topic, topic).play(steps)


def story(steps: list[Step], real: list[Any], ours: list[Any]) -> str:
    """The first step that was answered otherwise, and how Kafka came there; nothing if none was."""
    for number, step in enumerate(steps):
        if real[number] != ours[number]:
            before = "\n".join(f"  {steps[i]}\n      {real[i]}" for i in range(number))
            return f"{step}\n  Kafka: {real[number]}\n  ours:  {ours[number]}\nafter\n{before}"
    return ""


def test_the_same_requests_get_the_same_answers(kafka_version: str) -> None:
    stories: list[str] = []
    with started(kafka_version) as kafka:
        for seed in SEEDS:
            steps = sequence_of(seed, txn_commit_version=6 if kafka.profile == "4.4" else 5)
            topic = f"txn-{seed}"
            real = play_on_kafka(kafka, steps, topic)
            ours = play_on_mock(kafka.profile, steps, topic)
            assert len(real) == len(ours) == len(steps)
            difference = story(steps, real, ours)
            stories += [f"seed {seed}: {difference}"] if difference else []
    assert not stories, "\n\n".join(stories)


class Written:
    """What the bundled broker writes."""

    def __init__(self) -> None:
        self.records: list[TransactionLog] = []

    def note(self, _now_ms: int, record: TransactionLog) -> None:
        self.records.append(record)


def told(
    raw: RawTransactions, records: list[TransactionLog], prefix: str, profile: str
) -> list[Any]:
    """Records without ids and times, to be compared.

    4.0 does not write the producer id before, and forgets in the log when the last transaction
    began as soon as a producer starts anew, though not in memory.
    """
    partial = profile == "4.0"
    lines: list[Any] = []
    for record in records:
        value = record.value
        if not record.transactional_id.startswith(prefix) or value is None:
            continue
        previous = -1 if partial else value.previous_producer_id
        ids = (value.producer_id, previous, value.next_producer_id)
        forgets = partial and value.state is TransactionState.EMPTY
        lines.append(
            (
                record.transactional_id,
                tuple(raw.label(producer_id) for producer_id in ids),
                value.producer_epoch,
                value.state.kafka_name,
                value.timeout_ms,
                sorted(value.partitions),
                value.start_ms > 0 and not forgets,
                value.client_version,
            )
        )
    return lines


def test_the_same_is_written_into_the_log_of_transactions(kafka_version: str) -> None:
    with started(kafka_version) as kafka, kafka.connect() as connection:
        log = RealTransactionLog(connection, kafka_version)
        for seed in LOG_SEEDS:
            steps = sequence_of(seed)
            topic = f"log-{seed}"
            play_on_kafka(kafka, steps, topic)
            with closing(RawTransactions(kafka.connect, {})) as labels:
                real = told(labels, log.read(), topic, kafka.profile)
            side = MockSide(kafka.profile, topic)
            written = Written()
            side.broker.core.broker.disk.transactions.listener = written.note
            raw = RawTransactions(side.connect, side.topic_ids())
            Player(raw, side.wait_out, topic, topic).play(steps)
            assert told(raw, written.records, topic, kafka.profile) == real, f"seed {seed}"
            assert len(real) > 10, "too little was written to mean anything"
