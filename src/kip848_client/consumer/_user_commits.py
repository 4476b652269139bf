"""A ``commit()`` of the application, and its handling of partitions that are no longer ours.

An application that commits after its work, and acts on that, must learn if its work was lost: the
group has revoked the partition meanwhile, and another member gets the same records. So ``commit``
stores what can be stored and raises ``CommitFailed`` for the rest, whatever the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kip848_client.consumer._commits import Commits
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._offset_types import OffsetAndMetadata
from kip848_client.core.cluster import NO_EPOCH
from kip848_client.core.fetch import FetchCore
from kip848_client.core.offsets import CommittableOffset, InFlight, OffsetTracker
from kip848_client.core.ports import Clock
from kip848_client.core.types import TopicPartition
from kip848_client.errors import CommitFailed, Kip848Error, NotAssigned

__all__ = ["UserCommits", "with_epochs"]

Offsets = Mapping[TopicPartition, CommittableOffset]


class UserCommits:
    """Commits of the application. ``refresh_tracker`` is called before the tracker is read;
    ``in_group`` returns whether the group's partitions are ours to commit at the moment."""

    def __init__(
        self,
        commits: Commits,
        tracker: OffsetTracker,
        in_flight: InFlight,
        errors: ErrorBox,
        clock: Clock,
        *,
        refresh_tracker: Callable[[], None],
        in_group: Callable[[], bool],
        timeout_ms: int,
    ) -> None:
        self._commits = commits
        self._tracker = tracker
        self._in_flight = in_flight
        self._errors = errors
        self._clock = clock
        self._refresh_tracker = refresh_tracker
        self._in_group = in_group
        self._timeout_ms = timeout_ms

    async def commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit ``offsets``, or everything delivered. Returns what is stored, if that is all of
        them; otherwise raises ``CommitFailed``, or the error that ended the consumer."""
        self._refresh_tracker()
        delivered = self._tracker.snapshot()
        wanted = dict(delivered if offsets is None else offsets)
        taken = dict(self._tracker.lost()) if offsets is None else {}
        for tp, offset in list(wanted.items()):
            if self._tracker.was_ours(tp) or (tp in delivered and not self._in_group()):
                del wanted[tp]
                if offsets is not None or offset.offset != self._tracker.last_committed(tp):
                    taken[tp] = offset
        meant = taken | wanted
        fatal = self._errors.fatal
        if fatal is not None:
            self._refuse(meant, dict.fromkeys(meant, fatal))
            raise fatal.with_traceback(None)
        failed: dict[TopicPartition, Kip848Error] = {tp: _taken(tp) for tp in taken}
        stored: Offsets = {}
        if wanted:
            stored = await self._store(wanted, delivered, failed)
        self._refuse(meant, failed)
        return {tp: OffsetAndMetadata(each.offset, each.metadata) for tp, each in stored.items()}

    def for_transaction(self, offsets: Offsets | None) -> Offsets:
        """Return ``offsets``, or those after everything delivered, to be committed by a
        transaction. Raises ``CommitFailed`` unless all of them are ours to commit."""
        self._refresh_tracker()
        fatal = self._errors.fatal
        if fatal is not None:
            raise fatal.with_traceback(None)
        wanted = dict(self._tracker.snapshot() if offsets is None else offsets)
        taken = dict(self._tracker.lost()) if offsets is None else {}
        taken |= {tp: each for tp, each in wanted.items() if not self._tracker.owns(tp)}
        if not self._in_group():
            taken |= wanted
        self._refuse(taken, {tp: self._not_ours(tp) for tp in taken})
        return wanted

    def _not_ours(self, tp: TopicPartition) -> NotAssigned:
        if self._tracker.was_ours(tp) or self._tracker.owns(tp):
            return _taken(tp)
        return NotAssigned(
            f"{tp.topic}-{tp.partition} is not assigned to this consumer, so its offset cannot be "
            "part of a transaction: commit offsets of partitions that it has"
        )

    async def _store(
        self, wanted: Offsets, delivered: Offsets, failed: dict[TopicPartition, Kip848Error]
    ) -> Offsets:
        self._in_flight.processed(wanted, delivered)
        deadline_ms = self._clock.now_ms() + self._timeout_ms
        try:
            done = await self._commits.commit(wanted, deadline_ms)
        except Kip848Error as err:
            failed.update(dict.fromkeys(wanted, err))
            return {}
        failed.update(done.failed)
        return done.committed

    def _refuse(self, meant: Offsets, failed: Mapping[TopicPartition, Kip848Error]) -> None:
        """Raise ``CommitFailed`` for what was not stored, if any; reported once."""
        if not failed:
            return
        self._tracker.loss_reported(failed)
        offsets = {tp: meant[tp] for tp in sorted(failed)}
        said = ", ".join(
            f"{tp.topic}-{tp.partition} (offset {each.offset})" for tp, each in offsets.items()
        )
        first = failed[next(iter(offsets))]
        raise CommitFailed(
            f"not committed: {said}: {first}",
            offsets={tp: OffsetAndMetadata(o.offset, o.metadata) for tp, o in offsets.items()},
            cause=first,
        ) from first


def with_epochs(
    core: FetchCore, offsets: Mapping[TopicPartition, tuple[int, str]]
) -> dict[TopicPartition, CommittableOffset]:
    """Add the leader epoch of the previous record, if that was the last one delivered."""
    found: dict[TopicPartition, CommittableOffset] = {}
    for tp, (offset, text) in offsets.items():
        epoch = core.position_epoch(tp) if core.position(tp) == offset else NO_EPOCH
        found[tp] = CommittableOffset(offset, epoch, text)
    return found


def _taken(tp: TopicPartition) -> NotAssigned:
    return NotAssigned(
        f"{tp.topic}-{tp.partition} is no longer assigned to this member: the group took it before "
        "the offset was committed. Its new owner gets these records again: undo what must not "
        "happen twice, and continue by asking for records"
    )
