"""Transactions of both versions: several producers on the same partitions and groups, epochs right
and wrong, offsets of consumer groups and simple groups in transactions, readers that see only what
was committed.

After every request that may end a transaction the sequence waits until its markers are written;
what a broker answers before that is a matter of luck.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from tests.differential._conversation import new_state
from tests.differential._heartbeats import join, steady
from tests.differential._log_requests import batch, fetch, list_offsets, produce
from tests.differential._offsets import some_epoch
from tests.differential._plan import Answered, Kind, Plan, Steps
from tests.differential._producers import (
    Producer,
    add_offsets,
    add_partitions,
    describe_producers,
    describe_transactions,
    end,
    init,
    list_transactions,
    settled,
    txn_commit,
)
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, CreateTopic, SettleMetadata, Topic

__all__ = ["KIND"]

_REQUESTS: Final = 48
_FIRST_VERSION_PRODUCE: Final = 11  # the last Produce that does not add partitions by itself


class _Conversation:
    def __init__(self, plan: Plan, state: SequenceState) -> None:
        rng = state.rng
        self._state = state
        self._plan = plan
        self._sent = 0
        self._topics: list[Topic] = []
        self._written: set[tuple[str, int]] = set()
        self._producers = [
            Producer(f"{plan.prefix}-t{number}", is_second=rng.random() < 0.6)
            for number in range(rng.choice([1, 2, 2, 3]))
        ]
        self._weights = {
            "init": 1.5,
            "add-partitions": 3.0,
            "produce": 6.0,
            "add-offsets": 2.5,
            "txn-commit": 4.0,
            "end": 4.0,
            "read": 5.0,
            "fetch-offsets": 3.0,
            "look": 2.5,
            "member": 2.0,
        }
        self._weights = {
            name: weight * rng.choice([0.4, 1, 1, 2.5]) for name, weight in self._weights.items()
        }

    def steps(self) -> Steps:
        rng = self._state.rng
        for number in range(2):
            topic = yield CreateTopic(f"{self._plan.topic_prefix}-{number}", rng.choice([1, 3]))
            self._topics.append(topic)
        yield SettleMetadata()
        for producer in self._producers:
            yield from self._init(producer)
        while self._sent < _REQUESTS:
            (choice,) = rng.choices(list(self._weights), list(self._weights.values()))
            yield from self._act(choice, rng.choice(self._producers))
        for producer in self._producers:
            yield from self._ask(describe_transactions(self._state, [producer]))

    def _act(self, choice: str, producer: Producer) -> Steps:
        state = self._state
        if choice == "init":
            yield from self._init(producer)
        elif choice == "add-partitions":
            answer = yield from self._ask(add_partitions(state, producer, self._topics))
            producer.is_open = producer.is_open or answer is not None
        elif choice == "produce":
            yield from self._produce(producer)
        elif choice == "add-offsets":
            yield from self._ask(add_offsets(state, producer, self._group()))
        elif choice == "txn-commit":
            yield from self._txn_commit(producer)
        elif choice == "end":
            ask = end(state, producer)
            answer = yield from self._ask(ask)
            producer.ended(answer, ask.version)
            yield settled(producer)
        elif choice == "read":
            yield from self._read()
        elif choice == "fetch-offsets":
            yield from self._fetch_offsets()
        elif choice == "look":
            yield from self._look()
        else:
            group = state.main
            beat = join(state) if len(group.members) < 2 else steady(state)
            if beat is not None and beat.message.group_id == group.group_id:
                group.heard(beat.message, (yield from self._ask(beat)))

    def _init(self, producer: Producer) -> Steps:
        answer = yield from self._ask(init(self._state, producer))
        producer.started(answer)
        yield settled(producer)

    def _produce(self, producer: Producer) -> Steps:
        state = self._state
        rng = state.rng
        topic = rng.choice(self._topics)
        number = rng.randrange(topic.partitions)
        count = rng.choice([1, 1, 2, 5])
        sequence = producer.next_sequence(topic.name, number)
        wrong = rng.random() < 0.1
        if wrong:
            sequence = max(0, sequence + rng.choice([-1, 1, 7]))
        transactional = rng.random() < 0.93
        epoch = producer.epoch + (rng.choice([-1, 1]) if rng.random() < 0.04 else 0)
        records = batch(
            rng,
            (producer.producer_id, epoch, sequence),
            count=count,
            transactional=transactional,
        )
        low, high = state.offered["Produce"]
        version = rng.randint(12, high) if producer.is_second else _FIRST_VERSION_PRODUCE
        ask = produce(
            state,
            topic,
            number,
            records,
            transactional_id=producer.transactional_id if transactional else None,
            version=max(3, low, version),
        )
        answer = yield from self._ask(ask)
        code = _produced(answer)
        if code == 0:
            self._written.add((topic.name, number))
            if not wrong:
                producer.sequences[topic.name, number] = sequence + count

    def _txn_commit(self, producer: Producer) -> Steps:
        state = self._state
        group_id = self._group()
        member = state.main.pick(state.rng)
        identity: tuple[str, int, str | None] = ("", -1, None)
        if group_id == state.main.group_id and member is not None and state.rng.random() < 0.8:
            identity = (member.member_id, some_epoch(state, member), None)
        elif state.rng.random() < 0.15:
            identity = state.rng.choice([("ghost", 1, None), ("ghost", -1, None), ("", 1, None)])
        yield from self._ask(txn_commit(state, producer, group_id, identity, self._topics))

    def _read(self) -> Steps:
        state = self._state
        rng = state.rng
        topic = rng.choice(self._topics)
        number = rng.randrange(topic.partitions)
        committed = rng.random() < 0.6
        if rng.random() < 0.6:
            yield from self._ask(fetch(state, topic, number, 0, committed=committed))
        else:
            timestamp = rng.choice([-1, -1, -2])
            yield from self._ask(list_offsets(state, topic, number, timestamp, committed=committed))

    def _fetch_offsets(self) -> Steps:
        state = self._state
        low, high = state.offered["OffsetFetch"]
        message = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=self._group(), topics=None),),
            require_stable=state.rng.random() < 0.6,
        )
        version = state.rng.randint(max(8, low), high)
        yield from self._ask(Ask("fetch-offsets", message, version))

    def _look(self) -> Steps:
        state = self._state
        choice = state.rng.randrange(3)
        if choice == 0:
            yield from self._ask(describe_transactions(state, self._producers))
        elif choice == 1:
            yield from self._ask(list_transactions(state))
        else:
            yield from self._ask(describe_producers(state, self._topics))

    def _group(self) -> str:
        state = self._state
        return state.main.group_id if state.rng.random() < 0.6 else state.side.group_id

    def _ask(self, ask: Ask) -> Answered:
        self._sent += 1
        answer: Any = yield ask
        return answer


def _produced(answer: Any) -> int:
    codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
    return int(codes[0]) if codes else -1


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("transactions", 12, sequence)
