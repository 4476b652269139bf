"""The one piece of work that the application is asked to do: flush, release, start.

There are three purposes. A *reconciliation* runs flush, release, start, and each part only when it
is needed, but start always: the assigned callback is called with an empty set too. A *leave* runs
flush (if asked) and release. A *drop*, after the member fell out of the group, runs release alone,
as lost. New work replaces the old one, whose answers are then stale.

Each partition gets exactly one terminating callback, revoked or lost: what was already named in a
release that is still running is not named again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kip848_client._types import TopicIdPartition
from kip848_client.member._commands import (
    Command,
    FlushOffsets,
    ReleasePartitions,
    StartPartitions,
)
from kip848_client.member._events import OffsetsFlushed, PartitionsReleased, PartitionsStarted
from kip848_client.member._model import Assignment, MemberSettings, group_by_topic
from kip848_client.member._reconcile import Held, Ledger, Plan

__all__ = ["Bench", "Ending", "Purpose"]


class Purpose(Enum):
    """Why the application is bothered."""

    RECONCILE = "reconcile"
    LEAVE = "leave"
    DROP = "drop"


class Ending(Enum):
    """What an answer did to the work."""

    STALE = "stale"
    """It did not belong to open work."""
    GOING_ON = "going on"
    RECONCILED = "reconciled"
    FAILED = "failed"
    """A callback of a reconciliation raised."""
    EMPTIED = "emptied"
    """The application has nothing any more."""


class _Stage(Enum):
    FLUSHING = "flushing"
    RELEASING = "releasing"
    STARTING = "starting"


@dataclass(slots=True)
class _Work:
    number: int
    purpose: Purpose
    stage: _Stage
    plan: Plan | None = None
    flush_by_ms: int | None = None
    held: Held | None = None
    """Once starting: what will be owned when the callback has returned."""


class Bench:
    """Holds the ledger and the open work; every method leaves both consistent."""

    def __init__(self, settings: MemberSettings, emit: Callable[[Command], None]) -> None:
        self._settings = settings
        self._emit = emit
        self._work: _Work | None = None
        self.ledger = Ledger()
        self.issued = 0

    @property
    def purpose(self) -> Purpose | None:
        """What the open work is for, ``None`` when nothing is open."""
        return None if self._work is None else self._work.purpose

    @property
    def flush_by_ms(self) -> int | None:
        """When an open flush is given up."""
        return None if self._work is None else self._work.flush_by_ms

    def claimed(self) -> Assignment:
        """What to report as owned: all that the application has, and all that it may be given
        before the answer to this report is here.

        What a report leaves out is given away at once. A plan may begin or go on while the report
        is under way, and the answer that would have stopped it may be lost; so a member that
        reported only what it has reconciled could find its new partitions in two places. What the
        coordinator wants back it names in a smaller target, and when the plan of the moment is
        done it is not claimed any more.
        """
        ledger = self.ledger
        partitions = ledger.assigned
        if ledger.current is not None:
            partitions |= ledger.current.partitions
        if ledger.target is not None:
            partitions |= ledger.target.partitions
        if self._work is not None and self._work.plan is not None:
            partitions |= self._work.plan.target.partitions
        return group_by_topic(partitions)

    def cancel(self) -> None:
        """Forget the open work; its answers will be stale. What runs in the application runs on."""
        self._work = None

    def vacate(self, *, lost: bool) -> None:
        """End a leave without waiting: what was asked of the application runs on, what could not
        be asked yet because of a flush is asked now, and its answer will be stale."""
        work = self._work
        if work is not None and work.stage is _Stage.FLUSHING:
            self._release_all(work, lost=lost)
        self.cancel()
        self.ledger.clear()

    # -- beginnings --------------------------------------------------------------------------

    def reconcile(self, now_ms: int, plan: Plan) -> None:
        """Begin to carry out ``plan``. Everything consumed is committed first, of all partitions,
        for at most the time that the broker waits for a revocation."""
        work = self._begin(Purpose.RECONCILE, _Stage.FLUSHING, plan)
        self.ledger.hold_back(plan.revoked)
        if self._settings.auto_commit and self.ledger.assigned:
            self._flush(work, plan.revoked, now_ms + self._settings.max_poll_interval_ms)
        else:
            self._release(work, plan.revoked)

    def leave(self, flush_by_ms: int | None) -> Ending:
        """Begin to take everything from the application because it wants to leave."""
        everything = self.ledger.assigned
        if not everything:
            self.cancel()
            return Ending.EMPTIED
        work = self._begin(Purpose.LEAVE, _Stage.FLUSHING)
        self.ledger.hold_back(everything)
        if flush_by_ms is None:
            self._release_all(work, lost=False)
        else:
            self._flush(work, everything - self.ledger.releasing, flush_by_ms)
        return Ending.GOING_ON

    def drop(self) -> Ending:
        """Begin to take everything from the application because the group took it already."""
        self.ledger.abandon()
        if not self.ledger.assigned:
            self.cancel()
            self.ledger.clear()
            return Ending.EMPTIED
        self._release_all(self._begin(Purpose.DROP, _Stage.RELEASING), lost=True)
        return Ending.GOING_ON

    # -- answers -----------------------------------------------------------------------------

    def flushed(self, event: OffsetsFlushed) -> Ending:
        """The commit is over, one way or the other."""
        work = self._open(event.plan, _Stage.FLUSHING)
        if work is None:
            return Ending.STALE
        self._after_flush(work)
        return Ending.GOING_ON

    def flush_overdue(self) -> None:
        """The commit took too long: go on without it."""
        if self._work is not None and self._work.flush_by_ms is not None:
            self._after_flush(self._work)

    def released(self, event: PartitionsReleased) -> Ending:
        """The revoked or lost callback is over."""
        work = self._open(event.plan, _Stage.RELEASING)
        if work is None:
            return Ending.STALE
        if work.plan is None:
            self.cancel()
            if work.purpose is Purpose.DROP:
                self.ledger.clear()
            return Ending.EMPTIED
        self.ledger.released(failed=event.failed)
        if event.failed:
            self.cancel()
            return Ending.FAILED
        self._start(work, work.plan)
        return Ending.GOING_ON

    def started(self, event: PartitionsStarted) -> Ending:
        """The assigned callback is over."""
        work = self._open(event.plan, _Stage.STARTING)
        if work is None or work.held is None:
            return Ending.STALE
        self.ledger.started(work.held, failed=event.failed)
        self.cancel()
        return Ending.FAILED if event.failed else Ending.RECONCILED

    # -- parts -------------------------------------------------------------------------------

    def _begin(self, purpose: Purpose, stage: _Stage, plan: Plan | None = None) -> _Work:
        self.issued += 1
        self._work = _Work(self.issued, purpose, stage, plan)
        return self._work

    def _open(self, number: int, stage: _Stage) -> _Work | None:
        work = self._work
        if work is None or work.number != number or work.stage is not stage:
            return None
        return work

    def _flush(self, work: _Work, revoked: frozenset[TopicIdPartition], by_ms: int) -> None:
        work.flush_by_ms = by_ms
        self._emit(FlushOffsets(work.number, self.ledger.describe(revoked), by_ms))

    def _after_flush(self, work: _Work) -> None:
        work.flush_by_ms = None
        if work.plan is None:
            self._release_all(work, lost=False)
        else:
            self._release(work, work.plan.revoked)

    def _release(self, work: _Work, revoked: frozenset[TopicIdPartition]) -> None:
        assert work.plan is not None, "only a plan releases a part"
        if not revoked:
            self._start(work, work.plan)
            return
        work.stage = _Stage.RELEASING
        self.ledger.release(revoked)
        named = self.ledger.describe(revoked)
        self._emit(ReleasePartitions(work.number, named, lost=False))

    def _release_all(self, work: _Work, *, lost: bool) -> None:
        work.stage = _Stage.RELEASING
        named = self.ledger.describe(self.ledger.assigned - self.ledger.releasing)
        self.ledger.release(self.ledger.assigned)
        self._emit(ReleasePartitions(work.number, named, lost=lost, last=True))

    def _start(self, work: _Work, plan: Plan) -> None:
        work.stage = _Stage.STARTING
        work.held, added = self.ledger.start(plan.target)
        new, everything = self.ledger.describe(added), self.ledger.describe(work.held.partitions)
        self._emit(StartPartitions(work.number, new, everything))
