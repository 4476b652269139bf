"""Look-ups of offsets by time at the partitions' leaders (ListOffsets), for resets, range checks
and users.

Theory of operation
-------------------
Everything wanted at one moment goes into one request per leader, and a leader has one request at a
time: brokers answer the requests of a connection one after the other, so a second one would gain
nothing. A partition is named once per request (brokers refuse duplicates), and a request has one
isolation level; the rest goes into the next one.

Old questions may share a request with new ones, but no question is answered by a request sent
before it was asked: the end of a partition may have moved since.

ListOffsets identifies topics by name. So a question remembers the topic id that the name had when
the request was sent, and an answer counts only if the name still has that id; a question for an
assigned partition waits while the name belongs to another topic.

After a refusal the partition rests, longer each time; partitions refused together rest together, so
that they stay one request. Refused questions are sent to a leader at most once per
``retry_backoff_ms``, whatever it answers; a new question is sent at once and takes along those that
are due. A change of leader ends the rest. An error that is not transient ends the look-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.cluster import (
    NO_NODE,
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    MetadataQuestions,
)
from kip848_client.core.fetch._chunked_answers import ChunkedAnswer
from kip848_client.core.fetch._commands import (
    Commands,
    ListOffsets,
    Notice,
    OffsetsFound,
    OffsetsNotFound,
)
from kip848_client.core.fetch._error_rules import ANNOUNCED_AFTER_MS, QUIET_MS
from kip848_client.core.fetch._events import OffsetsAsked, OffsetsListed, OffsetsNotListed
from kip848_client.core.fetch._model import (
    EARLIEST,
    LATEST,
    FetchSettings,
    FoundOffset,
    ListedOffset,
)
from kip848_client.core.partition_names import listed, shown
from kip848_client.core.types import TopicId, TopicPartition, Wait
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    Kip848Error,
    RequestTimedOut,
    refusal,
)

__all__ = ["Found", "Lookup", "Queries"]

Found = Mapping[TopicPartition, FoundOffset]
"""Results of a look-up; offset -1 where no record is that recent."""
Done = Callable[[int, Found | Kip848Error], None]
"""Called once with the time and the result of a look-up."""

_NONE_THERE: Final = -1


class Remedy(NamedTuple):
    """What to do about an error code of ListOffsets, besides retrying after a rest."""

    metadata_after_ms: int | None = None
    """Another broker may lead by now: request metadata once the error has lasted this long.
    ``None``: the right broker was asked."""
    doubt_after_ms: int | None = None
    """When the error has lasted this long, accept the next metadata even if its epoch is older."""
    tries: int | None = None
    """The look-up fails with the error after this many in a row; ``None``: never."""


_REST: Final = Remedy()
_MOVED: Final = Remedy(metadata_after_ms=0)
_LAGGING: Final = Remedy(metadata_after_ms=1_000, doubt_after_ms=QUIET_MS)
_FINAL: Final = Remedy(tries=1)
_UNKNOWN: Final = Remedy(tries=10)
"""For codes that are not retriable in Kafka and have no rule here."""

REMEDIES: Final[Mapping[int, Remedy]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: _REST,
    ErrorCode.CORRUPT_MESSAGE: _REST,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: _MOVED,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: _MOVED,
    ErrorCode.INVALID_TOPIC_EXCEPTION: _FINAL,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _FINAL,
    ErrorCode.UNSUPPORTED_VERSION: _FINAL,
    ErrorCode.INVALID_REQUEST: Remedy(tries=2),
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: _FINAL,
    ErrorCode.KAFKA_STORAGE_ERROR: _MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: _MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: _LAGGING,
    ErrorCode.OFFSET_NOT_AVAILABLE: _REST,  # the leader is new and does not know its end yet
}


def remedy_for(code: int) -> Remedy:
    """Return the remedy for this code."""
    remedy = REMEDIES.get(code)
    if remedy is not None:
        return remedy
    return _MOVED if is_retriable(code) else _UNKNOWN


@dataclass(slots=True, eq=False)
class Lookup:
    """An open look-up of one or more partitions. ``last`` is the reason why it has not ended."""

    done: Done
    deadline_ms: int | None
    missing: dict[TopicPartition, _Question] = field(default_factory=dict)
    found: dict[TopicPartition, FoundOffset] = field(default_factory=dict)
    last: str = "no leader is known"
    since_ms: int | None = None
    announced: str = ""
    """The reason for the wait that was logged."""


@dataclass(slots=True, eq=False)
class _Question:
    lookup: Lookup
    tp: TopicPartition
    time: int
    read_committed: bool
    topic_id: TopicId | None
    """The id of the topic; ``None`` for any topic with that name."""
    request: int | None = None
    """The number of the request that carries it."""
    asked_id: TopicId | None = None
    """The id that the name had when the request was sent."""
    asked_leader: tuple[int, int] | None = None
    due_ms: int = 0
    refusals: int = 0
    same_code: int = 0
    """How often ``code`` came in a row."""
    code: int = 0
    failing_ms: int = 0
    """Since when it has been failing."""


_Ready = tuple[_Question, tuple[int, int]]
"""A question that can be sent now, with the leader and its epoch."""


class _Request(NamedTuple):
    node: int
    questions: tuple[_Question, ...]


class Queries:
    """All open look-ups. Each ``settle`` requests the missing leaders again."""

    def __init__(
        self,
        settings: FetchSettings,
        jitter: Jitter,
        leaders: Leaders,
        metadata: MetadataQuestions,
        out: Commands,
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._leaders = leaders
        self._out = out
        self._metadata = metadata
        self._number = 0
        self._lookups: dict[Lookup, None] = {}
        self._tickets: dict[int, Lookup] = {}
        """Look-ups of users, by ticket."""
        self._topics: Counter[str] = Counter()
        self._waiting: dict[_Question, None] = {}
        self._requests: dict[int, _Request] = {}
        self._busy: dict[int, int] = {}
        """Node to the number of its open request."""
        self._retry_ms: dict[int, int] = {}
        """Node to when questions refused by any broker may be sent to it again."""
        self._dirty = False
        self._hinted = False
        self._due_ms: int | None = None
        self._announce_ms: int | None = None
        """When to log the look-ups that users wait for."""

    # -- views -------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``settle`` has something to do without another event; ``None`` for never."""
        if self._dirty:
            return 0
        due = [each for each in (self._due_ms, self._announce_ms) if each is not None]
        return min(due, default=None)

    @property
    def topics(self) -> frozenset[str]:
        """The topics with open questions."""
        return frozenset(self._topics)

    # -- asking ------------------------------------------------------------------------------

    def ask(
        self,
        times: Mapping[TopicPartition, int],
        done: Done,
        *,
        read_committed: bool,
        topic_id: TopicId | None = None,
        deadline_ms: int | None = None,
    ) -> Lookup:
        """Begin a look-up of ``EARLIEST``, ``LATEST`` or ms since 1970. ``topic_id``: of this topic
        only. ``done`` is called by a later call, ``settle`` at the earliest."""
        lookup = Lookup(done, deadline_ms)
        for tp, time in times.items():
            question = _Question(lookup, tp, time, read_committed, topic_id)
            lookup.missing[tp] = question
            self._topics[tp[0]] += 1
            self._waiting[question] = None
        self._lookups[lookup] = None
        self._dirty = True
        return lookup

    def asked_by_user(self, event: OffsetsAsked) -> None:
        """Begin a look-up that is answered by ``OffsetsFound`` or ``OffsetsNotFound``."""
        self._tickets[event.ticket] = self.ask(
            event.times,
            partial(self._answer_user, event.ticket),
            read_committed=self._settings.read_committed,
            deadline_ms=event.deadline_ms,
        )

    def _answer_user(self, ticket: int, now_ms: int, result: Found | Kip848Error) -> None:
        self._forget(now_ms, ticket)
        if isinstance(result, Kip848Error):
            self._out.append(OffsetsNotFound(ticket, result))
        else:
            self._out.append(OffsetsFound(ticket, result))

    def withdraw(self, now_ms: int, ticket: int) -> None:
        """Cancel a user's look-up; it may have been answered already."""
        lookup = self._forget(now_ms, ticket)
        if lookup is not None:
            self.drop(lookup)
            self._dirty = True

    def _forget(self, now_ms: int, ticket: int) -> Lookup | None:
        lookup = self._tickets.pop(ticket, None)
        if lookup is not None and lookup.announced and lookup.since_ms is not None:
            text = Wait(lookup.last, lookup.since_ms).is_over(now_ms, lookup.announced)
            self._out.append(Notice(text, warning=False))
        return lookup

    def drop(self, lookup: Lookup) -> None:
        """Abandon a look-up; ``done`` is not called."""
        self._lookups.pop(lookup, None)
        for question in tuple(lookup.missing.values()):
            self._strike(question)

    def close(self, now_ms: int) -> None:
        """End all look-ups."""
        for lookup in tuple(self._lookups):
            self._end(now_ms, lookup, ConsumerClosed("the consumer is closed"))

    # -- events ------------------------------------------------------------------------------

    def is_open(self, query: int) -> bool:
        """Whether this request is open."""
        return query in self._requests

    def answered(
        self, now_ms: int, event: OffsetsListed | OffsetsNotListed
    ) -> ChunkedAnswer[_Question]:
        """Handle the end of a request. Ignored if it was not open."""
        pauses: dict[int, int] = {}
        return ChunkedAnswer(
            partial(self._begin_answer, event.query),
            partial(self._take_answer, now_ms, event, pauses),
            resume=self._resume_answer,
        )

    def _begin_answer(self, query: int) -> tuple[_Question, ...]:
        request = self._requests.pop(query, None)
        if request is None:
            return ()
        if self._busy.get(request.node) == query:
            del self._busy[request.node]
        self._dirty = True
        return request.questions

    def _resume_answer(self) -> bool:
        self._dirty = True
        return True

    def _take_answer(
        self,
        now_ms: int,
        event: OffsetsListed | OffsetsNotListed,
        pauses: dict[int, int],
        question: _Question,
    ) -> None:
        if question.request != event.query or not _is_open(question):
            return
        question.request = None
        if isinstance(event, OffsetsListed):
            self._on_row(now_ms, question, event.rows.get(question.tp), pauses)
        elif event.error is not None:
            self._end(now_ms, question.lookup, event.error)
        else:
            self._rest(now_ms, question, event.why, pauses, metadata=True)

    def leader_hinted(self) -> None:
        """Note that a refusal named the leader of a partition; the next one may, too: see
        ``leaders_changed``, which follows in ``settle``."""
        self._hinted = self._dirty = True

    def leaders_changed(self) -> None:
        """Handle changed leaders: questions that wait for a leader, or rest because the old one
        refused, are sent at once."""
        self._dirty = True
        self._hinted = False
        for question in self._waiting:
            self._follow(question)
        for number, request in self._requests.items():
            for question in request.questions:
                moved = question.request == number and _is_open(question) and self._follow(question)
                if moved:
                    question.request = None
                    self._waiting[question] = None

    def leaders_told(self, now_ms: int, event: LeadersLearnt | LeadersNotLearnt) -> None:
        """Record why a leader may still be unknown. Call it after the leaders in the event were
        applied."""
        if isinstance(event, LeadersLearnt):
            self.leaders_changed()
            errors = {each.topic: each.error_code for each in event.topics if each.error_code}
        else:
            errors = {}
        for question in tuple(self._waiting):
            if not _is_open(question) or self._leader_for(question) is not None:
                continue
            if isinstance(event, LeadersNotLearnt):
                question.lookup.last = event.why
                continue
            code = errors.get(question.tp[0])
            if code is None:
                continue
            if remedy_for(code).tries == 1:
                self._end(now_ms, question.lookup, _refusal(code, question.tp, api="Metadata"))
            else:
                question.lookup.last = _of_partition(question, error_name(code))

    def settle(self, now_ms: int) -> None:
        """Send the questions that are due, and fail those past their deadline."""
        if self._announce_ms is not None and now_ms >= self._announce_ms:
            self._announce(now_ms)
        if not self._dirty and (self._due_ms is None or now_ms < self._due_ms):
            return
        if self._hinted:
            self.leaders_changed()
        for lookup in tuple(self._lookups):
            if lookup not in self._lookups:
                continue  # dropped by the callback of another look-up
            if not lookup.missing:
                self._end(now_ms, lookup, lookup.found)
            elif lookup.deadline_ms is not None and now_ms >= lookup.deadline_ms:
                self._end(now_ms, lookup, _too_late(lookup))
        self._dirty = False
        due: list[int] = []
        for node, ready in self._by_leader(now_ms, due).items():
            self._send(now_ms, node, ready, due)
        due.extend(each.deadline_ms for each in self._lookups if each.deadline_ms is not None)
        self._due_ms = min(due, default=None)
        self._announce(now_ms)

    def waits(self, now_ms: int) -> dict[str, tuple[int, list[TopicPartition]]]:
        """The users' look-ups that take more than a second: as ``Positions.waits``."""
        found: dict[str, tuple[int, list[TopicPartition]]] = {}
        for lookup in self._tickets.values():
            since_ms = now_ms if lookup.since_ms is None else lookup.since_ms
            if now_ms - since_ms >= ANNOUNCED_AFTER_MS:
                found.setdefault(lookup.last, (since_ms, []))[1].extend(lookup.missing)
        return found

    def _announce(self, now_ms: int) -> None:
        """Log once each user's look-up that takes more than a second."""
        due: list[int] = []
        for lookup in self._tickets.values():
            if lookup.since_ms is None:
                lookup.since_ms = now_ms
            if lookup.announced or not lookup.missing:
                continue
            announce_ms = lookup.since_ms + ANNOUNCED_AFTER_MS
            if now_ms < announce_ms:
                due.append(announce_ms)
                continue
            lookup.announced = f"offsets of {listed(lookup.missing)}"
            text = Wait(lookup.last, lookup.since_ms).goes_on(now_ms, lookup.announced)
            self._out.append(Notice(text, warning=True))
        self._announce_ms = min(due, default=None)

    # -- inside: requests --------------------------------------------------------------------

    def _leader_for(self, question: _Question) -> tuple[int, int] | None:
        meant = question.topic_id
        if meant is not None and self._leaders.id_of(question.tp[0]) != meant:
            return None
        return self._leaders.leader_of(question.tp)

    def _follow(self, question: _Question) -> bool:
        """Whether the leader has changed since the last request; if so, it is asked at once."""
        leader = self._leader_for(question)
        if leader is None or question.asked_leader in (None, leader):
            return False
        question.due_ms = 0
        return True

    def _by_leader(self, now_ms: int, due: list[int]) -> dict[int, list[_Ready]]:
        """Group the questions to send now by leader. Adds to ``due`` when there will be more."""
        ready: dict[int, list[_Ready]] = {}
        for question in self._waiting:
            if question.due_ms > now_ms:
                due.append(question.due_ms)
                continue
            leader = self._leader_for(question)
            if leader is None:
                self._metadata.want(question.tp[0], f"no leader of {shown(question.tp)} is known")
            elif leader[0] not in self._busy:
                ready.setdefault(leader[0], []).append((question, leader))
        return ready

    def _send(self, now_ms: int, node: int, ready: list[_Ready], due: list[int]) -> None:
        """Send one request to ``node`` now, or later if all of it was refused before."""
        retry_ms = self._retry_ms.get(node, 0)
        if retry_ms > now_ms:
            ready.sort(key=lambda each: each[0].refusals > 0)  # new questions go first
            if ready[0][0].refusals:
                due.append(retry_ms)
                return
        read_committed = ready[0][0].read_committed
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        taken: list[_Question] = []
        self._number += 1
        for question, leader in ready:
            tp = question.tp
            if question.read_committed != read_committed:
                continue
            if wanted.setdefault(tp, (question.time, leader[1])) != (question.time, leader[1]):
                continue
            question.request = self._number
            question.asked_id = self._leaders.id_of(tp[0])
            question.asked_leader = leader
            question.lookup.last = f"broker {node} has not answered"
            taken.append(question)
            del self._waiting[question]
        if any(each.refusals for each in taken):
            self._retry_ms[node] = now_ms + self._settings.retry_backoff_ms
        self._busy[node] = self._number
        self._requests[self._number] = _Request(node, tuple(taken))
        self._out.append(ListOffsets(self._number, node, wanted, read_committed))

    # -- inside: answers ---------------------------------------------------------------------

    def _on_row(
        self,
        now_ms: int,
        question: _Question,
        row: ListedOffset | None,
        pauses: dict[int, int],
    ) -> None:
        tp = question.tp
        topic_id = self._leaders.id_of(tp[0])
        if topic_id != question.asked_id:
            known = "is unknown" if topic_id is None else "has another topic id"
            why = f"the name {known} by now"
            self._rest(now_ms, question, why, pauses, metadata=True)
        elif row is None:
            why = f"broker {_asked(question)} answered nothing"
            self._rest(now_ms, question, why, pauses, metadata=False)
        elif row.error_code:
            self._on_refusal(now_ms, question, row.error_code, pauses)
        elif row.offset < 0 and question.time in (EARLIEST, LATEST):
            why = f"broker {_asked(question)} answered offset {row.offset}"
            self._rest(now_ms, question, why, pauses, metadata=False)
        else:
            offset = max(row.offset, _NONE_THERE)
            lookup = question.lookup
            self._strike(question)
            lookup.found[tp] = FoundOffset(offset, row.timestamp, row.leader_epoch)
            if not lookup.missing:
                self._end(now_ms, lookup, lookup.found)

    def _on_refusal(
        self, now_ms: int, question: _Question, code: int, pauses: dict[int, int]
    ) -> None:
        remedy = remedy_for(code)
        if question.code != code:
            question.code, question.same_code, question.failing_ms = code, 0, now_ms
        question.same_code += 1
        if remedy.tries is not None and question.same_code >= remedy.tries:
            self._end(now_ms, question.lookup, _refusal(code, question.tp, api="ListOffsets"))
            return
        after_ms = remedy.metadata_after_ms
        metadata = after_ms is not None and now_ms - question.failing_ms >= after_ms
        doubt_ms = remedy.doubt_after_ms
        if doubt_ms is not None and now_ms - question.failing_ms >= doubt_ms:
            assert question.asked_id is not None, "no broker was asked"
            self._leaders.doubt((question.asked_id, question.tp[1]))
        why = error_name(code)
        self._rest(now_ms, question, why, pauses, metadata=metadata, code=code)

    def _rest(
        self,
        now_ms: int,
        question: _Question,
        why: str,
        pauses: dict[int, int],
        *,
        metadata: bool,
        code: int = 0,
    ) -> None:
        """Retry later. ``pauses`` maps failures to the pause of this answer: one for all of it."""
        refusals = question.refusals
        if refusals not in pauses:
            settings = self._settings
            base_ms, cap_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
            pauses[refusals] = backoff_ms(refusals, base_ms, cap_ms, self._jitter)
        question.code = code
        question.refusals += 1
        question.due_ms = now_ms + pauses[refusals]
        question.lookup.last = _of_partition(question, why)
        self._waiting[question] = None
        if metadata:
            self._metadata.want(question.tp[0], f"{shown(question.tp)}: {why}")

    def _strike(self, question: _Question) -> None:
        del question.lookup.missing[question.tp]
        self._waiting.pop(question, None)
        topic = question.tp[0]
        self._topics[topic] -= 1
        if not self._topics[topic]:
            del self._topics[topic]

    def _end(self, now_ms: int, lookup: Lookup, result: Found | Kip848Error) -> None:
        self.drop(lookup)
        lookup.done(now_ms, result)


def _is_open(question: _Question) -> bool:
    return question.lookup.missing.get(question.tp) is question


def _asked(question: _Question) -> int:
    return NO_NODE if question.asked_leader is None else question.asked_leader[0]


def _of_partition(question: _Question, why: str) -> str:
    """Prefix the partition if the look-up has several; otherwise the reason is enough."""
    return f"{shown(question.tp)}: {why}" if len(question.lookup.missing) > 1 else why


def _refusal(code: int, tp: TopicPartition, *, api: str) -> BrokerError:
    return refusal(code, shown(tp), api=api)


def _too_late(lookup: Lookup) -> RequestTimedOut:
    return RequestTimedOut(
        f"offsets of {listed(lookup.missing)} were not found in time: {lookup.last}"
    )
