"""Drives one ``ProcessorCore``: the simulated consumer and producer do what it asks for, nothing is
decided."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import Final

from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.processor.core import (
    Abort,
    Begin,
    Command,
    Commit,
    Cut,
    Drop,
    Ended,
    Event,
    Lost,
    Notice,
    Poll,
    Polled,
    PollFailed,
    Portion,
    Process,
    ProcessorCore,
    ProcessorSettings,
    Release,
    Revoked,
    Rewind,
    RunRequested,
    SendDeadLetters,
    SendOffsets,
    State,
    TimerFired,
    WaitEnded,
)
from mock_coordinator.sim.exactly_once.calls import Calls
from mock_coordinator.sim.exactly_once.consuming import Consuming
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.transacting import Transacting
from mock_coordinator.sim.producing.shown import shown
from mock_coordinator.sim.producing.side import ProducerSide
from mock_coordinator.sim.stepping import Stepping

__all__ = ["Driver"]


class Driver:
    """Of one process. ``ended`` is called when ``run`` returns or raises."""

    def __init__(
        self,
        context: ProcessContext,
        name: str,
        rng: Random,
        *,
        enter: Callable[[Callable[[], None]], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        self._context = context
        self._name = name
        self._rng = rng
        self._enter = enter
        self._ended = ended
        options = context.options
        settings = ProcessorSettings(
            max_records=options.max_records,
            commit_interval_ms=options.commit_interval_ms,
            dead_letters=options.dead_letters,
            revocation_patience_ms=options.revocation_patience_ms,
            poll_wait_ms=options.poll_wait_ms,
        )
        self.core: Final = ProcessorCore(settings, self._jitter)
        self._stepping: Stepping[Event] = Stepping(
            context.kernel,
            self._step,
            lambda: self.core.deadline_ms,
            lambda: self.feed(TimerFired()),
            enter,
        )
        self._consumer: Consuming | None = None
        self._transacting: Transacting | None = None
        self._calls: Calls | None = None

    def _jitter(self, pause_ms: int) -> int:
        return self._rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    # -- life --------------------------------------------------------------------------------

    def attach(self, consumer: Consuming, producer: ProducerSide) -> None:
        """These do what is asked for."""
        self._consumer = consumer
        self._transacting = Transacting(
            self._context, consumer, producer, after=self._after, feed=self.feed
        )

    def run(self) -> None:
        """Both are started."""
        self.feed(RunRequested())

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        self._stepping.post(event)

    def close(self) -> None:
        """The process is gone."""
        self._stepping.stop()

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._context.kernel.after(delay_ms, lambda: self._enter(action))

    @property
    def transacting(self) -> Transacting:
        """What goes to the producer."""
        assert self._transacting is not None, "attached before it runs"
        return self._transacting

    @property
    def _consuming(self) -> Consuming:
        assert self._consumer is not None, "attached before it runs"
        return self._consumer

    # -- what the consumer says --------------------------------------------------------------

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """See ``Listener``. The core does not hear of it: records tell."""
        if self.transacting.work is not None:
            self.transacting.work.gains(partitions)

    def revoked(self, ticket: int, partitions: Collection[TopicPartition]) -> None:
        """See ``Listener``."""
        if self.transacting.touches(partitions):
            self._context.probes.reached("revoked while open")
        self.feed(Revoked(ticket, partitions))

    def wait_ended(self, ticket: int) -> None:
        """See ``Listener``."""
        self.feed(WaitEnded(ticket))

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """See ``Listener``."""
        if self.transacting.touches(partitions):
            self._context.probes.reached("lost while open")
        if self.transacting.work is not None:
            self.transacting.work.loses(partitions)
        self.feed(Lost(partitions))

    # -- the core ----------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        self._context.tell(self._name, "event", shown(event))
        for command in self.core.step(self._context.kernel.now_ms, event):
            self._context.tell(self._name, "command", shown(command))
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case Poll():
                self._poll(command)
            case Drop():
                self._consuming.drop(command.partitions)
            case Rewind():
                self._rewind(command)
            case Release():
                self._release(command)
            case Process() | SendDeadLetters():
                self._process(command)
            case Cut():
                if self._calls is not None:
                    self._calls.cut(command)
            case Begin() | SendOffsets() | Commit() | Abort():
                self.transacting.perform(command)
            case Ended():
                self._after(0, lambda: self._ended(command.error))
            case Notice():
                pass  # it is in the trace
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _poll(self, command: Poll) -> None:
        number = command.number

        def handed(told: tuple[Portion, ...] | Kip848Error) -> None:
            if isinstance(told, Kip848Error):
                self.feed(PollFailed(number, told))
            else:
                self.feed(Polled(number, told))

        consumer = self._consuming
        self._after(0, lambda: consumer.poll(command.max_records, command.wait_ms, handed))

    def _rewind(self, command: Rewind) -> None:
        if self.transacting.work is not None:
            self.transacting.work.rewinds(command.offsets)
        self._consuming.rewind(command.offsets)

    def _release(self, command: Release) -> None:
        given_up = self._consuming.release(command.ticket)
        work = self.transacting.work
        if work is not None and self.core.state is not State.ENDED:
            work.releases(given_up)

    def _process(self, command: Process | SendDeadLetters) -> None:
        records = self._consuming.in_hand(command.partition, command.first, command.until)
        assert records, f"nothing is in hand for {command}"
        self._calls = Calls(
            self._context,
            command,
            records,
            self.transacting,
            after=self._after,
            feed=self._answer,
        )
        self._after(0, self._calls.begin)

    def _answer(self, event: Event) -> None:
        calls, self._calls = self._calls, None
        if calls is not None and self.transacting.work is not None and calls.has_some:
            self.transacting.work.touched.add(calls.command.partition)
        self.feed(event)
