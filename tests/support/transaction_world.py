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
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kip848_client.core.cluster import LeadersLearnt, LeadersNotLearnt, LearnLeaders
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._model import (
    CoordinatorKind,
    Group,
    OffsetToCommit,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    Kip848Error,
    ProducerFailed,
    TransactionAborted,
)
from tests.support.raw_transactions import RawTransactions
from tests.support.transaction_batches import Batch, Batches
from tests.support.transaction_requests import (
    Asked,
    describe,
    perform,
    shown_answer,
    shown_request,
    turned_away,
)

__all__ = ["Broker", "Outcome", "World", "check"]

_PARTITIONS: Final = 3
_SETTINGS: Final = ProduceSettings(
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

Event = ev.Event | LeadersLearnt | LeadersNotLearnt
Life = Generator[int, Kip848Error | None, None]
"""The application: gives a ticket, or a pause as a negative number of ms, and gets what became of
it."""


class Broker(Protocol):
    """Whom the requests go to, and whose time it is."""

    topic: str
    """Has three partitions."""
    group: str
    transactional_id: str

    @property
    def raw(self) -> RawTransactions:
        """The requests."""
        ...

    def now_ms(self) -> int:
        """The time."""
        ...

    def advance(self, by_ms: int) -> None:
        """Let it pass."""
        ...

    def values(self, partition: int) -> list[bytes]:
        """What a read_committed reader sees."""
        ...


@dataclass
class Outcome:
    """One transaction, and what the application was told of it."""

    number: int
    values: set[bytes] = field(default_factory=set[bytes])
    offsets: set[int] = field(default_factory=set[int])
    """Partitions; the offset is 10 x number."""
    told: str = "not committed"
    """``committed``, ``not committed`` or ``in doubt``."""


class World:
    """Everything, from a seed. ``run`` plays; ``outcomes`` and ``visible`` tell. ``late_ms``: a
    broker in real time may hold the client up for so long."""

    def __init__(
        self,
        seed: int,
        broker: Broker,
        *,
        levels: tuple[int, ...] = (2,),
        calm: bool = False,
        fence_within_ms: int = 30_000,
        late_ms: int = 0,
    ) -> None:
        self.dice = random.Random(seed)
        self.levels = levels
        self.calm = calm
        self.broker = broker
        self.raw = broker.raw
        self._id = broker.transactional_id
        self._fence_within_ms = fence_within_ms
        self._late_ms = late_ms
        self.settings = replace(_SETTINGS, transactional_id=self._id)
        self.outcomes: list[Outcome] = []
        self.trace: list[str] = []
        self.fences = 0
        self.waits: dict[int, int] = {}
        """Ticket to when it must have been told at the latest."""
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._tickets = 0
        self._told: dict[int, Kip848Error | None] = {}
        self.fresh: list[do.Command] = []
        self.generation = 0
        self._quiet_until_ms = 0
        self.level = levels[0]
        self.new_client()

    # -- time ----------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.broker.now_ms()

    def after(self, ms: int, action: Callable[[], None]) -> None:
        """Do something later."""
        self._order += 1
        heapq.heappush(self._queue, (self.now + ms, self._order, action))

    def _pass_to(self, at_ms: int) -> None:
        # read once: a real clock goes on between two looks
        if (by_ms := at_ms - self.now) > 0:
            self.broker.advance(by_ms)

    def note(self, text: str) -> None:
        """For whoever looks at a life that went wrong."""
        self.trace.append(f"{self.now % 10_000_000:>8} {text}")

    # -- the client ----------------------------------------------------------------------------

    def new_client(self) -> None:
        """The application starts anew."""
        self.generation += 1
        self.fresh = []
        self.waits.clear()
        self.batches = Batches(lambda: self.now, self.produce)
        jitter = self.dice.random() * 0.4 + 0.8
        self.client = Transactions(
            self.settings, lambda ms: int(ms * jitter), self.fresh.append, self.batches
        )
        self.batches.client = self.client
        self.client.take(self.now, ev.TransactionVersionLearnt(self.level))

    def post(self, event: Event) -> None:
        """A step."""
        assert isinstance(event, ev.Event)
        self.client.take(self.now, event)
        self.settle()

    def settle(self) -> None:
        """Let the client do what is due."""
        for _ in range(30):
            self.client.settle(self.now)
            self.batches.send()
            self.client.settle(self.now)
            if not self.fresh:
                break
            fresh, self.fresh[:] = tuple(self.fresh), ()
            for command in fresh:
                self.take(command)
        else:
            raise AssertionError("a step does not come to its end")
        self.check_waits()

    def check_waits(self) -> None:
        """Nobody waits for longer than he wanted to."""
        for ticket, limit_ms in self.waits.items():
            assert limit_ms + self._late_ms >= self.now, f"nobody told ticket {ticket}"

    def take(self, command: do.Command | LearnLeaders) -> None:
        """Do what the client asks for."""
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
                if self.chance(0.05):
                    found = ev.CoordinatorNotFound(number, 0, "nobody answers")
                self.answer_later(found)
            case (
                do.InitProducerId()
                | do.AddPartitions()
                | do.AddOffsets()
                | do.CommitOffsets()
                | do.EndTransaction()
            ):
                self._request(command)
            case do.DescribeTransaction():
                lost = ev.TransactionNotDescribed(command.number, for_good=False)
                is_lost = self.chance(0.1)
                self.answer_later(lost if is_lost else describe(self.raw, command))
            case _:
                raise AssertionError(f"not expected: {command!r}")

    def append(self, tp: TopicPartition, value: bytes, *, bad: bool) -> None:
        """Write a record; a bad one is refused. Raises what the client raises."""
        self.client.check_append()
        limit_ms = self.now + _SETTINGS.delivery_timeout_ms
        self.batches.waiting.append(Batch(tp, value, limit_ms, is_bad=bad))
        self.settle()

    def give_up(self, ticket: int) -> None:
        """Wait no more."""
        self.client.wait_ended(ticket)

    def due_ms(self) -> list[int]:
        """When the client has something to do."""
        due = self.client.due_ms()
        waiting = self.batches.waiting
        batches = [at for each in waiting for at in (each.not_before_ms, each.limit_ms)]
        return [*(each for each in batches if each > self.now), *(() if due is None else (due,))]

    def chance(self, likely: float) -> bool:
        return not self.calm and self.dice.random() < likely

    def fate(self) -> float:
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

    def answer_later(self, event: Event) -> None:
        """Unless another client is there by then."""
        generation = self.generation

        def answer() -> None:
            if generation == self.generation:
                self.post(event)

        self.after(self.dice.randrange(20), answer)

    def _request(self, command: Asked) -> None:
        fate = self.fate()
        lost = ev.TxnLost(command.number, "connection lost", True)
        if fate < 0.05:
            self.note(f"executed, answer lost: {shown_request(command)}")
            perform(self.raw, self._id, command)
            self.answer_later(lost)
        elif fate < 0.09:
            self.note(f"lost: {shown_request(command)}")
            self.answer_later(lost)
        elif fate < 0.12:
            self.answer_later(ev.TxnLost(command.number, "no connection", False))
        elif fate < 0.16:
            self.note(f"late: {shown_request(command)}")
            self.answer_later(lost)

            def arrive() -> None:
                self.note(f"arrives late: {shown_request(command)}")
                perform(self.raw, self._id, command)

            self.after(self.dice.choice([50, 300, 1_500, 4_000]), arrive)
        elif fate < 0.20:
            code = self.dice.choice(_TURNED_AWAY)
            done = self.dice.random() < 0.5 and code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            if done:
                perform(self.raw, self._id, command)
            self.note(f"{code.name}{' but done' if done else ''}: {shown_request(command)}")
            self.answer_later(turned_away(command, code))
        else:
            answer = perform(self.raw, self._id, command)
            self.note(f"{shown_request(command)} -> {shown_answer(answer)}")
            self.answer_later(answer)

    def produce(self, batch: Batch) -> None:
        """Send a batch."""
        version = 12 if self.client.version is TransactionVersion.V2 else 11
        generation = self.generation
        producer, sequence = batch.producer, batch.sequence
        assert producer is not None

        def execute() -> int:
            answer = self.raw.produce(
                self._id, producer, sequence, {batch.tp: [batch.value]}, version
            )
            code: int = answer[0][2]
            self.note(f"produce {batch.value!r} {batch.tp[1]} {producer} {sequence} -> {code}")
            return code

        def answer(code: int | None) -> None:
            def told() -> None:
                if generation == self.generation:
                    self.batches.answered(batch, code)
                    self.settle()

            self.after(self.dice.randrange(30), told)

        fate = self.fate()
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
            if self.chance(0.1):
                self.level = self.dice.choice(self.levels)
                self.post(ev.TransactionVersionLearnt(self.level))
            while True:
                error = yield self._ask(ev.BeginRequested, 3_000)
                if error is None:
                    break
                self.note(f"begin: {error}")
                if isinstance(error, ProducerFailed):
                    self.new_client()
            outcome = Outcome(number)
            self.outcomes.append(outcome)
            self.note(f"--- {number} begins, level {self.level}")
            try:
                yield from self._work(outcome)
                if self.chance(0.03):
                    self.note("crash")
                    self.new_client()
                    continue
                if not self.chance(0.15):
                    yield from self._commit(outcome)
                    continue
            except ProducerFailed as failed:
                self.note(f"failed: {failed}")
                self.new_client()
                continue
            except TransactionAborted as aborted:
                self.note(f"aborted: {aborted}")
            yield from self._abort()

    def _work(self, outcome: Outcome) -> Life:
        for index in range(self.dice.choice([0, 1, 1, 2, 4])):
            value = f"{outcome.number}.{index}".encode()
            tp = TopicPartition(self.broker.topic, self.dice.randrange(_PARTITIONS))
            self.append(tp, value, bad=self.chance(0.03))
            outcome.values.add(value)
            yield -self._pause_ms()
        if self.dice.random() < 0.4:
            name = self.broker.group
            group = Group(name, -1, "", None)
            if self.chance(0.08):
                group = Group(name, 5, "nobody", None)
            partitions = self.dice.sample(range(_PARTITIONS), 2)
            outcome.offsets |= set(partitions)
            offsets = {
                TopicPartition(self.broker.topic, each): OffsetToCommit(outcome.number * 10, -1, "")
                for each in partitions
            }
            ticket = self._ask(lambda t, _: ev.OffsetsAdded(t, group, offsets), None)
            if self.chance(0.3):
                return  # the commit will tell
            error = yield ticket
            if error is not None:
                raise error

    def _pause_ms(self) -> int:
        return 5_000 if self.chance(0.02) else self.dice.randrange(1, 60)

    def _commit(self, outcome: Outcome) -> Life:
        outcome.told = "in doubt"
        for _ in range(self.dice.choice([1, 2, 4])):
            within_ms = self.dice.choice([100, 1_000, 5_000])
            ticket = self._ask(ev.CommitRequested, within_ms)
            if self.chance(0.1):
                yield -self.dice.randrange(100)
                if ticket not in self._told:
                    self.give_up(ticket)
                    self.waits.pop(ticket)
                    ticket = self._ask(ev.CommitRequested, within_ms)
            error = yield ticket
            self.note(f"commit: {type(error).__name__} {error}")
            if error is None:
                outcome.told = "committed"
                return
            if isinstance(error, ProducerFailed) and error.maybe_committed:
                break
            if not isinstance(error, CommitInDoubt):
                outcome.told = "not committed"
                raise error
            if isinstance(error.cause, ProducerFailed):
                break
        self.new_client()

    def _abort(self) -> Life:
        while True:
            error = yield self._ask(ev.AbortRequested, 1_500)
            self.note(f"abort: {error}")
            if error is None:
                return
            if isinstance(error, ProducerFailed):
                self.new_client()
                return

    # -- playing -------------------------------------------------------------------------------

    def run(self, transactions: int = 12) -> World:
        """Play a life to its end, and everything that is on its way."""
        life = self.life(transactions)
        waiting = next(life)
        wake_ms = self.now - min(waiting, 0)
        if not self.calm:
            self.after(self.dice.randrange(self._fence_within_ms), self._fence)
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
        times = [*self.due_ms(), *(() if wake_ms is None else (wake_ms,))]
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
        answer, _ = self.raw.init(self._id, 2_000)
        self.note(f"another producer: {answer}")
        if answer[0] == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.after(30, self._fence)
        elif self.dice.random() < 0.5:
            self.after(self.dice.randrange(self._fence_within_ms), self._fence)

    def _end(self) -> None:
        for _ in range(10):
            answer, _ = self.raw.init(self._id)
            if not answer[0]:
                return
            self.broker.advance(100)
        raise AssertionError("the last transaction does not come to its end")

    # -- what became of it ---------------------------------------------------------------------

    def visible(self) -> list[bytes]:
        """Values that a read_committed reader sees."""
        return [value for index in range(_PARTITIONS) for value in self.broker.values(index)]

    def offsets(self) -> dict[int, int]:
        """Committed offsets of the group, by partition."""
        _, rows = self.raw.offsets(
            self.broker.group, [(self.broker.topic, index) for index in range(_PARTITIONS)]
        )
        return {row[1]: row[3] for row in rows}


def check(world: World) -> None:
    """No commit that was told and is not there, none that is there and was told not to be, and all
    of a transaction or nothing."""
    seen = world.visible()
    trace = "\n".join(world.trace[-80:])
    assert len(seen) == len(set(seen)), f"something is there twice\n{trace}"
    there = set(seen)
    offsets = world.offsets()
    may_be: dict[int, set[int]] = {index: {-1} for index in offsets}
    for each in world.outcomes:
        if each.told == "committed":
            assert each.values <= there, f"{each} is told to be committed\n{trace}"
        elif each.told == "not committed":
            assert not each.values & there, f"{each} is told not to be\n{trace}"
        else:
            assert each.values <= there or not each.values & there, f"half of {each}\n{trace}"
        is_sure = each.told == "committed" or (bool(each.values) and each.values <= there)
        is_possible = each.told == "in doubt" and not each.values
        for index in each.offsets:
            if is_sure:
                may_be[index] = {each.number * 10}
            elif is_possible:
                may_be[index].add(each.number * 10)
    for index, offset in offsets.items():
        assert offset in may_be[index], f"offsets of {index}: {offset}, {may_be}\n{trace}"
