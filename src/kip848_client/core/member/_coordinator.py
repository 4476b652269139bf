"""What the member knows about its coordinator: whether it is known, and since when it is silent.

A look-up is started only when there is something to send, one at a time, with its own backoff.
Silence begins with a request (a look-up or a heartbeat) and ends with an answer that shows the
coordinator at work; lasting silence is reported repeatedly, since a consumer that has silently
dropped out of its group is the worst outcome of all.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member._commands import (
    Command,
    CoordinatorRecovered,
    CoordinatorSilent,
    FindCoordinator,
    ForgetCoordinator,
    Report,
)
from kip848_client.core.member._events import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
)
from kip848_client.core.member._model import HeartbeatRefused, MemberSettings, Severity
from kip848_client.core.member._texts import no_answer_yet
from kip848_client.core.types import Wait
from kip848_client.errors import CoordinatorUnavailable

__all__ = ["CoordinatorLink"]


class CoordinatorLink:
    """The member's view of its coordinator."""

    def __init__(
        self,
        settings: MemberSettings,
        jitter: Callable[[int], int],
        emit: Callable[[Command], None],
    ) -> None:
        self._emit = emit
        self._settings = settings
        self._jitter = jitter
        self._failures = 0
        self._retry_ms = 0
        self._open = False
        self._silent_since_ms: int | None = None
        self._why_silent = ""
        """The reason from a broker or the network; empty for none."""
        self._report_ms = 0
        self._reported = False
        self.known = False
        self.lookups = 0

    # -- lookup ------------------------------------------------------------------------------

    def look_up(self, now_ms: int) -> bool:
        """Start a look-up if one is needed and due; returns whether it was started."""
        if self.known or self._open or now_ms < self._retry_ms:
            return False
        self._open = True
        self.lookups += 1
        self.asked(now_ms)
        self._emit(FindCoordinator(self.lookups))
        return True

    def answered(self, now_ms: int, event: CoordinatorFound | CoordinatorLookupFailed) -> bool:
        """Handle the end of a look-up; returns whether it was the open one. After a failure the
        next one waits."""
        if not self._open or event.lookup != self.lookups:
            return False
        self._open = False
        if isinstance(event, CoordinatorFound):
            self.known = True
            self._failures = 0
            self._retry_ms = 0
            return True
        self.failed(event.why if event.error is None else str(event.error))
        settings = self._settings
        self._retry_ms = now_ms + backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        self._failures += 1
        return True

    def lost(self, why: str, not_before_ms: int = 0) -> None:
        """Forget the coordinator: it has moved, or cannot be reached. ``why`` is empty if the
        driver knows already. The next look-up is not before ``not_before_ms``."""
        if self.known and why:
            self._emit(ForgetCoordinator(why))
        self.known = False
        self._retry_ms = max(self._retry_ms, not_before_ms)

    def next_lookup_ms(self) -> int | None:
        """When a look-up becomes due, ``None`` if only an event can make one due."""
        return None if self.known or self._open else self._retry_ms

    # -- silence -----------------------------------------------------------------------------

    def asked(self, now_ms: int) -> None:
        """Note a request or look-up: the silence begins here."""
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
            self._report_ms = now_ms + self._settings.unreachable_after_ms

    def failed(self, why: str) -> None:
        """Note a failed request or look-up whose reason does not show the coordinator at work."""
        self._why_silent = why

    def heartbeat_ended(self, event: HeartbeatAnswered | HeartbeatLost | HeartbeatFailed) -> None:
        """Note the end of a heartbeat; the reason of a failure is kept until ``heard``."""
        if isinstance(event, HeartbeatLost):
            self.failed(event.why)
        elif isinstance(event, HeartbeatAnswered) and isinstance(event.outcome, HeartbeatRefused):
            self.failed(f"the heartbeat was refused: {event.outcome.name}")

    def heard(self, now_ms: int) -> None:
        """Note an answer of the coordinator."""
        silent_ms = self.silent_ms(now_ms) if self._reported else None
        self.stop_expecting_answers()
        if not self.known:
            self.asked(now_ms)  # it has moved: another one is being looked up
        if silent_ms is not None:
            self._emit(CoordinatorRecovered(silent_ms))

    def stop_expecting_answers(self) -> None:
        """Expect no answer any more."""
        self._silent_since_ms = None
        self._why_silent = ""
        self._reported = False

    @property
    def is_in_trouble(self) -> bool:
        """Whether there is a known reason for the silence."""
        return bool(self._why_silent)

    def waits(self) -> dict[str, Wait]:
        """The wait for its answer, if any, by what is waited for."""
        if self._silent_since_ms is None:
            return {}
        why = self._why_silent or "it has not answered"
        return {"the group coordinator": Wait(why, self._silent_since_ms)}

    def silent_ms(self, now_ms: int) -> int:
        """How long an answer has been missing."""
        return 0 if self._silent_since_ms is None else now_ms - self._silent_since_ms

    def report_due_ms(self) -> int | None:
        """When to report its silence (again), ``None`` if no answer is missing."""
        return None if self._silent_since_ms is None else self._report_ms

    def report_silence(self, now_ms: int, state: str) -> None:
        """Report a long silence to the user, repeatedly."""
        due_ms = self.report_due_ms()
        if due_ms is None or now_ms < due_ms:
            return
        self._reported = True
        self._report_ms = now_ms + self._settings.unreachable_after_ms
        silent_ms = self.silent_ms(now_ms)
        self._emit(CoordinatorSilent(silent_ms))
        error = CoordinatorUnavailable(no_answer_yet(silent_ms, state))
        self._emit(Report(error, Severity.NOTICE))
