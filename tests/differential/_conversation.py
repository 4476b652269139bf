"""From a seed to a sequence: which request comes next, given what the real broker has answered.

A ``Conversation`` is a generator of steps that is sent what the real broker said. A seed first
draws a mood (some kinds of request never, some often: swarm testing reaches states that an even
mixture does not), then about 48 requests. Between single requests it plays whole stretches in
which every member does what a good client would, so that groups converge and wrong requests meet
interesting states.

Some answers are lost: the client that asked never sees them, and repeats its request or goes on
with the epoch that it had.

Nothing in a sequence may depend on how fast it is played. Timeouts are longer than any sequence,
patterns are waited for, and where the assignment interval is on (``has_interval``), requests come
in bursts that are far shorter than the interval, with pauses that are longer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.configs import IncrementalAlterConfigsRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.groups import DeleteGroupsRequest
from tests.differential._groups import describe
from tests.differential._heartbeats import (
    Chooser,
    acknowledge,
    join,
    join_static,
    leave_for_a_while,
    return_static,
    steady,
)
from tests.differential._plan import Plan, Steps, TooSlowError
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import (
    INTERVAL_MS,
    Ask,
    AwaitPatterns,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
    Pause,
    SettleMetadata,
)

__all__ = ["Conversation", "new_state"]

_REQUESTS: Final = 48
_BURST_MS: Final = 450  # a burst must end well inside the interval that began with it
_DOUBT_MS: Final = 900
_PAUSE_MS: Final = INTERVAL_MS + 250
_PATTERN_LIMIT_MS: Final = 7000  # a second resolution is braked for 10 s; stay clear of that moment
_PATTERN_DOUBT_MS: Final = 9500
_CONVERGE_ROUNDS: Final = 2
_LOST: Final = 0.04
_NEEDED: Final = frozenset({"join", "acknowledge", "steady", "describe"})


def new_state(plan: Plan, *, pattern_share: float = 0.2) -> SequenceState:
    """The world of a sequence: its randomness, one to three of the topics, its groups."""
    rng = random.Random(f"differential-{plan.seed}")
    topics = rng.sample(list(plan.topics), rng.randint(1, min(3, len(plan.topics))))
    return SequenceState(
        rng,
        plan.prefix,
        plan.topic_prefix,
        {each.name: each for each in sorted(topics, key=lambda each: each.name)},
        plan.offered,
        uses_patterns=rng.random() < pattern_share and not plan.has_interval,
    )


class Conversation:
    """``table`` has the requests to choose from: name, weight, chooser."""

    def __init__(
        self, plan: Plan, state: SequenceState, table: Sequence[tuple[str, float, Chooser]]
    ) -> None:
        self._plan = plan
        self._state = state
        self._sent = 0
        self._began_ms = plan.now_ms()
        self._burst_began_ms = plan.now_ms()
        self._patterned: set[str] = set()
        """Groups in which somebody may use a pattern, whoever knows of it."""
        self._loses_answers = state.rng.random() < 0.5
        self._weights = self._mood(state.rng, table)

    @staticmethod
    def _mood(
        rng: random.Random, table: Sequence[tuple[str, float, Chooser]]
    ) -> list[tuple[float, Chooser]]:
        """The table's weights, each kind of request switched off, left alone or favoured."""
        return [
            (weight * (1 if name in _NEEDED else rng.choice([0, 0.5, 1, 1, 3])), chooser)
            for name, weight, chooser in table
        ]

    def steps(self) -> Steps:
        """The whole sequence."""
        rng = self._state.rng
        if self._plan.has_interval:
            yield from self._rest()
        yield from self._ask(join(self._state))
        while self._sent < _REQUESTS and not self._is_late():
            roll = rng.random()
            if roll < 0.06:
                yield from self._converge()
            elif roll < 0.09:
                yield from self._change_topics()
            elif roll < 0.12:
                yield from self._static_absence()
            else:
                yield from self._ask(self._choose())
        yield from self._ask(describe(self._state))

    def _is_late(self) -> bool:
        spent = self._plan.now_ms() - self._began_ms
        return self._state.uses_patterns and spent > _PATTERN_LIMIT_MS

    def _choose(self) -> Ask:
        weights = [weight for weight, _ in self._weights]
        while True:
            (_, chooser) = self._state.rng.choices(self._weights, weights)[0]
            ask = chooser(self._state)
            if ask is not None:
                return ask

    def _ask(self, ask: Ask | None) -> Steps:
        if ask is None:
            return
        if self._plan.has_interval and self._plan.now_ms() - self._burst_began_ms > _BURST_MS:
            yield from self._rest()
        lost = self._loses_answers and self._state.rng.random() < _LOST
        answer = yield replace(ask, lost=lost)
        self._sent += 1
        self._check_speed()
        if answer is None:
            return
        yield from self._learn(ask.message, answer, lost=lost)
        if lost and self._state.rng.random() < 0.6:  # a client that heard nothing asks again
            answer = yield replace(ask, action=f"{ask.action}-again")
            self._sent += 1
            yield from self._learn(ask.message, answer, lost=False)

    def _check_speed(self) -> None:
        now_ms = self._plan.now_ms()
        if self._plan.has_interval and now_ms - self._burst_began_ms > _DOUBT_MS:
            raise TooSlowError(
                "a burst took so long that the two sides may have seen two intervals"
            )
        if self._state.uses_patterns and now_ms - self._began_ms > _PATTERN_DOUBT_MS:
            raise TooSlowError("so long that the two sides may differ over resolving again")

    def _rest(self) -> Steps:
        """Let the interval pass, so that whatever was put off is due."""
        yield Pause(_PAUSE_MS)
        self._burst_began_ms = self._plan.now_ms()

    def _learn(self, message: Any, answer: Any, *, lost: bool) -> Steps:
        state = self._state
        if isinstance(message, ConsumerGroupHeartbeatRequest):
            group = state.group_named(message.group_id)
            if group is not None:
                if not lost:
                    group.heard(message, answer)
                if message.subscribed_topic_regex:
                    self._patterned.add(group.group_id)
                if group.group_id in self._patterned:
                    yield AwaitPatterns(group.group_id)
        elif isinstance(message, DeleteGroupsRequest):
            for result in answer.results:
                group = state.group_named(result.group_id)
                if group is not None and result.error_code == 0:
                    group.deleted()
        elif isinstance(message, IncrementalAlterConfigsRequest) and any(
            result.error_code == 0 for result in answer.responses
        ):
            yield SettleMetadata()

    def _converge(self) -> Steps:
        """Every member heartbeats and acknowledges, as good clients do, for some rounds."""
        state = self._state
        for _ in range(state.rng.randint(1, _CONVERGE_ROUNDS)):
            if self._plan.has_interval:
                yield from self._rest()
            for member in list(state.main.members.values()):
                if member.is_away or member.member_id not in state.main.members:
                    continue
                before = member.assigned
                yield from self._ask(acknowledge(state, member))
                if member.assigned != before and member.member_id in state.main.members:
                    yield from self._ask(acknowledge(state, member))
            if self._sent > _REQUESTS:
                return
        yield from self._ask(describe(state))

    def _static_absence(self) -> Steps:
        """A static member joins (if none has), goes away, and something happens before it is
        back."""
        state = self._state
        if not any(member.instance_id for member in state.main.members.values()):
            yield from self._ask(join_static(state))
            yield from self._converge()
        yield from self._ask(leave_for_a_while(state))
        for _ in range(state.rng.randrange(4)):
            yield from self._ask(self._choose())
        yield from self._ask(return_static(state))

    def _change_topics(self) -> Steps:
        """Create a topic that some may be waiting for; grow or delete one of this sequence's
        own."""
        state = self._state
        own = [each for each in state.topics.values() if each.name.startswith(state.topic_prefix)]
        if state.future_topics and (not own or state.rng.random() < 0.6):
            name = state.future_topics.pop(0)
            state.topics[name] = yield CreateTopic(name, state.rng.choice([1, 2, 5]))
        elif own and state.rng.random() < 0.4 and len(state.topics) > 1:
            topic = state.rng.choice(own)
            del state.topics[topic.name]
            state.future_topics.append(topic.name)
            yield DeleteTopic(topic.name)
        elif own:
            topic = state.rng.choice(own)
            topic.partitions += state.rng.choice([1, 3])
            yield GrowTopic(topic.name, topic.partitions)
        yield from self._ask(steady(state))
