"""When offsets are committed, what a commit contains, and what follows from its answer.

Theory of operation
-------------------
A *ticket* is one request to commit: by the user, by the interval, or before a revocation. An
*attempt* is one OffsetCommit request. At most one attempt is open: a second one could overtake it
and leave the lower offset stored. An attempt is never cancelled for the same reason; a ticket may
end at its deadline while its attempt is still open. Tickets are sent in order of arrival, except
that one that waits (for a backoff or a newer epoch) does not hold up the others. Only when replies
are missing repeatedly do all of them wait: many tickets must not multiply the requests to an
unavailable coordinator.

A retry must not undo a newer commit: partitions that a younger ticket has stored meanwhile count as
done, and where the answer to a younger commit was lost its offset is repeated instead, since it may
have been stored. Positions of a ticket without explicit offsets, and the epoch, are re-read for
each attempt (KAFKA-16033).

STALE_MEMBER_EPOCH means that the epoch changed between our sending and the broker's reading. The
reaction (KIP-848, OffsetCommit) is to learn the newest epoch by a heartbeat and retry with the
partitions still owned; it is never a reason to rejoin. Partitions no longer owned are reported,
because one bad partition would fail the whole request (KIP-1251).

Before a revocation a deleted topic must not block: UNKNOWN_TOPIC_OR_PARTITION (KAFKA-16224) and
UNKNOWN_TOPIC_ID end the ticket for that partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.offsets._error_rules import Reaction, is_retried, reaction
from kip848_client.core.offsets._kinds import CommitKind
from kip848_client.core.offsets._tracker import CommittableOffset, OffsetTracker
from kip848_client.core.outside import from_outside
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    Kip848Error,
    LocalProtocolError,
    NotAssigned,
    RequestTimedOut,
    broker_error,
)

__all__ = [
    "CommitAnswered",
    "CommitAsked",
    "CommitCommand",
    "CommitDone",
    "CommitEvent",
    "CommitImpossible",
    "CommitLost",
    "CommitRefusal",
    "CommitTimer",
    "CommitterCore",
    "CommitterSettings",
    "CoordinatorSuspect",
    "EpochNoted",
    "RefreshEpoch",
    "SendCommit",
]

_MAX_BACKOFF_DOUBLINGS: Final = 16
_REVOKED: Final = "it was revoked before its offset was committed"


@dataclass(frozen=True, slots=True)
class CommitterSettings:
    """Times in milliseconds, Kafka's names."""

    auto_commit_interval_ms: int | None = 5_000
    """``None``: no automatic commits by interval."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class CommitRefusal:
    """A broker's error for a partition (or for all): code, name, message."""

    code: int
    name: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommitEvent:
    """Base class of the committer's events."""


@dataclass(frozen=True, slots=True)
class CommitAsked(CommitEvent):
    """A request to commit; answered by one ``CommitDone`` with the same ``ticket``, at
    ``deadline_ms`` at the latest.

    ``ticket``: a number of the driver's choice that is not in use. ``offsets``: copied now
    (KAFKA-19351); ``None`` means the confirmed positions, re-read for each attempt.
    """

    ticket: int
    kind: CommitKind
    offsets: Mapping[TopicPartition, CommittableOffset] | None
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class CommitAnswered(CommitEvent):
    """Answer to ``SendCommit``: per partition ``None`` for stored, or the refusal. An error of the
    whole request is given for every partition. Partitions left out count as not answered."""

    attempt: int
    results: Mapping[TopicPartition, CommitRefusal | None]


@dataclass(frozen=True, slots=True)
class CommitLost(CommitEvent):
    """Answer to ``SendCommit``: no reply (disconnected, timed out, no coordinator); a retry may
    help. The broker may have stored the offsets. The driver itself reports the lost coordinator to
    the member."""

    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class CommitImpossible(CommitEvent):
    """Answer to ``SendCommit``: no retry can help (authentication, FindCoordinator refused by
    authorization; KAFKA-18034)."""

    attempt: int
    error: Kip848Error


@dataclass(frozen=True, slots=True)
class EpochNoted(CommitEvent):
    """The member epoch is now this; ``None`` when the consumer is not a member."""

    member_epoch: int | None


@dataclass(frozen=True, slots=True)
class CommitTimer(CommitEvent):
    """``deadline_ms`` was reached. Harmless when early or superfluous."""


