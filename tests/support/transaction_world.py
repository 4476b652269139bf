"""One transactional id in a world that loses, delays and refuses: random lives, and what became of
each transaction.

The broker is the bundled one, in process and in virtual time; ``Transactions`` is the client, with
a plain stand-in for batches. The application does what a careful one does with each error. Every
transaction writes values of its own, so that the logs tell in the end which are committed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final

from kip848_client._types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    Kip848Error,
    ProducerFailed,
    RecordUnreadable,
    TransactionAborted,
)
from kip848_client.producing import _commands as do
from kip848_client.producing import _events as ev
from kip848_client.producing._errors import Api, Reaction, reaction, refusal
from kip848_client.producing._model import (
    CoordinatorKind,
    Group,
    OffsetToCommit,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.producing._transaction import Transactions
from tests.support.transaction_requests import (
    ID,
    Asked,
    perform,
    shown_answer,
    shown_request,
    turned_away,
)
from tests.unit.mock_coordinator.transactions.transactions_harness import (
    TOPIC,
    TransactionsHarness,
)

__all__ = ["Outcome", "World"]

_PARTITIONS: Final = 3
_SIMPLE: Final = Group("g", -1, "", None)
_STRANGER: Final = Group("g", 5, "nobody", None)
_SETTINGS: Final = ProduceSettings(
    transactional_id=ID,
    transaction_timeout_ms=2_000,
    delivery_timeout_ms=6_000,
    request_timeout_ms=1_000,
)
_TURNED_AWAY: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
_PASSING: Final = (Reaction.RETRY, Reaction.REFRESH)

Life = Generator[int, Kip848Error | None, None]
"""The application: gives a ticket, or a pause as a negative number of ms, and gets what became of
it."""


@dataclass
class Outcome:
    """One transaction, and what the application was told of it."""

    number: int
    values: set[bytes] = field(default_factory=set[bytes])
    offsets: set[int] = field(default_factory=set[int])
    """Partitions; the offset is 10 x number."""
    told: str = "not committed"
    """``committed``, ``not committed`` or ``in doubt``."""


@dataclass(eq=False)
class _Batch:
    tp: TopicPartition
    value: bytes
    limit_ms: int
    producer: ProducerId | None = None
    sequence: int = 0
    not_before_ms: int = 0
    is_bad: bool = False


class _Batches:
    """Batches of one record, one on its way for each partition."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.waiting: list[_Batch] = []
        self.flying: list[_Batch] = []
        self.sequences: dict[TopicPartition, int] = {}
        self.has_gap = False

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.flying

    @property
    def is_in_flight(self) -> bool:
        return bool(self.flying)

    def hurry(self) -> None:
        """There is no lingering here."""

    def drop_unsent(self, error: Kip848Error) -> None:
        assert error
        self.has_gap = self.has_gap or any(each.producer is not None for each in self.waiting)
        self.waiting.clear()

    def begin_anew(self, producer: ProducerId) -> None:
        assert producer.number >= 0
        assert not self.flying, "something is on its way"
        assert not self.waiting, "something of the transaction before is left"
        self.sequences.clear()
        self.has_gap = False

    def send(self) -> None:
        now = self.world.now
        for batch in tuple(self.waiting):
            who = self.world.client.producer
            if who is None:
                return
            if batch.limit_ms <= now:
                self.waiting.remove(batch)
                sent = batch.producer is not None
                self.has_gap = self.has_gap or sent
                to_do = Reaction.ABORT_AND_BUMP if sent else Reaction.ABORT
                error = RecordUnreadable("late", topic=TOPIC, partition=0, offset=0)
                self.world.client.batch_failed(now, batch.producer, to_do, error)
                return
            taken = any(each.tp == batch.tp for each in self.flying)
            first = next(each for each in self.waiting if each.tp == batch.tp)
            if taken or first is not batch or batch.not_before_ms > now:
                continue
            if not self.world.client.may_send(batch.tp):
                continue
            if batch.producer is None:
                batch.producer = who
                batch.sequence = self.sequences.get(batch.tp, 0)
                self.sequences[batch.tp] = batch.sequence + 1
            assert batch.producer == who, "a batch of another epoch"
            self.waiting.remove(batch)
            self.flying.append(batch)
            self.world.client.sent(batch.tp)
            self.world.produce(batch)

    def answered(self, batch: _Batch, code: int | None) -> None:
        """``None``: no answer."""
        if batch not in self.flying:
            return
        self.flying.remove(batch)
        if not code and code is not None:
            return
        to_do = Reaction.RETRY if code is None else reaction(Api.PRODUCE, code)
        if to_do is Reaction.DONE:
            return
        if to_do in _PASSING:
            batch.not_before_ms = self.world.now + 50
            self.waiting.insert(0, batch)
            return
        if to_do in (Reaction.REORDER, Reaction.SPLIT):
            to_do = Reaction.ABORT_AND_BUMP
        self.has_gap = True
        error = refusal(Api.PRODUCE, code or 0)
        self.world.client.batch_failed(self.world.now, batch.producer, to_do, error)


