"""Plays one sequence on two sides in step, and notes where their answers part.

The real broker leads: the generator sees its answers only. Each request goes to the real side,
then to the other, and the two answers are compared at once. A sequence ends at its first
divergence, because everything after it would be a consequence; a different error text alone does
not end it.

Requests that wait for others (``Send``) are answered at some later step, and at which one is part
of the comparison: after every step each side must have answered the same requests. Neither side can
say that an answer will not come, so the leading side is given a moment after the request has been
looked at, and whoever is behind then gets a long time before that is called a difference.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.groups import DescribeGroupsRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from tests.differential._compare import Difference, differences, value_at
from tests.differential._dice import drawn, draws, id_of
from tests.differential._names import Names
from tests.differential._outcome import Exchange, Outcome
from tests.differential._plan import Kind, Plan, TooSlowError
from tests.differential._sides import Side
from tests.differential._steps import (
    Ask,
    AwaitGone,
    AwaitPatterns,
    AwaitValue,
    CreateTopic,
    DeleteTopic,
    Gather,
    GrowTopic,
    Pause,
    Send,
    SettleMetadata,
    Step,
    Topic,
)

__all__ = ["LeadingSide", "Player", "play"]

_RESOLUTION_S: Final = 0.03
_RESOLUTION_LIMIT_S: Final = 2.0
_POLL_S: Final = 0.02
_ATTEMPTS: Final = 6
_MOMENT_S: Final = 0.012  # for an answer that should have come with the request
_AFTER_S: Final = 0.004  # for answers to others, which come after the one that caused them
_WAITING: Final = ("JoinGroupRequest", "SyncGroupRequest", "FetchRequest")
"""Requests that are answered when others have come, or when their time is over."""
_LATE_S: Final = 3.0  # for an answer that the other side has given
_ASIDE_CHANNEL: Final = -2
_WAIT_S: Final = 8.0  # for a timer to end what a group waits for


class LeadingSide(Protocol):
    """The side whose answers steer: a real broker."""

    def request(self, message: Any, version: int, channel: int = 0) -> Any: ...

    def send(self, message: Any, version: int, channel: int) -> None: ...

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]: ...

    def barrier(self) -> None: ...

    def abandon(self) -> None: ...

    def new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> bytes: ...

    def grow_topic(self, name: str, partitions: int) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def settle_metadata(self) -> None: ...

    def stir(self) -> None:
        """Make the group coordinator write something of no concern: a group that a refused commit
        made is not listed before that."""
        ...


def play(kind: Kind, plan: Plan, real: LeadingSide, other: Side) -> Outcome:
    """Play a seed. Raises ``TooSlowError`` when the machine is too busy for it, again and again."""
    for attempt in range(_ATTEMPTS):
        again = plan.again(attempt)
        player = Player(Outcome(plan.seed, kind.name), again.prefix, real, other)
        try:
            return player.play(kind.sequence(again))
        except TooSlowError:
            if attempt + 1 == _ATTEMPTS:
                raise
        finally:
            real.abandon()
            other.abandon()
    raise AssertionError("not reached")


class Player:
    """Performs steps on both sides. ``prefix`` is what the sequence's own names begin with."""

    def __init__(self, outcome: Outcome, prefix: str, real: LeadingSide, other: Side) -> None:
        self.outcome = outcome
        self._prefix = prefix
        self._real = real
        self._other = other
        self._names = Names()
        self._sent: dict[int, Send] = {}
        self._diverged = False
        self._known_members: set[str] = set()
        """Of classic groups."""

    def play(self, steps: Any) -> Outcome:
        """Drive a generator of steps to its end, or to the first divergence; that one's answer it
        is sent, too. Raises ``TooSlowError`` if it finds that it came too late to be compared."""
        result: Any = None
        try:
            while not self._diverged:
                result = self.perform(steps.send(result))
            steps.send(result)
        except StopIteration:
            pass
        return self.outcome

    @property
    def has_diverged(self) -> bool:
        return self._diverged

    def perform(self, step: Step) -> Any:
        """Do one step; returns its result."""
        if isinstance(step, Ask):
            return self._ask(step)
        self.outcome.steps.append(step)
        match step:
            case Send():
                return self._send(step)
            case Gather(any_within_ms):
                return self._gather(any_within_ms / 1000)
            case CreateTopic(name, partitions, configs):
                topic_id = self._real.new_topic(name, partitions, dict(configs))
                self._other.create_topic(name, partitions, topic_id, dict(configs))
                return Topic(name, topic_id, partitions)
            case GrowTopic(name, partitions):
                self._real.grow_topic(name, partitions)
                self._other.grow_topic(name, partitions)
            case DeleteTopic(name):
                self._real.delete_topic(name)
                self._other.delete_topic(name)
            case Pause(ms):
                time.sleep(ms / 1000)
            case AwaitPatterns(group_id):
                self._await_patterns(group_id)
            case AwaitGone():
                self._await_gone(step)
            case AwaitValue():
                return self._await_value(step)
            case SettleMetadata():
                self._real.settle_metadata()
        return None

    # -- requests that are answered at once --------------------------------------------------------

    def _ask(self, ask: Ask) -> Any:
        real = self._real.request(ask.message, ask.version, ask.channel)
        dice = drawn(ask.message, real) if draws(ask.message) else None
        other = self._other.request(self._names.there(ask.message), ask.version, ask.channel, dice)
        if isinstance(ask.message, OffsetCommitRequest):
            self._real.stir()
        self._compare(ask, real, other)
        return real

    def _compare(self, ask: Ask, real: Any, other: Any) -> None:
        self._names.note(ask.message, real, other)
        self._known_members.add(getattr(real, "member_id", None) or "")
        other = self._names.back(other)
        self._note(Exchange(ask, real, other, tuple(differences(real, other, self._prefix))))

    def _note(self, exchange: Exchange) -> None:
        self.outcome.steps.append(exchange)
        if any(not each.is_text for each in exchange.differences):
            self._diverged = True

    # -- requests that may have to wait ------------------------------------------------------------

    def _send(self, step: Send) -> dict[int, Any]:
        self._real.send(step.message, step.version, step.channel)
        self._sent[step.channel] = step
        may_wait = type(step.message).__name__ in _WAITING
        limit_s = _MOMENT_S if may_wait else _LATE_S
        answers = self._real.arrived_within(limit_s, frozenset([step.channel]))
        if len(self._sent) > len(answers):
            answers.update(self._real.arrived_within(_AFTER_S, frozenset(self._sent)))
        dice = self._dice(step, answers) if draws(step.message) else None
        self._other.send(self._names.there(step.message), step.version, step.channel, dice)
        return self._settle(answers)

    def _dice(self, step: Send, answers: dict[int, Any]) -> list[bytes]:
        """The ids that the real broker drew: a join that waits shows its member's id in the
        group's description, any other is answered. On a busy machine either takes a while."""
        message = step.message
        deadline = time.monotonic() + _LATE_S
        while step.channel not in answers and message.member_id == "":
            describe = DescribeGroupsRequest(groups=(message.group_id,))
            group = self._real.request(describe, 5, _ASIDE_CHANNEL).groups[0]
            ids = [
                each.member_id
                for each in group.members
                if each.group_instance_id == message.group_instance_id
            ]
            new = sorted(frozenset(ids) - self._known_members)
            self._known_members.update(new)
            if new:
                return id_of(new[-1])
            if time.monotonic() > deadline:
                break
            answers.update(self._real.arrived_within(_MOMENT_S, frozenset([step.channel])))
        return drawn(message, answers.get(step.channel))

    def _gather(self, limit_s: float) -> dict[int, Any]:
        self._real.barrier()
        wanted = frozenset(self._sent)
        answers: dict[int, Any] = {}
        deadline = time.monotonic() + limit_s
        while not answers and time.monotonic() < deadline:
            answers = self._real.arrived_within(_MOMENT_S, wanted)
        answers.update(self._real.arrived_within(_MOMENT_S, wanted))
        self._other.barrier()
        return self._settle(answers)

    def _settle(self, real: dict[int, Any]) -> dict[int, Any]:
        """Both sides must have answered the same; compares the answers."""
        expected = frozenset(real)
        other = self._other.arrived_within(_LATE_S, expected) if expected else {}
        other.update(self._other.arrived_within(0, expected))
        behind = frozenset(other) - frozenset(real)
        if behind:
            real.update(self._real.arrived_within(_LATE_S, behind))
            # what came meanwhile on the real side must come on the other one, too
            missing = frozenset(real) - frozenset(other)
            if missing:
                other.update(self._other.arrived_within(_LATE_S, missing))
        for channel in sorted(frozenset(real) | frozenset(other)):
            sent = self._sent.pop(channel)
            ask = Ask(sent.action, sent.message, sent.version, channel)
            self._compare(ask, real.get(channel), other.get(channel))
        return real

    # -- waiting -----------------------------------------------------------------------------------

    def _await_patterns(self, group_id: str) -> None:
        """Resolution has no answer to wait for: give it a moment, then until both sides agree."""
        describe = ConsumerGroupDescribeRequest(group_ids=(group_id,))
        time.sleep(_RESOLUTION_S)
        self._until_equal(describe, 0, _RESOLUTION_LIMIT_S)

    def _until_equal(self, message: Any, version: int, limit_s: float) -> tuple[Any, Any]:
        deadline = time.monotonic() + limit_s
        while True:
            real = self._real.request(message, version, _ASIDE_CHANNEL)
            other = self._other_aside(message, version)
            if not differences(real, other, self._prefix) or time.monotonic() > deadline:
                return real, other
            time.sleep(_POLL_S)

    def _other_aside(self, message: Any, version: int) -> Any:
        answer = self._other.request(self._names.there(message), version, _ASIDE_CHANNEL)
        return self._names.back(answer)

    def _await_gone(self, step: AwaitGone) -> None:
        """Members that are silent must go, on both sides, and not too early on either."""
        began = time.monotonic()
        describe: Any = ConsumerGroupDescribeRequest(group_ids=(step.group_id,))
        version = 0
        if step.is_classic:
            describe, version = DescribeGroupsRequest(groups=(step.group_id,)), 5
        ask = Ask("await-gone", describe, version)
        gone = frozenset(step.member_ids)
        while time.monotonic() < began + _WAIT_S:
            answers = [
                self._real.request(describe, version, _ASIDE_CHANNEL),
                self._other_aside(describe, version),
            ]
            here = [gone & _member_ids(each) for each in answers]
            if (time.monotonic() - began) * 1000 < step.not_before_ms and (
                here[0] != gone or here[1] != gone
            ):
                early = Difference("members", sorted(here[0]), sorted(here[1]))
                self._note(Exchange(ask, answers[0], answers[1], (early,)))
                return
            if not here[0]:
                real, other = self._until_equal(describe, version, _LATE_S)
                found = differences(real, other, self._prefix)
                self._note(Exchange(ask, real, other, tuple(found)))
                return
            time.sleep(_POLL_S)
        raise TooSlowError(f"{step.group_id}: members did not go")

    def _await_value(self, step: AwaitValue) -> Any:
        deadline = time.monotonic() + _WAIT_S
        while True:
            real = self._real.request(step.message, step.version, _ASIDE_CHANNEL)
            if str(value_at(real, step.path)) in step.wanted:
                break
            if time.monotonic() > deadline:
                raise TooSlowError(f"{step.action}: {step.path} is never one of {step.wanted}")
            time.sleep(_POLL_S)
        real, other = self._until_equal(step.message, step.version, _LATE_S)
        found = differences(real, other, self._prefix)
        self._note(
            Exchange(Ask(step.action, step.message, step.version), real, other, tuple(found))
        )
        return real


def _member_ids(answer: Any) -> frozenset[str]:
    return frozenset(
        member.member_id for group in answer.groups for member in getattr(group, "members", ())
    )