@dataclass(frozen=True, slots=True)
class CommitCommand:
    """Base class of the committer's commands."""


@dataclass(frozen=True, slots=True)
class SendCommit(CommitCommand):
    """Send OffsetCommit (v9 or later) with this epoch and the member id (``None``: epoch -1 and an
    empty member id). Answer within ``timeout_ms``; do not cancel it."""

    attempt: int
    member_epoch: int | None
    offsets: Mapping[TopicPartition, CommittableOffset]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CommitDone(CommitCommand):
    """A ticket ended: the stored offsets, and the reasons for the rest. ``ticket`` is ``None`` for
    commits by interval; log their failures."""

    ticket: int | None
    committed: Mapping[TopicPartition, CommittableOffset]
    failed: Mapping[TopicPartition, Kip848Error]


@dataclass(frozen=True, slots=True)
class RefreshEpoch(CommitCommand):
    """Pass a ``HeartbeatWanted`` to the member core: a newer epoch exists."""


@dataclass(frozen=True, slots=True)
class CoordinatorSuspect(CommitCommand):
    """Pass a ``CoordinatorLost`` to the member core and look up the coordinator again."""

    why: str


@dataclass(slots=True)
class _Ticket:
    number: int | None
    kind: CommitKind
    sequence: int
    deadline_ms: int
    as_member: bool
    wanted: dict[TopicPartition, CommittableOffset] | None
    generations: dict[TopicPartition, int]
    """Generations of the explicit offsets at the time of the call; 0 for a partition that was not
    owned."""
    committed: dict[TopicPartition, CommittableOffset] = field(
        default_factory=dict[TopicPartition, CommittableOffset]
    )
    failed: dict[TopicPartition, Kip848Error] = field(
        default_factory=dict[TopicPartition, Kip848Error]
    )
    last_error: str = ""
    failures: int = 0
    not_before_ms: int = 0
    stale_epoch: int | None = None
    """If set, wait until the member epoch differs from this one."""


_Errors = dict[CommitRefusal, Kip848Error]


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    ticket: _Ticket
    member_epoch: int | None
    offsets: Mapping[TopicPartition, CommittableOffset]
    generations: Mapping[TopicPartition, int]
    errors: _Errors = field(default_factory=_Errors)


