"""A worker's heartbeats in a classic group, and since when the coordinator may think it dead."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.connect.core._classic_messages import SendClassicHeartbeat
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.core.backoff import backoff_ms

__all__ = ["ClassicHeartbeat"]


class ClassicHeartbeat:
    """When the next one is due; which one is open."""

    def __init__(self, settings: ClassicWorkerSettings, jitter: Callable[[int], int]) -> None:
        self._settings = settings
        self._jitter = jitter
        self._sent_ms = 0
        self._alive_ms = 0
        self._failures = 0
        self.open: SendClassicHeartbeat | None = None
        self.due_ms = 0

    @property
    def session_ends_ms(self) -> int:
        """When others may run what this worker runs, less the time that it takes to stop. It counts
        from when the newest request was *sent* that was taken for a sign of life."""
        return self._alive_ms + self._settings.stop_after_ms

    def joined(self, now_ms: int) -> None:
        """There is a new generation."""
        self.due_ms = now_ms + self._settings.heartbeat_interval_ms

    def send(
        self, now_ms: int, attempt: int, member_id: str, generation: int
    ) -> SendClassicHeartbeat:
        """The next one, which is open from now on."""
        settings = self._settings
        timeout_ms = min(settings.request_timeout_ms, max(settings.session_timeout_ms // 2, 1))
        self._sent_ms = now_ms
        self.open = SendClassicHeartbeat(attempt, timeout_ms, member_id, generation)
        return self.open

    def drop(self) -> None:
        """The answer to the open one is not wanted any more."""
        self.open = None

    def answered(self) -> None:
        """The open one was answered, somehow."""
        self.open = None
        self.due_ms = self._sent_ms + self._settings.heartbeat_interval_ms

    def taken(self) -> None:
        """It was taken for a sign of life."""
        self._failures = 0
        self.live(self._sent_ms)

    def live(self, sent_ms: int) -> None:
        """A request that was sent then was taken for a sign of life."""
        self._alive_ms = max(self._alive_ms, sent_ms)

    def failed(self, now_ms: int) -> None:
        """It came to nothing: another one soon, after a pause that grows."""
        settings = self._settings
        first, cap = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        self.due_ms = now_ms + backoff_ms(self._failures, first, cap, self._jitter)
        self._failures += 1
