"""Plays the driver, the application and the coordinator for one group core, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kip848_client.core.group import (
    ApplicationDone,
    AwaitApplication,
    CallListener,
    GroupCore,
    Input,
    ListenerReturned,
    Output,
)
from kip848_client.core.member import (
    AssignedPartition,
    CoordinatorFound,
    FindCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatRefused,
    LeaveMode,
    LeaveRequested,
    MemberCore,
    MemberSettings,
    Polled,
    ResolveTopics,
    SendHeartbeat,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitLost,
    CommitterCore,
    CommitterSettings,
    OffsetTracker,
    SendCommit,
)
from kip848_client.core.types import MemberId, TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode

__all__ = ["GroupHarness", "T", "part", "tps"]

T = TopicId(b"t" * 16)
MEMBER = MemberId("member-1")
C = TypeVar("C", bound=Output)


def part(*numbers: int) -> tuple[AssignedPartition, ...]:
    """Partitions of topic t as commands name them."""
    return tuple(AssignedPartition(T, TopicPartition("t", number)) for number in numbers)


def tps(*numbers: int) -> tuple[TopicPartition, ...]:
    """Partitions of topic t as users name them."""
    return tuple(TopicPartition("t", number) for number in numbers)


class GroupHarness:
    """One core and everything it asked for. Look-ups of the coordinator and of names are answered
    at once; the rest is for the test to answer."""

    def __init__(
        self,
        *,
        auto_commit: bool = True,
        interval_ms: int | None = None,
        newest: Mapping[str, TopicId] | None = None,
    ) -> None:
        self.auto_commit = auto_commit
        self.tracker = OffsetTracker()
        settings = CommitterSettings(auto_commit_interval_ms=interval_ms)
        self.newest = dict(newest or {})
        self.read: dict[TopicPartition, TopicId] = {}
        """What is read, of which topic, but for what the group assigns."""
        self.core = GroupCore(
            MemberCore(MemberSettings(auto_commit=auto_commit), MEMBER, lambda ms: ms),
            CommitterCore(settings, self.tracker, lambda ms: ms),
            self.newest.get,
            self.read.get,
            lambda _failures: 100,
        )
        self.now = 1_000
        self.lookups_are_answered = True
        self.history: list[Output] = []
        self.last: tuple[Output, ...] = ()
        self.watchers: list[Callable[[int, Input, tuple[Output, ...]], None]] = []
        """Who reads along."""

    # -- feeding -----------------------------------------------------------------------------

    def feed(self, *events: Input) -> tuple[Output, ...]:
        """Deliver events, and the answers to look-ups that follow."""
        queue, out = list(events), list[Output]()
        while queue:
            event = queue.pop(0)
            commands = self.core.step(self.now, event)
            for watcher in self.watchers:
                watcher(self.now, event, commands)
            for command in commands:
                out.append(command)
                if isinstance(command, FindCoordinator) and self.lookups_are_answered:
                    queue.append(CoordinatorFound(command.lookup))
                elif isinstance(command, ResolveTopics):
                    queue.append(TopicsResolved(command.query, dict.fromkeys(command.ids, "t")))
        self.last = tuple(out)
        self.history += out
        return self.last

    def advance(self, ms: int) -> tuple[Output, ...]:
        """Let time pass; timers fire."""
        end, out = self.now + ms, list[Output]()
        while (deadline_ms := self.core.deadline_ms) is not None and deadline_ms <= end:
            assert deadline_ms > self.now, "the core asks to be woken in the past"
            self.now = deadline_ms
            out += self.feed(TimerFired())
        self.now = end
        self.last = tuple(out)
        return self.last

    def accept(self, epoch: int, *numbers: int) -> tuple[Output, ...]:
        """The coordinator accepts the newest heartbeat and wants these partitions held."""
        assignment = ((T, numbers),) if numbers else ()
        outcome = HeartbeatAccepted(MEMBER, epoch, 5_000, assignment)
        return self.feed(HeartbeatAnswered(self.newest_of(SendHeartbeat).attempt, outcome))

    def target(self, epoch: int, *numbers: int) -> tuple[Output, ...]:
        """The next heartbeat brings a new target."""
        sent = len(self.all(SendHeartbeat))
        while len(self.all(SendHeartbeat)) == sent:
            deadline_ms = self.core.deadline_ms
            assert deadline_ms is not None
            self.advance(deadline_ms - self.now)
        return self.accept(epoch, *numbers)

    def fence(self) -> tuple[Output, ...]:
        """The next heartbeat says that the member is not known any more."""
        sent = len(self.all(SendHeartbeat))
        while len(self.all(SendHeartbeat)) == sent:
            deadline_ms = self.core.deadline_ms
            assert deadline_ms is not None
            self.advance(deadline_ms - self.now)
        refused = HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")
        return self.feed(HeartbeatAnswered(self.newest_of(SendHeartbeat).attempt, refused))

    def leave(self, *, final: bool, within_ms: int = 30_000) -> tuple[Output, ...]:
        """The user leaves, with a commit before if commits are automatic."""
        mode, by_ms = LeaveMode.DEFAULT, self.now + within_ms
        return self.feed(LeaveRequested(mode, by_ms, flush=self.auto_commit, final=final))

    def returned(self, *, failed: bool = False) -> tuple[Output, ...]:
        """The listener's newest call returns."""
        return self.feed(ListenerReturned(self.newest_of(CallListener).number, failed))

    def came_back(self) -> tuple[Output, ...]:
        """The application is done with what the newest wait is for."""
        self.tracker.confirm()
        return self.feed(ApplicationDone(self.newest_of(AwaitApplication).number))

    def stored(self) -> tuple[Output, ...]:
        """The newest commit is stored."""
        sent = self.newest_of(SendCommit)
        return self.feed(CommitAnswered(sent.attempt, dict.fromkeys(sent.offsets)))

    def lose_commits(self, ms: int) -> None:
        """Let time pass in which no commit gets a reply."""
        end, seen = self.now + ms, len(self.all(SendCommit))
        while self.now < end:
            self.advance(min(20, end - self.now))
            for each in self.all(SendCommit)[seen:]:
                seen += 1
                self.feed(CommitLost(each.attempt, "no coordinator"))

    # -- histories ---------------------------------------------------------------------------

    def joined(self, *numbers: int, epoch: int = 1) -> GroupHarness:
        """In the group, holding these partitions, each with position 0 and nothing handed out."""
        self.feed(Subscribed(frozenset({"t"})), Polled())
        self.accept(epoch, *numbers)
        self.assigned(*numbers)
        self.returned()
        self.accept(epoch, *numbers)
        return self

    def assigned(self, *numbers: int) -> None:
        """What a driver does with ``AssignPartitions``."""
        self.tracker.assign(tps(*numbers))
        for tp in tps(*numbers):
            if self.tracker.position(tp) is None:
                self.tracker.seek(tp, 0, committed=0)

    def hand_out(self, number: int, up_to: int, *, done: bool = True) -> None:
        """The application got records, and is ``done`` with them."""
        assert self.tracker.delivered(TopicPartition("t", number), up_to)
        if done:
            self.tracker.confirm()

    # -- looking -----------------------------------------------------------------------------

    def newest_of(self, kind: type[C]) -> C:
        """The newest command of a kind, ever."""
        return next(each for each in reversed(self.history) if isinstance(each, kind))

    def all(self, kind: type[C]) -> list[C]:
        """All commands of a kind, ever."""
        return [each for each in self.history if isinstance(each, kind)]

    def out(self, kind: type[C]) -> list[C]:
        """The commands of a kind of the last feeding."""
        return [each for each in self.last if isinstance(each, kind)]
