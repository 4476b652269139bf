"""A committer with its clock and its broker, by hand; shared by the tests of commits."""

from __future__ import annotations

from typing import TypeVar

from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitCommand,
    CommitDone,
    CommitEvent,
    CommitKind,
    CommitRefusal,
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    CommitTimer,
    EpochNoted,
    OffsetTracker,
    SendCommit,
)
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode

__all__ = [
    "LOADING",
    "MOVED",
    "STALE",
    "UNKNOWN_MEMBER",
    "UNKNOWN_TOPIC",
    "UNKNOWN_TOPIC_ID",
    "A",
    "B",
    "C",
    "CommitterHarness",
    "names",
]

A = TopicPartition("a", 0)
B = TopicPartition("b", 0)
C = TopicPartition("c", 0)
Command = TypeVar("Command", bound=CommitCommand)

STALE = CommitRefusal(ErrorCode.STALE_MEMBER_EPOCH, "STALE_MEMBER_EPOCH")
LOADING = CommitRefusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "COORDINATOR_LOAD_IN_PROGRESS")
MOVED = CommitRefusal(ErrorCode.NOT_COORDINATOR, "NOT_COORDINATOR")
UNKNOWN_TOPIC = CommitRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION")
UNKNOWN_TOPIC_ID = CommitRefusal(ErrorCode.UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID")
UNKNOWN_MEMBER = CommitRefusal(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")


class CommitterHarness:
    """A committer of a member at epoch 5 that owns a-0 and b-0."""

    def __init__(self, interval: int | None = None) -> None:
        self.now = 1_000
        self.tracker = OffsetTracker()
        self.tracker.assign([A, B])
        settings = CommitterSettings(auto_commit_interval_ms=interval)
        self.core = CommitterCore(settings, self.tracker, lambda pause: pause)
        self.last: tuple[CommitCommand, ...] = ()
        self.history: list[CommitCommand] = []
        self.tickets = 0
        self.feed(EpochNoted(5))

    def feed(self, event: CommitEvent, after: int = 0) -> tuple[CommitCommand, ...]:
        self.now += after
        self.last = self.core.step(self.now, event)
        self.history += self.last
        return self.last

    def advance(self, ms: int) -> list[CommitCommand]:
        end, out = self.now + ms, list[CommitCommand]()
        while (deadline := self.core.deadline_ms) is not None and deadline <= end:
            assert deadline > self.now, "the committer asks to be woken in the past"
            self.now = deadline
            out += self.feed(CommitTimer())
        self.now = end
        self.last = tuple(out)
        return out

    def ask(
        self,
        offsets: dict[TopicPartition, int] | None,
        kind: CommitKind = CommitKind.MANUAL,
        within: int = 60_000,
    ) -> int:
        self.tickets += 1
        wanted = None
        if offsets is not None:
            wanted = {tp: CommittableOffset(offset) for tp, offset in offsets.items()}
        self.feed(CommitAsked(self.tickets, kind, wanted, self.now + within))
        return self.tickets

    def answer(self, *refused: tuple[TopicPartition, CommitRefusal]) -> None:
        """Everything of the newest attempt is stored, but ``refused``."""
        attempt = self.sent
        results: dict[TopicPartition, CommitRefusal | None] = dict.fromkeys(attempt.offsets)
        results.update(dict(refused))
        self.feed(CommitAnswered(attempt.attempt, results))

    def consume(self, tp: TopicPartition, offset: int) -> None:
        self.tracker.delivered(tp, offset)
        self.tracker.confirm()

    def newest(self, kind: type[Command]) -> Command:
        return next(c for c in reversed(self.history) if isinstance(c, kind))

    @property
    def sent(self) -> SendCommit:
        return self.newest(SendCommit)

    @property
    def sends(self) -> list[dict[TopicPartition, int]]:
        """The offsets of the attempts of the last feeding."""
        return [
            {tp: o.offset for tp, o in c.offsets.items()}
            for c in self.last
            if isinstance(c, SendCommit)
        ]

    @property
    def done(self) -> CommitDone:
        return self.newest(CommitDone)

    def count(self, kind: type[CommitCommand]) -> int:
        return sum(isinstance(c, kind) for c in self.history)


def names(failed: CommitDone) -> dict[TopicPartition, str]:
    return {tp: type(error).__name__ for tp, error in failed.failed.items()}
