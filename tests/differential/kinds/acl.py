"""Three users whose rights come and go ask for everything that groups, topics and transactions
have to offer; what they may not do must be refused in the same words and in the same order of
checks, and patterns match only topics that the member may know of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.differential._acl_requests import create_acls, delete_acls, describe_acls
from tests.differential._conversation import new_state
from tests.differential._group_configs import GROUP_CONFIGS
from tests.differential._groups import GROUPS
from tests.differential._heartbeats import HEARTBEATS
from tests.differential._log_requests import batch, fetch, list_offsets, produce
from tests.differential._offsets import OFFSETS, SIMPLE_GROUPS
from tests.differential._plan import Kind, Plan, Steps, TooSlowError
from tests.differential._producers import (
    Producer,
    add_offsets,
    add_partitions,
    end,
    init,
    settled,
)
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, AwaitPatterns, CreateTopic, SettleMetadata, Topic
from tests.differential._users import USERS

__all__ = ["KIND"]

_REQUESTS: Final = 60
_WITH_PATTERNS: Final = 24
"""Fewer: patterns are resolved again from 10 s on, and what they match changes with the rights."""
_PATTERN_DOUBT_MS: Final = 9500
_TABLE: Final = (*HEARTBEATS, *OFFSETS, *SIMPLE_GROUPS, *GROUPS, *GROUP_CONFIGS)
_MADE_UP: Final = ("solo",)
"""Left out: alone in its group, and of a version that only repeats the others."""


class _Conversation:
    def __init__(self, plan: Plan, state: SequenceState) -> None:
        self._plan = plan
        self._state = state
        self._sent = 0
        self._limit = _WITH_PATTERNS if state.uses_patterns else _REQUESTS
        self._began_ms = plan.now_ms()
        self._patterned: set[str] = set()
        self._producer = Producer(f"{plan.prefix}-t0")
        self._table = [
            (weight * state.rng.choice([0.3, 1, 2]), chooser)
            for name, weight, chooser in _TABLE
            if name not in _MADE_UP
        ]

    def steps(self) -> Steps:
        state = self._state
        rng = state.rng
        state.topics = {}
        for number in range(2):
            name = f"{self._plan.topic_prefix}-{number}"
            state.topics[name] = yield CreateTopic(name, rng.choice([1, 3]))
        state.future_topics = [f"{self._plan.topic_prefix}-9"]
        yield from self._change_rights(create_acls(state))
        while self._sent < self._limit:
            roll = rng.random()
            if roll < 0.08:
                yield from self._change_rights(create_acls(state))
            elif roll < 0.1:
                yield from self._change_rights(delete_acls(state))
            elif roll < 0.12:
                yield from self._change_rights(describe_acls(state))
            else:
                yield from self._use()
        everything = replace(delete_acls(state), action="delete-all-acls")
        one = everything.message.filters[0]
        one.resource_type_filter, one.pattern_type_filter = 1, 2
        one.resource_name_filter = state.main.group_id
        yield from self._change_rights(everything)

    def _change_rights(self, ask: Ask) -> Steps:
        yield ask
        yield SettleMetadata()

    def _use(self) -> Steps:
        state = self._state
        rng = state.rng
        channel = rng.choice([1, 1, 1, *range(1, len(USERS) + 1), 0])
        ask: Ask | None
        if rng.random() < 0.25:
            ask = self._about_logs()
        else:
            weights = [weight for weight, _ in self._table]
            _, chooser = rng.choices(self._table, weights)[0]
            ask = chooser(state)
        if ask is None:
            return
        self._sent += 1
        answer: Any = yield replace(ask, channel=channel)
        if self._patterned and self._plan.now_ms() - self._began_ms > _PATTERN_DOUBT_MS:
            raise TooSlowError("so long that the two sides may differ over resolving again")
        if isinstance(ask.message, ConsumerGroupHeartbeatRequest):
            yield from self._learn(ask.message, answer)
        elif ask.action == "alter-group":
            yield SettleMetadata()
        elif ask.action == "init":
            self._producer.started(answer)
            yield settled(self._producer)
        elif ask.action == "end":
            yield settled(self._producer)

    def _learn(self, message: ConsumerGroupHeartbeatRequest, answer: Any) -> Steps:
        group = self._state.group_named(message.group_id)
        if group is not None and hasattr(answer, "member_epoch"):
            group.heard(message, answer)
        if message.subscribed_topic_regex:
            self._patterned.add(message.group_id)
        if message.group_id in self._patterned:
            yield AwaitPatterns(message.group_id)

    def _about_logs(self) -> Ask:
        state = self._state
        rng = state.rng
        topic: Topic = state.topics[rng.choice(sorted(state.topics))]
        number = rng.randrange(topic.partitions)
        producer = self._producer
        choice = rng.randrange(7)
        if choice == 0:
            return produce(state, topic, number, batch(rng))
        if choice == 1:
            return fetch(state, topic, number, 0)
        if choice == 2:
            return list_offsets(state, topic, number, -1)
        if choice == 3:
            return init(state, producer)
        if choice == 4:
            return add_partitions(state, producer, list(state.topics.values()))
        if choice == 5:
            return add_offsets(state, producer, state.main.group_id)
        return end(state, producer)


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0.25)).steps()


KIND: Final = Kind("acl", 5, sequence, secure=True)
