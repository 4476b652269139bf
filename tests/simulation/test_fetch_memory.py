"""A core that lives long: rebalances without end, records without end, and memory that stays flat.

Brokers are a few lines here, so that nothing but the core can grow.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest

from kip848_client.core.cluster import LeadersLearnt, LearnLeaders, PartitionLeader, TopicLeaders
from kip848_client.core.fetch import (
    EARLIEST,
    AllButHeld,
    AssignmentChanged,
    BufferRead,
    Command,
    CommittedFound,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchLost,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    OffsetsAsked,
    OffsetsFound,
    OffsetsListed,
    OffsetsNotFound,
    PartitionAnswer,
    Paused,
    Resumed,
    SeekBegun,
    SeekEnded,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
    TimerFired,
    Wanted,
)
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.logs.record_batch import with_base_offset
from tests.support.fetch_session import take_in

_TOPICS: Final = 5
_PARTITIONS: Final = 8
_NODES: Final = (1, 2, 3)
_RECORDS: Final = 200
_BATCH: Final = encode_batch([NewRecord(b"v" * 20)] * _RECORDS, 0)
_GROWTH_MAX_BYTES: Final = 64 * 1024
"""Python keeps some freed tuples for later, which counts as in use."""
_GROWTH_MAX_BLOCKS: Final = _GROWTH_MAX_BYTES // 64
"""It goes up and down by a tenth of that. An object is a block."""


@dataclass
class Machine:
    """A core, its brokers, and a user who never rests."""

    rng: Random = field(default_factory=lambda: Random(7))
    now_ms: int = 1_000
    records: int = 0
    tickets: int = 0
    ids: dict[str, TopicId] = field(default_factory=dict[str, TopicId])
    told: dict[int, dict[TopicIdPartition, Wanted]] = field(
        default_factory=lambda: {node: {} for node in _NODES}
    )
    inbox: deque[Event] = field(default_factory=deque[Event])
    assigned: dict[TopicPartition, TopicId | None] = field(
        default_factory=dict[TopicPartition, TopicId | None]
    )

    def __post_init__(self) -> None:
        settings = FetchSettings(
            max_bytes=200_000,
            max_partition_bytes=50_000,
            buffer_bytes=1_000_000,
            reset_policy="earliest",
            has_group=True,
        )
        self.core = FetchCore(settings, lambda pause_ms: pause_ms)
        for number in range(_TOPICS):
            self.create(f"t{number}")

    def create(self, topic: str) -> None:
        """There is another topic of this name now."""
        self.ids[topic] = TopicId(self.rng.randbytes(16))

    # -- driving -----------------------------------------------------------------------------

    def post(self, event: Event) -> None:
        """Take an event, and all that follows from it."""
        self.inbox.append(event)
        for _ in range(len(self.inbox) + 4):
            if not self.inbox:
                return
            for command in self.core.step(self.now_ms, self.inbox.popleft()):
                self.answer(command)
            self.read()

    def answer(self, command: Command) -> None:
        """What the brokers say."""
        match command:
            case SendFetch():
                self.inbox.append(self.fetched(command))
            case LearnLeaders():
                self.inbox.append(self.leaders(command))
            case ListOffsets():
                rows = dict.fromkeys(command.wanted, ListedOffset(offset=0))
                self.inbox.append(OffsetsListed(command.query, rows))
            case LookUpCommitted():
                found = dict.fromkeys(command.partitions, StoredOffset(5, 0))
                self.inbox.append(CommittedFound(command.number, found))
            case OffsetsFound(ticket, found_by_time):
                offsets = {tp: StoredOffset(each.offset) for tp, each in found_by_time.items()}
                self.inbox.append(SeekEnded(ticket, offsets))
            case OffsetsNotFound(ticket):
                self.inbox.append(SeekEnded(ticket, {}))
            case _:
                pass

    def fetched(self, command: SendFetch) -> Event:
        intent, told = command.intent, self.told[command.node]
        dice = self.rng.random()
        if dice < 0.01:
            return FetchLost(command.fetch, "lost")
        if dice < 0.02:
            return FetchAnswered(command.fetch, FetchAnswer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        take_in(told, intent)
        rows = tuple(self.row(want) for want in told.values())
        return FetchAnswered(command.fetch, FetchAnswer(session_id=77, partitions=rows))

    def row(self, want: Wanted) -> PartitionAnswer:
        if want.topic_id not in self.ids.values():
            return PartitionAnswer(*want.key, ErrorCode.UNKNOWN_TOPIC_ID)
        if self.rng.random() < 0.01:
            return PartitionAnswer(*want.key, ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.rng.random() < 0.8:
            return PartitionAnswer(*want.key, 0, want.offset, want.offset, 0)
        end = want.offset + _RECORDS
        batch = with_base_offset(_BATCH, want.offset, 0)
        return PartitionAnswer(*want.key, 0, end, end, 0, records=batch)

    def leaders(self, command: LearnLeaders) -> LeadersLearnt:
        names = {topic_id: topic for topic, topic_id in self.ids.items()}
        asked = [names[each] for each in sorted(command.topic_ids) if each in names]
        asked += [topic for topic in sorted(command.topics) if topic in self.ids]
        topics = tuple(
            TopicLeaders(
                topic,
                self.ids[topic],
                {p: PartitionLeader(_NODES[p % 3], 0, _NODES) for p in range(_PARTITIONS)},
            )
            for topic in dict.fromkeys(asked)
        )
        gone = command.topic_ids - names.keys()
        return LeadersLearnt(command.number, topics, frozenset(gone), frozenset(_NODES))

    def read(self) -> None:
        """Hand out what there is, slice by slice."""
        read = False
        while (piece := self.core.next_slice()) is not None:
            self.records += sum(batch.records for batch in piece.batches)
            self.core.finish(piece)
            read = True
        if read:
            self.inbox.append(BufferRead())

    # -- living ------------------------------------------------------------------------------

    def rebalance(self) -> None:
        """Partitions come and go, a topic is another one now and then, the user seeks and
        pauses."""
        rng = self.rng
        if rng.random() < 0.05:
            self.create(f"t{rng.randrange(_TOPICS)}")
        everything = [
            TopicPartition(f"t{topic}", partition)
            for topic in range(_TOPICS)
            for partition in range(_PARTITIONS)
        ]
        before = self.assigned
        self.assigned = {
            tp: self.ids[tp.topic] for tp in rng.sample(everything, rng.randint(0, 20))
        }
        fresh = frozenset(
            tp for tp, topic_id in self.assigned.items() if before.get(tp) != topic_id
        )
        held = frozenset(rng.sample(sorted(before), len(before) // 2))
        self.post(AllButHeld(frozenset(before), frozenset(before) - held))
        self.post(AssignmentChanged(dict(self.assigned), fresh))
        self.post(AllButHeld(frozenset(self.assigned), frozenset(self.assigned)))
        self.post(Started(tuple(sorted(fresh))))
        some = tuple(sorted(self.assigned)[:2])
        if some:
            self.tickets += 1
            self.post(SeekBegun(self.tickets, some))
            self.post(OffsetsAsked(self.tickets, dict.fromkeys(some, EARLIEST), self.now_ms + 500))
            self.post(Sought(some[0], 3))
            self.post(Paused(some))
            self.post(Resumed(some))
        for _ in range(3):
            self.now_ms += 150
            self.post(TimerFired())

    def leave(self) -> None:
        """Be assigned nothing, for a while."""
        self.assigned = {}
        self.post(AssignmentChanged({}, frozenset()))
        for node in _NODES:
            self.told[node].clear()
        self.now_ms += 10_000
        self.post(TimerFired())


def grown(machine: Machine, rebalances: int, in_use: Callable[[], int]) -> int:
    """How much more is in use after all of it than after a warm-up, while nothing is assigned."""
    before, after = (
        _used_after(machine, count, in_use)
        for count in (rebalances // 10, rebalances - rebalances // 10)
    )
    return after - before


def _used_after(machine: Machine, rebalances: int, in_use: Callable[[], int]) -> int:
    for _ in range(rebalances):
        machine.rebalance()
    machine.leave()
    gc.collect()
    return in_use()


@pytest.mark.timeout(240)  # it computes for seconds, and others may, too
def test_memory_is_flat() -> None:
    machine = Machine()
    tracemalloc.start(1)
    try:
        growth = grown(machine, 200, lambda: tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert machine.records > 200_000
    assert growth < _GROWTH_MAX_BYTES


@pytest.mark.everything("ten million records")
@pytest.mark.timeout(600)
def test_memory_stays_flat() -> None:
    """Counted in blocks, because to trace each takes four times as long as all the rest."""
    machine = Machine()
    assert grown(machine, 10_000, sys.getallocatedblocks) < _GROWTH_MAX_BLOCKS
    assert machine.records > 10_000_000
