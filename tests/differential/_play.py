"""Plays one sequence on two sides in step, and notes where their answers part.

The real broker leads: the generator sees its answers only. Each request goes to the real side,
then to the other, and the two answers are compared at once. A sequence ends at its first
divergence, because everything after it would be a consequence; a different error text alone does
not end it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kip848_client.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.differential._actions import Plan, TooSlowError, sequence
from tests.differential._compare import Difference, differences, texts
from tests.differential._sides import Side, renamed
from tests.differential._steps import (
    Ask,
    AwaitPatterns,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
    Pause,
    Step,
    Topic,
)

__all__ = ["Exchange", "LeadingSide", "Outcome", "play"]

_RESOLUTION_S: Final = 0.1
_RESOLUTION_LIMIT_S: Final = 2.0
_POLL_S: Final = 0.02
_ATTEMPTS: Final = 4


class LeadingSide(Protocol):
    """The side whose answers steer: a real broker."""

    def request(self, message: Any, version: int) -> Any: ...

    def new_topic(self, name: str, partitions: int) -> bytes: ...

    def grow_topic(self, name: str, partitions: int) -> None: ...

    def delete_topic(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and both answers."""

    ask: Ask
    real: Any
    other: Any
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class Outcome:
    """What a sequence showed. ``steps`` has everything in order, exchanges included."""

    seed: int
    steps: list[Step | Exchange] = field(default_factory=list)

    @property
    def exchanges(self) -> list[Exchange]:
        return [each for each in self.steps if isinstance(each, Exchange)]

    @property
    def divergences(self) -> list[Exchange]:
        """Exchanges in which anything but an error text differs."""
        return [
            each
            for each in self.exchanges
            if any(not difference.is_text for difference in each.differences)
        ]

    @property
    def differing_texts(self) -> list[Difference]:
        return [
            difference
            for each in self.exchanges
            for difference in each.differences
            if difference.is_text
        ]

    @property
    def texts(self) -> int:
        """Error texts that the real broker gave."""
        return sum(texts(each.real) for each in self.exchanges)


def play(plan: Plan, real: LeadingSide, other: Side) -> Outcome:
    """Play a seed. Raises ``TooSlowError`` when the machine is too busy for it, again and again."""
    for attempt in range(_ATTEMPTS):
        try:
            return _Player(plan.again(attempt), real, other).play()
        except TooSlowError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("not reached")


class _Player:
    def __init__(self, plan: Plan, real: LeadingSide, other: Side) -> None:
        self._plan = plan
        self._real = real
        self._other = other
        self._outcome = Outcome(plan.seed)
        self._ids: dict[str, str] = {}
        """Member ids that the brokers made up: the real one's and the other's."""

    def play(self) -> Outcome:
        steps = sequence(self._plan)
        result: Any = None
        try:
            while not self._outcome.divergences[-1:]:
                step = steps.send(result)
                result = self._perform(step)
        except StopIteration:
            pass
        return self._outcome

    def _perform(self, step: Step) -> Any:
        match step:
            case Ask():
                return self._ask(step)
            case CreateTopic(name, partitions):
                self._outcome.steps.append(step)
                topic_id = self._real.new_topic(name, partitions)
                self._other.create_topic(name, partitions, topic_id)
                return Topic(name, topic_id, partitions)
            case GrowTopic(name, partitions):
                self._outcome.steps.append(step)
                self._real.grow_topic(name, partitions)
                self._other.grow_topic(name, partitions)
            case DeleteTopic(name):
                self._outcome.steps.append(step)
                self._real.delete_topic(name)
                self._other.delete_topic(name)
            case Pause(ms):
                self._outcome.steps.append(step)
                time.sleep(ms / 1000)
            case AwaitPatterns(group_id):
                self._outcome.steps.append(step)
                self._await_patterns(group_id)
        return None

    def _ask(self, ask: Ask) -> Any:
        real = self._real.request(ask.message, ask.version)
        other = self._ask_other(ask)
        self._note_made_up_id(ask.message, real, other)
        other = renamed(other, {theirs: ours for ours, theirs in self._ids.items()})
        found = differences(real, other, self._plan.prefix)
        self._outcome.steps.append(Exchange(ask, real, other, tuple(found)))
        return real

    def _ask_other(self, ask: Ask) -> Any:
        return self._other.request(renamed(ask.message, self._ids), ask.version)

    def _note_made_up_id(self, message: Any, real: Any, other: Any) -> None:
        """A version 0 heartbeat may leave the member id to the broker, and each side makes its
        own."""
        if isinstance(message, ConsumerGroupHeartbeatRequest) and message.member_id == "":
            ids = [getattr(answer, "member_id", None) for answer in (real, other)]
            if all(ids):
                self._ids[str(ids[0])] = str(ids[1])

    def _await_patterns(self, group_id: str) -> None:
        """Resolution has no answer to wait for: give it a moment, then until both sides agree."""
        describe = ConsumerGroupDescribeRequest(group_ids=(group_id,))
        deadline = time.monotonic() + _RESOLUTION_LIMIT_S
        time.sleep(_RESOLUTION_S)
        while time.monotonic() < deadline:
            real = self._real.request(describe, 0)
            if not differences(real, self._other.request(describe, 0)):
                return
            time.sleep(_POLL_S)
