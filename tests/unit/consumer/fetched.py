"""A record path on a real fetch core, with a leader made of batches in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kip848_client import TopicPartition
from kip848_client.consumer._record_path import RecordPath
from kip848_client.core.cluster import LeadersLearnt, LearnLeaders, PartitionLeader, TopicLeaders
from kip848_client.core.fetch import (
    AllButHeld,
    AssignmentChanged,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    OffsetsListed,
    PartitionAnswer,
    Positioned,
    Readable,
    SendFetch,
    Sought,
    Started,
    TimerFired,
    Wanted,
)
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.types import TopicId, TopicIdPartition
from kip848_client.records import Decoding
from tests.support.fetch_session import take_in
from tests.unit.records.batches import Row, batch

__all__ = ["A", "B", "PathHarness"]

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
T: Final = TopicId(b"t" * 16)
NODE: Final = 1


class PathHarness:
    """``logs`` has batches by partition; ``serve`` answers the fetch that is open. Time stands
    still but for ``pass_ms``."""

    def __init__(self, value_deserializer: Callable[[Any], Any] | None = None) -> None:
        self.now_ms = 1_000
        self.logs: dict[TopicPartition, list[bytes]] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.error_codes: dict[TopicPartition, int] = {}
        self.fetches: list[SendFetch] = []
        self.answered = 0
        self.session: dict[TopicIdPartition, Wanted] = {}
        self.gate = False
        """Hold every answer back."""
        self.moved = 0
        self.core = FetchCore(FetchSettings(reset_policy="none"), lambda ms: ms)
        self._changes = self.core.changes
        self.tracker = OffsetTracker()
        self.path: RecordPath[Any, Any] = RecordPath(
            self.core,
            self.post,
            self.tracker,
            Decoding(value_deserializer=value_deserializer),
            self._count_move,
        )

    # -- the log -----------------------------------------------------------------------------

    def grow(self, tp: TopicPartition, *values: bytes, epoch: int = 5) -> None:
        """Append a batch."""
        start = self.ends.get(tp, 0)
        rows = [Row(start + n, value=value) for n, value in enumerate(values)]
        self.logs.setdefault(tp, []).append(batch(rows, epoch=epoch))
        self.ends[tp] = start + len(values)

    def serve(self, *, waited: bool = False) -> None:
        """Answer the open fetch, as often as there is news; or because it has ``waited``."""
        while self.answered < len(self.fetches) and not self.gate:
            fetch = self.fetches[self.answered]
            self.answered += 1
            take_in(self.session, fetch.intent)
            rows = tuple(
                row for each in self.session.values() if (row := self._row(each)) is not None
            )
            if not rows and fetch.intent.session_epoch > 0 and not waited:
                self.answered -= 1
                return  # it waits at the broker
            if not rows and waited:
                self.now_ms += fetch.intent.max_wait_ms
            waited = False
            size = sum(len(row.records) for row in rows)
            answer = FetchAnswer(0, 7, 0, rows, (), size)
            self.post(FetchAnswered(fetch.fetch, answer))

    def _row(self, wanted: Wanted) -> PartitionAnswer | None:
        tp = TopicPartition("t", wanted.partition)
        code, end = self.error_codes.get(tp, 0), self.ends.get(tp, 0)
        left, start = b"", 0
        for each in self.logs.get(tp, []):
            start += int.from_bytes(each[57:61])
            if start > wanted.offset:
                left += each
        if not left and not code and wanted.offset:
            return None
        records = b"" if code else left
        return PartitionAnswer(T, wanted.partition, code, end, end, 0, records=records)

    # -- the core ----------------------------------------------------------------------------

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        self.post(TimerFired())

    def post(self, event: Event) -> None:
        commands = self.core.step(self.now_ms, event)
        if self.core.changes != self._changes:
            self._changes = self.core.changes
            self.path.changed()
        for command in commands:
            match command:
                case SendFetch():
                    self.fetches.append(command)
                case Positioned():
                    self.path.positioned(command)
                case Readable():
                    self.path.readable()
                case LearnLeaders():
                    leader = PartitionLeader(NODE, 5, (NODE,))
                    told = TopicLeaders("t", T, dict.fromkeys(range(3), leader))
                    self.post(
                        LeadersLearnt(command.number, (told,), frozenset(), frozenset({NODE}))
                    )
                case ListOffsets():
                    rows = {
                        tp: ListedOffset(0, 0 if time == -2 else self.ends.get(tp, 0))
                        for tp, (time, _) in command.wanted.items()
                    }
                    self.post(OffsetsListed(command.query, rows))
                case _:
                    pass

    def begin(self, *partitions: TopicPartition, offset: int = 0) -> None:
        """Assign these beside what is assigned, and fetch them from ``offset`` on."""
        assigned = {**dict.fromkeys(self.core.assigned, T), **dict.fromkeys(partitions, T)}
        self.tracker.assign(partitions)
        self.post(AssignmentChanged(assigned, frozenset(partitions)))
        for tp in partitions:
            self.post(Sought(tp, offset))
        self.post(Started(partitions))
        self.serve()

    def hold_all_but(self, *fetchable: TopicPartition) -> None:
        self.post(AllButHeld(self.core.assigned, frozenset(fetchable)))

    def release(self, *partitions: TopicPartition) -> None:
        kept = {tp: T for tp in self.core.assigned if tp not in partitions}
        self.path.forget(partitions)
        self.tracker.forget(partitions)
        self.post(AssignmentChanged(kept, frozenset()))

    def take(self, count: int) -> list[tuple[int, int]]:
        """So many records one by one, as (partition, offset); the holder comes back each time."""
        taken: list[tuple[int, int]] = []
        while len(taken) < count:
            self.came_back()
            record = self.path.take_one()
            assert record is not None, f"only {taken}"
            taken.append((record.partition, record.offset))
            self.serve()
        return taken

    def came_back(self) -> None:
        self.path.in_flight.mark_done(None)

    def _count_move(self) -> None:
        self.moved += 1
