"""Leaving a classic group: because the user asked for it, or so that another worker leads."""

from __future__ import annotations

from kip848_client.connect.core._classic_messages import SendLeave
from kip848_client.core.member import LeaveMode, LeaveRequested

__all__ = ["ClassicLeave"]


class ClassicLeave:
    """What is known of the leave that is under way, and of the one that may end."""

    def __init__(self) -> None:
        self.requested: LeaveRequested | None = None
        """What the user asked for."""
        self.open: SendLeave | None = None
        """What was sent and not answered."""
        self.back_ms: int | None = None
        """When a worker that could not lead tries again."""
        self.wanted_offset = -1
        """The configuration that it did not know."""
        self._gives_up_leading = False

    @property
    def deadline_ms(self) -> int | None:
        """Until when the user waits."""
        return None if self.requested is None else self.requested.deadline_ms

    @property
    def stays(self) -> bool:
        """Whether nothing is to be told: the group finds out when the session ends."""
        leave = self.requested
        return leave is not None and leave.mode is LeaveMode.REMAIN_IN_GROUP

    def give_up_leading(self, wanted_offset: int) -> None:
        """The worker leaves, so that another leads."""
        self._gives_up_leading = True
        self.wanted_offset = wanted_offset

    def is_back(self, now_ms: int, known_offset: int) -> bool:
        """Whether a worker that could not lead may join again."""
        waited = self.back_ms is not None and now_ms >= self.back_ms
        return waited or known_offset >= self.wanted_offset

    def send(self, attempt: int, timeout_ms: int, member_id: str) -> SendLeave:
        """The request, which is open from now on."""
        why = "the worker cannot lead" if self._gives_up_leading else "the worker is stopped"
        self.open = SendLeave(attempt, timeout_ms, member_id, why)
        return self.open

    def ends_stale(self, back_ms: int) -> bool:
        """The leave has ended; whether it was only for another to lead. Then the worker comes back
        at ``back_ms`` at the latest."""
        gives_up, self._gives_up_leading = self._gives_up_leading, False
        self.open = None
        if not gives_up or self.requested is not None:
            return False
        self.back_ms = back_ms
        return True

    def take(self) -> LeaveRequested | None:
        """The user's request, which is done."""
        leave, self.requested = self.requested, None
        return leave
