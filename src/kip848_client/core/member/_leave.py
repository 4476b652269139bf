"""One leave: its mode, its deadline, and its own heartbeat.

Several requests may share it (an unsubscribe that is overtaken by a close); the strictest wins: the
nearer deadline, the newest mode as long as nothing was sent, and "final" once requested. The leave
heartbeat is idempotent, so without an answer it is repeated as long as there is time, and an answer
that the member is not in the group counts as success (KIP-1092's close budget).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member._error_rules import LEFT_ANYWAY, Reaction, error_of, reaction
from kip848_client.core.member._events import (
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    LeaveRequested,
)
from kip848_client.core.member._model import HeartbeatRefused, LeaveMode, MemberSettings
from kip848_client.core.types import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.errors import CoordinatorUnavailable, Kip848Error, RequestTimedOut

__all__ = ["Leave", "LeaveAgain", "leave_epoch"]


@dataclass(frozen=True, slots=True)
class LeaveAgain:
    """The leave must be repeated, after looking the coordinator up again or not."""

    rediscover: bool


class Leave:
    """An open leave."""

    def __init__(
        self, event: LeaveRequested, settings: MemberSettings, jitter: Callable[[int], int]
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self.mode = event.mode
        self.deadline_ms = event.deadline_ms
        self.flush = event.flush
        self.final = event.final
        self._open: int | None = None
        self._failures = 0
        self._not_before_ms = 0
        self._give_up_ms = 0

    def share(self, event: LeaveRequested) -> None:
        """Another request shares this leave. The mode is read when the leave is sent."""
        self.mode = event.mode
        self.deadline_ms = min(self.deadline_ms, event.deadline_ms)
        self.final = self.final or event.final

    def seek(self, now_ms: int) -> None:
        """Begin to look up a coordinator, for a limited time."""
        self._give_up_ms = now_ms + self._settings.leave_patience_ms

    def may_send(self, now_ms: int) -> bool:
        """Whether a leave heartbeat may be sent now."""
        return self._open is None and now_ms >= self._not_before_ms

    def sent(self, attempt: int) -> None:
        """Note the sent heartbeat, with this number."""
        self._open = attempt

    def timeout_ms(self, now_ms: int) -> int:
        """How long to wait for its answer."""
        left_ms = self.deadline_ms - now_ms
        timeout = self._settings.request_timeout_ms
        return min(timeout, left_ms) if left_ms > 0 else timeout

    def owns(self, attempt: int) -> bool:
        """Whether ``attempt`` is the open leave heartbeat."""
        return self._open == attempt

    def answered(
        self, now_ms: int, event: HeartbeatAnswered | HeartbeatLost | HeartbeatFailed
    ) -> LeaveAgain | Kip848Error | None:
        """Process an answer: returns ``None`` for success, an error for the end without success."""
        self._open = None
        match event:
            case HeartbeatFailed():
                return event.error
            case HeartbeatLost():
                return self._again(now_ms, rediscover=True)
            case HeartbeatAnswered(outcome=HeartbeatRefused() as refused):
                if refused.code in LEFT_ANYWAY:
                    return None
                verdict = reaction(refused, member_epoch=LEAVE_EPOCH, may_hold_instance=False)
                if verdict in (Reaction.RETRY, Reaction.REDISCOVER):
                    return self._again(now_ms, rediscover=verdict is Reaction.REDISCOVER)
                return error_of(refused)
            case _:
                return None

    def _again(self, now_ms: int, *, rediscover: bool) -> LeaveAgain:
        settings = self._settings
        self._not_before_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1
        return LeaveAgain(rediscover)

    def expired(self, now_ms: int, *, coordinator_known: bool) -> Kip848Error | None:
        """Return the reason to give up, ``None`` while there is time."""
        if now_ms >= self.deadline_ms:
            return RequestTimedOut("the coordinator did not answer the leave in time")
        if not coordinator_known and now_ms >= self._give_up_ms:
            return CoordinatorUnavailable("no coordinator to tell about the leave")
        return None

    def due_ms(self, *, coordinator_known: bool) -> int:
        """When something must happen, once the callbacks are done."""
        if not coordinator_known:
            return min(self.deadline_ms, self._give_up_ms)
        if self._open is None:
            return min(self.deadline_ms, self._not_before_ms)
        return self.deadline_ms


def leave_epoch(mode: LeaveMode, instance_id: str | None) -> int | None:
    """Return the epoch of the leave heartbeat, ``None`` if none is sent (KIP-1092: a dynamic member
    that remains lets its session expire)."""
    if mode is LeaveMode.LEAVE_GROUP:
        return LEAVE_EPOCH
    if instance_id is not None:
        return STATIC_LEAVE_EPOCH
    return None if mode is LeaveMode.REMAIN_IN_GROUP else LEAVE_EPOCH
