"""Where to begin in each partition, and what to do if that offset is out of range.

Theory of operation
-------------------
A partition gets its position from, in this order: a seek, the group's committed offset,
``auto_offset_reset``. The reset policy applies only after an error-free answer that there is no
committed offset: an error, or no answer, never resets anything.

A broker that reports a position as out of range is not believed at once: its answer has no offsets,
and it may have led for a moment only. The leader is asked for the range of its log. If the position
is inside, fetching continues after a rest; if that happened three times in a row for the same
offset, or the position is outside, the policy decides (``none``: the user), and what was skipped is
logged.

A search belongs to one generation of its partition. Results for another generation change nothing:
a seek, a loss and a new assignment end the search (``forget``), and its answers then find no
search.

An error that is not transient is raised, and the look-up is retried a second later. Only two things
end a search without a position: no committed offset, and a position outside the log, each with the
policy ``none``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.cluster import NO_EPOCH
from kip848_client.core.fetch._chunked_answers import ChunkedAnswer
from kip848_client.core.fetch._commands import Commands, LookUpCommitted, Notice
from kip848_client.core.fetch._error_rules import ANNOUNCED_AFTER_MS, QUIET_MS
from kip848_client.core.fetch._events import CommittedFailed, CommittedFound
from kip848_client.core.fetch._model import EARLIEST, LATEST, FetchSettings, StoredOffset
from kip848_client.core.fetch._queries import Found, Lookup, Queries
from kip848_client.core.partition_names import listed, shown
from kip848_client.core.types import TopicId, TopicPartition, Wait
from kip848_client.errors import Kip848Error, NoOffsetForPartition, OffsetOutOfRange

__all__ = [
    "RETRY_MS",
    "PositionError",
    "PositionFound",
    "PositionStands",
    "Positions",
    "Result",
]

BELIEVED_AFTER: Final = 3
"""How many times in a row a broker must report an offset as out of range that is in its log."""
RETRY_MS: Final = 1_000
"""Pause between attempts after an error was raised."""
NOTICE_AGAIN_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class PositionFound:
    """Fetch from here. ``committed``: this is exactly the group's committed offset."""

    tp: TopicPartition
    generation: int
    offset: int
    leader_epoch: int
    """Leader epoch of the record before it, as committed; ``NO_EPOCH`` after a reset."""
    committed: bool


@dataclass(frozen=True, slots=True)
class PositionStands:
    """A check found the position in the leader's log: continue there."""

    tp: TopicPartition
    generation: int


@dataclass(frozen=True, slots=True)
class PositionError:
    """An error to raise. ``lasting``: raised again and again until a seek; the search has ended.
    Otherwise raised once, while the search continues; one error may concern many partitions, and is
    the same object in all of them."""

    tp: TopicPartition
    generation: int
    error: Kip848Error
    lasting: bool


Result = PositionFound | PositionStands | PositionError


class _Phase(Enum):
    COMMITTED = auto()
    """Looking up the group's committed offset."""
    RESET = auto()
    """Looking up the offset of the reset policy."""
    CHECK = auto()
    """Looking up the range of the leader's log."""
    STANDS = auto()
    """The position is in the log; resting before the broker is asked for it again."""


@dataclass(slots=True, eq=False)
class _Search:
    tp: TopicPartition
    generation: int
    topic_id: TopicId | None
    phase: _Phase
    due_ms: int
    """When to ask, if no request is open."""
    since_ms: int
    notice_ms: int
    announced: bool = False
    """Whether the wait was logged."""
    time: int = LATEST
    """The timestamp that the reset looks up."""
    lookups: tuple[Lookup, ...] = ()
    failures: int = 0
    last: str = ""
    offset: int = -1
    """The offset that is reported, or was found, out of range; -1 for none."""
    rest_ms: int = 0
    """Pause before it is fetched again."""
    start: int = -1
    end: int = -1
    """The end of the leader's log."""

    @property
    def why(self) -> str:
        """Why the search has not ended."""
        return self.lookups[0].last if self.lookups else self.last


