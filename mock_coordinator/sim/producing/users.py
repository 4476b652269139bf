"""What users of producers do: one without transactions, and one who does what a careful user does
with each error that a transaction can come to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Final, Protocol

from kip848_client.core.produce import (
    AbortRequested,
    BeginRequested,
    CloseRequested,
    CommitRequested,
    Event,
    FlushRequested,
    Group,
    OffsetsAdded,
    OffsetToCommit,
    StartRequested,
    TopicWanted,
    WaitEnded,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    CommitInDoubt,
    Kip848Error,
    LocalProtocolError,
    ProducerFailed,
    ProducerFenced,
    RecordTooLarge,
    TransactionAborted,
    TransactionTimedOut,
)
from mock_coordinator.sim.producing.context import ProduceContext
from mock_coordinator.sim.producing.facts import Told, Transaction
from mock_coordinator.sim.producing.process import ROOM, Life, Process

__all__ = ["PlainUser", "ProcessFaults", "TransactionalUser"]

_Answer = Generator[int, "Kip848Error | None", bool]
_GOOD_MIN: Final = 2
"""How many commits must succeed when nothing goes wrong any more."""
_WAIT_MS: Final = 3_000


class ProcessFaults(Protocol):
    """What happens to a process between two acts of its user."""

    def may_strike(self, process: Process) -> None:
        """It may die, sleep, or get a rival."""
        ...


class _User:
    def __init__(
        self, context: ProduceContext, process: Process, rng: Random, faults: ProcessFaults
    ) -> None:
        self.context = context
        self.process = process
        self.rng = rng
        self._faults = faults
        self._values = 0
        self.error: Kip848Error | None = None
        """What its producer has failed with."""

    def _deadline(self, within_ms: int) -> int:
        return self.context.kernel.now_ms + within_ms

    def _ask(self, make: Callable[[int, int], Event], within_ms: int) -> int:
        """Post what this makes of a ticket and a deadline; returns the ticket."""
        deadline_ms = self._deadline(within_ms)
        return self.process.ask(lambda ticket: make(ticket, deadline_ms), deadline_ms)

    def _pause(self) -> int:
        self._faults.may_strike(self.process)
        longest = 1 if self.context.healed else self.context.options.poll_pause_ms
        return -self.rng.randint(1, longest + 1)

    def _topic(self) -> str:
        return f"t{self.rng.randrange(self.context.options.topics)}"

    def _wanted(self, topic: str) -> Life:
        """Until it is known how many partitions it has."""
        while topic not in self.process.core.routes:
            yield self._ask(lambda t, by: TopicWanted(t, topic, by), _WAIT_MS)
            yield -1

    def _value(self, number: int) -> bytes:
        self._values += 1
        value = f"{self.process.name}/{number}.{self._values}".encode()
        bad = self.context.options.bad
        if self.context.happens("bad", bad) and not self.context.healed:
            self.context.probes.reached("a record too large")
            return value.ljust(self.context.options.message_bytes, b".")
        return value

    def _append(self, topic: str, transaction: Transaction | None, number: int) -> Life:
        """One record, somewhere. Raises what the core raises."""
        core = self.process.core
        key = None if self.rng.random() < 0.5 else bytes([self.rng.randrange(256)])
        value = self._value(number)
        while True:
            route = core.routes[topic]
            if self.process.append(route, key, value, transaction):
                return
            self.context.probes.reached("no room")
            yield ROOM

    def close(self) -> Life:
        """In good order."""
        self.context.probes.reached("a close")
        yield self._ask(CloseRequested, self.rng.choice((100, 30_000)))
        self.process.die()

    def _turn_down(self, transaction: Transaction | None) -> None:
        """A record is too large for a request. The user goes on as if nothing had been."""
        self.context.probes.reached("turned down")
        self.process.side.turn_down(RecordTooLarge("a record of too many bytes"), transaction)


class PlainUser(_User):
    """Without transactions."""

    def life(self) -> Life:
        """Until the world is healed, and a little longer."""
        process, options, context = self.process, self.context.options, self.context
        yield self._ask(StartRequested, _WAIT_MS)
        while not context.healed:
            topic = self._topic()
            yield from self._wanted(topic)
            for _ in range(self.rng.randint(1, options.records_max)):
                yield from self._append(topic, None, 0)
            if context.happens("turned down", options.turned_down):
                self._turn_down(None)
            if self.rng.random() < 0.1:
                ticket = process.ask(FlushRequested)
                if self.rng.random() < 0.2:
                    process.forget(ticket, WaitEnded(ticket))
                else:
                    yield ticket
            yield self._pause()
        yield process.ask(FlushRequested)
        # what was in the way before may leave the first ones in doubt, which the next ones are not
        for count in (1, 5):
            records = len(context.facts.records)
            for number in range(options.topics):
                yield from self._wanted(f"t{number}")
                for _ in range(count):
                    yield from self._append(f"t{number}", None, 1)
            yield process.ask(FlushRequested)
        newest = list(context.facts.records.values())[records:]
        for record in newest:
            if record.owner == process.name and record.told is not Told.DONE:
                raise AssertionError(f"{record} failed, and nothing was in the way")
        yield from self.close()


class TransactionalUser(_User):
    """With transactions, one after the other."""

    def __init__(
        self,
        context: ProduceContext,
        process: Process,
        rng: Random,
        faults: ProcessFaults,
        transactional_id: str,
    ) -> None:
        super().__init__(context, process, rng, faults)
        self._id = transactional_id
        self._number = 0
        self.good = 0
        """Commits that succeeded since the world was healed."""

    def life(self) -> Life:
        """Until the producer fails, or the world is healed and enough was committed."""
        context, process = self.context, self.process
        self._learn()
        try:
            while self.good < _GOOD_MIN:
                if context.happens("level", 0.1):
                    self._learn()
                began = yield from self._begin()
                if not began:
                    continue
                healed = context.healed
                committed = yield from self._transaction()
                self.good += committed and healed
                yield self._pause()
        except ProducerFailed as error:
            self.error = error
            is_fenced = isinstance(error, ProducerFenced)
            context.probes.reached("a producer fenced" if is_fenced else "a producer failed")
            context.tell(process.name, "failed", str(error))
        yield from self.close()

    def _learn(self) -> None:
        level = self.context.options.level
        level = self.rng.randint(1, 2) if level > 2 else level
        self.context.probes.reached(f"transactions V{level}")
        self.process.side.learn(level)

    def _begin(self) -> _Answer:
        error = yield self._ask(BeginRequested, _WAIT_MS)
        if isinstance(error, ProducerFailed):
            raise error
        if error is not None:
            yield -1
        return error is None

    def _transaction(self) -> _Answer:
        """Returns whether it is committed."""
        self._number += 1
        transaction = Transaction(self.process.name, self._id, self._number)
        self.context.facts.transactions.append(transaction)
        self.context.tell(self.process.name, "begin", str(transaction))
        try:
            yield from self._work(transaction)
            if not self.context.happens("abort", self.context.options.abort):
                yield from self._commit(transaction)
                return True
        except TransactionAborted as error:
            self._note(transaction, Told.FAILED, "a commit refused")
            if isinstance(error, TransactionTimedOut):
                self.context.probes.reached("a transaction timed out")
        except ProducerFailed:
            if transaction.told is not Told.IN_DOUBT:
                self._note(transaction, Told.FAILED, "a commit refused")
            raise
        yield from self._abort(transaction)
        return False

    def _note(self, transaction: Transaction, told: Told, probe: str) -> None:
        self.context.probes.reached(probe)
        self.context.tell(self.process.name, "told", f"{transaction} {told.name}")
        self.context.writing.told(transaction, told)

    def _work(self, transaction: Transaction) -> Life:
        options = self.context.options
        for _ in range(self.rng.choice((0, 1, 1, 2, 4))):
            topic = self._topic()
            yield from self._wanted(topic)
            for _ in range(self.rng.randint(1, options.records_max)):
                yield from self._append(topic, transaction, transaction.number)
            yield self._pause()
        if self.context.happens("turned down", options.turned_down):
            self._turn_down(transaction)
        if self.rng.random() < options.offsets:
            yield from self._send_offsets(transaction)
            twice = 0.0 if options.duplicate else options.twice
            if self.context.happens("offsets twice", twice):
                self.context.probes.reached("offsets twice")
                yield from self._send_offsets(transaction)

    def _send_offsets(self, transaction: Transaction) -> Life:
        context, facts = self.context, self.context.facts
        name = f"g-{self._id}"
        group = Group(name, -1, "", None)
        if context.happens("stranger", context.options.stranger):
            group = Group(name, 5, "nobody", None)
        yield from self._wanted("t0")
        count = len(self.process.core.routes["t0"].partitions)
        offset = 1_000 + len(facts.by_offset)
        facts.by_offset[offset] = transaction
        transaction.group = name
        chosen = self.rng.sample(range(count), self.rng.randint(1, count))
        newest = {TopicPartition("t0", each): offset for each in chosen}
        transaction.offsets |= newest
        transaction.offsets_told = Told.NOTHING
        topic_id = self.process.side.topic_ids.get("t0")
        offsets = {tp: OffsetToCommit(offset, -1, "", topic_id) for tp in newest}
        options = context.options
        limit_ms = options.delivery_timeout_ms + options.request_timeout_ms + 100

        def make(ticket: int, _: int) -> Event:
            self.process.side.promise(ticket, transaction)
            return OffsetsAdded(ticket, group, offsets)

        ticket = self._ask(make, limit_ms)
        if self.rng.random() < 0.3:
            return  # the commit will tell
        error = yield ticket
        if error is not None:
            context.probes.reached("offsets refused")
            raise error

    def _commit(self, transaction: Transaction) -> Life:
        """Raises the error that it gets."""
        context, process = self.context, self.process
        transaction.is_commit_asked = True
        transaction.told = Told.IN_DOUBT
        for attempt in range(30):
            within_ms = self.rng.choice((50, 1_000, 5_000)) if not context.healed else 20_000
            ticket = self._ask(CommitRequested, within_ms)
            if context.happens("hasty", context.options.hasty):
                yield self._pause()
                if not process.is_told(ticket):
                    context.probes.reached("a commit asked again")
                    process.forget(ticket, WaitEnded(ticket))
                    continue
            error = yield ticket
            if error is None:
                if attempt:
                    context.probes.reached("a doubt settled")
                self._note(transaction, Told.DONE, "a commit")
                return
            if isinstance(error, ProducerFailed) and error.maybe_committed:
                raise error
            if not isinstance(error, CommitInDoubt):
                transaction.told = Told.NOTHING
                raise error
            context.probes.reached("a commit in doubt")
            if isinstance(error.cause, ProducerFailed):
                context.probes.reached("a doubt never settled")
                raise error.cause
            yield self._pause()
        raise AssertionError("the doubt never ends")

    def _abort(self, transaction: Transaction) -> Life:
        while True:
            error = yield self._ask(AbortRequested, self.rng.choice((200, 3_000)))
            if error is None:
                self._note(transaction, Told.FAILED, "an abort")
                return
            if isinstance(error, ProducerFailed):
                raise error
            assert not isinstance(error, LocalProtocolError), error
            yield -1
