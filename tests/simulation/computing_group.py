"""A group whose members compute, in virtual time: the client's cores and the broker's, and between
them answers that get lost.

``Member`` is a driver as ``kip848_client.core.group`` describes it, with nothing real around it.
``ComputingGroup`` watches: no partition is in two members' hands, ever.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from kip848_client.core.assignor_rounds import ComputingSettings
from kip848_client.core.client_assignors import AssignorFailed, StickyAssignor
from kip848_client.core.group import (
    AbandonComputation,
    ApplicationDone,
    AssignmentComputed,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
    AwaitApplication,
    CallAssignors,
    CallListener,
    ComputeAssignment,
    GroupCore,
    Input,
    InstallAssignment,
    ListenerReturned,
    Output,
    PrepareAssignment,
)
from kip848_client.core.group_wire.assignors import (
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
)
from kip848_client.core.group_wire.heartbeat import heartbeat_outcome, heartbeat_request
from kip848_client.core.member import (
    AssignorNews,
    CoordinatorFound,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatLost,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberCore,
    MemberSettings,
    MemberState,
    OfferedAssignor,
    Polled,
    ResolveTopics,
    SendHeartbeat,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.offsets import CommitterCore, CommitterSettings, OffsetTracker
from kip848_client.core.types import GroupId, MemberId, TopicPartition
from mock_coordinator import MockBroker
from mock_coordinator.driver.clock import Alarm, VirtualClock

__all__ = ["ComputingGroup", "Member"]

_GROUP: Final = GroupId("g")
_LATENCY_MS: Final = 2
_REBALANCE_TIMEOUT_MS: Final = 20_000
_NO_ANSWER_MS: Final = 1_000


class Member:
    """One process. ``versions`` are those of its assignor; ``slow_ms`` is how long that takes,
    ``fails`` whether it raises."""

    def __init__(
        self, world: ComputingGroup, name: str, versions: tuple[int, int] = (0, 0)
    ) -> None:
        self.world = world
        self.member_id = MemberId(name)
        self.alive = True
        self.slow_ms = 10
        self.fails = False
        self.computed = 0
        self.told: list[AssignorNews] = []
        self.dies_when_computing = False
        self._abandoned: set[int] = set()
        self._alarm: Alarm | None = None
        self._seen: object = None
        """What was held when it was looked at last: the same object while nothing changes."""
        self._connection = world.broker.connect()
        low, high = versions
        offer = OfferedAssignor(StickyAssignor.name, low, high, metadata_version=high)
        settings = MemberSettings(
            client_assignors=(offer,),
            max_poll_interval_ms=_REBALANCE_TIMEOUT_MS,
            auto_commit=False,
            request_timeout_ms=_NO_ANSWER_MS,
        )
        committer = CommitterSettings(auto_commit_interval_ms=None)
        self.core = GroupCore(
            MemberCore(settings, self.member_id, lambda ms: ms),
            CommitterCore(committer, OffsetTracker(), lambda ms: ms),
            lambda _: None,
            lambda _: None,
            lambda _: 100,
            ComputingSettings(_REBALANCE_TIMEOUT_MS, _REBALANCE_TIMEOUT_MS, _NO_ANSWER_MS),
        )
        self.feed(Subscribed(frozenset({"t"})))
        self.feed(Polled(waiting=True))

    @property
    def held(self) -> set[TopicPartition]:
        """What its application may read."""
        return {each.tp for each in self.core.fetchable}

    def has_changed(self) -> bool:
        """Whether that is another set than at the last look."""
        before, self._seen = self._seen, self.core.fetchable
        return before is not self._seen

    def die(self) -> None:
        """End at once, without a word."""
        self.alive = False

    def leave(self) -> None:
        """End as one should."""
        by_ms = self.world.clock() + 5_000
        self.feed(LeaveRequested(LeaveMode.DEFAULT, by_ms, final=True))

    def feed(self, event: Input) -> None:
        """Give the core an event, and perform what it asks for."""
        if not self.alive:
            return
        for command in self.core.step(self.world.clock(), event):
            self._perform(command)
        self.world.look(self)
        self._set_alarm()

    def _set_alarm(self) -> None:
        due_ms = self.core.deadline_ms
        if self._alarm is not None and self._alarm.at_ms == due_ms:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due_ms is not None:
            self._alarm = self.world.clock.call_later(due_ms - self.world.clock(), self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.feed(TimerFired())

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.clock.call_later(delay_ms, action)

    def _soon(self, event: Input, delay_ms: int = _LATENCY_MS) -> None:
        self._after(delay_ms, lambda: self.feed(event))

    def _perform(self, command: Output) -> None:
        match command:
            case FindCoordinator():
                self._soon(CoordinatorFound(command.lookup))
            case ResolveTopics():
                self._soon(TopicsResolved(command.query, dict.fromkeys(command.ids, "t")))
            case CallListener():
                self._soon(ListenerReturned(command.number))
            case CallAssignors():
                self.told.append(command.news)
                self._soon(ListenerReturned(command.number))
            case AwaitApplication():
                self._soon(ApplicationDone(command.number))
            case SendHeartbeat():
                self._ask(
                    heartbeat_request(_GROUP, command.intent),
                    lambda answer: HeartbeatAnswered(
                        command.attempt, heartbeat_outcome(answer, offers_assignors=True)
                    ),
                    HeartbeatLost(command.attempt, LossReason.TIMED_OUT),
                )
            case ComputeAssignment():
                self._compute(command)
            case AbandonComputation():
                self._abandoned.add(command.number)
            case PrepareAssignment(number=number):
                request: Any = prepare_request(_GROUP, self.member_id, command)
                lost = AssignmentLost(number, "no answer")
                self._ask(request, lambda answer: self._prepared(number, answer), lost)
            case InstallAssignment(number=number):
                request = install_request(_GROUP, self.member_id, command)
                lost = AssignmentLost(number, "no answer")
                self._ask(request, lambda answer: self._installed(number, answer), lost)
            case _:
                pass  # what is told, and what the application would do

    def _prepared(self, number: int, answer: Any) -> AssignmentPrepared:
        return prepare_outcome(number, answer)

    def _installed(self, number: int, answer: Any) -> AssignmentInstalled:
        return install_outcome(number, answer)

    def _ask(self, request: Any, event: Callable[[Any], Input], lost: Input) -> None:
        if self.world.loses():
            self._soon(lost, _NO_ANSWER_MS)
            return

        def arrive() -> None:
            if not self.alive:
                return
            answer = self._connection.ask(request)
            if self.world.loses():
                self._soon(lost, _NO_ANSWER_MS)
            else:
                self._soon(event(answer))

        self._after(_LATENCY_MS, arrive)

    def _compute(self, command: ComputeAssignment) -> None:
        if self.dies_when_computing:
            self.die()
            return
        self.computed += 1
        self.world.last_asked = self

        def done() -> None:
            if command.number in self._abandoned:
                return
            if self.fails:
                failure = AssignorFailed("assign() raised OSError")
                self.feed(AssignmentComputed(command.number, failure=failure))
                return
            group = command.group
            result = StickyAssignor().assign(group.members, group.topics)
            self.feed(AssignmentComputed(command.number, result))

        self._after(self.slow_ms, done)


class ComputingGroup:
    """The broker, the time, and the members. ``loss`` is how many of 100 messages get lost."""

    def __init__(self, partitions: int, *, seed: int = 0, loss: int = 0) -> None:
        self.clock = VirtualClock()
        config = {
            "group.consumer.session.timeout.ms": "10000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
        }
        self.broker = MockBroker({"t": partitions}, listen=False, clock=self.clock, config=config)
        self.partitions = partitions
        self.members: list[Member] = []
        self.last_asked: Member | None = None
        """Who computed last, or began to."""
        self.loss = loss
        self.rng = Random(seed)
        self._holder: dict[TopicPartition, Member] = {}

    def loses(self) -> bool:
        """Whether this message gets lost."""
        return self.rng.random() * 100 < self.loss

    def join(
        self, count: int, prefix: str = "m", versions: tuple[int, int] = (0, 0)
    ) -> list[Member]:
        """More members, at once."""
        new = [Member(self, f"{prefix}{i:03}", versions) for i in range(count)]
        self.members += new
        return new

    @property
    def alive(self) -> list[Member]:
        """Those that have not ended."""
        return [each for each in self.members if each.alive and not each.core.member.closed]

    def look(self, member: Member) -> None:
        """After each step of a member: is what it holds in nobody else's hands?"""
        if not member.has_changed():
            return
        held = member.held
        for tp, other in list(self._holder.items()):
            if other is member and tp not in held:
                del self._holder[tp]
        for tp in held:
            other = self._holder.setdefault(tp, member)
            assert other is member or not other.alive, f"{tp} is with two members"
            self._holder[tp] = member

    def owners(self) -> dict[TopicPartition, MemberId]:
        """Who has what."""
        return {tp: each.member_id for each in self.alive for tp in each.held}

    def settle(self, within_ms: int = 120_000) -> int:
        """Let time pass until all is in order; returns how long that took."""
        began = self.clock()
        while not self._is_in_order():
            assert self.clock() - began < within_ms, self._why()
            self.clock.advance(500)
        return self.clock() - began

    def _is_in_order(self) -> bool:
        alive = self.alive
        sizes = [len(each.held) for each in alive]
        return (
            all(each.core.member.state is MemberState.STABLE for each in alive)
            and sum(sizes) == self.partitions
            and max(sizes) - min(sizes) <= 1
        )

    def _why(self) -> str:
        return ", ".join(
            f"{each.member_id} {each.core.member.state} {len(each.held)}" for each in self.alive
        )