class CommitterCore:
    """The committer. ``step`` processes an event and returns commands; ``deadline_ms`` is when to
    call ``step`` with ``CommitTimer`` if nothing else happens.

    ``jitter`` maps a pause in ms to a varied one (by up to 20 %); results outside that range are
    clamped to it.
    """

    def __init__(
        self,
        settings: CommitterSettings,
        tracker: OffsetTracker,
        jitter: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._tracker = tracker
        self._jitter = from_outside(jitter)
        self._now = 0
        self._member_epoch: int | None = None
        self._left: dict[TopicPartition, int] = {}
        """Generations of the tracked partitions when the member lost its epoch."""
        self._tickets: list[_Ticket] = []
        self._attempt: _Attempt | None = None
        self._attempts = 0
        self._sequence = 0
        self._stored_by: dict[TopicPartition, int] = {}
        self._unsure: dict[TopicPartition, tuple[int, CommittableOffset]] = {}
        self._interval_at_ms: int | None = None
        self._losses = 0  # consecutive attempts without a reply
        self._silent_until_ms = 0
        self._out: list[CommitCommand] = []
        self._stale_answers = 0

    @property
    def stale_answers(self) -> int:
        """Answers ignored because their attempt was no longer open."""
        return self._stale_answers

    @property
    def open_tickets(self) -> int:
        """Number of open tickets, including the interval's."""
        return len(self._tickets)

    @property
    def member_epoch(self) -> int | None:
        """The epoch that the next attempt will carry."""
        return self._member_epoch

    @property
    def deadline_ms(self) -> int | None:
        """When ``step`` must be called with ``CommitTimer`` at the latest; ``None`` for never."""
        times = [ticket.deadline_ms for ticket in self._tickets]
        if self._interval_at_ms is not None:
            times.append(self._interval_at_ms)
        if self._attempt is None:
            waiting = [t for t in self._tickets if not self._waits_for_epoch(t)]
            times += [max(t.not_before_ms, self._silent_until_ms) for t in waiting]
        return min(times, default=None)

    def step(self, now_ms: int, event: CommitEvent) -> tuple[CommitCommand, ...]:
        """Process one event. Raises ``LocalProtocolError``, with nothing changed, for a ticket that
        is in use and for the answer to an attempt that was never made."""
        self._refuse_if_illegal(event)
        self._now = max(self._now, now_ms)
        self._out = []
        match event:
            case CommitAsked():
                if event.kind is CommitKind.MANUAL and event.offsets is not None:
                    self._tracker.processed(event.offsets)
                self._open(event.ticket, event.kind, event.offsets, event.deadline_ms)
            case CommitAnswered():
                self._on_answered(event)
            case CommitLost():
                self._on_lost(event)
            case CommitImpossible():
                self._on_impossible(event)
            case EpochNoted():
                self._note_epoch(event.member_epoch)
            case _:
                pass  # CommitTimer: the code below finds what is due, as after every event
        self._start_interval()
        self._expire()
        self._send_next()
        self._check()
        return tuple(self._out)

    # -- wishes ------------------------------------------------------------------------------

    def _refuse_if_illegal(self, event: CommitEvent) -> None:
        match event:
            case CommitAsked():
                if any(t.number == event.ticket for t in self._tickets):
                    raise LocalProtocolError(f"commit ticket {event.ticket} is still open")
            case CommitAnswered() | CommitLost() | CommitImpossible():
                if not 0 < event.attempt <= self._attempts:
                    raise LocalProtocolError(f"commit attempt {event.attempt} was never made")
            case EpochNoted() | CommitTimer():
                pass
            case _:
                raise LocalProtocolError(f"not an event of the committer: {event!r}")

    def _open(
        self,
        number: int | None,
        kind: CommitKind,
        offsets: Mapping[TopicPartition, CommittableOffset] | None,
        deadline_ms: int,
    ) -> None:
        self._sequence += 1
        ticket = _Ticket(
            number=number,
            kind=kind,
            sequence=self._sequence,
            deadline_ms=deadline_ms,
            as_member=self._member_epoch is not None,
            wanted=None if offsets is None else dict(offsets),
            generations={tp: self._tracker.generation(tp) for tp in offsets or ()},
        )
        self._tickets.append(ticket)

    def _note_epoch(self, member_epoch: int | None) -> None:
        if member_epoch is None and self._member_epoch is not None:
            self._left = {tp: self._tracker.generation(tp) for tp in self._tracker.partitions()}
        self._member_epoch = member_epoch

    def _is_left(self, tp: TopicPartition) -> bool:
        """Whether ``tp`` is still tracked although its member is out of the group. An empty group
        accepts any commit: that would rewind what others have stored since."""
        return self._member_epoch is None and self._left.get(tp) == self._tracker.generation(tp)

    def _start_interval(self) -> None:
        """Begin an automatic commit when one is due. The timer restarts even if there is nothing to
        commit, and then nothing is marked as in flight (KAFKA-16203)."""
        interval = self._settings.auto_commit_interval_ms
        if interval is None:
            return
        if self._interval_at_ms is None:
            self._interval_at_ms = self._now + interval
        if self._now < self._interval_at_ms:
            return
        self._interval_at_ms = self._now + interval
        running = any(ticket.kind is CommitKind.INTERVAL for ticket in self._tickets)
        dirty = self._tracker.dirty()
        offsets = {tp: each for tp, each in dirty.items() if not self._is_left(tp)}
        if offsets and not running:
            deadline = self._now + self._settings.request_timeout_ms
            self._open(None, CommitKind.INTERVAL, offsets, deadline)

    def _remaining(self, ticket: _Ticket) -> dict[TopicPartition, CommittableOffset]:
        """Return the offsets of the next attempt for this ticket."""
        source = self._tracker.dirty() if ticket.wanted is None else ticket.wanted
        remaining: dict[TopicPartition, CommittableOffset] = {}
        for tp, offset in source.items():
            if tp in ticket.failed or tp in ticket.committed:
                continue
            if self._stored_by.get(tp, 0) > ticket.sequence:
                ticket.committed[tp] = offset  # a younger commit has overtaken this ticket
                continue
            if self._tracker.generation(tp) != ticket.generations.get(
                tp, self._tracker.generation(tp)
            ):
                # A partition of another member would fail the rest, or rewind its new owner.
                ticket.failed[tp] = NotAssigned(_REVOKED)
                continue
            sequence, newest = self._unsure.get(tp, (0, offset))
            remaining[tp] = newest if sequence > ticket.sequence else offset
        return remaining

    def _close(self, ticket: _Ticket, error: Kip848Error | None = None) -> None:
        if error is not None:
            ticket.failed.update(dict.fromkeys(self._remaining(ticket), error))
        self._tickets.remove(ticket)
        if not self._tickets and self._attempt is None:
            self._stored_by.clear()  # only open tickets can be overtaken
            self._unsure.clear()
        if ticket.kind is CommitKind.REVOCATION and self._interval_at_ms is not None:
            interval = self._settings.auto_commit_interval_ms or 0
            self._interval_at_ms = self._now + interval
        self._out.append(CommitDone(ticket.number, ticket.committed, ticket.failed))

    def _expire(self) -> None:
        under_way = None if self._attempt is None else self._attempt.ticket
        if self._member_epoch is None:
            # Without its epoch it could overwrite offsets of a partition's new owner.
            for ticket in [t for t in self._tickets if t.as_member and t is not under_way]:
                self._close(ticket, NotAssigned("the consumer is no longer a member of its group"))
        for ticket in [t for t in self._tickets if t.deadline_ms <= self._now]:
            said = f"; last answer: {ticket.last_error}" if ticket.last_error else ""
            self._close(ticket, RequestTimedOut(f"offsets were not committed in time{said}"))

    # -- attempts ----------------------------------------------------------------------------

    def _waits_for_epoch(self, ticket: _Ticket) -> bool:
        return ticket.stale_epoch is not None and ticket.stale_epoch == self._member_epoch

    def _may_go(self, ticket: _Ticket) -> bool:
        not_before_ms = max(ticket.not_before_ms, self._silent_until_ms)
        return not_before_ms <= self._now and not self._waits_for_epoch(ticket)

    def _send_next(self) -> None:
        """Send the first ticket that is ready; tickets with nothing left to send end here."""
        for ticket in list(self._tickets):
            if self._attempt is not None or not self._may_go(ticket):
                continue
            if ticket.wanted is None:  # positions are read now, so this is the youngest ticket
                self._sequence += 1
                ticket.sequence = self._sequence
            offsets = self._remaining(ticket)
            if not offsets:
                self._close(ticket)
                continue
            self._attempts += 1
            self._attempt = _Attempt(
                number=self._attempts,
                ticket=ticket,
                member_epoch=self._member_epoch,
                offsets=offsets,
                generations={tp: self._tracker.generation(tp) for tp in offsets},
            )
            self._out.append(
                SendCommit(
                    self._attempts,
                    self._member_epoch,
                    offsets,
                    self._settings.request_timeout_ms,
                )
            )

    def _take_attempt(self, number: int) -> _Attempt | None:
        attempt = self._attempt
        if attempt is None or attempt.number != number:
            self._stale_answers += 1
            return None
        self._attempt = None
        return attempt

    def _on_answered(self, event: CommitAnswered) -> None:
        attempt = self._take_attempt(event.attempt)
        if attempt is None:
            return
        self._losses = 0
        ticket = attempt.ticket
        stale, retry, moved = False, False, ""
        for tp, offset in attempt.offsets.items():
            if tp not in event.results:
                # A missing partition is not success; retry as for any lost answer.
                ticket.last_error = f"the broker did not answer for {tp.topic}-{tp.partition}"
                if ticket.kind is CommitKind.INTERVAL:
                    ticket.failed[tp] = RequestTimedOut("the broker did not answer for it")
                else:
                    retry = True
                continue
            refusal = event.results[tp]
            if refusal is None:
                self._note_stored(attempt, tp, offset)
                continue
            ticket.last_error = f"{refusal.name} ({refusal.code})"
            found = reaction(refusal.code)
            if found is Reaction.REDISCOVER:
                moved = refusal.name
            if found is Reaction.NEXT_EPOCH and self._may_wait_for_epoch(attempt, tp):
                stale = True
            elif is_retried(ticket.kind, found):
                retry = True
            elif tp not in ticket.failed:
                ticket.failed[tp] = self._why_not(attempt, tp, refusal)
        if moved:
            self._out.append(CoordinatorSuspect(moved))
        self._after_failure(attempt, stale=stale, retry=retry)

    def _note_stored(
        self, attempt: _Attempt, tp: TopicPartition, offset: CommittableOffset
    ) -> None:
        attempt.ticket.committed[tp] = offset
        sequence, _ = self._unsure.pop(tp, (0, offset))  # if younger, it was sent in our place
        self._stored_by[tp] = max(sequence, attempt.ticket.sequence)
        self._tracker.committed(tp, offset.offset, attempt.generations[tp])

    def _may_wait_for_epoch(self, attempt: _Attempt, tp: TopicPartition) -> bool:
        """Whether STALE_MEMBER_EPOCH is worth another attempt: still a member, still the owner."""
        return (
            attempt.ticket.kind is not CommitKind.INTERVAL
            and attempt.member_epoch is not None
            and self._member_epoch is not None
            and self._tracker.generation(tp) == attempt.generations[tp] != 0
        )

    def _why_not(
        self, attempt: _Attempt, tp: TopicPartition, refusal: CommitRefusal
    ) -> Kip848Error:
        gone = self._tracker.generation(tp) != attempt.generations[tp]
        if gone and refusal.code == ErrorCode.STALE_MEMBER_EPOCH:
            return NotAssigned(_REVOKED)
        if refusal not in attempt.errors:
            said = (refusal.code, refusal.name, refusal.message)
            attempt.errors[refusal] = broker_error(*said, api="OffsetCommit")
        return attempt.errors[refusal]

    def _after_failure(self, attempt: _Attempt, *, stale: bool, retry: bool) -> None:
        """Decide how the ticket continues. One failure is counted per request, however many
        partitions failed (KAFKA-17470)."""
        ticket = attempt.ticket
        if ticket not in self._tickets:
            return  # it ended at its deadline; stored offsets were recorded
        if not stale and not retry:
            ticket.failures = 0
            ticket.stale_epoch = None
            if ticket.wanted is None or not self._remaining(ticket):
                self._close(ticket)
            return
        ticket.not_before_ms = self._now + self._backoff(ticket.failures)
        ticket.failures += 1
        ticket.stale_epoch = attempt.member_epoch if stale else None
        if self._waits_for_epoch(ticket):
            self._out.append(RefreshEpoch())

    def _on_lost(self, event: CommitLost) -> None:
        attempt = self._take_attempt(event.attempt)
        if attempt is None:
            return
        for tp, offset in attempt.offsets.items():
            if self._unsure.get(tp, (0, offset))[0] <= attempt.ticket.sequence:
                self._unsure[tp] = (attempt.ticket.sequence, offset)
        pause_ms = self._backoff(self._losses - 1) if self._losses else 0
        self._silent_until_ms = self._now + pause_ms
        self._losses += 1
        attempt.ticket.last_error = event.why
        if attempt.ticket.kind is CommitKind.INTERVAL:
            self._end_attempt(attempt, RequestTimedOut(f"OffsetCommit got no answer: {event.why}"))
        else:
            self._after_failure(attempt, stale=False, retry=True)

    def _on_impossible(self, event: CommitImpossible) -> None:
        attempt = self._take_attempt(event.attempt)
        if attempt is not None:
            self._end_attempt(attempt, event.error)

    def _end_attempt(self, attempt: _Attempt, error: Kip848Error) -> None:
        if attempt.ticket in self._tickets:
            attempt.ticket.failed.update(dict.fromkeys(attempt.offsets, error))
            self._close(attempt.ticket)

    def _backoff(self, failures: int) -> int:
        base = self._settings.retry_backoff_ms << min(failures, _MAX_BACKOFF_DOUBLINGS)
        pause = min(self._settings.retry_backoff_max_ms, base)
        return min(max(self._jitter(pause), pause * 4 // 5), pause * 6 // 5)

    def _check(self) -> None:
        """Check the invariants after a step."""
        if __debug__:
            numbers = [t.number for t in self._tickets if t.number is not None]
            assert len(numbers) == len(set(numbers)), "a ticket is open twice"
            sendable = any(self._may_go(ticket) for ticket in self._tickets)
            assert self._attempt is not None or not sendable, "a commit that may go was not sent"
            assert all(t.deadline_ms > self._now for t in self._tickets), "a ticket is overdue"
            sent = [c for c in self._out if isinstance(c, SendCommit)]
            assert len(sent) <= 1, "two commits in one step"