class World:
    """Everything, from a seed. ``run`` plays; ``outcomes`` and ``visible`` tell."""

    def __init__(
        self, seed: int, *, profile: str = "4.4", levels: tuple[int, ...] = (2,), calm: bool = False
    ) -> None:
        self.dice = random.Random(seed)
        self.levels = levels
        self.calm = calm
        self.broker = TransactionsHarness(
            profile=profile,
            transaction_abort_timed_out_transaction_cleanup_interval_ms="100",
        )
        self.outcomes: list[Outcome] = []
        self.trace: list[str] = []
        self.fences = 0
        self.waits: dict[int, int] = {}
        """Ticket to when it must have been told at the latest."""
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._tickets = 0
        self._told: dict[int, Kip848Error | None] = {}
        self._fresh: list[do.Command] = []
        self._generation = 0
        self._quiet_until_ms = 0
        self.level = levels[0]
        self._new_client()

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.broker.harness.clock()

    def after(self, ms: int, action: Callable[[], None]) -> None:
        """Do something later."""
        self._order += 1
        heapq.heappush(self._queue, (self.now + ms, self._order, action))

    def _pass_to(self, at_ms: int) -> None:
        if at_ms > self.now:
            self.broker.advance(at_ms - self.now)

    def note(self, text: str) -> None:
        """For whoever looks at a life that went wrong."""
        self.trace.append(f"{self.now % 10_000_000:>8} {text}")

    # -- the client ----------------------------------------------------------------------------

    def _new_client(self) -> None:
        self._generation += 1
        self._fresh = []
        self.waits.clear()
        self.batches = _Batches(self)
        jitter = self.dice.random() * 0.4 + 0.8
        self.client = Transactions(
            _SETTINGS, lambda ms: int(ms * jitter), self._fresh.append, self.batches
        )
        self.client.take(self.now, ev.TransactionVersionLearnt(self.level))

    def post(self, event: ev.Event) -> None:
        """A step."""
        self.client.take(self.now, event)
        self.settle()

    def settle(self) -> None:
        for _ in range(30):
            self.client.settle(self.now)
            self.batches.send()
            self.client.settle(self.now)
            if not self._fresh:
                break
            fresh, self._fresh[:] = tuple(self._fresh), ()
            for command in fresh:
                self._perform(command)
        else:
            raise AssertionError("a step does not come to its end")
        for ticket, limit_ms in self.waits.items():
            assert limit_ms >= self.now, f"nobody told ticket {ticket}"

    def _perform(self, command: do.Command) -> None:
        match command:
            case do.Done(ticket):
                self.waits.pop(ticket, None)
                self._told[ticket] = None
            case do.Failed(ticket, error):
                self.waits.pop(ticket, None)
                self._told[ticket] = error
            case do.FindCoordinator(number, kind, _):
                node = 1 if kind is CoordinatorKind.TRANSACTION else 2
                found: ev.Event = ev.CoordinatorFound(number, node)
                if self._chance(0.05):
                    found = ev.CoordinatorNotFound(number, 0, "nobody answers")
                self._answer_later(found)
            case (
                do.InitProducerId()
                | do.AddPartitions()
                | do.AddOffsets()
                | do.CommitOffsets()
                | do.EndTransaction()
            ):
                self._request(command)
            case _:
                raise AssertionError(f"not expected: {command!r}")

    def _chance(self, likely: float) -> bool:
        return not self.calm and self.dice.random() < likely

    def _fate(self) -> float:
        """From 0 (the worst) to 1. Now and then nothing gets through for a while."""
        if self.calm:
            return 1.0
        fate = self.dice.random()
        if self.now < self._quiet_until_ms:
            return fate * 0.16
        if self.dice.random() < 0.01:
            self.note("nothing gets through")
            self._quiet_until_ms = self.now + self.dice.randrange(6_000)
        return fate

    # -- the network ---------------------------------------------------------------------------

    def _answer_later(self, event: ev.Event) -> None:
        generation = self._generation

        def answer() -> None:
            if generation == self._generation:
                self.post(event)

        self.after(self.dice.randrange(20), answer)

    def _request(self, command: Asked) -> None:
        fate = self._fate()
        lost = ev.TxnLost(command.number, "connection lost", True)
        if fate < 0.05:
            self.note(f"executed, answer lost: {shown_request(command)}")
            perform(self.broker, ID, command)
            self._answer_later(lost)
        elif fate < 0.09:
            self.note(f"lost: {shown_request(command)}")
            self._answer_later(lost)
        elif fate < 0.12:
            self._answer_later(ev.TxnLost(command.number, "no connection", False))
        elif fate < 0.16:
            self.note(f"late: {shown_request(command)}")
            self._answer_later(lost)

            def arrive() -> None:
                self.note(f"arrives late: {shown_request(command)}")
                perform(self.broker, ID, command)

            self.after(self.dice.choice([50, 300, 1_500, 4_000]), arrive)
        elif fate < 0.20:
            code = self.dice.choice(_TURNED_AWAY)
            done = self.dice.random() < 0.5 and code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            if done:
                perform(self.broker, ID, command)
            self.note(f"{code.name}{' but done' if done else ''}: {shown_request(command)}")
            self._answer_later(turned_away(command, code))
        else:
            answer = perform(self.broker, ID, command)
            self.note(f"{shown_request(command)} -> {shown_answer(answer)}")
            self._answer_later(answer)

    def produce(self, batch: _Batch) -> None:
        """Send a batch."""
        version = 12 if self.client.version is TransactionVersion.V2 else 11
        generation = self._generation
        producer, sequence = batch.producer, batch.sequence
        assert producer is not None

        def execute() -> int:
            answer = self.broker.produce(ID, producer, sequence, {batch.tp: [batch.value]}, version)
            code: int = answer[0][2]
            self.note(f"produce {batch.value!r} {batch.tp[1]} {producer} {sequence} -> {code}")
            return code

        def answer(code: int | None) -> None:
            def told() -> None:
                if generation == self._generation:
                    self.batches.answered(batch, code)
                    self.settle()

            self.after(self.dice.randrange(30), told)

        fate = self._fate()
        if batch.is_bad:
            answer(ErrorCode.MESSAGE_TOO_LARGE)
        elif fate < 0.05:
            execute()
            answer(None)
        elif fate < 0.09:
            answer(None)
        elif fate < 0.13:
            answer(None)
            self.after(self.dice.choice([50, 300, 1_500, 4_000]), lambda: (execute(), None)[1])
        elif fate < 0.15:
            answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            answer(execute())

    # -- the application -----------------------------------------------------------------------

    def _ask(self, make: Callable[[int, int], ev.Event], within_ms: int | None) -> int:
        self._tickets += 1
        limit_ms = within_ms if within_ms is not None else _SETTINGS.delivery_timeout_ms + 1_100
        self.waits[self._tickets] = self.now + limit_ms
        self.post(make(self._tickets, self.now + limit_ms))
        return self._tickets

    def life(self, transactions: int) -> Life:
        """What a careful application does."""
        error: Kip848Error | None
        for number in range(transactions):
            if self._chance(0.1):
                self.level = self.dice.choice(self.levels)
                self.post(ev.TransactionVersionLearnt(self.level))
            while True:
                error = yield self._ask(ev.BeginRequested, 3_000)
                if error is None:
                    break
                self.note(f"begin: {error}")
                if isinstance(error, ProducerFailed):
                    self._new_client()
            outcome = Outcome(number)
            self.outcomes.append(outcome)
            self.note(f"--- {number} begins, {self.client.version}")
            try:
                yield from self._work(outcome)
                if self._chance(0.03):
                    self.note("crash")
                    self._new_client()
                    continue
                if not self._chance(0.15):
                    yield from self._commit(outcome)
                    continue
            except ProducerFailed as failed:
                self.note(f"failed: {failed}")
                self._new_client()
                continue
            except TransactionAborted as aborted:
                self.note(f"aborted: {aborted}")
            yield from self._abort()

    def _work(self, outcome: Outcome) -> Life:
        for index in range(self.dice.choice([0, 1, 1, 2, 4])):
            value = f"{outcome.number}.{index}".encode()
            self.client.check_append()
            outcome.values.add(value)
            tp = TopicPartition(TOPIC, self.dice.randrange(_PARTITIONS))
            limit_ms = self.now + _SETTINGS.delivery_timeout_ms
            bad = self._chance(0.03)
            self.batches.waiting.append(_Batch(tp, value, limit_ms, is_bad=bad))
            self.settle()
            yield -self._pause_ms()
        if self.dice.random() < 0.4:
            group = _STRANGER if self._chance(0.08) else _SIMPLE
            partitions = self.dice.sample(range(_PARTITIONS), 2)
            outcome.offsets |= set(partitions)
            offsets = {
                TopicPartition(TOPIC, each): OffsetToCommit(outcome.number * 10, -1, "")
                for each in partitions
            }
            ticket = self._ask(lambda t, _: ev.OffsetsAdded(t, group, offsets), None)
            if self._chance(0.3):
                return  # the commit will tell
            error = yield ticket
            if error is not None:
                raise error

    def _pause_ms(self) -> int:
        return 5_000 if self._chance(0.02) else self.dice.randrange(1, 60)

    def _commit(self, outcome: Outcome) -> Life:
        outcome.told = "in doubt"
        for _ in range(self.dice.choice([1, 2, 4])):
            within_ms = self.dice.choice([100, 1_000, 5_000])
            ticket = self._ask(ev.CommitRequested, within_ms)
            if self._chance(0.1):
                yield -self.dice.randrange(100)
                if ticket not in self._told:
                    self.client.wait_ended(ticket)
                    self.waits.pop(ticket)
                    ticket = self._ask(ev.CommitRequested, within_ms)
            error = yield ticket
            self.note(f"commit: {type(error).__name__} {error}")
            if error is None:
                outcome.told = "committed"
                return
            if not isinstance(error, CommitInDoubt):
                outcome.told = "not committed"
                raise error
            if isinstance(error.cause, ProducerFailed):
                break
        self._new_client()

    def _abort(self) -> Life:
        while True:
            error = yield self._ask(ev.AbortRequested, 1_500)
            self.note(f"abort: {error}")
            if error is None:
                return
            if isinstance(error, ProducerFailed):
                self._new_client()
                return

    # -- playing -------------------------------------------------------------------------------

    def run(self, transactions: int = 12) -> World:
        """Play a life to its end, and everything that is on its way."""
        life = self.life(transactions)
        waiting = next(life)
        wake_ms = self.now - min(waiting, 0)
        if not self.calm:
            self.after(self.dice.randrange(30_000), self._fence)
        for _ in range(60_000):
            if waiting > 0 and waiting in self._told:
                answer, send = self._told.pop(waiting), True
            else:
                answer, send = None, waiting <= 0 and wake_ms <= self.now
            if send:
                try:
                    waiting = life.send(answer)
                except StopIteration:
                    break
                wake_ms = self.now - min(waiting, 0)
                continue
            self._go_on(wake_ms if waiting <= 0 else None)
        else:
            raise AssertionError("the life does not end")
        while self._queue:
            self._go_on(None)
        self._end()
        return self

    def _go_on(self, wake_ms: int | None) -> None:
        """To the next thing that happens."""
        due = self.client.due_ms()
        batches = [max(each.not_before_ms, 0) for each in self.batches.waiting]
        limits = [each.limit_ms for each in self.batches.waiting]
        later = [each for each in (*batches, *limits) if each > self.now]
        times = [*later, *(each for each in (due, wake_ms) if each is not None)]
        if self._queue:
            times.append(self._queue[0][0])
        assert times, "nothing will ever happen"
        self._pass_to(min(times))
        if self._queue and self._queue[0][0] <= self.now:
            heapq.heappop(self._queue)[2]()
        else:
            self.settle()

    def _fence(self) -> None:
        """Another producer with our id, for a moment."""
        self.fences += 1
        answer, _ = self.broker.init(ID, 2_000)
        self.note(f"another producer: {answer}")
        if answer[0] == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.after(30, self._fence)
        elif self.dice.random() < 0.5:
            self.after(self.dice.randrange(30_000), self._fence)

    def _end(self) -> None:
        for _ in range(10):
            answer, _ = self.broker.init(ID)
            if not answer[0]:
                return
            self.broker.advance(100)
        raise AssertionError(answer)

    # -- what became of it ---------------------------------------------------------------------

    def visible(self) -> list[bytes]:
        """Values that a read_committed reader sees."""
        return [value for index in range(_PARTITIONS) for value in self.broker.values(index)]

    def offsets(self) -> dict[int, int]:
        """Committed offsets of the group, by partition."""
        _, rows = self.broker.offsets("g", [(TOPIC, index) for index in range(_PARTITIONS)])
        return {row[1]: row[3] for row in rows}
