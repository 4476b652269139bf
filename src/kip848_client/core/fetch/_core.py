"""The fetch core: what happens when, and in which order.

Theory of operation
-------------------
``step`` applies an event to the state, then *settles*: partitions and brokers whose rest is over
resume, positions are looked up, leaders are requested, and each broker that can be fetched from
gets a request. Nothing waits inside: everything that takes time is a command whose answer comes
back as an event with the same number. An answer that is not waited for any more changes nothing.

An answer about very many partitions is processed in chunks (``ChunkedAnswers``). Until the last
chunk nothing is fetched and no error is delivered: what concerns all of them is requested and
reported once.

Fetched records are delivered between steps, without events: ``next_slice`` and ``finish``. The
reader then sends ``BufferRead``, which makes space for more.

The parts: ``Assigned`` has the partitions. ``Planner`` decides what to fetch from which broker,
``Answers`` what an answer means, ``Positions`` where to begin, ``PositionChanges`` what a new
position ends, ``Topics`` what metadata means, ``PartitionErrors`` which partitions rest and which
errors must be raised. ``UnreadSlices`` holds the records to deliver. Each part is given those that
it uses; all append their commands to one list.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Final

from kip848_client.core.backoff import Jitter
from kip848_client.core.cluster import (
    NO_EPOCH,
    NO_NODE,
    ClusterChanged,
    ClusterEvent,
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    MetadataQuestions,
    MetadataSettings,
)
from kip848_client.core.fetch import _commands as do
from kip848_client.core.fetch import _events as ev
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._chunked_answers import ChunkedAnswer, ChunkedAnswers
from kip848_client.core.fetch._model import FetchSettings, Slice, StoredOffset
from kip848_client.core.fetch._partition import (
    HELD,
    LIMITED,
    NOT_STARTED,
    PAUSED,
    Partition,
    Phase,
)
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.fetch._positions import Positions
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.fetch._snapshot import FetchSnapshot, take_snapshot
from kip848_client.core.fetch._topics import Topics
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.core.outside import from_outside
from kip848_client.core.partition_names import listed
from kip848_client.core.types import TopicId, TopicPartition, Wait
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["Command", "Event", "FetchCore"]

_PASSES_MAX: Final = 50
"""Maximum number of passes in which one step settles. A few suffice; more means that two actions
undo each other."""

Event = ev.Event | ClusterEvent
"""All events that a step accepts."""
Command = do.Command | LearnLeaders
"""All commands that a step may return."""


class FetchCore:
    """Fetching for one consumer, as pure state.

    ``jitter`` maps a pause in ms to one varied by up to 20 %; ``lambda ms: ms`` varies nothing.
    """

    def __init__(self, settings: FetchSettings, jitter: Jitter) -> None:
        jitter = from_outside(jitter)
        self._now = 0
        self._out: Final[do.Commands] = []
        """The commands of the step so far."""
        self._closed = False
        self._stale_answers = 0
        self._topics_limit: frozenset[str] | None = None
        self._queried: frozenset[str] = frozenset()
        """Topics with open offset look-ups of users."""
        self._judge_metadata = False
        self._chunks = ChunkedAnswers(settings.rows_a_step)
        self.rows_a_step: Final = settings.rows_a_step
        """See ``FetchSettings``."""
        self._is_partial = False
        self._assigned = Assigned()
        self._leaders = Leaders()
        self._buffer = UnreadSlices()
        self._metadata = MetadataQuestions(_metadata_settings(settings), jitter)
        out, metadata = self._out, self._metadata
        self._partition_errors = PartitionErrors(settings, jitter, self._assigned, out)
        self._planner = Planner(settings, self._leaders, self._buffer, metadata)
        self._queries = Queries(settings, jitter, self._leaders, metadata, out)
        self._positions = Positions(settings, jitter, self._queries, out)
        self._position_changes = PositionChanges(
            self._assigned,
            self._buffer,
            self._planner,
            self._positions,
            self._partition_errors,
            out,
        )
        self._answers = Answers(
            settings,
            jitter,
            self._assigned,
            self._leaders,
            self._buffer,
            metadata,
            self._planner,
            self._partition_errors,
            self._position_changes,
            self._queries,
            out,
        )
        self._topics = Topics(
            self._assigned,
            self._leaders,
            metadata,
            self._planner,
            self._partition_errors,
            self._position_changes,
            out,
        )

    # -- views -------------------------------------------------------------------------------

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._assigned.by_tp)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that the application has paused."""
        by_tp = self._assigned.by_tp
        return frozenset(tp for tp, each in by_tp.items() if each.why_not & PAUSED)

    @property
    def changes(self) -> int:
        """Incremented whenever what may be delivered changed other than by ``finish``."""
        return self._buffer.changes

    @property
    def is_taking_in(self) -> bool:
        """Whether an answer too large for one step is still being processed."""
        return self._chunks.left

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        if self._closed:
            return None
        if self._chunks.left:
            return self._now
        due = (
            self._partition_errors.due_ms(),
            self._metadata.due_ms(),
            self._planner.due_ms(self._now),
            self._positions.deadline_ms,
            self._queries.deadline_ms,
        )
        return min((each for each in due if each is not None), default=None)

    def topic_id(self, tp: TopicPartition) -> TopicId | None:
        """The topic id of an assigned partition, once it is known."""
        partition = self._assigned.by_tp.get(tp)
        return None if partition is None else partition.topic_id

    def generation(self, tp: TopicPartition) -> int:
        """The number of the partition's current generation, 0 if it is not assigned."""
        partition = self._assigned.by_tp.get(tp)
        return 0 if partition is None else partition.generation

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record for the application."""
        partition = self._assigned.by_tp.get(tp)
        return None if partition is None else partition.consumed

    def position_epoch(self, tp: TopicPartition) -> int:
        """The leader epoch of the record before the position, -1 if unknown."""
        partition = self._assigned.by_tp.get(tp)
        cursor = None if partition is None else partition.cursor
        return NO_EPOCH if cursor is None else cursor.consumed_epoch

    def high_watermark(self, tp: TopicPartition) -> int | None:
        """The high watermark in the newest answer."""
        partition = self._assigned.by_tp.get(tp)
        return None if partition is None else partition.high_watermark

    def last_stable_offset(self, tp: TopicPartition) -> int | None:
        """The last stable offset in the newest answer (the end of what read_committed may see)."""
        partition = self._assigned.by_tp.get(tp)
        return None if partition is None else partition.last_stable_offset

    def log_start_offset(self, tp: TopicPartition) -> int | None:
        """The first offset of the log in the newest answer."""
        partition = self._assigned.by_tp.get(tp)
        return None if partition is None else partition.log_start_offset

    def snapshot(self) -> FetchSnapshot:
        """A frozen copy of the whole state."""
        stale = self._stale_answers + self._answers.stale + self._position_changes.stale
        return take_snapshot(self._assigned, self._planner, self._buffer, self._positions, stale)

    def problems(self, now_ms: int) -> tuple[str, ...]:
        """Describe the look-ups of positions and offsets that take more than a second."""
        waits = [
            (what, why, *found)
            for what, waits in (
                ("positions", self._positions.waits(now_ms)),
                ("offsets", self._queries.waits(now_ms)),
            )
            for why, found in waits.items()
        ]
        return tuple(
            Wait(why, since_ms).goes_on(now_ms, f"{what} of {listed(partitions)}")
            for what, why, since_ms, partitions in waits
        )

    # -- handing out, between steps ----------------------------------------------------------

    def next_slice(self, only: Collection[TopicPartition] = ()) -> Slice | None:
        """The next slice to read, of these partitions only if any are named. It stays the same
        until it is finished, or the turn of its partition is over."""
        return self._buffer.next_slice(only)

    def slices(self, only: Collection[TopicPartition] = ()) -> list[Slice]:
        """The first slice of each partition that can be read, in turn."""
        return self._buffer.slices(only)

    def finish(self, piece: Slice) -> None:
        """Mark a slice as read to its end, where the position moves. Deliver ``BufferRead`` soon. A
        slice that has become void is ignored."""
        partition = self._assigned.by_tp.get(piece.tp)
        if partition is not None:
            self._buffer.finish(partition, piece)

    def turn(self, tp: TopicPartition) -> None:
        """Let the other partitions have their turn."""
        self._buffer.turn(tp)

    def pending_error(
        self, only: Collection[TopicPartition] = ()
    ) -> tuple[TopicPartition, Kip848Error] | None:
        """An error to raise now: of a partition with no records left to deliver. Deliver
        ``ErrorDelivered`` once it was raised."""
        if self._chunks.left:
            return None
        return self._partition_errors.next_untold(only)

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event) -> tuple[Command, ...]:
        """Process one event; returns the commands in order. After ``CloseRequested`` there are
        none.

        Raises ``LocalProtocolError``, with nothing changed, for a seek to a negative offset.
        """
        if isinstance(event, ev.Sought) and event.offset < 0:
            raise LocalProtocolError(f"no record has offset {event.offset}; seek to 0 or more")
        if self._closed:
            return ()
        self._now = max(self._now, now_ms)
        out = self._out
        out.clear()
        self._take(event)
        if not self._closed:
            self._settle()
        return _said_once(out) if len(out) > 1 else tuple(out)

    def _take(self, event: Event) -> None:
        match event:
            case ev.FetchAnswered() | ev.FetchLost():
                self._on_fetch(event)
            case ev.BufferRead():
                self._on_buffer_read()
            case ev.AssignmentChanged() | ev.Started() | ev.AllButHeld() | ev.TopicsLimited():
                self._on_assignment(event)
            case LeadersLearnt() | LeadersNotLearnt() | ClusterChanged():
                self._on_cluster(event)
            case ev.OffsetsAsked():
                self._queries.asked_by_user(event)
                self._queried |= {tp[0] for tp in event.times}
            case ev.OffsetsWithdrawn():
                self._queries.withdraw(self._now, event.ticket)
            case ev.OffsetsListed() | ev.OffsetsNotListed():
                waited_for = self._queries.is_open(event.query)
                self._begin(self._queries.answered(self._now, event), waited_for=waited_for)
            case ev.CommittedFound() | ev.CommittedFailed():
                waited_for = self._positions.is_open(event.number)
                self._begin(self._positions.answered(self._now, event), waited_for=waited_for)
            case ev.CloseRequested():
                self._close()
            case ev.TimerFired():
                self._chunks.go_on()  # settling finds what else is due
            case _:
                self._on_application(event)

    def _on_assignment(self, event: ev.Event) -> None:
        match event:
            case ev.AssignmentChanged():
                self._assign(event)
            case ev.Started():
                here = self._assigned.here(event.partitions)
                self._chunks.begin(ChunkedAnswer(partial(list, here), self._start))
            case ev.AllButHeld():
                of, fetchable = event.of, event.fetchable
                for tp, partition in self._assigned.by_tp.items():
                    if tp in of and (tp in fetchable) is bool(partition.why_not & HELD):
                        self._mark(partition, HELD, on=tp not in fetchable)
            case ev.TopicsLimited():
                self._topics_limit = event.topics
                for partition in self._assigned.by_tp.values():
                    self._limit(partition)
            case _:
                raise AssertionError(f"no such event: {event!r}")

    def _on_application(self, event: ev.Event) -> None:
        match event:
            case ev.Paused():
                for partition in self._assigned.here(event.partitions):
                    self._mark(partition, PAUSED, on=True)
            case ev.Resumed():
                for partition in self._assigned.here(event.partitions):
                    self._mark(partition, PAUSED, on=False)
            case ev.Sought(tp, offset, epoch):
                for partition in self._assigned.here((tp,)):
                    self._position_changes.seek(self._now, partition, StoredOffset(offset, epoch))
            case ev.SeekBegun():
                self._position_changes.begin_seek(event)
            case ev.SeekEnded():
                self._position_changes.end_seek(self._now, event)
            case ev.ErrorDelivered(tp):
                for partition in self._assigned.here((tp,)):
                    self._partition_errors.delivered(self._now, partition)
            case ev.Undecodable():
                self._on_undecodable(event)
            case _:
                raise AssertionError(f"no such event: {event!r}")

    def _settle(self) -> None:
        for partition in self._partition_errors.due(self._now):
            self._position_changes.go_on(self._now, partition)
        passes = 0
        while self._positions.deadline_ms == 0 or self._queries.deadline_ms == 0 or not passes:
            left = self._chunks.left
            self._positions.settle(self._now, more=left)
            if not left:
                self._queries.settle(self._now)
            self._position_changes.take_results(self._now)
            passes += 1
            assert passes < _PASSES_MAX, "the fetch core does not settle"
            if left:
                self._is_partial = True
                return
        if self._is_partial:
            self._is_partial = False
            self._partition_errors.report_again()
        self._partition_errors.report()
        self._forget_queried()
        if self._judge_metadata:
            self._judge_metadata = False
            self._metadata.judged()
        question = self._metadata.ask(self._now)
        if question is not None:
            self._out.append(question)
        for request in self._planner.plan(self._now):
            self._out.append(request)

    def _forget_queried(self) -> None:
        """Forget topics that are no longer assigned or queried."""
        queried = self._queries.topics if self._queried else frozenset[str]()
        if queried == self._queried:
            return
        for topic in sorted(self._queried - queried):
            if topic not in self._metadata.watched:
                self._metadata.unwatch(topic)
                self._leaders.forget(topic)
        self._queried = queried

    def _begin(self, answer: ChunkedAnswer[Any], *, waited_for: bool) -> None:
        self._count_stale(open=waited_for)
        if waited_for:
            self._chunks.begin(answer)

    def _count_stale(self, *, open: bool) -> None:  # noqa: A002 - the field's word
        if not open:
            self._stale_answers += 1

    # -- assignment --------------------------------------------------------------------------

    def _assign(self, event: ev.AssignmentChanged) -> None:
        topics: dict[str, None] = {}
        for tp, partition in tuple(self._assigned.by_tp.items()):
            topic_id = event.assignment.get(tp)
            other = topic_id is not None and topic_id != partition.topic_id
            if tp not in event.assignment or tp in event.fresh or other:
                self._remove(partition)
                topics[tp[0]] = None
        new = [row for row in event.assignment.items() if row[0] not in self._assigned.by_tp]
        for tp, topic_id in new:
            self._add(tp, topic_id)
        for topic, topic_id in dict.fromkeys([(tp[0], topic_id) for tp, topic_id in new]):
            self._watch(topic, topic_id)
        for topic in topics:
            if not self._assigned.of_topic(topic):
                self._metadata.unwatch(topic)
                self._topics.forget(topic)
                if topic not in self._queries.topics:
                    self._leaders.forget(topic)

    def _add(self, tp: TopicPartition, topic_id: TopicId | None) -> None:
        partition = self._assigned.add(tp, topic_id)
        if topic_id is None and (known := self._leaders.id_of(tp[0])) is not None:
            self._assigned.learn_id(partition, known)
        if self._topics_limit is not None:
            self._limit(partition)

    def _watch(self, topic: str, topic_id: TopicId | None) -> None:
        known = self._leaders.id_of(topic)
        self._metadata.watch(topic, known if topic_id is None else topic_id)
        if known is None or topic_id not in (None, known):
            self._metadata.want(topic, f"{topic} is assigned")

    def _remove(self, partition: Partition) -> None:
        self._position_changes.drop(partition)
        self._planner.remove(partition)
        if partition.cursor is not None:
            partition.cursor.readable = False
        self._assigned.remove(partition)

    def _start(self, partition: Partition) -> None:
        """Start fetching: the rebalance listener has returned."""
        if not self._assigned.is_here(partition):
            return
        if self._mark(partition, NOT_STARTED, on=False):
            self._planner.expect(self._now, partition)
        if partition.phase is Phase.IDLE and not partition.seek:
            self._position_changes.look(self._now, partition)

    def _limit(self, partition: Partition) -> None:
        limit = self._topics_limit
        self._mark(partition, LIMITED, on=limit is not None and partition.tp[0] not in limit)

    def _mark(self, partition: Partition, reason: int, *, on: bool) -> bool:
        """Set or clear a reason against fetching."""
        if not partition.mark(reason, on=on):
            return False
        if partition.phase is not Phase.IDLE:
            self._buffer.refresh(partition)
            self._refresh(partition)
        if partition.readable and (partition.slices or partition.error is not None):
            self._out.append(do.Readable())
        return True

    # -- records -----------------------------------------------------------------------------

    def _refresh(self, partition: Partition) -> None:
        self._planner.refresh(self._now, partition)

    def _on_fetch(self, event: ev.FetchAnswered | ev.FetchLost) -> None:
        if isinstance(event, ev.FetchAnswered):
            waited_for = self._planner.is_open(event.fetch)
            self._begin(self._answers.answered(self._now, event), waited_for=waited_for)
            return
        ended = self._planner.ended(event.fetch)
        self._count_stale(open=ended is not None)
        if ended is not None:
            node, _ = ended
            self._answers.lost(self._now, node, event.why, event.error, sent=event.sent)

    def _on_buffer_read(self) -> None:
        read, self._buffer.read = self._buffer.read, {}
        for partition in read.values():
            if partition.phase is Phase.CHECKING:
                self._position_changes.look_into_check(self._now, partition)
            self._refresh(partition)

    def _on_undecodable(self, event: ev.Undecodable) -> None:
        partition = self._assigned.by_tp.get(event.partition)
        if (
            partition is None
            or partition.generation != event.generation
            or partition.cursor is None
        ):
            self._stale_answers += 1
            return
        cursor = partition.cursor
        self._positions.forget(partition.tp)
        self._buffer.clear(partition)
        generation = self._assigned.new_generation()
        partition.renew(generation, cursor.consumed, cursor.consumed_epoch)
        partition.phase = Phase.READY
        self._answers.damaged(
            self._now, partition, event.offset, event.error, is_final=event.is_final
        )

    # -- the cluster -------------------------------------------------------------------------

    def _on_cluster(self, event: ClusterEvent) -> None:
        match event:
            case ClusterChanged():
                self._planner.clear()
                self._leaders.clear()
                self._metadata.begin_anew()
                for partition in self._assigned.by_tp.values():
                    partition.led_by = partition.read_from = partition.avoided = NO_NODE
                    self._refresh(partition)
                self._queries.leaders_changed()
            case LeadersNotLearnt():
                self._count_stale(open=self._metadata.lost(self._now, event.number))
                self._queries.leaders_told(self._now, event)
            case LeadersLearnt():
                self._on_leaders(event)

    def _on_leaders(self, event: LeadersLearnt) -> None:
        asked: Collection[str] = ()
        if event.number:
            answered = self._metadata.answered(self._now, event.number)
            if answered is None:
                self._stale_answers += 1
                return
            asked = answered
            self._judge_metadata = True
        self._topics.learn(self._now, event, self._queries.topics)
        self._queries.leaders_told(self._now, event)
        told = {each.topic for each in event.topics}
        for topic in asked:
            if topic not in told:
                for partition in self._assigned.of_topic(topic):
                    self._refresh(partition)

    def _close(self) -> None:
        self._closed = True
        for node, session_id in self._planner.clear():
            self._out.append(do.CloseSession(node, session_id))
        for partition in self._assigned.by_tp.values():
            self._buffer.clear(partition)
            if partition.cursor is not None:
                partition.cursor.readable = False
        self._positions.close()
        self._queries.close(self._now)


def _said_once(commands: do.Commands) -> tuple[Command, ...]:
    """Drop all but the first ``Readable``."""
    first = next((n for n, each in enumerate(commands) if isinstance(each, do.Readable)), None)
    return tuple(
        each for n, each in enumerate(commands) if n == first or not isinstance(each, do.Readable)
    )


def _metadata_settings(settings: FetchSettings) -> MetadataSettings:
    return MetadataSettings(
        settings.metadata_max_age_ms, settings.retry_backoff_ms, settings.retry_backoff_max_ms
    )
