"""A producer core in virtual time among brokers that fail: one random life after the other.

Brokers check sequence numbers as Kafka does. Requests to a broker share a connection; when it
breaks some were written, some were not, and some are written later, as when they wait in the
broker's queue. Answers come in any order.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kip848_client.core.cluster import (
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._core import Event, ProducerCore
from kip848_client.core.produce._model import Place, Produced, ProducerId, ProduceSettings
from kip848_client.core.produce._routes import Route
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import DeliveryTimedOut, Kip848Error
from tests.support.produced_batches import ModelLog, PlainBuilder, plain_batch

__all__ = ["Odds", "ProducerWorld"]

_NODES = (1, 2, 3)
_TOPIC = "t"
_ID = TopicId(b"topic-id-of-t...")


@dataclass
class Odds:
    """How often something goes wrong."""

    lost: float = 0.05
    refused: float = 0.08
    moved: float = 0.02
    omitted: float = 0.02
    forgotten: float = 0.02
    bad: float = 0.01
    too_large: float = 0.3
    """Of lives: brokers take batches of a few records only."""


@dataclass
class _Reported:
    place: Place | None = None
    error: Kip848Error | None = None


@dataclass
class _Appended:
    """A batch as the application knows it: its values by row."""

    tp: TopicPartition
    values: list[str] = field(default_factory=list[str])


class ProducerWorld:
    """One life. ``run`` returns when everything is settled; ``check`` says whether it was right."""

    def __init__(self, seed: int, settings: ProduceSettings, odds: Odds | None = None) -> None:
        self.rng = random.Random(seed)
        self.odds = odds or Odds()
        self.settings = settings
        rng = self.rng
        self.core = ProducerCore(settings, lambda ms: ms, rng.randrange, PlainBuilder)
        self.now = 1_000
        self.partitions = rng.randint(1, 3)
        self.logs = {TopicPartition(_TOPIC, n): ModelLog() for n in range(self.partitions)}
        self.leaders = {n: (rng.choice(_NODES), 1) for n in range(self.partitions)}
        self.batch_limit = rng.randint(2, 6) if rng.random() < self.odds.too_large else 1 << 30
        self.calm = False
        self.batches: dict[int, _Appended] = {}
        self.reported: dict[int, _Reported] = {}
        self.done: set[int] = set()
        self.failed: dict[int, Kip848Error] = {}
        self.commands = 0
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0
        self._value = 0
        self._waiting_for_room = False
        self._connections: dict[int, list[do.SendProduce]] = {node: [] for node in _NODES}
        self._ids = 0

    # -- time --------------------------------------------------------------------------------

    def later(self, ms: int, what: Callable[[], object]) -> None:
        """Do it in so many ms."""
        self._count += 1
        heapq.heappush(self._queue, (self.now + ms, self._count, what))

    def run(self, records: int) -> None:
        """Append so many records, let things go wrong, calm down, and wait for the end."""
        self.post(ev.StartRequested(1, self.now + 10_000))
        self.post(ev.TopicWanted(2, _TOPIC, self.now + 100_000))
        self.later(0, lambda: self._application(records))
        self._drain(self.now + 3_600_000, lambda: self._value >= records)
        self.calm = True
        self.post(ev.FlushRequested(3))
        self._drain(self.now + 3_600_000, lambda: 3 in self.done)
        assert 3 in self.done, "flush never ended"
        self._drain(self.now + 60_000, lambda: False)
        before = self.batches.keys() - {-1}
        for number in range(self.partitions):
            for _ in range(3):
                self._append(TopicPartition(_TOPIC, number), None)
        self._drain(self.now + 60_000, lambda: False)
        for number in self.batches.keys() - before:
            assert self.reported[number].place is not None, "it does not get over what went wrong"

    def _drain(self, end: int, is_enough: Callable[[], bool]) -> None:
        steps = 0
        while not is_enough():
            due = self.core.deadline_ms
            at = self._queue[0][0] if self._queue else None
            nearest = min((each for each in (due, at) if each is not None), default=end)
            if nearest >= end:
                return
            self.now = max(self.now, nearest)
            if at is not None and at <= self.now:
                heapq.heappop(self._queue)[2]()
            else:
                self.post(ev.TimerFired())
            steps += 1
            assert steps < 200_000, "it never comes to rest"

    def post(self, event: Event) -> None:
        """Deliver an event, and do what it leads to."""
        commands = self.core.step(self.now, event)
        self.commands += len(commands)
        for command in commands:
            self._perform(command)

    def _perform(self, command: do.Command | LearnLeaders) -> None:
        rng = self.rng
        match command:
            case do.InitProducerId(number=number):
                self.later(rng.randint(0, 50), lambda: self._give_id(number))
            case LearnLeaders(number=number):
                self.later(rng.randint(0, 50), lambda: self._tell_leaders(number))
            case do.SendProduce():
                self._connections[command.node].append(command)
                self.later(rng.randint(0, 30), lambda: self._arrive(command))
            case do.BatchDone(batch, place):
                self._report(batch, _Reported(place=place))
            case do.BatchFailed(batch, error):
                self._report(batch, _Reported(error=error))
            case do.BatchSplit(batch, parts):
                self._split(batch, parts)
            case do.RoomMade():
                self._waiting_for_room = False
            case do.Done(ticket):
                self.done.add(ticket)
            case do.Failed(ticket, error):
                self.failed[ticket] = error
            case _:
                raise AssertionError(command)

    # -- the application ---------------------------------------------------------------------

    def _application(self, left: int) -> None:
        rng = self.rng
        route = self.core.routes.get(_TOPIC)
        if route is not None:
            for _ in range(rng.randint(1, 12)):
                if self._value >= left or self._waiting_for_room:
                    break
                has_key = rng.random() < 0.5
                tp = rng.choice(route.partitions) if has_key else route.of(None)
                self._append(tp, None if has_key else route)
        self.later(rng.choice((0, 1, 5, 20, 300)), lambda: self._application(left))

    def _append(self, tp: TopicPartition, turns: Route | None) -> None:
        bad = not self.calm and self.rng.random() < self.odds.bad
        value = f"{self._value:06d}{'bad' if bad else ''}"
        placed = self.core.append(self.now, tp, self.now, None, value.encode(), (), turns)
        if placed is None:
            self._waiting_for_room = True
            self.post(ev.Appended())
            return
        self._value += 1
        batch = self.batches.setdefault(placed.batch, _Appended(placed.tp))
        assert placed.row == len(batch.values), "rows are counted"
        batch.values.append(value)
        if placed.notify:
            self.post(ev.Appended())

    def _report(self, number: int, told: _Reported) -> None:
        assert number in self.batches, "a batch that nobody appended to"
        assert number not in self.reported, "a batch is reported twice"
        self.reported[number] = told

    def _split(self, number: int, parts: tuple[tuple[int, int], ...]) -> None:
        whole = self.batches.pop(number)
        assert number not in self.reported
        at = 0
        for part, records in parts:
            self.batches[part] = _Appended(whole.tp, whole.values[at : at + records])
            at += records
        assert at == len(whole.values), "a split loses records"

    # -- the cluster -------------------------------------------------------------------------

    def _give_id(self, number: int) -> None:
        if not self.calm and self.rng.random() < self.odds.lost:
            self.post(ev.TxnLost(number, "lost", maybe_sent=True))
            return
        self._ids += 1
        self.post(ev.ProducerIdAnswered(number, 0, ProducerId(1_000 + self._ids, 0)))

    def _tell_leaders(self, number: int) -> None:
        if not self.calm and self.rng.random() < self.odds.lost:
            self.post(LeadersNotLearnt(number, "lost"))
            return
        leaders = {n: PartitionLeader(*at) for n, at in self.leaders.items()}
        told = (TopicLeaders(_TOPIC, _ID, leaders),)
        self.post(LeadersLearnt(number, told, frozenset(), frozenset(_NODES)))

    def _arrive(self, request: do.SendProduce) -> None:
        line = self._connections[request.node]
        if request not in line:
            return  # its connection broke before
        rng = self.rng
        if not self.calm and rng.random() < self.odds.lost:
            self._break(request.node)
            return
        while line:
            first = line.pop(0)
            self._serve(first)
            if first is request:
                return

    def _serve(self, request: do.SendProduce) -> None:
        told = self._write(request)
        rng = self.rng
        if not self.calm and rng.random() < self.odds.lost / 2:
            lost = ev.ProduceLost(request.produce, "no answer in time", maybe_sent=True)
            self.later(rng.choice((10, 30_000)), lambda: self.post(lost))
            return
        answered = ev.ProduceAnswered(request.produce, told)
        self.later(rng.randint(0, 40), lambda: self.post(answered))

    def _break(self, node: int) -> None:
        """The connection is lost: some requests have been written, some will be, some never."""
        line, self._connections[node] = self._connections[node], []
        rng = self.rng
        written = rng.randint(0, len(line))
        late = rng.randint(written, len(line))
        delay_ms = rng.choice((1, 50, 500, 5_000))
        for place, request in enumerate(line):
            if place < written:
                self._write(request)
            elif place < late:
                delay_ms += rng.randint(0, 20)
                self.later(delay_ms, partial(self._write, request))
            maybe_sent = place < late or rng.random() < 0.5
            self.post(ev.ProduceLost(request.produce, "connection lost", maybe_sent=maybe_sent))

    def _write(self, request: do.SendProduce) -> dict[TopicPartition, Produced]:
        rng, told = self.rng, dict[TopicPartition, Produced]()
        for sealed in request.batches:
            if not self.calm and rng.random() < self.odds.moved:
                self._move(sealed.tp.partition)
            told[sealed.tp] = self._write_one(request.node, sealed.tp, sealed.data)
            if not self.calm and rng.random() < self.odds.omitted:
                del told[sealed.tp]
        told[TopicPartition("nobody asked", 0)] = Produced(base_offset=7)
        return told

    def _move(self, partition: int) -> None:
        _, epoch = self.leaders[partition]
        self.leaders[partition] = (self.rng.choice(_NODES), epoch + 1)
        if self.rng.random() < self.odds.forgotten * 10:
            self.logs[TopicPartition(_TOPIC, partition)].forget_but_the_last()

    def _write_one(self, node: int, tp: TopicPartition, data: bytes) -> Produced:
        rng, batch = self.rng, plain_batch(data)
        leader = self.leaders[tp.partition]
        if leader[0] != node:
            hint = leader if rng.random() < 0.5 else None
            return Produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=hint)
        if len(batch.values) > self.batch_limit:
            return Produced(ErrorCode.MESSAGE_TOO_LARGE)
        if any(value.endswith("bad") for value in batch.values):
            rows = {row: "bad" for row, each in enumerate(batch.values) if each.endswith("bad")}
            return Produced(ErrorCode.INVALID_RECORD, record_errors=rows)
        is_refused = not self.calm and rng.random() < self.odds.refused
        is_written = rng.random() < 0.5
        before = (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.KAFKA_STORAGE_ERROR,
        )
        if is_refused and not is_written:
            return Produced(rng.choice(before))
        code, base = self.logs[tp].append(batch)
        if not code and is_refused:
            after = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            return Produced(rng.choice(after))
        return Produced(code, base)

    # -- what must hold ----------------------------------------------------------------------

    def check(self) -> None:
        """Each record at most once, in order, and what was told is so."""
        self.check_told()
        for tp, log in self.logs.items():
            assert len(set(log.values)) == len(log.values), f"{tp}: twice in the log"
            assert log.values == sorted(log.values), f"{tp}: out of order"
        for number, told in self.reported.items():
            batch = self.batches[number]
            values = self.logs[batch.tp].values
            if told.place is not None:
                assert all(value in values for value in batch.values), "done, but not written"
                offset = told.place.base_offset
                if offset >= 0:
                    assert values[offset : offset + len(batch.values)] == batch.values
            elif isinstance(told.error, DeliveryTimedOut) and not told.error.maybe_written:
                assert not any(value in values for value in batch.values), "told as not written"

    def check_told(self) -> None:
        """Every batch has been told the end of, and nothing is left."""
        assert self.reported.keys() == self.batches.keys(), "not every batch is reported"
        snapshot = self.core.snapshot()
        assert snapshot.held_bytes == 0
        assert snapshot.unreported == 0
        assert snapshot.on_the_wire == 0
        for each in snapshot.partitions.values():
            assert not each.waiting
            assert not each.on_the_wire
            assert not each.open_records
