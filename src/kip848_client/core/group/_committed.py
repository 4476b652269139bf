"""Look-ups of committed offsets: what an answer means, and when to retry.

One trap would lose data: an error must never look like "nothing committed", because then
``auto_offset_reset`` decides. Only an error-free answer with offset -1 means that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client.core.group._commands import (
    CommittedFailed,
    CommittedFound,
    FetchCommitted,
    GroupCommand,
)
from kip848_client.core.group._error_rules import Reaction, reaction
from kip848_client.core.group._events import (
    CommittedAnswered,
    CommittedAsked,
    CommittedImpossible,
    CommittedLost,
    CommittedRow,
)
from kip848_client.core.group._listener_calls import Numbers
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.partition_names import listed
from kip848_client.core.types import TopicPartition, Wait
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import BrokerError, Kip848Error, RequestTimedOut, broker_error

__all__ = ["CommittedLookups"]

_NOTHING_COMMITTED: Final = -1


@dataclass(slots=True)
class _Lookup:
    ticket: int
    partitions: tuple[TopicPartition, ...]
    since_ms: int
    deadline_ms: int
    attempt: int | None = None
    """The number of the open request."""
    epoch: int | None = None
    """The member epoch in the last request."""
    retry_ms: int = 0
    failures: int = 0
    last: str = "the coordinator has not answered"


class CommittedLookups:
    """All open look-ups. Each has one request at a time, with the epoch of that moment.
    ``backoff_ms`` maps a number of failures in a row to a pause."""

    def __init__(
        self,
        backoff_ms: Callable[[int], int],
        numbers: Numbers,
        emit: Callable[[GroupCommand], None],
        *,
        suspect_coordinator: Callable[[str], None],
        refresh_epoch: Callable[[], None],
    ) -> None:
        self._backoff_ms = backoff_ms
        self._numbers = numbers
        self._emit = emit
        self._suspect_coordinator = suspect_coordinator
        self._refresh_epoch = refresh_epoch
        self._lookups: list[_Lookup] = []
        self._epoch: int | None = None

    @property
    def due_ms(self) -> int | None:
        """When the next request is retried; ``None`` for never."""
        waiting = [each.retry_ms for each in self._lookups if each.attempt is None]
        return min(waiting, default=None)

    def waits(self) -> dict[str, Wait]:
        """Why look-ups have not ended, by reason. Only the oldest of each reason, since look-ups
        with the same reason mostly wait for the same thing."""
        found: dict[str, Wait] = {}
        reasons: set[str] = set()
        for each in self._lookups:
            if each.last not in reasons:
                reasons.add(each.last)
                what = f"the committed offsets of {listed(each.partitions)}"
                found[what] = Wait(each.last, each.since_ms)
        return found

    def note_epoch(self, now_ms: int, member_epoch: int | None) -> None:
        """Handle a new member epoch: pauses end at once."""
        self._epoch = member_epoch
        for each in self._lookups:
            each.retry_ms = min(each.retry_ms, now_ms)

    def ask(self, now_ms: int, event: CommittedAsked) -> None:
        """Begin a look-up."""
        lookup = _Lookup(event.ticket, event.partitions, now_ms, event.deadline_ms, retry_ms=now_ms)
        self._lookups.append(lookup)

    def send_due(self, now_ms: int) -> None:
        """Send the requests that are due."""
        for each in self._lookups:
            if each.attempt is None and each.retry_ms <= now_ms:
                each.attempt = self._numbers.next()
                each.epoch = self._epoch
                self._emit(FetchCommitted(each.attempt, each.epoch, each.partitions))

    def answered(
        self, now_ms: int, event: CommittedAnswered | CommittedLost | CommittedImpossible
    ) -> None:
        """Handle the end of a request."""
        lookup = next((each for each in self._lookups if each.attempt == event.attempt), None)
        if lookup is None:
            return
        lookup.attempt = None
        match event:
            case CommittedLost():
                self._suspect_coordinator(event.why)
                self._retry(now_ms, lookup, event.why)
            case CommittedImpossible():
                self._on_error(now_ms, lookup, event.error)
            case CommittedAnswered():
                self._on_rows(now_ms, lookup, event)

    # -- inside ------------------------------------------------------------------------------

    def _on_rows(self, now_ms: int, lookup: _Lookup, event: CommittedAnswered) -> None:
        found: dict[TopicPartition, CommittableOffset | None] = {}
        codes = [event.error_code]
        for tp in lookup.partitions:
            row = event.rows.get(tp)
            if row is None or reaction(row.error_code) is Reaction.TOPIC:
                continue  # a missing partition is not "nothing committed"
            codes.append(row.error_code)
            found[tp] = _stored(row)
        code = next((code for code in codes if code != ErrorCode.NONE), None)
        if code is not None:
            name, retriable = error_name(code), is_retriable(code)
            error = broker_error(code, name, api="OffsetFetch", retriable=retriable)
            self._on_error(now_ms, lookup, error)
            return
        missing = [tp for tp in lookup.partitions if tp not in found]
        if missing and now_ms < lookup.deadline_ms:
            names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in missing)
            self._retry(now_ms, lookup, f"unknown: {names}")
            return
        self._lookups.remove(lookup)
        self._emit(CommittedFound(lookup.ticket, found))

    def _on_error(self, now_ms: int, lookup: _Lookup, error: Kip848Error) -> None:
        if not isinstance(error, BrokerError):
            self._fail(lookup, error)
            return
        found = reaction(error.code)
        if found is Reaction.NEXT_EPOCH and lookup.epoch is None:
            found = Reaction.FAIL  # sent without an epoch: no heartbeat brings a better answer
        if found is Reaction.REDISCOVER:
            self._suspect_coordinator(error.name)
        if found is Reaction.NEXT_EPOCH and lookup.epoch == self._epoch:
            self._refresh_epoch()
        if found is Reaction.FAIL:
            self._fail(lookup, error)
        else:
            self._retry(now_ms, lookup, str(error))

    def _retry(self, now_ms: int, lookup: _Lookup, why: str) -> None:
        lookup.last = why
        if now_ms >= lookup.deadline_ms:
            text = f"committed offsets could not be read in time: {why}"
            self._fail(lookup, RequestTimedOut(text))
        else:
            lookup.retry_ms = now_ms + self._backoff_ms(lookup.failures)
            lookup.failures += 1

    def _fail(self, lookup: _Lookup, error: Kip848Error) -> None:
        self._lookups.remove(lookup)
        self._emit(CommittedFailed(lookup.ticket, error))


def _stored(row: CommittedRow) -> CommittableOffset | None:
    if row.offset == _NOTHING_COMMITTED:
        return None
    return CommittableOffset(row.offset, row.leader_epoch, row.metadata)
