"""The producer of a processor: what is asked of its core, and what was begun, sent, committed and
aborted, for those who watch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence

from kip848_client.core.produce import (
    AbortRequested,
    BeginRequested,
    CommitRequested,
    EndTransaction,
    OffsetsAdded,
    TopicWanted,
    WaitEnded,
)
from kip848_client.core.produce import Command as ProducerCommand
from kip848_client.core.produce import Event as ProducerEvent
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    CommitFailed,
    CommitInDoubt,
    DeliveryTimedOut,
    Kip848Error,
    ProducerFailed,
)
from kip848_client.processor.core import Abort, Begin, Commit, Done, Event, Failed, SendOffsets
from mock_coordinator.sim.exactly_once.calls import Sent
from mock_coordinator.sim.exactly_once.checks import Work
from mock_coordinator.sim.exactly_once.consuming import Consuming
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.values import signed
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.producing.facts import Told, Transaction
from mock_coordinator.sim.producing.side import ProducerSide

__all__ = ["Transacting"]

_Heard = Callable[["Kip848Error | None"], None]


class Transacting:
    """Of one process. ``after`` waits, ``feed`` gives the processor's core its answers."""

    def __init__(
        self,
        context: ProcessContext,
        consumer: Consuming,
        producer: ProducerSide,
        *,
        after: Callable[[int, Callable[[], None]], None],
        feed: Callable[[Event], None],
    ) -> None:
        self._context = context
        self._consumer = consumer
        self._producer = producer
        self._name = producer.name
        self._transactional_id = producer.settings.transactional_id or ""
        self._after = after
        self._feed = feed
        self._tickets: dict[int, _Heard] = {}
        self._asking: int | None = None
        """The ticket of the command that is under way."""
        self._hungry: list[tuple[Callable[[], None], Timer]] = []
        self._numbers = itertools.count(1)
        self._signatures = itertools.count(1)
        self.work: Work | None = None
        """The newest transaction."""

    def touches(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether an open transaction has records of one of these."""
        work = self.work
        return work is not None and work.is_open and not work.touched.isdisjoint(partitions)

    # -- what the producer's core says -------------------------------------------------------

    def told(self, ticket: int, error: Kip848Error | None) -> None:
        """How it ended."""
        heard = self._tickets.pop(ticket, None)
        if heard is None:
            return
        if ticket == self._asking:
            self._asking = None
        self._after(0, lambda: heard(error))

    def room(self) -> None:
        """There is room for records."""
        hungry, self._hungry = self._hungry, []
        for go_on, timer in hungry:
            timer.cancel()
            self._after(0, go_on)

    def saw(self, command: ProducerCommand) -> None:
        """It asks for something."""
        if isinstance(command, EndTransaction) and self.work is not None:
            self.work.ends(commit=command.commit)

    # -- commands ----------------------------------------------------------------------------

    def perform(self, command: Begin | SendOffsets | Commit | Abort) -> None:
        """One of them is under way; an abort takes its place."""
        if isinstance(command, Begin):
            self._command(command.number, BeginRequested, self._begun)
            return
        work = self.work
        assert work is not None, "a transaction was begun"
        match command:
            case SendOffsets():
                self._send_offsets(command, work)
            case Commit():
                self._commit(command, work)
            case Abort():
                self._abort(command, work)

    def _ask(
        self, make: Callable[[int, int], ProducerEvent], heard: _Heard, within_ms: int | None = None
    ) -> int:
        limit_ms = self._context.options.max_block_ms if within_ms is None else within_ms
        deadline_ms = self._context.kernel.now_ms + limit_ms

        def made(ticket: int) -> ProducerEvent:
            self._tickets[ticket] = heard
            return make(ticket, deadline_ms)

        return self._producer.ask(made, deadline_ms)

    def _command(
        self,
        number: int,
        make: Callable[[int, int], ProducerEvent],
        heard: _Heard,
        within_ms: int | None = None,
    ) -> None:
        def done(error: Kip848Error | None) -> None:
            heard(error)
            self._feed(Done(number) if error is None else Failed(number, error))

        ticket = self._ask(make, done, within_ms)
        if ticket in self._tickets:
            self._asking = ticket

    def _begun(self, error: Kip848Error | None) -> None:
        if error is None:
            transaction = Transaction(self._name, self._transactional_id, next(self._numbers))
            self._context.facts.transactions.append(transaction)
            self._context.checks.works[str(transaction)] = transaction
            self.work = Work(transaction)

    def _send_offsets(self, command: SendOffsets, work: Work) -> None:
        work.touched |= command.offsets.keys()
        work.goes_on("offers offsets")
        transaction = work.transaction
        try:
            group, offsets = self._consumer.offer(command.offsets, str(transaction))
        except CommitFailed as err:
            failed = Failed(command.number, err)
            self._producer.turn_down(err, transaction)
            self._after(0, lambda: self._feed(failed))
            return
        transaction.group = group.group_id
        transaction.offsets = dict(command.offsets)

        def make(ticket: int, _: int) -> ProducerEvent:
            self._producer.promise(ticket, transaction)
            return OffsetsAdded(ticket, group, offsets)

        options = self._context.options
        limit_ms = options.delivery_timeout_ms + options.request_timeout_ms + 100
        self._command(command.number, make, lambda _: None, limit_ms)

    def _commit(self, command: Commit, work: Work) -> None:
        transaction = work.transaction
        if not transaction.is_commit_asked:
            work.goes_on("is to be committed")
        transaction.is_commit_asked = True
        transaction.told = Told.IN_DOUBT

        def heard(error: Kip848Error | None) -> None:
            if error is None:
                self._context.probes.reached("processed")
                self._note(transaction, Told.DONE)
            elif isinstance(error, CommitInDoubt) or (
                isinstance(error, ProducerFailed) and error.maybe_committed
            ):
                self._context.probes.reached("a doubt")
            else:
                self._note(transaction, Told.FAILED)

        self._command(command.number, CommitRequested, heard)

    def _abort(self, command: Abort, work: Work) -> None:
        ticket, self._asking = self._asking, None
        if ticket is not None:  # the answers to all other requests are no longer needed
            del self._tickets[ticket]
            self._producer.forget(ticket, WaitEnded(ticket))

        def heard(error: Kip848Error | None) -> None:
            if error is None:
                self._context.probes.reached("records in vain")
                self._note(work.transaction, Told.FAILED)

        self._command(command.number, AbortRequested, heard)

    def _note(self, transaction: Transaction, told: Told) -> None:
        self._context.tell(self._name, "told", f"{transaction} {told.name}")
        self._context.writing.told(transaction, told)

    # -- records -----------------------------------------------------------------------------

    def send(self, topic: str, source: TopicPartition, values: Sequence[bytes], sent: Sent) -> None:
        """Send these with the transaction that is open, one after the other."""
        if self.work is not None:
            self.work.touched.add(source)
        self._send_each(topic, list(values), sent)

    def _send_each(self, topic: str, values: list[bytes], sent: Sent) -> None:
        core = self._producer.core
        while values:
            route = core.routes.get(topic)
            if route is None:
                self._learn(topic, values, sent)
                return
            name = f"{self._name}.{next(self._signatures)}"
            transaction = None if self.work is None else self.work.transaction
            try:
                if not self._producer.append(route, None, signed(values[0], name), transaction):
                    self._starve(topic, values, sent)
                    return
            except Kip848Error as error:
                sent(error)
                return
            del values[0]
        sent(None)

    def _learn(self, topic: str, values: list[bytes], sent: Sent) -> None:
        def heard(error: Kip848Error | None) -> None:
            if error is not None:
                sent(error)
            else:
                self._send_each(topic, values, sent)

        self._ask(lambda ticket, by: TopicWanted(ticket, topic, by), heard)

    def _starve(self, topic: str, values: list[bytes], sent: Sent) -> None:
        """There is no room."""

        def go_on() -> None:
            self._send_each(topic, values, sent)

        def give_up() -> None:
            self._hungry = [each for each in self._hungry if each[0] is not go_on]
            sent(DeliveryTimedOut("there was no room for another record", maybe_written=False))

        kernel = self._context.kernel
        limit_ms = self._context.options.max_block_ms
        timer = kernel.after(limit_ms, lambda: self._after(0, give_up))
        self._hungry.append((go_on, timer))