class Positions:
    """Finds the positions of partitions. ``take`` returns the results."""

    def __init__(
        self,
        settings: FetchSettings,
        jitter: Jitter,
        queries: Queries,
        out: Commands,
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._queries = queries
        self._out = out
        self._searches: dict[TopicPartition, _Search] = {}
        self._idle: dict[TopicPartition, _Search] = {}
        """Searches without an open request."""
        self._committed: dict[int, tuple[_Search, ...]] = {}
        """Look-ups of committed offsets in flight."""
        self._number = 0
        self._retry_ms = 0
        """Failed look-ups of committed offsets are not retried before this time."""
        self._in_range: dict[TopicPartition, tuple[int, int]] = {}
        """(offset, how often in a row it was reported as out of range although it was in the
        log)."""
        self._results: list[Result] = []
        self._over: list[_Search] = []
        """Searches that have ended and whose wait was logged."""
        self._due_ms: int | None = None
        self._dirty = False
        self._reset_done = self._on_reset
        """Bound once: there are as many resets as partitions."""

    # -- views -------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``settle`` has something to do without another event; ``None`` for never."""
        return 0 if self._dirty else self._due_ms

    def is_looking(self, tp: TopicPartition) -> bool:
        """Whether a position is being looked up or checked."""
        return tp in self._searches

    def waits(self, now_ms: int) -> dict[str, tuple[int, list[TopicPartition]]]:
        """The searches for a log offset that take more than a second: reason, start, and
        partitions. Look-ups of committed offsets are reported by the group."""
        found: dict[str, tuple[int, list[TopicPartition]]] = {}
        for search in self._searches.values():
            is_asked = search.phase in (_Phase.RESET, _Phase.CHECK)
            if is_asked and now_ms - search.since_ms >= ANNOUNCED_AFTER_MS:
                found.setdefault(search.why, (search.since_ms, []))[1].append(search.tp)
        return found

    # -- asking ------------------------------------------------------------------------------

    def begin(
        self,
        now_ms: int,
        tp: TopicPartition,
        generation: int,
        topic_id: TopicId | None,
        *,
        by_policy: bool = False,
    ) -> None:
        """Look up a position: the committed offset, or ``auto_offset_reset`` if there is none or
        with ``by_policy``."""
        self.forget(tp)
        search = self._new(now_ms, tp, generation, topic_id, _Phase.COMMITTED)
        if by_policy or not self._settings.has_group:
            self._by_policy(now_ms, search)

    def check(
        self,
        now_ms: int,
        tp: TopicPartition,
        generation: int,
        topic_id: TopicId | None,
        offset: int,
        *,
        failures: int = 0,
    ) -> None:
        """Look up the leader's range after it reported ``offset`` as out of range. ``failures``:
        how many fetches failed in a row; the more, the longer the rest if the leader has the
        offset."""
        self._end(tp)
        search = self._new(now_ms, tp, generation, topic_id, _Phase.CHECK)
        search.offset = offset
        search.rest_ms = self._pause_ms(failures)

    def fetched(self, tp: TopicPartition) -> None:
        """Note that the leader served the partition, so its position is in range."""
        self._in_range.pop(tp, None)

    def forget(self, tp: TopicPartition) -> None:
        """End the search of a partition that is gone or was sought."""
        self._in_range.pop(tp, None)
        self._end(tp)

    def close(self) -> None:
        """End all searches."""
        for tp in tuple(self._searches):
            self.forget(tp)
        self._over.clear()

    # -- events ------------------------------------------------------------------------------

    def is_open(self, number: int) -> bool:
        """Whether this look-up of committed offsets is open."""
        return number in self._committed

    def answered(
        self, now_ms: int, event: CommittedFound | CommittedFailed
    ) -> ChunkedAnswer[_Search]:
        """Handle the end of a look-up of committed offsets. Ignored if it was not open."""
        pauses: dict[int, int] = {}
        return ChunkedAnswer(
            partial(self._begin_answer, event.number),
            partial(self._take_answer, now_ms, event, pauses),
            resume=self._resume_answer,
        )

    def _begin_answer(self, number: int) -> tuple[_Search, ...]:
        self._dirty = True
        return self._committed.pop(number, ())

    def _resume_answer(self) -> bool:
        self._dirty = True
        return True

    def _take_answer(
        self,
        now_ms: int,
        event: CommittedFound | CommittedFailed,
        pauses: dict[int, int],
        search: _Search,
    ) -> None:
        if not self._is_current(search):
            return
        if isinstance(event, CommittedFailed):
            if event.passing:
                self._rest(now_ms, search, str(event.error), pauses)
            else:
                self._trouble(now_ms, search, event.error)
        elif search.tp not in event.offsets:
            self._rest(now_ms, search, "it could not be found out what is committed", pauses)
        else:
            self._on_committed(now_ms, search, event.offsets[search.tp])

    def settle(self, now_ms: int, *, more: bool = False) -> None:
        """Request what is due. Call it before ``settle`` of the queries, which sends these
        requests. ``more``: there will be more committed offsets to look up in a moment."""
        if not self._dirty and (self._due_ms is None or now_ms < self._due_ms):
            return
        self._dirty = False
        due: list[int] = []
        committed: list[_Search] = []
        for search in tuple(self._idle.values()):
            if search.due_ms > now_ms:
                due.append(search.due_ms)
            elif search.phase is _Phase.COMMITTED:
                committed.append(search)
            elif search.phase is _Phase.STANDS:
                self._end(search.tp)
                self._results.append(PositionStands(search.tp, search.generation))
            else:
                self._ask(search)
        if committed and more:
            due.append(now_ms)
        elif committed:
            self._ask_committed(now_ms, committed, due)
        self._complain(now_ms)
        self._tell_ends(now_ms)
        due.extend(each.notice_ms for each in self._searches.values())
        self._due_ms = min(due, default=None)

    def take(self) -> tuple[Result, ...]:
        """Return the results since the last call, in order."""
        results, self._results = tuple(self._results), []
        return results

    # -- inside: searches --------------------------------------------------------------------

    def _new(
        self,
        now_ms: int,
        tp: TopicPartition,
        generation: int,
        topic_id: TopicId | None,
        phase: _Phase,
    ) -> _Search:
        search = _Search(tp, generation, topic_id, phase, now_ms, now_ms, now_ms + QUIET_MS)
        self._searches[tp] = self._idle[tp] = search
        self._dirty = True
        return search

    def _end(self, tp: TopicPartition) -> None:
        search = self._searches.pop(tp, None)
        self._idle.pop(tp, None)
        if search is None:
            return
        self._drop_lookups(search)
        if search.announced:
            self._over.append(search)
            self._dirty = True

    def _is_current(self, search: _Search) -> bool:
        return self._searches.get(search.tp) is search

    def _drop_lookups(self, search: _Search) -> None:
        for lookup in search.lookups:
            self._queries.drop(lookup)
        search.lookups = ()

    def _wait(self, search: _Search, due_ms: int) -> None:
        search.due_ms = due_ms
        self._idle[search.tp] = search
        self._dirty = True

    def _rest(self, now_ms: int, search: _Search, why: str, pauses: dict[int, int]) -> None:
        """Retry later. ``pauses`` maps a number of failures to a pause: searches that failed
        together stay together."""
        failures = search.failures
        if failures not in pauses:
            pauses[failures] = self._pause_ms(failures)
        search.failures += 1
        search.last = why
        self._wait(search, now_ms + pauses[failures])

    def _pause_ms(self, failures: int) -> int:
        settings = self._settings
        return backoff_ms(
            failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )

    def _trouble(self, now_ms: int, search: _Search, error: Kip848Error) -> None:
        search.last = str(error)
        search.failures = 0
        search.notice_ms = now_ms + NOTICE_AGAIN_MS
        self._results.append(PositionError(search.tp, search.generation, error, lasting=False))
        self._wait(search, now_ms + RETRY_MS)

    def _found(self, search: _Search, stored: StoredOffset, *, committed: bool = False) -> None:
        self._end(search.tp)
        self._results.append(
            PositionFound(
                search.tp,
                search.generation,
                stored.offset,
                stored.leader_epoch,
                committed=committed,
            )
        )

    # -- inside: committed offsets -----------------------------------------------------------

    def _ask_committed(self, now_ms: int, searches: list[_Search], due: list[int]) -> None:
        if self._retry_ms > now_ms and all(each.failures for each in searches):
            due.append(self._retry_ms)
            return
        if any(each.failures for each in searches):
            self._retry_ms = now_ms + self._settings.retry_backoff_ms
        self._number += 1
        for search in searches:
            search.last = search.last or "the group's coordinator has not answered"
            del self._idle[search.tp]
        self._committed[self._number] = tuple(searches)
        self._out.append(LookUpCommitted(self._number, tuple(each.tp for each in searches)))

    def _on_committed(self, now_ms: int, search: _Search, stored: StoredOffset | None) -> None:
        if stored is None or stored.offset < 0:
            self._by_policy(now_ms, search)
        else:
            self._found(search, stored, committed=True)

    # -- inside: the policy ------------------------------------------------------------------

    def _by_policy(self, now_ms: int, search: _Search) -> None:
        """Begin a reset."""
        settings = self._settings
        search.phase = _Phase.RESET
        if settings.reset_policy == "none":
            self._end(search.tp)
            error = _no_offset(search) if search.offset < 0 else _out_of_range(search)
            self._results.append(PositionError(search.tp, search.generation, error, lasting=True))
            return
        if settings.reset_policy == "earliest":
            search.time = EARLIEST
        elif settings.reset_policy == "latest":
            search.time = LATEST
        else:
            # computed once per reset: a retry must not move the start
            search.time = max(0, now_ms + settings.clock_origin_ms - settings.reset_age_ms)
        self._wait(search, now_ms)

    def _ask(self, search: _Search) -> None:
        """Request what this phase needs from the leader."""
        search.notice_ms = min(search.notice_ms, search.due_ms + ANNOUNCED_AFTER_MS)
        del self._idle[search.tp]
        ask = partial(self._queries.ask, topic_id=search.topic_id)
        if search.phase is _Phase.RESET:
            done = partial(self._reset_done, search)
            committed = self._settings.read_committed
            search.lookups = (ask({search.tp: search.time}, done, read_committed=committed),)
        else:
            # for a range, uncommitted records count as part of the log
            search.start = search.end = -1
            search.lookups = (
                ask({search.tp: EARLIEST}, partial(self._on_start, search), read_committed=False),
                ask({search.tp: LATEST}, partial(self._on_end, search), read_committed=False),
            )

    def _on_reset(self, search: _Search, now_ms: int, result: Found | Kip848Error) -> None:
        search.lookups = ()
        if isinstance(result, Kip848Error):
            self._trouble(now_ms, search, result)
            return
        offset = result[search.tp].offset
        if offset < 0:
            age_s = self._settings.reset_age_ms / 1000
            text = f"{shown(search.tp)} has no record of the last {age_s:g} s: continues at its end"
            self._out.append(Notice(text, warning=False, partition=search.tp))
            search.time = LATEST
            self._wait(search, now_ms)
            return
        if search.offset >= 0:
            text = _moved(search, self._settings.reset_policy, offset)
            self._out.append(Notice(text, warning=True, partition=search.tp))
        self._found(search, StoredOffset(offset, NO_EPOCH))

    # -- inside: checks ----------------------------------------------------------------------

    def _on_start(self, search: _Search, now_ms: int, result: Found | Kip848Error) -> None:
        if not isinstance(result, Kip848Error):
            search.start = result[search.tp].offset
        self._on_bound(search, now_ms, result)

    def _on_end(self, search: _Search, now_ms: int, result: Found | Kip848Error) -> None:
        if not isinstance(result, Kip848Error):
            search.end = result[search.tp].offset
        self._on_bound(search, now_ms, result)

    def _on_bound(self, search: _Search, now_ms: int, result: Found | Kip848Error) -> None:
        if isinstance(result, Kip848Error):
            self._drop_lookups(search)
            self._trouble(now_ms, search, result)
            return
        if min(search.start, search.end) < 0:
            return  # the other result is still missing
        search.lookups = ()
        tp, offset = search.tp, search.offset
        before, times = self._in_range.get(tp, (offset, 0))
        times = times + 1 if before == offset else 1
        if search.start <= offset <= search.end and times < BELIEVED_AFTER:
            self._in_range[tp] = (offset, times)
            search.phase = _Phase.STANDS
            self._wait(search, now_ms + search.rest_ms)
        else:
            self._in_range.pop(tp, None)
            self._by_policy(now_ms, search)

    # -- inside: reports ---------------------------------------------------------------------

    def _complain(self, now_ms: int) -> None:
        """Log long searches, one line per reason."""
        late: dict[str, list[_Search]] = {}
        for search in self._searches.values():
            if search.notice_ms <= now_ms:
                search.notice_ms = now_ms + NOTICE_AGAIN_MS
                search.announced = True
                late.setdefault(search.why, []).append(search)
        for why, searches in late.items():
            since_ms = min(each.since_ms for each in searches)
            self._tell(searches, partial(Wait(why, since_ms).goes_on, now_ms), warning=True)

    def _tell_ends(self, now_ms: int) -> None:
        """Log the end of searches whose wait was logged, one line for those that began together."""
        over: dict[int, list[_Search]] = {}
        for search in self._over:
            over.setdefault(search.since_ms, []).append(search)
        self._over.clear()
        for since_ms, searches in over.items():
            self._tell(searches, partial(Wait("", since_ms).is_over, now_ms), warning=False)

    def _tell(self, searches: list[_Search], text: Callable[[str], str], *, warning: bool) -> None:
        only = searches[0].tp if len(searches) == 1 else None
        what = f"positions of {listed([each.tp for each in searches])}"
        self._out.append(Notice(text(what), warning=warning, partition=only))


def _no_offset(search: _Search) -> NoOffsetForPartition:
    return NoOffsetForPartition(
        f"{shown(search.tp)} has no committed offset and auto_offset_reset is 'none'; "
        "seek to an offset, or choose a policy"
    )


def _out_of_range(search: _Search) -> OffsetOutOfRange:
    return OffsetOutOfRange(
        f"{_range_text(search)}, and auto_offset_reset is 'none'; "
        "seek to an offset that is there, or choose a policy",
        topic=search.tp[0],
        partition=search.tp[1],
        offset=search.offset,
        start=search.start,
        end=search.end,
    )


def _range_text(search: _Search) -> str:
    return (
        f"{shown(search.tp)}: offset {search.offset} is out of range: "
        f"the log begins at {search.start} and ends at {search.end}"
    )


def _moved(search: _Search, policy: str, offset: int) -> str:
    by = offset - search.offset
    how = f"{by} offsets are skipped" if by >= 0 else f"{-by} offsets further back"
    return f"{_range_text(search)}; reset to {policy}: continues at {offset}, {how}"
