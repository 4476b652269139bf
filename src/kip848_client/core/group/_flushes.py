"""Commits before partitions are released: wait for the application, then store what is done.

Before partitions are released, the flush waits until the application is done with the records it
holds of them, but leaves enough time to commit: a record still in process then is not committed,
and is delivered again. If the application finishes it before the deadline, it is committed after
all.

A close does not spend all its time on an unavailable coordinator (KAFKA-19357): its first commit
gets some seconds, and the rest of the time only if the coordinator answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client.core.group._commands import (
    AutomaticCommitFailed,
    AwaitApplication,
    FlushDone,
    GroupCommand,
)
from kip848_client.core.group._listener_calls import Numbers
from kip848_client.core.group._reasons import by_reason
from kip848_client.core.member import OffsetsFlushed
from kip848_client.core.offsets import CommitAsked, CommitDone, CommitKind
from kip848_client.core.types import TopicPartition

__all__ = ["Flushes"]

_CLOSE_PATIENCE_MS: Final = 5_000
_COMMIT_SHARE_MAX_MS: Final = 1_000
"""Maximum time reserved for the commit; a quarter of the total if that is less."""


@dataclass(slots=True)
class _Flush:
    done: FlushDone | OffsetsFlushed
    deadline_ms: int
    closing: bool
    wait: int | None = None
    """The number of the open ``AwaitApplication``."""
    wait_until_ms: int = 0
    """When to commit without waiting for the application any longer; then the deadline."""
    came_back_late: bool = False
    """The application came back during a commit that does not include what it held."""
    ticket: int = 0
    """The ticket of the open commit, 0 for none; negative, so that it never equals a caller's."""
    patient: bool = False
    """The open commit has all of the time; another one is pointless."""


class Flushes:
    """All open flushes; mostly one."""

    def __init__(
        self,
        numbers: Numbers,
        emit: Callable[[GroupCommand], None],
        commit: Callable[[CommitAsked], None],
        ended: Callable[[FlushDone | OffsetsFlushed], None],
        *,
        coordinator_was_heard: Callable[[], bool],
    ) -> None:
        self._numbers = numbers
        self._emit = emit
        self._commit = commit
        self._ended = ended
        self._coordinator_was_heard = coordinator_was_heard
        self._flushes: list[_Flush] = []

    @property
    def due_ms(self) -> int | None:
        """When a wait for the application expires; ``None`` for never."""
        waits = [each.wait_until_ms for each in self._flushes if each.wait is not None]
        return min(waits, default=None)

    def begin(
        self,
        now_ms: int,
        partitions: tuple[TopicPartition, ...],
        deadline_ms: int,
        done: FlushDone | OffsetsFlushed,
        *,
        closing: bool,
    ) -> None:
        """Begin a flush; ``done`` is called at its end, whether or not something was stored."""
        flush = _Flush(done, deadline_ms, closing)
        self._flushes.append(flush)
        if not partitions:
            self._ask(now_ms, flush)
            return
        flush.wait = self._numbers.next()
        flush.wait_until_ms = deadline_ms - min((deadline_ms - now_ms) // 4, _COMMIT_SHARE_MAX_MS)
        self._emit(AwaitApplication(flush.wait, partitions))

    def application_done(self, now_ms: int, number: int) -> None:
        """Handle the application asking for more records."""
        for flush in [each for each in self._flushes if each.wait == number]:
            flush.wait = None
            if flush.ticket:
                flush.came_back_late = True
            else:
                self._ask(now_ms, flush)

    def give_up_waiting(self, now_ms: int) -> None:
        """Commit without the records that the application still holds; at the deadline, end."""
        for flush in list(self._flushes):
            if flush.wait is None or now_ms < flush.wait_until_ms:
                continue
            if now_ms < flush.deadline_ms:
                flush.wait_until_ms = flush.deadline_ms
                self._ask(now_ms, flush)
                continue
            flush.wait = None
            if not flush.ticket:
                self._end(flush)

    def committed(self, now_ms: int, done: CommitDone) -> None:
        """Handle the end of a flush's commit."""
        for flush in [each for each in self._flushes if each.ticket == done.ticket]:
            flush.ticket = 0
            if done.failed and not flush.patient and self._coordinator_was_heard():
                self._ask(now_ms, flush, patient=True)
                continue
            for partitions, error in by_reason(done.failed):
                self._emit(AutomaticCommitFailed(partitions, error, passing=False))
            if flush.came_back_late and now_ms < flush.deadline_ms:
                self._ask(now_ms, flush)
            elif flush.wait is None:
                self._end(flush)

    def _end(self, flush: _Flush) -> None:
        self._flushes.remove(flush)
        self._ended(flush.done)

    def _ask(self, now_ms: int, flush: _Flush, *, patient: bool = False) -> None:
        flush.came_back_late = False
        deadline_ms = flush.deadline_ms
        if flush.closing and not patient:
            deadline_ms = min(deadline_ms, now_ms + _CLOSE_PATIENCE_MS)
        flush.patient = deadline_ms == flush.deadline_ms
        flush.ticket = -self._numbers.next()
        self._commit(CommitAsked(flush.ticket, CommitKind.REVOCATION, None, deadline_ms))
