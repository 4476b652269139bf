"""Transactions in virtual time, with batches that a test moves by hand and a coordinator that says
what the test wants it to say.

Coordinators are found at once (node 1 for the transactional id, node 2 for groups) unless the test
switches that off (``finds``), and markers are written at once (``describes``). Everything else
waits until it is answered or lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._interfaces import ProducerIdentity
from kip848_client.core.produce._model import (
    CoordinatorKind,
    Group,
    OffsetToCommit,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.produce._transaction_states import State
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["GROUP", "ME", "Batches", "Harness", "group", "tp"]

_Kind = TypeVar("_Kind", bound=do.Command)

V1, V2 = TransactionVersion.V1, TransactionVersion.V2
ME: Final = ProducerId(7, 3)
"""As the coordinator names us first."""
FOREVER: Final = 10**9

Asked = do.InitProducerId | do.AddPartitions | do.AddOffsets | do.CommitOffsets | do.EndTransaction


def tp(partition: int = 0, topic: str = "t") -> TopicPartition:
    """A partition."""
    return TopicPartition(topic, partition)


def group(name: str = "g") -> Group:
    """A member of a group."""
    return Group(name, 5, "m", None)


GROUP: Final = group()


@dataclass(eq=False)
class Batch:
    """One batch."""

    tp: TopicPartition
    producer: ProducerId | None = None
    error: Kip848Error | None = None


@dataclass
class Batches:
    """What ``Transactions`` sees of batches. ``identity`` is set when it exists."""

    identity: ProducerIdentity | None = None
    waiting: list[Batch] = field(default_factory=list[Batch])
    flying: list[Batch] = field(default_factory=list[Batch])
    dropped: list[Batch] = field(default_factory=list[Batch])
    has_gap: bool = False
    trouble: str | None = None
    is_hurried: bool = False
    is_held: bool = False
    """No leader is known: nothing can be sent."""
    known_as: list[ProducerId] = field(default_factory=list[ProducerId])

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.flying

    @property
    def is_in_flight(self) -> bool:
        return bool(self.flying)

    def flush_now(self) -> None:
        self.is_hurried = True

    def drop_unsent(self, error: Kip848Error) -> None:
        for batch in self.waiting:
            batch.error = error
            self.has_gap = self.has_gap or batch.producer is not None
        self.dropped += self.waiting
        self.waiting.clear()

    def begin_anew(self, producer: ProducerId) -> None:
        self.known_as.append(producer)
        self.has_gap = False

    def send(self) -> None:
        """As much as may be sent."""
        identity = self.identity
        assert identity is not None
        for batch in () if self.is_held else tuple(self.waiting):
            who = identity.producer
            if who is not None and identity.may_send(batch.tp, batch.tp.partition):
                self.waiting.remove(batch)
                self.flying.append(batch)
                batch.producer = who
                identity.sent(batch.tp, batch.tp.partition)


class Harness:
    """One transactional id, the time, and what was asked for."""

    def __init__(self, level: int = 2) -> None:
        self.settings = ProduceSettings(transactional_id="id")
        self.now = 1_000
        self.batches = Batches()
        self.commands: list[do.Command] = []
        self.outcomes: dict[int, Kip848Error | None] = {}
        self.open: list[Asked] = []
        self.lookups: list[do.FindCoordinator] = []
        self.finds = True
        self.describes = True
        self._fresh: list[do.Command] = []
        self._tickets = 0
        self.core = Transactions(self.settings, lambda ms: ms, self._fresh.append, self.batches)
        self.batches.identity = self.core
        self.post(ev.TransactionVersionLearnt(level))

    # -- time and events -----------------------------------------------------------------------

    def post(self, *events: ev.Event) -> None:
        """Deliver events, each in a step of its own."""
        for event in events:
            self.core.take(self.now, event)
            self.settle()

    def settle(self) -> None:
        """Let everybody do what is due."""
        for _ in range(20):
            self.core.settle(self.now)
            self.batches.send()
            self.core.settle(self.now)
            if not self._fresh:
                break
            fresh, self._fresh[:] = tuple(self._fresh), ()
            for command in fresh:
                self._note(command)
        else:
            raise AssertionError("a step does not come to its end")

    def _note(self, command: do.Command) -> None:
        self.commands.append(command)
        match command:
            case do.Done(ticket):
                assert ticket not in self.outcomes, "told twice"
                self.outcomes[ticket] = None
            case do.Failed(ticket, error):
                assert ticket not in self.outcomes, "told twice"
                self.outcomes[ticket] = error
            case do.FindCoordinator(number, kind, _) if self.finds:
                node = 1 if kind is CoordinatorKind.TRANSACTION else 2
                self.core.take(self.now, ev.CoordinatorFound(number, node))
            case do.FindCoordinator():
                self.lookups.append(command)
            case do.DescribeTransaction() if self.describes:
                self.described(command)
            case (
                do.InitProducerId()
                | do.AddPartitions()
                | do.AddOffsets()
                | do.CommitOffsets()
                | do.EndTransaction()
            ):
                assert not self.open, "two requests at once"
                self.open.append(command)
            case _:
                pass

    def advance(self, ms: int) -> None:
        """Let time pass."""
        end = self.now + ms
        for _ in range(1_000):
            due = self.core.due_ms()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self.settle()
        else:
            raise AssertionError("the timer never ends")
        self.now = end

    def ms_until(self, is_so: Callable[[], object], every_ms: int = 1) -> int:
        """Let time pass until something is so; returns how long that took."""
        begin = self.now
        while not is_so():
            assert self.now < begin + 60_000, "it never comes"
            self.advance(every_ms)
        return self.now - begin

    def ms_until_asked(self) -> int:
        """Let time pass until something is asked; returns how long that took."""
        return self.ms_until(lambda: self.open)

    # -- the application -----------------------------------------------------------------------

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def start(self, within_ms: int = FOREVER) -> int:
        ticket = self.ticket()
        self.post(ev.StartRequested(ticket, self.now + within_ms))
        return ticket

    def begin(self, within_ms: int = FOREVER) -> int:
        ticket = self.ticket()
        self.post(ev.BeginRequested(ticket, self.now + within_ms))
        return ticket

    def commit(self, within_ms: int = FOREVER) -> int:
        ticket = self.ticket()
        self.post(ev.CommitRequested(ticket, self.now + within_ms))
        return ticket

    def abort(self, within_ms: int = FOREVER) -> int:
        ticket = self.ticket()
        self.post(ev.AbortRequested(ticket, self.now + within_ms))
        return ticket

    def offsets(self, of: Group = GROUP, *partitions: int) -> int:
        return self.offset(10, of, *partitions)

    def offset(self, first: int, of: Group = GROUP, *partitions: int) -> int:
        """Of partition 0 this offset, of each other one the next."""
        ticket = self.ticket()
        offsets = {tp(each): OffsetToCommit(first + each, -1, "") for each in partitions or (0,)}
        self.post(ev.OffsetsAdded(ticket, of, offsets))
        return ticket

    def record(self, partition: int = 0) -> Batch:
        """A batch of one record."""
        self.core.check_append()
        batch = Batch(tp(partition))
        self.batches.waiting.append(batch)
        self.settle()
        return batch

    # -- what the brokers say ------------------------------------------------------------------

    def asked(self, kind: type[_Kind]) -> _Kind:
        """The request that is open."""
        assert self.open, "nothing is asked"
        assert isinstance(self.open[0], kind), self.open[0]
        return self.open[0]

    def answer(self, code: int = 0, who: ProducerId | None = None, **codes: int) -> Asked:
        """Answer the request that is open; ``codes``: by partition (``p0=..``) of the topic."""
        request = self.open.pop()
        event: ev.Event
        if isinstance(request, do.InitProducerId):
            event = ev.ProducerIdAnswered(request.number, code, who or ME)
        else:
            by_partition = None
            if isinstance(request, do.AddPartitions | do.CommitOffsets):
                every = (
                    request.partitions
                    if isinstance(request, do.AddPartitions)
                    else tuple(request.offsets)
                )
                by_partition = {each: codes.get(f"p{each.partition}", code) for each in every}
                code = 0
            if isinstance(request, do.EndTransaction) and request.version is V2 and not code:
                who = who or ProducerId(request.producer.number, request.producer.epoch + 1)
            event = ev.TxnAnswered(request.number, code, by_partition, who)
        self.post(event)
        return request

    def described(self, command: do.DescribeTransaction, state: str = "CompleteCommit") -> None:
        """The coordinator tells how far it is with the transaction before."""
        self.post(ev.TransactionDescribed(command.number, 0, state))

    def lose(self, *, sent: bool = True, fatal: Kip848Error | None = None) -> Asked:
        """The connection breaks."""
        request = self.open.pop()
        self.post(ev.TxnLost(request.number, "connection lost", sent, fatal))
        return request

    def written(self) -> None:
        """All batches on their way are in the log."""
        for batch in self.batches.flying:
            assert batch.producer is not None
            self.core.written(batch.producer)
            self.core.batch_ended(batch.tp)
        self.batches.flying.clear()
        self.settle()

    def batch_lost(self) -> None:
        """All that is on its way has to be sent once more."""
        self.batches.waiting[:0] = self.batches.flying
        for batch in self.batches.flying:
            self.core.batch_ended(batch.tp)
        self.batches.flying.clear()
        self.settle()

    def batch_refused(self, reaction: Reaction, error: Kip848Error) -> None:
        """The oldest batch has failed."""
        batch = self.batches.flying.pop(0)
        self.core.batch_ended(batch.tp)
        self.batches.has_gap = True
        self.core.batch_failed(self.now, batch.producer, reaction, error)
        self.settle()

    # -- short cuts ----------------------------------------------------------------------------

    def ready(self) -> Harness:
        """Start, and get the producer id."""
        self.start()
        self.answer()
        return self

    def begun(self) -> Harness:
        """And begin a transaction."""
        self.ready()
        ticket = self.begin()
        assert self.outcomes[ticket] is None
        return self

    def filled(self) -> Harness:
        """And have a record written."""
        self.begun()
        self.fill()
        return self

    def fill(self) -> None:
        """Write a record in the transaction that is open."""
        self.record()
        if self.core.version is V1:
            self.asked(do.AddPartitions)
            self.answer()
        assert self.batches.flying
        self.written()

    # -- looking back --------------------------------------------------------------------------

    def all(self, kind: type[_Kind]) -> list[_Kind]:
        """The commands of a kind, of all times."""
        return [each for each in self.commands if isinstance(each, kind)]

    def is_in(self, state: State) -> bool:
        """Whether this is the state. mypy takes a property for fixed."""
        return self.core.state is state

    def is_waiting(self, ticket: int) -> bool:
        """Whether nothing was told yet."""
        return ticket not in self.outcomes

    def is_done(self, ticket: int) -> bool:
        """Whether it succeeded."""
        return ticket in self.outcomes and self.outcomes[ticket] is None

    def error(self, ticket: int) -> Kip848Error:
        """Why it failed."""
        error = self.outcomes[ticket]
        assert error is not None
        return error
