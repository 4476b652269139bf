"""Translates events and commands of the group core into the events that users follow. Decides
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kip848_client.core.group import CallListener, ForgetPartitions, Input, ListenerMethod, Output
from kip848_client.core.member import (
    Announce,
    CoordinatorRecovered,
    CoordinatorSilent,
    EpochChanged,
    Fenced,
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    HeartbeatRefused,
    NotPolled,
    Report,
    SendHeartbeat,
    Severity,
)
from kip848_client.core.offsets import CommitAnswered
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.observe.core.watching import _events as ev

__all__ = ["Chronicle", "stale_partitions"]

_FENCING: Final = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)
"""Errors of a commit whose sender is unknown to the coordinator."""


class Chronicle:
    """Translates steps. Keeps the epoch and the reason why partitions may be lost. ``origin_ms``
    converts the time of a step to ms since 1970."""

    def __init__(self, origin_ms: int) -> None:
        self._origin_ms = origin_ms
        self._epoch = 0
        self._cause = ""
        self._ours: dict[TopicPartition, None] = {}
        """Partitions reported as assigned and not as gone."""
        self._sent: dict[int, int] = {}
        """Send times of unanswered heartbeats, by attempt; only while heartbeat events are
        requested."""

    def of(
        self, now_ms: int, event: Input, commands: Iterable[Output], *, heartbeats: bool = False
    ) -> Iterator[ev.MembershipEvent]:
        """Return the users' events for a step of the core, in order. ``heartbeats``: whether to
        include heartbeat events."""
        time_ms = self._origin_ms + now_ms
        if isinstance(event, CommitAnswered):
            yield from self._refused(time_ms, event)
        elif heartbeats:
            yield from self._heard(now_ms, event)
        elif self._sent:
            self._sent.clear()
        for command in commands:
            attempt = self._heartbeat(command) if heartbeats else None
            if attempt is not None:
                self._sent[attempt] = now_ms
            told = self._told(time_ms, command)
            if told is not None:
                yield told

    def _heartbeat(self, command: Output) -> int | None:
        """Return the attempt of a command that sends a heartbeat."""
        return command.attempt if isinstance(command, SendHeartbeat) else None

    def _refused(self, time_ms: int, event: CommitAnswered) -> Iterator[ev.MembershipEvent]:
        stale = stale_partitions(event)
        if stale:
            yield ev.StaleCommit(time_ms, self._epoch, stale)
        fenced: dict[int, list[TopicPartition]] = {}
        for tp, refusal in event.results.items():
            if refusal is not None and refusal.code in _FENCING:
                fenced.setdefault(refusal.code, []).append(tp)
        for code, partitions in fenced.items():
            cause = error_name(code)
            yield ev.CommitFenced(time_ms, self._epoch, tuple(partitions), cause)

    def _heard(self, now_ms: int, event: Input) -> Iterator[ev.MembershipEvent]:
        """Return the event for the outcome of a heartbeat whose send time is known."""
        if not isinstance(event, HeartbeatAnswered | HeartbeatLost | HeartbeatFailed):
            return
        sent_ms = self._sent.pop(event.attempt, None)
        if sent_ms is None:
            return
        time_ms, took_ms = self._origin_ms + now_ms, now_ms - sent_ms
        match event:
            case HeartbeatAnswered(outcome=HeartbeatAccepted(member_epoch=epoch)):
                yield ev.HeartbeatAnswered(time_ms, epoch, took_ms)
            case HeartbeatAnswered(outcome=HeartbeatRefused() as refused):
                yield ev.HeartbeatRefused(time_ms, self._epoch, took_ms, refused.name)
            case HeartbeatLost(reason=reason):
                yield ev.HeartbeatLost(time_ms, self._epoch, took_ms, reason.value)
            case HeartbeatFailed(error=error):
                yield ev.HeartbeatLost(time_ms, self._epoch, took_ms, str(error))
            case _:
                pass

    def blocked(self, now_ms: int, late_ms: int, silent_ms: int | None) -> ev.MembershipEvent:
        """Return the event for a blocked event loop."""
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
        """Return the event for other commands, about coordinator and application."""
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
        """Return the loss of partitions that are gone without a listener call: it was not reported
        yet."""
        lost = tuple(tp for tp in partitions if tp in self._ours)
        for tp in lost:
            del self._ours[tp]
        return ev.PartitionsLost(time_ms, self._epoch, lost, self._cause) if lost else None


def stale_partitions(event: Input) -> tuple[TopicPartition, ...]:
    """Return the partitions of a commit that was refused because the member epoch had changed."""
    if not isinstance(event, CommitAnswered):
        return ()
    return tuple(
        tp
        for tp, refusal in event.results.items()
        if refusal is not None and refusal.code == ErrorCode.STALE_MEMBER_EPOCH
    )
