"""The records of one member: the real ``FetchCore``, told by its group what it has, and by its
application what to do with it.

The group core says what is assigned, started, held and forgotten; each of these is one event here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final

from kip848_client.core.fetch import (
    AllButHeld,
    AssignmentChanged,
    Command,
    CommittedFailed,
    CommittedFound,
    ErrorDelivered,
    Event,
    FetchSettings,
    LookUpCommitted,
    Notice,
    Paused,
    Positioned,
    Resumed,
    Slice,
    Started,
    StoredOffset,
)
from kip848_client.core.member import AssignedPartition
from kip848_client.core.offsets import CommittableOffset, OffsetTracker
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.errors import Kip848Error
from mock_coordinator.sim.context import GroupContext
from mock_coordinator.sim.fetching.driver import FetchDriver
from mock_coordinator.sim.fetching.reader import RecordReader
from mock_coordinator.sim.invariants import Deliveries, Violation
from mock_coordinator.sim.log_truth import Reader, WrongRecord
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.swarm import GroupParameters

__all__ = ["MemberRecords"]

_MAX_WAIT_MS: Final = 2_000
_MAX_BYTES: Final = 4_000
_MAX_PARTITION_BYTES: Final = 500


class MemberRecords:
    """Of one process. ``enter`` lets something happen as soon as the process runs, ``look_up`` asks
    for committed offsets, ``deliver`` is called with each record that is handed out."""

    def __init__(
        self,
        context: GroupContext[GroupParameters],
        wires: Wires,
        rng: Random,
        tracker: OffsetTracker,
        *,
        enter: Callable[[Callable[[], None]], None],
        look_up: Callable[[int, tuple[TopicPartition, ...]], None],
        deliver: Callable[[TopicIdPartition, TopicPartition, int, bytes], None],
        read_committed: bool = False,
    ) -> None:
        self._context = context
        self._client = wires.client
        self._read_committed = read_committed
        self._tracker = tracker
        self._look_up = look_up
        self._deliver = deliver
        options = context.options
        self._driver = FetchDriver(
            FetchSettings(
                max_wait_ms=_MAX_WAIT_MS,
                max_bytes=_MAX_BYTES,
                max_partition_bytes=_MAX_PARTITION_BYTES,
                buffer_bytes=2 * _MAX_BYTES,
                read_committed=read_committed,
                reset_policy="earliest",
                has_group=True,
                request_timeout_ms=options.request_timeout_ms,
            ),
            wires,
            rng,
            look_up=self._committed_asked,
            heard=self._heard,
            enter=enter,
        )
        self.core = self._driver.core
        self._reader = RecordReader(self.core, self.feed, self, rng)
        self._readers: dict[TopicPartition, Reader] = {}
        self._assigned: dict[TopicPartition, TopicId] = {}
        self._fetchable: frozenset[TopicPartition] = frozenset()

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        self._driver.feed(event)

    def close(self) -> None:
        """The process is gone."""
        self._driver.close()

    # -- what the group says -----------------------------------------------------------------

    def assigned(
        self, assignment: Iterable[AssignedPartition], new: Iterable[TopicPartition]
    ) -> None:
        """This is what the member has from now on; ``new`` of it begins without a position."""
        fresh = frozenset(new)
        self._assigned = {each.tp: each.topic_id for each in assignment}
        self._forget_readers(fresh)
        self.feed(AssignmentChanged(dict(self._assigned), fresh))

    def started(self, assignment: Iterable[AssignedPartition]) -> None:
        """The listener is done with these."""
        self.feed(Started(tuple(each.tp for each in assignment)))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone."""
        for tp in partitions:
            self._assigned.pop(tp, None)
        self._forget_readers(frozenset())
        self.feed(AssignmentChanged(dict(self._assigned), frozenset()))

    def _forget_readers(self, fresh: frozenset[TopicPartition]) -> None:
        kept = self._assigned.keys() - fresh
        self._readers = {tp: each for tp, each in self._readers.items() if tp in kept}

    def fetch_only(self, fetchable: Iterable[TopicPartition]) -> None:
        """Nothing but these may be handed out from this moment on."""
        everything = frozenset(self._assigned)
        allowed = everything & frozenset(fetchable)
        if allowed != self._fetchable or everything != self.core.assigned:
            self._fetchable = allowed
        self.feed(AllButHeld(everything, allowed))

    def found(self, number: int, found: Mapping[TopicPartition, CommittableOffset | None]) -> None:
        """Committed offsets that were looked up."""
        offsets = {
            tp: None if each is None else StoredOffset(each.offset, each.leader_epoch)
            for tp, each in found.items()
        }
        self.feed(CommittedFound(number, offsets))

    def not_found(self, number: int, error: Kip848Error) -> None:
        """The look-up failed."""
        self.feed(CommittedFailed(number, error, passing=True))

    # -- what the application does -----------------------------------------------------------

    def pause(self, tp: TopicPartition) -> None:
        """Hand nothing of it out."""
        self.feed(Paused((tp,)))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo it."""
        self.feed(Resumed(tuple(partitions)))

    def poll(self, records_max: int) -> None:
        """Hand out up to that many records."""
        self._reader.poll(records_max)
        trouble = self.core.pending_error()
        if trouble is not None:
            tp, error = trouble
            self._context.tell(self._client, "trouble", f"{tp.topic}-{tp.partition} {error}")
            self.feed(ErrorDelivered(tp))

    def record(self, taken: Slice, offset: int, value: bytes) -> None:
        """One is handed out. Raises ``Violation``."""
        tp = taken.tp
        try:
            self._readers[tp].read(offset, value)
        except WrongRecord as err:
            raise Violation(Deliveries, f"{self._client} {tp.topic}-{tp.partition}: {err}") from err
        assert self._tracker.delivered(tp, offset + 1, taken.cursor.consumed_epoch), f"{tp} is gone"
        self._deliver((taken.cursor.topic_id, tp.partition), tp, offset, value)

    def finished(self, taken: Slice) -> None:
        """All of a slice was read. Raises ``Violation``."""
        tp = taken.tp
        try:
            self._readers[tp].skip_to(taken.next_offset)
        except WrongRecord as err:
            raise Violation(Deliveries, f"{self._client} {tp.topic}-{tp.partition}: {err}") from err
        self._tracker.delivered(tp, taken.next_offset, taken.last_epoch)

    # -- what the core says ------------------------------------------------------------------

    def _committed_asked(self, command: LookUpCommitted) -> None:
        self._look_up(command.number, command.partitions)

    def _heard(self, command: Command) -> None:
        match command:
            case Positioned():
                self._positioned(command)
            case Notice():
                self._context.tell(self._client, "notice", command.text)
            case _:
                pass  # no process sleeps here, and addresses are names

    def _positioned(self, command: Positioned) -> None:
        tp, offset = command.partition, command.offset
        self._context.tell(self._client, "position", f"{tp.topic}-{tp.partition}={offset}")
        committed = offset if command.committed else None
        self._tracker.seek(tp, offset, committed=committed)
        history = self._context.truth.of(self._assigned[tp], tp.partition)
        committed_only = self._read_committed
        self._readers[tp] = Reader(history, read_committed=committed_only, next_offset=offset)
