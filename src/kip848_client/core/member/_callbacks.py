"""The one piece of work open for the application: flush, release, start.

There are three purposes. A *reconciliation* runs flush, release, start; flush and release only when
needed, start always: the assigned callback is called even with an empty set. A *leave* runs flush
(if requested) and release. A *drop*, after the member fell out of the group, runs release alone, as
lost. New work replaces the old one, whose answers are then stale.

Each partition gets exactly one terminating callback, revoked or lost: partitions in a release that
is still running are not named again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from kip848_client.core.member._commands import (
    Command,
    FlushOffsets,
    Phase,
    PhaseBegan,
    ReleasePartitions,
    StartPartitions,
)
from kip848_client.core.member._events import OffsetsFlushed, PartitionsReleased, PartitionsStarted
from kip848_client.core.member._model import Assignment, MemberSettings, group_by_topic
from kip848_client.core.member._reconcile import Acknowledge, AssignmentState, Held, Plan
from kip848_client.core.types import TopicId, TopicIdPartition

__all__ = ["CallbackWork", "Ending", "Purpose"]


class Purpose(Enum):
    """The purpose of the work."""

    RECONCILE = "reconcile"
    LEAVE = "leave"
    DROP = "drop"


class Ending(Enum):
    """The effect of an answer on the work."""

    STALE = "stale"
    """The answer did not belong to open work."""
    GOING_ON = "going on"
    RECONCILED = "reconciled"
    FAILED = "failed"
    """A callback of a reconciliation raised."""
    EMPTIED = "emptied"
    """The application holds no partitions any more."""


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
    """Once starting: the set that is owned when the callback has returned."""


class CallbackWork:
    """Owns the assignment and the open work; every method leaves both consistent. Others only read
    ``assignment``."""

    def __init__(self, settings: MemberSettings, emit: Callable[[Command], None]) -> None:
        self._settings = settings
        self._emit = emit
        self._work: _Work | None = None
        self.assignment = AssignmentState()
        self.issued = 0

    @property
    def purpose(self) -> Purpose | None:
        """The purpose of the open work, ``None`` if none is open."""
        return None if self._work is None else self._work.purpose

    @property
    def flush_by_ms(self) -> int | None:
        """The deadline of an open flush."""
        return None if self._work is None else self._work.flush_by_ms

    def claimed(self) -> Assignment:
        """What to report as owned: all partitions the application has, and all it may be given
        before the answer to this report arrives.

        The coordinator reassigns at once what a report leaves out. A plan may begin or continue
        while the report is in flight, and the answer that would have stopped it may be lost; so if
        a member reported only what it has reconciled, its new partitions could end up with two
        members. The coordinator takes partitions back by sending a smaller target, and after the
        current plan they are no longer claimed.
        """
        assignment = self.assignment
        partitions = assignment.assigned
        if assignment.current is not None:
            partitions |= assignment.current.partitions
        if assignment.target is not None:
            partitions |= assignment.target.partitions
        if self._work is not None and self._work.plan is not None:
            partitions |= self._work.plan.target.partitions
        return group_by_topic(partitions)

    def cancel(self) -> None:
        """Forget the open work; its answers will be stale. Running callbacks continue."""
        self._work = None

    def abandon(self, *, lost: bool) -> None:
        """End a leave without waiting: running callbacks continue, a release that was waiting for a
        flush is requested now, and its answer will be stale."""
        work = self._work
        if work is not None and work.stage is _Stage.FLUSHING:
            self._release_all(work, lost=lost)
        self.cancel()
        self.assignment.clear()

    # -- the assignment ----------------------------------------------------------------------

    def retarget(self, partitions: frozenset[TopicIdPartition]) -> bool:
        """Set the coordinator's target; returns whether it is new. Open work continues."""
        return self.assignment.retarget(partitions)

    def name(self, asked: tuple[TopicId, ...], found: Mapping[TopicId, str]) -> None:
        """Store the names of ``asked`` that were found."""
        self.assignment.name(asked, found)

    def clear(self) -> None:
        """Reset for a new membership: nothing is held, wanted or open."""
        self.cancel()
        self.assignment.clear()

    # -- starting work -----------------------------------------------------------------------

    def reconcile(self, now_ms: int) -> Ending | None:
        """Begin the next reconciliation, if one is needed and none is open; ``None`` otherwise."""
        if self._work is not None:
            return None
        step = self.assignment.next_step()
        if step is None:
            return None
        if isinstance(step, Acknowledge):
            self.assignment.acknowledge(step.held)
            return Ending.RECONCILED
        self._carry_out(now_ms, step)
        return Ending.GOING_ON

    def _carry_out(self, now_ms: int, plan: Plan) -> None:
        """Carry out a plan. First, everything consumed is committed, of all partitions, for at most
        the time that the broker waits for a revocation."""
        work = self._begin(Purpose.RECONCILE, _Stage.FLUSHING, plan)
        self.assignment.hold_back(plan.revoked)
        if self._settings.auto_commit and self.assignment.assigned:
            self._flush(work, plan.revoked, now_ms + self._settings.max_poll_interval_ms)
        else:
            self._release(work, plan.revoked)

    def leave(self, flush_by_ms: int | None) -> Ending:
        """Begin to take all partitions from the application because it leaves."""
        everything = self.assignment.assigned
        if not everything:
            self.cancel()
            return Ending.EMPTIED
        work = self._begin(Purpose.LEAVE, _Stage.FLUSHING)
        self.assignment.hold_back(everything)
        if flush_by_ms is None:
            self._release_all(work, lost=False)
        else:
            self._flush(work, everything - self.assignment.releasing, flush_by_ms)
        return Ending.GOING_ON

    def drop(self) -> Ending:
        """Begin to take all partitions from the application because the group already took them."""
        self.assignment.leave_group()
        if not self.assignment.assigned:
            self.cancel()
            self.assignment.clear()
            return Ending.EMPTIED
        self._release_all(self._begin(Purpose.DROP, _Stage.RELEASING), lost=True)
        return Ending.GOING_ON

    # -- answers -----------------------------------------------------------------------------

    def flushed(self, event: OffsetsFlushed) -> Ending:
        """Handle the end of the commit, successful or not."""
        work = self._open(event.plan, _Stage.FLUSHING)
        if work is None:
            return Ending.STALE
        self._after_flush(work)
        return Ending.GOING_ON

    def give_flush_up(self, now_ms: int) -> bool:
        """Continue without a commit that took too long; returns whether there was one."""
        work = self._work
        if work is None or work.flush_by_ms is None or now_ms < work.flush_by_ms:
            return False
        self._after_flush(work)
        return True

    def released(self, event: PartitionsReleased) -> Ending:
        """Handle the end of the revoked or lost callback."""
        work = self._open(event.plan, _Stage.RELEASING)
        if work is None:
            return Ending.STALE
        if work.plan is None:
            self.cancel()
            if work.purpose is Purpose.DROP:
                self.assignment.clear()
            return Ending.EMPTIED
        self.assignment.released(failed=event.failed)
        if event.failed:
            self.cancel()
            return Ending.FAILED
        self._start(work, work.plan)
        return Ending.GOING_ON

    def started(self, event: PartitionsStarted) -> Ending:
        """Handle the end of the assigned callback."""
        work = self._open(event.plan, _Stage.STARTING)
        if work is None or work.held is None:
            return Ending.STALE
        self.assignment.started(work.held, failed=event.failed)
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
        if work.plan is not None:
            self._emit(PhaseBegan(Phase.COMMITTING))
        self._emit(FlushOffsets(work.number, self.assignment.describe(revoked), by_ms))

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
        self.assignment.release(revoked)
        named = self.assignment.describe(revoked)
        self._emit(PhaseBegan(Phase.REVOKING))
        self._emit(ReleasePartitions(work.number, named, lost=False))

    def _release_all(self, work: _Work, *, lost: bool) -> None:
        work.stage = _Stage.RELEASING
        named = self.assignment.describe(self.assignment.assigned - self.assignment.releasing)
        self.assignment.release(self.assignment.assigned)
        self._emit(ReleasePartitions(work.number, named, lost=lost, last=True))

    def _start(self, work: _Work, plan: Plan) -> None:
        work.stage = _Stage.STARTING
        work.held, added = self.assignment.start(plan.target)
        new, everything = (
            self.assignment.describe(added),
            self.assignment.describe(work.held.partitions),
        )
        self._emit(PhaseBegan(Phase.ASSIGNING))
        self._emit(StartPartitions(work.number, new, everything))
