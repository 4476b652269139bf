"""A worker's heartbeats in a classic group, and when the coordinator may consider it dead."""

from __future__ import annotations

from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_member import ClassicMember
from kip848_client.connect.core._classic_messages import SendClassicHeartbeat
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.core.backoff import Jitter

__all__ = ["ClassicHeartbeat"]


class ClassicHeartbeat:
    """The next heartbeat and its due time, and the open one."""

    def __init__(
        self, settings: ClassicWorkerSettings, jitter: Jitter, member: ClassicMember
    ) -> None:
        self._settings = settings
        self._member = member
        self._backoff = settings.backoff(jitter)
        self._sent_ms = 0
        self._alive_ms = 0
        self._open: SendClassicHeartbeat | None = None
        self.due_ms = 0

    def may_be_sent(self) -> bool:
        """Whether a heartbeat can be sent once it is due."""
        member = self._member
        is_member = member.generation >= 0 and member.state in st.HEARTBEATING
        return is_member and self._open is None

    @property
    def session_ends_ms(self) -> int:
        """When other workers may run this worker's items, less the time needed to stop them.
        Measured from when the newest request that kept the session alive was *sent*."""
        return self._alive_ms + self._settings.stop_after_ms

    def joined(self) -> None:
        """A new generation has begun."""
        self.due_ms = self._member.now_ms + self._settings.heartbeat_interval_ms

    def send(self) -> None:
        """Send the next heartbeat, which is then open."""
        settings, member = self._settings, self._member
        timeout_ms = min(settings.request_timeout_ms, max(settings.session_timeout_ms // 2, 1))
        self._sent_ms = member.now_ms
        self._open = SendClassicHeartbeat(
            member.number(), timeout_ms, member.member_id, member.generation
        )
        member.emit(self._open)

    def drop(self) -> None:
        """The answer to the open heartbeat is not needed any more."""
        self._open = None

    def take_answer(self, attempt: int) -> bool:
        """Whether this number is that of the open heartbeat, which is then closed."""
        if self._open is None or attempt != self._open.attempt:
            return False
        self._open = None
        self.due_ms = self._sent_ms + self._settings.heartbeat_interval_ms
        return True

    def taken(self) -> None:
        """The heartbeat has kept the session alive."""
        self._backoff.reset()
        self.live(self._sent_ms)

    def live(self, sent_ms: int) -> None:
        """A request sent at this time has kept the session alive."""
        self._alive_ms = max(self._alive_ms, sent_ms)

    def failed(self) -> None:
        """The heartbeat failed: send another one after a growing pause."""
        self.due_ms = self._member.now_ms + self._backoff.next_ms()
