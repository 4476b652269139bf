"""The core of a processor: records in, outputs and offsets out, in one transaction after another.

Theory of operation
-------------------
A transaction begins when records have been fetched. It is closed when it has ``max_records`` of
them, ``commit_interval_ms`` after the first, or when a partition is to be given up or the processor
stopped. Closing means: let the function finish its current record, send the offsets after the
complete records, commit. Other fetched records are left for the next transaction.

An error aborts the transaction, and its records are read again: the consumer seeks back to the
first record that no commit has covered. This is the same for all broker errors about an unknown
member or transaction; the consumer finds out whether it is still a member and what it is assigned.
A commit that was sent is different: only its answer shows what to read next, so it is requested
until the answer arrives.

The rules of the group: a revoked partition is given up when no open transaction has records of it,
so that its next owner begins after them. For a lost partition no other member waits: a transaction
with its records is aborted, unless the commit was sent. In that case, and after this processor has
ended, the broker keeps the next owner waiting until the transaction is settled.

If records are left over from the last transaction, the consumer is polled once before the next one
begins. The poll shows that the application is alive, and lets the consumer give up partitions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.outside import from_outside
from kip848_client.core.partition_names import listed
from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    CallbackError,
    CommitInDoubt,
    Kip848Error,
    LocalProtocolError,
    NotAssigned,
    RecordUnreadable,
    TransportError,
)
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._error_rules import (
    Reaction,
    is_of_the_record,
    is_one_record,
    overran,
    reaction,
)
from kip848_client.processor.core._model import Portion, ProcessorSettings, State
from kip848_client.processor.core._overruns import Overruns
from kip848_client.processor.core._progress import Progress
from kip848_client.processor.core._unsendable import Unsendable

__all__ = ["ProcessorCore"]


@dataclass(slots=True)
class _Work:
    """Records that the function is processing, or that are being sent as dead letters."""

    number: int
    portion: Portion
    is_cut: bool = False
    is_discarded: bool = False
    """Its transaction is over; its answer is ignored."""
    is_given_up: bool = False
    """The group has revoked the partition: the rest of the records must not be processed here."""


@dataclass(slots=True)
class _Revocation:
    partitions: frozenset[TopicPartition]
    deadline_ms: int


class ProcessorCore:
    """Decides when transactions begin and end. ``jitter`` varies pauses."""

    def __init__(self, settings: ProcessorSettings, jitter: Jitter) -> None:
        self._settings = settings
        self._jitter = from_outside(jitter)
        self._now = 0
        self._out: list[do.Command] = []
        self._state = State.IDLE
        self._is_running = False
        self._numbers = 0
        self._stale = 0
        self._progress = Progress()
        self._unsendable = Unsendable()
        self._overruns = Overruns()
        # -- in progress
        self._reading: int | None = None
        self._work: _Work | None = None
        self._asking: int | None = None
        # -- state of the transaction
        self._in_it = 0
        """The number of complete records."""
        self._close_at_ms: int | None = None
        self._harm: Exception | None = None
        """Why it must be aborted."""
        # -- between transactions
        self._has_polled = False
        """The consumer was polled since the last transaction."""
        self._again_at_ms = 0
        """Nothing that has failed is retried before this time."""
        self._failures = 0
        """Failures in a row."""
        self._revocations: dict[int, _Revocation] = {}
        self._stop_by_ms: int | None = None
        self._error: Exception | None = None
        """The error for ``run`` to raise, once no transaction is open."""
        self._read_error: Exception | None = None
        """The consumer's error. It becomes the error once no record fetched before it is left."""

    # -- queries -----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the transaction."""
        return self._state

    @property
    def stale(self) -> int:
        """How many answers were no longer expected."""
        return self._stale

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if no other event comes first; ``None`` for never."""
        if self._state is State.ENDED or not self._is_running:
            return None
        times = [self._again_at_ms, *(each.deadline_ms for each in self._revocations.values())]
        times += [each for each in (self._close_at_ms, self._stop_by_ms) if each is not None]
        # a time that has passed waits for an answer, not for the timer
        return min((each for each in times if each > self._now), default=None)

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: ev.Event) -> tuple[do.Command, ...]:
        """Apply one event and return the commands, in order. Raises ``LocalProtocolError``, with
        nothing changed, for a second ``RunRequested``."""
        if isinstance(event, ev.RunRequested) and self._is_running:
            raise LocalProtocolError("a processor can be run once; make a new one")
        self._now = max(self._now, now_ms)
        self._out = []
        self._take(event)
        self._move()
        return tuple(self._out)

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.RunRequested():
                self._is_running = True
            case ev.StopRequested():
                times = (event.deadline_ms, self._stop_by_ms)
                self._stop_by_ms = min(each for each in times if each is not None)
            case ev.Revoked():
                self._on_revoked(event.ticket, frozenset(event.partitions))
            case ev.Lost():
                self._on_lost(frozenset(event.partitions))
            case ev.WaitEnded():
                self._revocations.pop(event.ticket, None)
            case ev.Polled() | ev.PollFailed():
                self._on_read(event)
            case ev.Processed() | ev.FunctionFailed() | ev.OutputRefused():
                self._on_worked(event)
            case ev.Done() | ev.Failed():
                self._on_answer(event)
            case ev.TimerFired():
                pass
            case _:
                raise LocalProtocolError(f"not an event of a processor: {event!r}")

    # -- group events ------------------------------------------------------------------------

    def _on_revoked(self, ticket: int, partitions: frozenset[TopicPartition]) -> None:
        patience_ms = self._settings.revocation_patience_ms
        self._revocations[ticket] = _Revocation(partitions, self._now + patience_ms)
        self._give_back(self._progress.drop(partitions))
        if self._work is not None and self._work.portion.partition in partitions:
            self._work.is_given_up = True

    def _give_back(self, offsets: dict[TopicPartition, int]) -> None:
        """Return unprocessed records to the consumer, because a revoked partition may stay after
        all."""
        if offsets:
            self._out.append(do.Rewind(offsets))

    def _on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        work = self._work
        is_in_work = work is not None and work.portion.partition in partitions
        if self._state in (State.OPEN, State.SENDING_OFFSETS) and (
            is_in_work or self._progress.touches(partitions)
        ):
            gone = listed(sorted(partitions))
            why = (
                "the function took longer than max_poll_interval_ms, the event loop was blocked "
                "for longer than the group's session timeout, or an administrator did it"
            )
            self._harmed(NotAssigned(f"the group has taken {gone} during the transaction: {why}"))
        self._forget(partitions)
        self._out.append(do.Drop(partitions))
        if is_in_work:
            self._discard_work()

    def _discard_work(self) -> None:
        work = self._work
        if work is not None and not work.is_discarded:
            work.is_discarded = work.is_cut = True
            self._out.append(do.Cut(work.number, discard=True))

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        self._progress.forget(partitions)
        self._unsendable.forget(partitions)
        self._overruns.forget(partitions)

    def _release_all(self) -> None:
        revocations, self._revocations = self._revocations, {}
        for ticket, each in revocations.items():
            self._forget(each.partitions)
            self._out.append(do.Release(ticket))

    # -- answers -----------------------------------------------------------------------------

    def _on_read(self, event: ev.Polled | ev.PollFailed) -> None:
        if event.number != self._reading:
            self._stale += 1
            return
        self._reading = None
        self._has_polled = True
        if isinstance(event, ev.Polled):
            self._progress.polled(event.portions)
        elif isinstance(event.error, CallbackError):
            # our own listener waited too long, and is called again
            self._notice(f"a rebalance waits for the end of a transaction: {event.error}")
        elif self._settings.dead_letters and is_one_record(event.error):
            self._take_unreadable(event.error)
        else:
            self._read_error = event.error

    def _take_unreadable(self, error: RecordUnreadable) -> None:
        """The unreadable record becomes a dead letter once those before it are processed."""
        tp = TopicPartition(error.topic, error.partition)
        portion = Portion(tp, error.offset, error.offset + 1, 1)
        self._out.append(do.TakeUnreadable(error))
        self._progress.polled((portion,))
        if self._unsendable.of(portion) is None:  # an aborted transaction may have added it
            self._unsendable.add(tp, portion.first, portion.until, error)
            self._notice(f"a record becomes a dead letter: {error}")

    def _on_worked(
        self, event: ev.Processed | ev.FunctionFailed | ev.OutputRefused | ev.Failed
    ) -> None:
        work = self._work
        if work is None or event.number != work.number:
            self._stale += 1
            return
        self._work = None
        if work.is_discarded:
            return
        match event:
            case ev.Processed():
                self._is_whole(work, event.until, event.records)
            case ev.FunctionFailed():
                self._function_failed(work, event)
            case ev.OutputRefused():
                self._output_refused(work.portion.partition, event)
            case ev.Failed():
                self._overruns.tried(work.portion.partition, work.portion.until)
                self._send_failed(event.error)

    def _is_whole(self, work: _Work, until: int, records: int) -> None:
        tp, first, end, in_all = work.portion
        if until > first:
            self._progress.processed(tp, until)
            self._in_it += records
        if until >= end:
            return
        if work.is_given_up:
            self._give_back({tp: until})
        else:
            self._progress.put_back(Portion(tp, until, end, in_all - records))

    def _function_failed(self, work: _Work, event: ev.FunctionFailed) -> None:
        tp, first, end, in_all = work.portion
        if not self._settings.dead_letters or not is_of_the_record(event.error):
            self._error = self._error or event.error
            self._harmed(event.error)
            return
        if event.first > first:
            self._progress.processed(tp, event.first)
            self._in_it += event.records
        self._notice(
            f"the function failed for {listed([tp])} at offset {event.first}, which becomes a dead "
            f"letter: {_said(event.error)}"
        )
        rest = Portion(tp, event.first, end, in_all - event.records)
        letters = self._begin_work(rest)
        letters.is_given_up = work.is_given_up
        self._out.append(
            do.SendDeadLetters(letters.number, tp, event.first, event.until, event.error)
        )

    def _output_refused(self, tp: TopicPartition, event: ev.OutputRefused) -> None:
        self._overruns.tried(tp, event.until)
        if self._settings.dead_letters and reaction(event.error) is Reaction.POISON:
            self._unsendable.add(tp, event.first, event.until, event.error)
            self._harmed(event.error)
        else:
            self._send_failed(event.error)

    def _send_failed(self, error: Exception) -> None:
        """An output or the offsets of the transaction could not be sent."""
        found = reaction(error)
        if found is Reaction.OVER:
            self._end(error)
            return
        if found is not Reaction.AGAIN:
            self._error = self._error or error
        self._harmed(error)

    def _harmed(self, error: Exception) -> None:
        self._harm = self._harm or error

    def _on_answer(self, event: ev.Done | ev.Failed) -> None:
        if self._asking is None or event.number != self._asking:
            if isinstance(event, ev.Failed):
                self._on_worked(event)
            else:
                self._stale += 1
            return
        self._asking = None
        failed = event.error if isinstance(event, ev.Failed) else None
        match self._state:
            case State.BEGINNING:
                self._begun(failed)
            case State.SENDING_OFFSETS:
                if failed is not None:
                    self._send_failed(failed)
                else:
                    self._state = State.COMMITTING
            case State.COMMITTING:
                self._committed(failed)
            case State.ABORTING:
                self._aborted(failed)
            case _:
                raise AssertionError(f"nothing is asked for in {self._state}")

    def _begun(self, failed: Exception | None) -> None:
        if failed is None:
            self._state = State.OPEN
            self._overruns.begun()
            self._in_it, self._close_at_ms, self._harm = 0, None, None
            return
        self._state = State.IDLE
        if reaction(failed) is Reaction.AGAIN:
            self._later(f"no transaction can be begun: {_said(failed)}")
        else:
            self._error = self._error or failed

    def _committed(self, failed: Exception | None) -> None:
        if failed is None:
            self._unsendable.committed(self._progress.offsets)
            self._overruns.committed(self._progress.offsets)
            self._progress.committed()
            self._failures = 0
            self._over()
            return
        found = reaction(failed)
        if found is Reaction.DOUBT or isinstance(failed, TransportError):
            self._ask_again(f"{_said(failed)} (it is asked again)")
        else:
            self._send_failed(failed)

    def _aborted(self, failed: Exception | None) -> None:
        if failed is None:
            self._give_back(self._progress.rewind())
            self._over()
        elif reaction(failed) in (Reaction.AGAIN, Reaction.DOUBT):
            self._ask_again(f"the transaction is still being aborted: {_said(failed)}")
        else:
            self._end(failed)

    def _over(self) -> None:
        self._state = State.IDLE
        self._harm = self._close_at_ms = None
        self._has_polled = False

    def _later(self, why: str) -> None:
        """Retry after a pause."""
        settings = self._settings
        first_ms, max_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        self._again_at_ms = self._now + backoff_ms(self._failures, first_ms, max_ms, self._jitter)
        self._failures += 1
        self._notice(why)

    def _ask_again(self, why: str) -> None:
        """Ask soon about an operation that is still in progress; the answer itself takes time."""
        self._again_at_ms = self._now + self._settings.retry_backoff_ms
        self._notice(why)

    # -- actions: one after the other until nothing is left to do now ----------------------------

    @property
    def _is_closing(self) -> bool:
        """Whether the transaction should take no more records."""
        if self._stop_by_ms is not None or self._error is not None or self._revocations:
            return True
        if self._work is None and not self._progress.has_done:
            return False
        is_late = self._close_at_ms is not None and self._now >= self._close_at_ms
        is_full = self._overruns.is_alone or self._in_it >= self._settings.max_records
        return is_late or is_full or (self._work is None and self._is_next_alone)

    @property
    def _is_next_alone(self) -> bool:
        """Whether the next records must have a transaction of their own."""
        portion = self._progress.next
        return portion is not None and self._overruns.has(portion)

    @property
    def _is_overdue(self) -> bool:
        """Whether a revocation has waited long enough for the end of the transaction."""
        return any(self._now >= each.deadline_ms for each in self._revocations.values())

    def _move(self) -> None:
        """Do everything that is due now."""
        if self._work is None and not self._progress.records:
            self._error = self._error or self._read_error
        state = self._state
        if not self._is_running or state in (State.BEGINNING, State.IDLE, State.ENDED):
            self._release_all()  # no open transaction has their records
        if not self._is_running or state is State.ENDED:
            return
        if self._stop_by_ms is not None and self._now >= self._stop_by_ms:
            is_in_doubt = state is State.COMMITTING
            self._end(self._in_doubt() if is_in_doubt else self._error or self._read_error)
        elif state is State.IDLE:
            self._move_idle()
        elif state is State.OPEN:
            self._move_open()
        elif state is State.SENDING_OFFSETS:
            if self._harm is not None or self._is_overdue:
                self._abort()
        elif state is State.COMMITTING and self._harm is not None:
            self._abort()
        elif self._asking is None and self._now >= self._again_at_ms:
            number = self._ask()
            is_commit = state is State.COMMITTING
            self._out.append(do.Commit(number) if is_commit else do.Abort(number))

    def _move_idle(self) -> None:
        if self._error is not None or self._stop_by_ms is not None:
            self._end(self._error or self._read_error)
            return
        is_busy = self._reading is not None or self._work is not None
        if is_busy or self._now < self._again_at_ms:
            return
        records = self._progress.records
        if records and (self._has_polled or self._read_error is not None):
            self._state = State.BEGINNING
            self._out.append(do.Begin(self._ask()))
        else:
            left = max(1, self._settings.max_records - records)
            self._poll(left, 0 if records else self._settings.poll_wait_ms)

    def _move_open(self) -> None:
        work, is_closing = self._work, self._is_closing
        if self._harm is not None or (work is not None and self._is_overdue):
            self._abort()
        elif work is not None:
            if is_closing and not work.is_cut:
                work.is_cut = True
                self._out.append(do.Cut(work.number, discard=False))
        elif self._progress.has_done:
            if is_closing:
                self._state = State.SENDING_OFFSETS
                offsets = self._progress.offsets
                self._out.append(do.SendOffsets(self._ask(), offsets))
            else:
                self._go_on()
        elif self._error is not None or self._stop_by_ms is not None:
            self._abort()
        else:
            self._release_all()
            self._go_on()

    def _go_on(self) -> None:
        """Process the next fetched records, or poll for more."""
        portion = self._progress.take()
        if portion is not None:
            if self._close_at_ms is None:
                self._close_at_ms = self._now + self._settings.commit_interval_ms
            self._process(portion)
        elif self._reading is None:
            left = max(1, self._settings.max_records - self._in_it)
            wait_ms = self._settings.poll_wait_ms
            if self._close_at_ms is not None and self._progress.has_done:
                wait_ms = self._close_at_ms - self._now
            self._poll(left, wait_ms)

    def _process(self, portion: Portion) -> None:
        tp, first, until, _ = portion
        is_alone = self._overruns.take(portion)
        work = self._begin_work(portion)
        number = work.number
        run = self._unsendable.of(portion)
        if run is None:
            self._out.append(do.Process(number, tp, first, until))
            if is_alone:
                work.is_cut = True
                self._out.append(do.Cut(number, discard=False))
        elif run.first > first:
            self._out.append(do.Process(number, tp, first, run.first))
        else:
            end = min(until, run.until)
            self._out.append(do.SendDeadLetters(number, tp, first, end, run.error))

    def _begin_work(self, portion: Portion) -> _Work:
        self._numbers += 1
        work = self._work = _Work(self._numbers, portion)
        return work

    def _ask(self) -> int:
        self._numbers += 1
        self._asking = self._numbers
        return self._numbers

    def _poll(self, max_records: int, wait_ms: int) -> None:
        self._numbers += 1
        self._reading = self._numbers
        self._out.append(do.Poll(self._numbers, max_records, wait_ms))

    def _abort(self) -> None:
        """Abort the transaction, whatever is in progress for it."""
        if self._harm is not None and self._error is None:
            way_out = self._overrun(self._harm)
            if self._error is None:
                why = f"{_said(self._harm)}{way_out}"
                self._later(f"a transaction is aborted, and its records are read again: {why}")
        self._discard_work()
        self._state = State.ABORTING
        self._out.append(do.Abort(self._ask()))

    def _overrun(self, harm: Exception) -> str:
        """Handle a transaction that was open for too long. Returns the advice for the log; empty if
        it was not."""
        if not overran(harm):
            return ""
        self._error = self._overruns.overrun(self._progress.offsets, harm)
        return (
            ". It was open for longer than the producer's transaction_timeout_ms: make that longer "
            "than the function takes for a record (or batch), or let the function take less time. "
            "Until these records are committed, each of them has a transaction of its own"
        )

    # -- the end -----------------------------------------------------------------------------

    def _in_doubt(self) -> CommitInDoubt:
        return CommitInDoubt(
            "the processor was stopped before it was known whether its last transaction is "
            "committed; the next processor of the group begins after it if it is, with it if not"
        )

    def _end(self, error: Exception | None) -> None:
        first = self._error or self._read_error
        if first is not None and first is not error:
            self._notice(
                f"the processor ends by another error, but before it there was: {_said(first)}"
            )
        self._state = State.ENDED
        self._reading = self._work = self._asking = None
        self._release_all()
        self._out.append(do.Ended(error))

    def _notice(self, text: str) -> None:
        self._out.append(do.Notice(text, warning=True))


def _said(error: Exception) -> str:
    """The text of an error. A foreign exception's own methods must not raise here."""
    return str(error) if isinstance(error, Kip848Error) else short(error)
