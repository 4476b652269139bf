"""From what the group core takes and asks for to the events that users follow. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kip848_client._types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.group import CallListener, ForgetPartitions, Input, ListenerMethod, Output
from kip848_client.member import (
    Announce,
    CoordinatorRecovered,
    CoordinatorSilent,
    EpochChanged,
    Fenced,
    ForgetCoordinator,
    NotPolled,
    Report,
    Severity,
)
from kip848_client.offsets import CommitAnswered
from kip848_client.watching import _events as ev

__all__ = ["Chronicle", "stale_partitions"]


class Chronicle:
    """Remembers the epoch and why partitions may be lost. ``origin_ms`` is what is added to the
    time of a step for ms since 1970."""

    def __init__(self, origin_ms: int) -> None:
        self._origin_ms = origin_ms
        self._epoch = 0
        self._cause = ""
        self._ours: dict[TopicPartition, None] = {}
        """What was told to be assigned, and not to be gone."""

    def of(
        self, now_ms: int, event: Input, commands: Iterable[Output]
    ) -> Iterator[ev.MembershipEvent]:
        """What a step of the core means to users, in order."""
        time_ms = self._origin_ms + now_ms
        stale = stale_partitions(event)
        if stale:
            yield ev.StaleCommit(time_ms, self._epoch, stale)
        for command in commands:
            told = self._told(time_ms, command)
            if told is not None:
                yield told

    def blocked(self, now_ms: int, late_ms: int, silent_ms: int | None) -> ev.MembershipEvent:
        """The event loop did not run."""
        return ev.EventLoopBlocked(self._origin_ms + now_ms, self._epoch, late_ms, silent_ms)

    def _told(self, time_ms: int, command: Output) -> ev.MembershipEvent | None:
        epoch = self._epoch
        match command:
            case Announce(old, new, why):
                self._cause = why
                return ev.StateChanged(time_ms, epoch, old, new, why)
            case EpochChanged(member_epoch):
                self._epoch = member_epoch or 0
                if self._epoch != epoch:
                    return ev.MemberEpochChanged(time_ms, self._epoch, epoch)
            case Fenced(cause, refused_epoch):
                return ev.MemberFenced(time_ms, refused_epoch, cause)
            case CallListener(method=method, partitions=partitions):
                return self._listener(time_ms, method, tuple(each.tp for each in partitions))
            case ForgetPartitions(partitions):
                return self._forgotten(time_ms, partitions)
            case Report(error, Severity.FATAL):
                return ev.MemberFailed(time_ms, epoch, error)
            case _:
                return self._of_others(time_ms, command)
        return None

    def _of_others(self, time_ms: int, command: Output) -> ev.MembershipEvent | None:
        """What coordinator and application do."""
        epoch = self._epoch
        match command:
            case ForgetCoordinator(why):
                return ev.CoordinatorLost(time_ms, epoch, why)
            case CoordinatorSilent(silent_ms):
                return ev.CoordinatorUnreachable(time_ms, epoch, silent_ms)
            case CoordinatorRecovered(silent_ms):
                return ev.CoordinatorBack(time_ms, epoch, silent_ms)
            case NotPolled(poll_age_ms, left_ms):
                return ev.ApplicationStalled(time_ms, epoch, poll_age_ms, left_ms)
            case _:
                return None

    def _listener(
        self, time_ms: int, method: ListenerMethod, partitions: tuple[TopicPartition, ...]
    ) -> ev.MembershipEvent:
        for tp in partitions:
            if method is ListenerMethod.ASSIGNED:
                self._ours[tp] = None
            else:
                self._ours.pop(tp, None)
        match method:
            case ListenerMethod.ASSIGNED:
                return ev.PartitionsAssigned(time_ms, self._epoch, partitions)
            case ListenerMethod.REVOKED:
                return ev.PartitionsRevoked(time_ms, self._epoch, partitions)
            case ListenerMethod.LOST:
                return ev.PartitionsLost(time_ms, self._epoch, partitions, self._cause)

    def _forgotten(
        self, time_ms: int, partitions: tuple[TopicPartition, ...]
    ) -> ev.MembershipEvent | None:
        """They are gone; of what the listener was not called about, nobody has heard yet."""
        lost = tuple(tp for tp in partitions if tp in self._ours)
        for tp in lost:
            del self._ours[tp]
        return ev.PartitionsLost(time_ms, self._epoch, lost, self._cause) if lost else None


def stale_partitions(event: Input) -> tuple[TopicPartition, ...]:
    """Of which partitions a commit was refused because the member epoch had moved."""
    if not isinstance(event, CommitAnswered):
        return ()
    return tuple(
        tp
        for tp, refusal in event.results.items()
        if refusal is not None and refusal.code == ErrorCode.STALE_MEMBER_EPOCH
    )
