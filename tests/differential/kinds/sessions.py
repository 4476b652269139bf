"""Fetch sessions: several at a time, on partitions that grow, shrink, are deleted and created
again, with plain records and with transactions, open ones and aborted ones.

Now and then a request waits, and meanwhile others write, or go on with its session. What ends the
wait is compared: it is longer than the time that a side is given to follow the other.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from tests.differential._conversation import new_state
from tests.differential._fetch_sessions import FetchClient, Place
from tests.differential._log_requests import batch, produce
from tests.differential._plan import Answered, Kind, Plan, Steps, TooSlowError
from tests.differential._producers import Producer, end, init, settled
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import (
    Ask,
    CreateTopic,
    DeleteTopic,
    Gather,
    GrowTopic,
    Send,
    SettleMetadata,
    Topic,
)

__all__ = ["KIND"]

_REQUESTS: Final = 60
_SECOND_VERSION_PRODUCE: Final = 12  # adds partitions to transactions by itself
_OFTEN: Final = {
    "fetch": 16.0,
    "produce": 4.0,
    "transaction": 3.0,
    "end": 1.5,
    "delete-records": 0.8,
    "create-again": 0.4,
    "grow": 0.2,
    "wait": 0.7,
}
_WAIT_MS: Final = 4500
_DOUBT_MS: Final = 4000
_WAITING_CHANNEL: Final = 1
_MEANWHILE: Final = ("fetch", "fetch", "produce", "produce", "transaction", "end", "delete-records")


class _Conversation:
    def __init__(self, plan: Plan, state: SequenceState) -> None:
        rng = state.rng
        self._state = state
        self._plan = plan
        self._sent = 0
        self._place = Place()
        self._client = FetchClient(state, self._place)
        self._producer = Producer(f"{plan.prefix}-t", is_second=True)
        self._weights = {name: weight * rng.choice([0.3, 1, 2]) for name, weight in _OFTEN.items()}
        if rng.random() < 0.5:
            self._weights["create-again"] = 0.0
        self._waits = rng.choice([0, 0, 1, 2])
        """How often a request may still wait: it takes long."""

    def steps(self) -> Steps:
        rng = self._state.rng
        for number in range(rng.choice([2, 3])):
            name = f"{self._plan.topic_prefix}-{number}"
            topic = yield CreateTopic(name, rng.choice([1, 2, 3]))
            self._place.topics.append(topic)
        yield SettleMetadata()
        while self._producer.producer_id < 0:  # some of these are refused, on purpose
            self._producer.started((yield from self._ask(init(self._state, self._producer))))
        while self._sent < _REQUESTS:
            (choice,) = rng.choices(list(self._weights), list(self._weights.values()))
            yield from self._act(choice)
        for ask in self._client.asks_to_close():
            yield from self._ask(ask)

    def _act(self, choice: str) -> Steps:
        state = self._state
        rng = state.rng
        # the last topic comes and goes; no transaction writes to it
        *lasting, passing = self._place.topics
        if choice == "fetch":
            ask = self._client.ask()
            self._client.heard(ask, (yield from self._ask(ask)))
        elif choice == "produce":
            yield from self._produce(rng.choice([*lasting, passing]))
        elif choice == "transaction":
            yield from self._produce(rng.choice(lasting), self._producer)
        elif choice == "end":
            ask = end(state, self._producer)
            self._producer.ended((yield from self._ask(ask)), ask.version)
            yield settled(self._producer)
            for topic in lasting:
                for number in range(topic.partitions):
                    self._note(topic, number, self._place.end(topic.name, number) + 1)
        elif choice == "delete-records":
            yield from self._ask(self._delete_records(rng.choice([*lasting, passing])))
        elif choice == "create-again":
            yield from self._create_again(passing)
        elif choice == "wait":
            yield from self._wait()
            self._client.let_go()
        elif passing.partitions < 4:
            yield GrowTopic(passing.name, passing.partitions + 1)
            yield SettleMetadata()
            passing.partitions += 1

    def _wait(self) -> Steps:
        ask = self._client.waiting(_WAIT_MS) if self._waits else None
        if ask is None:
            return
        self._waits -= 1
        self._sent += 1
        began_ms = self._plan.now_ms()
        answers = yield Send(ask.action, ask.message, ask.version, _WAITING_CHANNEL)
        if _WAITING_CHANNEL in answers:
            return
        for _ in range(self._state.rng.choice([0, 1, 2, 3])):
            yield from self._act(self._state.rng.choice(_MEANWHILE))
            answers = yield Gather()
            if _WAITING_CHANNEL in answers:
                return
        if self._plan.now_ms() - began_ms > _DOUBT_MS:
            raise TooSlowError("a fetch may have waited long enough")
        yield Gather(any_within_ms=_WAIT_MS + 4000)

    def _note(self, topic: Topic, number: int, offset: int) -> None:
        self._place.offsets.setdefault((topic.name, number), [0]).append(offset)

    def _produce(self, topic: Topic, producer: Producer | None = None) -> Steps:
        state = self._state
        rng = state.rng
        number = rng.randrange(topic.partitions)
        count = rng.choice([1, 1, 2, 5])
        identity = (-1, -1, -1)
        version = max(3, state.version("Produce"))
        if producer is not None:
            sequence = producer.next_sequence(topic.name, number)
            identity = (producer.producer_id, producer.epoch, sequence)
            version = rng.randint(_SECOND_VERSION_PRODUCE, state.offered["Produce"][1])
        ask = produce(
            state,
            topic,
            number,
            batch(rng, identity, count=count, transactional=producer is not None),
            transactional_id=None if producer is None else producer.transactional_id,
            version=version,
        )
        answer = yield from self._ask(ask)
        parts = [part for each in answer.responses for part in each.partition_responses]
        if parts and parts[0].error_code == 0:
            self._note(topic, number, parts[0].base_offset + count)
            if producer is not None:
                producer.is_open = True
                producer.sequences[topic.name, number] = identity[2] + count

    def _delete_records(self, topic: Topic) -> Ask:
        rng = self._state.rng
        number = rng.randrange(topic.partitions)
        offset = rng.choice([*self._place.offsets.get((topic.name, number), [0]), -1])
        partition = DeleteRecordsRequestDeleteRecordsPartition(
            partition_index=number, offset=offset
        )
        asked = DeleteRecordsRequestDeleteRecordsTopic(name=topic.name, partitions=(partition,))
        message = DeleteRecordsRequest(topics=(asked,), timeout_ms=10_000)
        return self._state.ask("delete-records", message)

    def _create_again(self, topic: Topic) -> Steps:
        """Delete a topic; mostly create another one of that name."""
        rng = self._state.rng
        yield DeleteTopic(topic.name)
        yield SettleMetadata()
        for number in range(topic.partitions):
            self._place.offsets.pop((topic.name, number), None)
        self._place.gone.append(topic)
        self._place.topics.pop()
        for _ in range(rng.choice([0, 0, 2])):
            ask = self._client.ask()
            self._client.heard(ask, (yield from self._ask(ask)))
        again = yield CreateTopic(topic.name, rng.choice([1, 2, 3]))
        yield SettleMetadata()
        self._place.topics.append(again)

    def _ask(self, ask: Ask) -> Answered:
        self._sent += 1
        answer: Any = yield ask
        return answer


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("sessions", 8, sequence)
