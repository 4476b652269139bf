"""Partitions as producers and consumers see them: idempotent producers with right and wrong
sequences and epochs, damaged and empty batches, fetches inside and outside of the log, look-ups by
time, leader epochs, deleted records.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from kip848_client.core.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from tests.differential._conversation import new_state
from tests.differential._log_requests import batch, fetch, list_offsets, produce
from tests.differential._plan import Answered, Kind, Plan, Steps
from tests.differential._producers import Producer, describe_producers, init
from tests.differential._sequence_state import ABSENT_TOPIC, SequenceState
from tests.differential._steps import Ask, CreateTopic, SettleMetadata, Topic

__all__ = ["KIND"]

_REQUESTS: Final = 40
_OFTEN: Final = {
    "produce": 8.0,
    "produce-plain": 3.0,
    "produce-odd": 2.0,
    "init": 1.0,
    "fetch": 6.0,
    "list-offsets": 4.0,
    "leader-epoch": 1.0,
    "delete-records": 1.0,
    "look": 1.0,
}


class _Conversation:
    def __init__(self, plan: Plan, state: SequenceState) -> None:
        rng = state.rng
        self._state = state
        self._plan = plan
        self._sent = 0
        self._cut: set[str] = set()
        """Topics of which records were deleted."""
        self._topics: list[Topic] = []
        self._ends: dict[tuple[str, int], int] = {}
        self._producers = [Producer(None) for _ in range(rng.choice([1, 2]))]
        self._weights = {name: weight * rng.choice([0.3, 1, 2]) for name, weight in _OFTEN.items()}

    def steps(self) -> Steps:
        rng = self._state.rng
        configs = rng.choice([(), (), (("max.message.bytes", "300"),)])
        for number in range(2):
            name = f"{self._plan.topic_prefix}-{number}"
            topic = yield CreateTopic(name, rng.choice([1, 2]), configs)
            self._topics.append(topic)
        yield SettleMetadata()
        for producer in self._producers:
            yield from self._init(producer)
        while self._sent < _REQUESTS:
            (choice,) = rng.choices(list(self._weights), list(self._weights.values()))
            topic = rng.choice(self._topics)
            yield from self._act(choice, topic, rng.randrange(topic.partitions))

    def _act(self, choice: str, topic: Topic, number: int) -> Steps:
        state = self._state
        rng = state.rng
        if choice == "produce":
            yield from self._produce(rng.choice(self._producers), topic, number)
        elif choice == "produce-plain":
            records = batch(rng, count=rng.choice([1, 2, 5]))
            acks = rng.choice([-1, 1, 1, -1, 2, -2])
            self._heard(
                topic,
                number,
                (
                    yield from self._ask(
                        produce(state, topic, number, records, action=choice, acks=acks)
                    )
                ),
            )
        elif choice == "produce-odd":
            yield from self._produce_odd(topic, number)
        elif choice == "init":
            yield from self._init(rng.choice(self._producers))
        elif choice == "fetch":
            offset = rng.choice([0, self._end(topic, number), rng.randrange(20), -1, 999])
            yield from self._ask(
                fetch(state, self._odd(topic), number, offset, committed=rng.random() < 0.3)
            )
        elif choice == "list-offsets":
            when = rng.choice([-1, -1, -2, -2, -3, -4, -5, -6, -9, 0, 1_790_000_000_000, 2**62])
            if when == -3 and topic.name in self._cut:
                when = -1  # Kafka finds the latest time of records that are deleted, too
            committed = rng.random() < 0.3
            yield from self._ask(
                list_offsets(state, self._odd(topic), number, when, committed=committed)
            )
        elif choice == "leader-epoch":
            yield from self._ask(self._leader_epoch(topic, number))
        elif choice == "delete-records":
            self._cut.add(topic.name)
            yield from self._ask(self._delete(topic, number))
        else:
            yield from self._ask(describe_producers(state, self._topics))

    def _end(self, topic: Topic, number: int) -> int:
        return self._ends.get((topic.name, number), 0)

    def _odd(self, topic: Topic) -> Topic:
        """The topic, or now and then one that does not exist."""
        if self._state.rng.random() < 0.05:
            return Topic(ABSENT_TOPIC, b"\x05" * 16, 1)
        return topic

    def _init(self, producer: Producer) -> Steps:
        answer = yield from self._ask(init(self._state, producer))
        producer.started(answer)

    def _produce(self, producer: Producer, topic: Topic, number: int) -> Steps:
        rng = self._state.rng
        count = rng.choice([1, 1, 2, 5])
        expected = producer.next_sequence(topic.name, number)
        sequence = expected
        if rng.random() < 0.25:
            sequence = max(0, expected + rng.choice([-1, 1, -count, -5, 7]))
        epoch = producer.epoch + (rng.choice([-1, 1]) if rng.random() < 0.06 else 0)
        records = batch(rng, (producer.producer_id, epoch, sequence), count=count)
        answer = yield from self._ask(produce(self._state, topic, number, records))
        if self._heard(topic, number, answer) == 0 and sequence == expected:
            producer.sequences[topic.name, number] = sequence + count

    def _produce_odd(self, topic: Topic, number: int) -> Steps:
        """Batches that a broker must not take."""
        rng = self._state.rng
        good = batch(rng, count=2)
        odd = [
            b"",
            good[:-3],
            good[:40],
            good[:-1] + bytes([good[-1] ^ 1]),
            good[:16] + b"\x01" + good[17:],
            good + good,
            batch(rng, (-1, 5, 3)),
            batch(rng, (7, -1, -1)),
        ]
        records = rng.choice(odd)
        where = rng.choice([number, number, number, 99, -1])
        ask = produce(self._state, self._odd(topic), where, records, action="produce-odd")
        yield from self._ask(ask)

    def _heard(self, topic: Topic, number: int, answer: Any) -> int:
        parts = [each for one in answer.responses for each in one.partition_responses]
        if not parts:
            return -1
        if parts[0].error_code == 0:
            self._ends[topic.name, number] = parts[0].base_offset + 1
        return int(parts[0].error_code)

    def _leader_epoch(self, topic: Topic, number: int) -> Ask:
        rng = self._state.rng
        partition = OffsetForLeaderEpochRequestOffsetForLeaderPartition(
            partition=number,
            current_leader_epoch=rng.choice([-1, 0, 5]),
            leader_epoch=rng.choice([-1, 0, 0, 3]),
        )
        asked = OffsetForLeaderEpochRequestOffsetForLeaderTopic(
            topic=self._odd(topic).name, partitions=(partition,)
        )
        message = OffsetForLeaderEpochRequest(topics=(asked,))
        return self._state.ask("leader-epoch", message)

    def _delete(self, topic: Topic, number: int) -> Ask:
        end = self._end(topic, number)
        offset = self._state.rng.choice([-1, 0, end, max(0, end - 1), end + 100, -7])
        partition = DeleteRecordsRequestDeleteRecordsPartition(
            partition_index=number, offset=offset
        )
        asked = DeleteRecordsRequestDeleteRecordsTopic(
            name=self._odd(topic).name, partitions=(partition,)
        )
        message = DeleteRecordsRequest(topics=(asked,), timeout_ms=10_000)
        return self._state.ask("delete-records", message)

    def _ask(self, ask: Ask) -> Answered:
        self._sent += 1
        answer: Any = yield ask
        return answer


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("log", 6, sequence)
