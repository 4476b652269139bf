"""Transactions of the bundled broker beside those of a real one: the same random requests, the same
answers.

Each seed is a sequence of some 40 requests of three transactional producers, in old and new
versions of the protocol: stale and future epochs, strangers, wrong sequence numbers, aborts,
offsets of two groups, markers written by hand, transactions that time out. Every field of every
answer is compared, except ids and times, and so is what is in the partitions in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.topics import CreateTopicsRequestCreatableTopic
from kip848_client.errors import TransportError
from mock_coordinator import MockBroker, VirtualClock
from tests.support.raw_transactions import RawTransactions
from tests.support.real_kafka import RealKafka
from tests.support.transaction_log import LoggedTransaction, TransactionLogReader, told
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
    """The bundled broker in this process, on a clock of its own. Somebody has looked for the
    coordinator of transactions, unless it is not ``known``."""

    def __init__(
        self,
        profile: str,
        topic: str,
        more: Mapping[str, str] | None = None,
        *,
        known: bool = True,
    ) -> None:
        self.clock = VirtualClock(int(time.time() * 1000))
        self.broker = MockBroker(
            {topic: PARTITIONS},
            profile=profile,
            config={**CONFIGS, **(more or {})},
            listen=False,
            clock=self.clock,
        )
        self._connection = self.broker.connect()
        if known:
            find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("warm-up",))
            self.request(find, 4)

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
def started(version: str, more: Mapping[str, str] | None = None) -> Generator[RealKafka]:
    """A broker whose transaction coordinator answers."""
    with RealKafka.start(version, {**CONFIGS, **(more or {})}) as broker:
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


def _create(kafka: RealKafka, name: str, partitions: int = PARTITIONS) -> bytes:
    """Create a topic and wait until its leaders serve it, which groups may not know yet."""
    topic = CreateTopicsRequestCreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    request = api_named("CreateTopics").request(topics=(topic,), timeout_ms=10_000)
    with kafka.connect() as connection:
        answer = connection.request(request, 7).topics[0]
        assert answer.error_code == 0, answer
    with closing(RawTransactions(kafka.connect, {})) as raw:
        _until(lambda: all(raw.fetch(name, index)[0] == 0 for index in range(partitions)))
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


def have_coordinator(side: MockSide) -> None:
    """Let the topic of the log be there, as it is on a broker whose coordinator was found."""
    find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("x",))
    assert side.request(find, 4).coordinators[0].error_code == 0


def test_the_same_is_written_into_the_log_of_transactions(kafka_version: str) -> None:
    with started(kafka_version) as kafka, kafka.connect() as connection:
        log = TransactionLogReader(connection, kafka_version)
        for seed in LOG_SEEDS:
            steps = sequence_of(seed)
            topic = f"log-{seed}"
            play_on_kafka(kafka, steps, topic)
            with closing(RawTransactions(kafka.connect, {})) as labels:
                real = told(labels.label, log.read(), topic)
            side = MockSide(kafka.profile, topic)
            have_coordinator(side)
            raw = RawTransactions(side.connect, side.topic_ids())
            Player(raw, side.wait_out, topic, topic).play(steps)
            written = TransactionLogReader(side, kafka_version).read()
            ours = told(raw.label, written, topic)
            assert ours == real, f"seed {seed}"
            assert len(real) > 10, "too little was written to mean anything"


def add_many(raw: RawTransactions, topics: list[str]) -> None:
    """A transaction of more and more partitions, in several topics, and one that begins with many;
    both end."""
    _, producer = raw.init("many")
    for number in range(14):
        places = [(topics[number % 3], 5 * number % 37), (topics[(number + 1) % 4], number)]
        assert raw.add_partitions("many", producer, places, 3)[0] == 0
    raw.add_offsets("many", producer, "g")
    _, producer = raw.end("many", producer, commit=True)
    raw.settle("many")
    places = [(topic, index) for topic in topics for index in range(0, 37, 3)]
    assert raw.add_partitions("many", producer, places, 3)[0] == 0
    raw.end("many", producer, commit=False)
    raw.settle("many")


def test_many_partitions_are_written_in_the_same_order(kafka_version: str) -> None:
    topics = ["alpha", "beta", "gamma.topic", "a-rather-long-topic-name"]
    with started(kafka_version) as kafka, kafka.connect() as connection:
        log = TransactionLogReader(connection, kafka_version)
        ids = {topic: _create(kafka, topic, 37) for topic in topics}
        with closing(RawTransactions(kafka.connect, ids)) as raw:
            add_many(raw, topics)
            real = told(raw.label, log.read(), "many")
        side = MockSide(kafka.profile, "unused")
        for topic in topics:
            side.broker.create_topic(topic, 37)
        have_coordinator(side)
        raw = RawTransactions(side.connect, side.topic_ids())
        add_many(raw, topics)
        written = TransactionLogReader(side, kafka_version).read()
        assert told(raw.label, written, "many") == real
        assert len(real) == 21


def test_ids_that_are_forgotten_are_tombstones(kafka_version: str) -> None:
    more = {
        "transactional.id.expiration.ms": "2500",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    with started(kafka_version, more) as kafka, kafka.connect() as connection:
        log = TransactionLogReader(connection, kafka_version)
        with closing(RawTransactions(kafka.connect, {})) as raw:
            for name in ("old-1", "old-2"):
                raw.init(name)
            records: list[LoggedTransaction] = []

            def forgotten() -> bool:
                records.extend(log.read())
                gone = [r for r in records if r.fields is None]
                return sum(r.transactional_id.startswith("old") for r in gone) == 2

            _until(forgotten)
            real = told(raw.label, records, "old")
    side = MockSide(kafka.profile, "unused", more)
    have_coordinator(side)
    raw = RawTransactions(side.connect, {})
    for name in ("old-1", "old-2"):
        raw.init(name)
    side.clock.advance(4000)
    ours = told(raw.label, TransactionLogReader(side, kafka_version).read(), "old")
    # how many are forgotten at once is a matter of time on the real one, and their order of hashes
    keys = [(line[1], line[2]) for line in sorted(real[2:], key=lambda line: line[1])]
    assert ours[:2] == real[:2]
    assert [(line[1], line[2]) for line in ours[2:]] == keys
    assert {line[0][1:] for line in ours} == {line[0][1:] for line in real}


def crash_story(
    raw: RawTransactions, crash: Callable[[], None], wait_out: Callable[[str], None], topic: str
) -> list[Any]:
    """Transactional ids in every state, a crash of the broker, and what each is told after it."""
    producers = {name: raw.init(name)[1] for name in ("open", "done", "empty", "dropped", "again")}
    producers["slow"] = raw.init("slow", SHORT_MS)[1]
    lines: list[Any] = []
    for name in ("open", "done", "dropped"):
        lines.append(raw.produce(name, producers[name], 0, {(topic, 0): [name.encode()]}))
        lines.append(raw.txn_commit(name, producers[name], f"g-{name}", {(topic, 0): 5}))
    _, producers["done"] = raw.end("done", producers["done"], commit=True)
    raw.settle("done")
    _, producers["again"] = raw.init("again", producer=producers["again"])
    before = (producers["again"][0], producers["again"][1] - 1)
    lines.append(raw.add_partitions("slow", producers["slow"], [(topic, 1)], 3))
    crash()
    raw.list()  # which finds the connection lost
    wait_out("slow")
    lines += [raw.describe(name) for name in (*producers, "unknown")]
    lines.append(raw.list())
    lines.append(raw.init("again", producer=before)[0])
    lines.append(raw.end("slow", producers["slow"], commit=True)[0])
    lines.append(raw.end("done", producers["done"], commit=True)[0])
    lines.append(raw.produce("open", producers["open"], 1, {(topic, 0): [b"more"]}))
    lines.append(raw.produce("open", producers["open"], 0, {(topic, 0): [b"open"]}))
    answer, producers["open"] = raw.end("open", producers["open"], commit=True)
    raw.settle("open")
    lines.append(answer)
    lines.append(raw.init("dropped")[0])
    raw.settle("dropped")
    lines.append(raw.init("dropped")[0])
    lines.append(raw.init("empty")[0])
    lines += [raw.describe(name) for name in producers]
    lines += [raw.offsets(f"g-{name}", [(topic, 0)]) for name in ("open", "done", "dropped")]
    return lines


def test_a_crash_leaves_transactions_as_a_crash_of_kafka_does(kafka_version: str) -> None:
    with started(kafka_version) as kafka:
        ids = {"crash": _create(kafka, "crash")}

        def crash() -> None:
            kafka.restart(crash=True)
            with closing(RawTransactions(kafka.connect, {})) as again:
                _until(lambda: again.describe("open")[0][1] == 0)
                _until(lambda: all(again.fetch("crash", i)[0] == 0 for i in range(PARTITIONS)))

        with closing(RawTransactions(kafka.connect, ids)) as raw:

            def wait_out(name: str) -> None:
                raw.settle(name, until="CompleteAbort")

            real = crash_story(raw, crash, wait_out, "crash")
            with kafka.connect() as connection:
                log = TransactionLogReader(connection, kafka_version).read()
                real_log = [told(raw.label, log, name) for name in NAMES]
    side = MockSide(kafka.profile, "crash")
    have_coordinator(side)
    RawTransactions(side.connect, {}).init("warm-up")
    raw = RawTransactions(side.connect, side.topic_ids())
    ours = crash_story(raw, side.broker.restart, side.wait_out, "crash")
    written = TransactionLogReader(side.connect(), kafka_version).read()
    assert ours == real
    for name, lines in zip(NAMES, real_log, strict=True):
        assert told(raw.label, written, name) == lines, name


NAMES = ("open", "done", "empty", "dropped", "again", "slow")
