"""The transactions of one transactional id, one after the other: committed, aborted, or in doubt.

Theory of operation
-------------------
``_transaction_states`` defines which state follows which; this module does the work of each state,
in ``settle``: it requests a producer id, waits until the last batch is answered, drops the records
of an aborted transaction, and requests its end. ``Requests`` sends the requests and reports their
results.

The first error of a transaction is kept: a commit raises it, whatever happens later.

A refusal that may mean "your transaction has timed out" may also mean "you have a successor";
brokers use the same codes for both. So we *ask* the coordinator with our own id and epoch
(KIP-360). If it returns a new epoch, the transaction had already ended and we continue; if it
returns PRODUCER_FENCED, we have a successor. Either way it is then certain that nothing more of the
transaction will be committed. We ask only when nothing of ours is in flight any more.

With V2 the end of a transaction returns the next epoch. With V1 it does not, and a lost request of
one transaction may arrive in the next, or leave a gap in its sequences; then another epoch is
requested. The same happens when the version changes, so that each epoch is used with one version
only, and after an InitProducerId of ours was lost. If that arrived late, a coordinator would take
it for the newest one, abort the open transaction, and forget that the previous one was committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.backoff import Jitter
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Api, Reaction
from kip848_client.core.produce._interfaces import Batches
from kip848_client.core.produce._markers import Markers
from kip848_client.core.produce._model import (
    NO_PRODUCER,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.produce._open_transaction import OpenTransaction
from kip848_client.core.produce._partition_additions import PartitionAdditions
from kip848_client.core.produce._pending_calls import PendingCalls
from kip848_client.core.produce._pending_requests import PendingRequest
from kip848_client.core.produce._transaction_errors import (
    aborted,
    failed,
    fatal_again,
    harm_again,
    in_doubt,
    is_certain,
    late_abort,
    late_init,
    left_open,
    not_allowed,
    timed_out,
)
from kip848_client.core.produce._transaction_requests import Requests
from kip848_client.core.produce._transaction_states import (
    ADDING,
    TABLE,
    Cell,
    State,
    Trigger,
    TriggerEffect,
)
from kip848_client.core.types import TopicPartition, Wait
from kip848_client.errors import (
    Kip848Error,
    ProducerFailed,
    RequestTimedOut,
    TransactionAborted,
)

__all__ = ["Transactions"]

_V2_LEVEL: Final = 2


class Transactions:
    """The ``ProducerIdentity`` of a producer with a transactional id."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        emit: Callable[[do.Command], None],
        batches: Batches,
    ) -> None:
        self._emit = emit
        self._batches = batches
        self._id = settings.transactional_id or ""
        self._additions = PartitionAdditions()
        self._markers = Markers(self._id, emit)
        self._requests = Requests(settings, jitter, emit, self, self._additions, self._markers)
        self._state = State.UNINITIALIZED
        self.who = NO_PRODUCER
        self._level = 0
        self._version = TransactionVersion.V1
        self._epoch_version: TransactionVersion | None = None
        """The version this epoch was used with; ``None`` before its first transaction."""
        self._ignored = 0
        self._is_wanted = False
        self._is_closing = False
        self._calls = PendingCalls(emit)
        self._limit_ms: int | None = None
        """When the commit is given up."""
        self._fatal: ProducerFailed | None = None
        self._txn = OpenTransaction()
        self._outcome: State | None = None
        """IN_DOUBT: the transaction is committed but no caller received the result; this is the
        next state."""

    # -- queries -----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    @property
    def stale(self) -> int:
        """How many answers and failures were no longer expected."""
        return self._ignored + self._requests.stale + self._markers.stale

    @property
    def is_at_rest(self) -> bool:
        """After ``close``: no work is left for the transaction."""
        return self._state not in (
            State.IN_TRANSACTION,
            State.COMMITTING,
            State.ABORTABLE,
            State.ABORTING,
        )

    @property
    def producer(self) -> ProducerId | None:
        """The producer id under which batches may be sent now."""
        return self.who if self._is_open and not self._markers.are_awaited else None

    @property
    def _is_open(self) -> bool:
        return self._state in (State.IN_TRANSACTION, State.COMMITTING)

    @property
    def version(self) -> TransactionVersion:
        """The version of the open transaction."""
        return self._version

    def may_send(self, tp: TopicPartition, node: int) -> bool:
        """Whether this partition is part of the transaction, or may be added by writing to it. If
        not, it will be added, or may be soon."""
        if self.producer is None:
            return False
        if self._version is TransactionVersion.V2:
            return self._additions.is_free(tp, node)
        if self._requests.is_added(tp):
            return True
        self._requests.want_partition(tp)
        return False

    def due_ms(self) -> int | None:
        """When ``settle`` has work without another event."""
        markers_ms = self._markers.due_ms() if self._is_open else None
        asked_ms, adding_ms = self._requests.due_ms(), self._additions.due_ms()
        times = (self._calls.due_ms(), asked_ms, adding_ms, self._limit_ms, markers_ms)
        return min((each for each in times if each is not None), default=None)

    def check_append(self) -> None:
        """Raises if no record may be appended now."""
        if self._state is not ADDING:
            error = self._forbidden(TABLE[self._state][Trigger.ADD], Trigger.ADD)
            if error is not None:
                raise error

    # -- requests of the application ---------------------------------------------------------

    def take(self, now_ms: int, event: ev.Event) -> bool:
        """Apply an event if it concerns transactions; returns whether it did."""
        match event:
            case ev.StartRequested():
                self._start(now_ms, event)
            case ev.BeginRequested():
                self._begin(now_ms, event)
            case ev.OffsetsAdded():
                self._add_offsets(now_ms, event)
            case ev.Refused():
                if self._state is State.IN_TRANSACTION:
                    self._on_harm(Reaction.ABORT, event.error)
            case ev.CommitRequested():
                self._commit(now_ms, event)
            case ev.AbortRequested():
                self._abort(now_ms, event)
            case ev.TransactionVersionLearnt():
                self._level = event.level
            case ev.CoordinatorFound() | ev.CoordinatorNotFound():
                self._requests.coordinator_answered(now_ms, event)
            case ev.ProducerIdAnswered() | ev.TxnAnswered() | ev.TxnLost():
                self._requests.answered(now_ms, event)
            case ev.TransactionDescribed() | ev.TransactionNotDescribed():
                self._markers.take(now_ms, event)
            case _:
                return False
        return True

    def wait_ended(self, ticket: int) -> None:
        """The caller with this ticket no longer waits; the request itself continues. If it was done
        already and no other caller has received the result, the end of the transaction may be
        requested once more."""
        self._calls.forget(ticket)
        self._requests.forget_ticket(ticket)
        if ticket in self._txn.end_told:
            self._txn.end_told.discard(ticket)
            if not self._txn.end_told and self._state in (State.READY, State.BUMPING):
                self._is_untold(is_commit=self._txn.is_told_commit)

    def waits(self) -> dict[str, Wait]:
        """What calls of the application wait for, and since when."""
        since_ms = self._calls.since_ms
        if since_ms is None:
            return {}
        what = f"the transaction coordinator of {self._id!r}"
        return {what: Wait(self._trouble, since_ms)}

    def close(self) -> None:
        """Begin no further transaction. An open one is aborted, unless its commit was requested."""
        self._is_closing = True
        self._calls.close()

    def end(self) -> None:
        """The time for closing is over: fail all calls that still wait."""
        why = RequestTimedOut(f"the producer is closed: {self._trouble}")
        is_sent = self._txn.is_doubtful or self._requests.is_end_in_doubt
        told = in_doubt(self._id, why, closed=True) if is_sent else aborted(self._id, why)
        self._calls.commits.fail(told)
        self._calls.aborts.fail(why)
        self._drop(aborted(self._id, why))

    def _start(self, now_ms: int, event: ev.StartRequested) -> None:
        if self._fatal is not None:
            self._emit(do.Failed(event.ticket, self._told_fatal()))
        elif self._is_closing:
            self._emit(do.Failed(event.ticket, not_allowed(self._state, "start", closing=True)))
        elif self.who != NO_PRODUCER:
            self._emit(do.Done(event.ticket))
        else:
            self._is_wanted = True
            self._calls.starts.add(now_ms, event)

    def _begin(self, now_ms: int, event: ev.BeginRequested) -> None:
        cell = TABLE[self._state][Trigger.BEGIN]
        error = self._forbidden(cell, Trigger.BEGIN)
        if self._is_closing and error is None:
            error = not_allowed(self._state, "begin", closing=True)
        if error is not None:
            self._emit(do.Failed(event.ticket, error))
            return
        self._is_wanted = True
        self._calls.begins.add(now_ms, event)
        self._begin_next()

    def _begin_next(self) -> None:
        """Let one of the callers that wait begin a transaction."""
        if self._state is not State.READY or not self._calls.begins:
            return
        version = TransactionVersion.V2 if self._level >= _V2_LEVEL else TransactionVersion.V1
        if self._epoch_version not in (None, version) or self._requests.has_stray_init:
            self._state = State.BUMPING
            return
        self._version = self._epoch_version = version
        self._apply(Trigger.BEGIN)
        self._requests.begin(self.who, version)
        self._additions.begin(version)
        self._txn = OpenTransaction()
        self._calls.begins.first_done()
        self._calls.begins.fail(not_allowed(self._state, "begin"))

    def _add_offsets(self, now_ms: int, event: ev.OffsetsAdded) -> None:
        error = self._forbidden(TABLE[self._state][Trigger.ADD], Trigger.ADD)
        if error is not None:
            self._emit(do.Failed(event.ticket, error))
        elif not event.offsets:
            self._emit(do.Done(event.ticket))
        else:
            self._requests.want_offsets(now_ms, event)

    def _commit(self, now_ms: int, event: ev.CommitRequested) -> None:
        cell = TABLE[self._state][Trigger.COMMIT]
        is_settling = self._state is State.ABORTABLE and self._txn.is_asking
        error = None if is_settling else self._forbidden(cell, Trigger.COMMIT)
        if error is not None:
            self._emit(do.Failed(event.ticket, error))
            return
        if self._outcome is not None:
            self._state, self._outcome = self._outcome, None
            self._txn.end_told, self._txn.is_told_commit = {event.ticket}, True
            self._emit(do.Done(event.ticket))
            return
        self._calls.commits.add(now_ms, event)
        if is_settling:
            return
        self._limit_ms = max(event.deadline_ms, self._limit_ms or 0)
        if self._state is State.IN_DOUBT:
            self._requests.go_on(now_ms)
        if cell.effect is TriggerEffect.GO:
            self._apply(Trigger.COMMIT)

    def _abort(self, now_ms: int, event: ev.AbortRequested) -> None:
        cell = TABLE[self._state][Trigger.ABORT]
        error = None if self._txn.is_abort_untold else self._forbidden(cell, Trigger.ABORT)
        if error is not None:
            self._emit(do.Failed(event.ticket, error))
        elif cell.effect is TriggerEffect.NOTHING or self._txn.is_abort_untold:
            self._txn.is_abort_untold = False
            self._emit(do.Done(event.ticket))
        else:
            self._calls.aborts.add(now_ms, event)
            if cell.effect is TriggerEffect.GO:
                self._begin_abort()

    def _begin_abort(self) -> None:
        self._apply(Trigger.ABORT)
        self._calls.commits.fail(self._told_harm())
        self._drop(self._told_harm())

    def _forbidden(self, cell: Cell, trigger: Trigger) -> Kip848Error | None:
        """The error if the state does not allow this, else ``None``."""
        if cell.effect is TriggerEffect.REFUSE:
            return not_allowed(self._state, trigger.value)
        if cell.effect is not TriggerEffect.RAISE:
            return None
        return self._told()

    # -- reports about batches ---------------------------------------------------------------

    def sent(self, tp: TopicPartition, node: int) -> None:
        """A batch is in flight to this broker: the transaction is not empty."""
        self._txn.has_sent = True
        self._additions.sent(tp, node)

    def batch_ended(self, tp: TopicPartition) -> None:
        """A batch is no longer in flight."""
        self._additions.ended(tp)

    def written(self, producer: ProducerId) -> None:
        """A batch is in the log, so the coordinator has the transaction open."""
        if producer == self.who:
            self._txn.was_open = True

    def batch_failed(
        self, now_ms: int, producer: ProducerId | None, reaction: Reaction, error: Kip848Error
    ) -> None:
        """A batch has failed permanently."""
        del now_ms
        if producer in (None, self.who):
            self._on_harm(reaction, error)
        else:
            self._ignored += 1

    # -- results of requests -----------------------------------------------------------------

    def initialized(self, producer: ProducerId) -> None:
        """Adopt the producer id and epoch that were returned."""
        before = self._state
        if self._apply(Trigger.INITIALIZED).effect is not TriggerEffect.GO:
            return
        self._adopt(producer)
        self._txn.is_asking = False
        self._calls.starts.done()
        if before is State.ABORTABLE:
            self._txn.is_over = True
            self._txn.is_doubtful = False
            if self._txn.is_harm_asked and self._txn.harm is not None:
                self._txn.harm = timed_out(self._id, self._txn.harm)
            self._calls.commits.fail(self._told_harm())
        elif before is State.ABORTING:
            self._tell_end(is_commit=False)
        self._begin_next()

    def offsets_taken(self, job: PendingRequest) -> None:
        """The group coordinator has accepted the offsets."""
        self.written(job.producer)
        if job.ticket is not None:
            self._emit(do.Done(job.ticket))

    def ended(self, producer: ProducerId | None) -> None:
        """The transaction is committed or aborted."""
        if TABLE[self._state][Trigger.ENDED].effect is TriggerEffect.IGNORE:
            self._ignored += 1
            return
        if self._version is TransactionVersion.V1:
            may_arrive = self._batches.has_gap or self._requests.has_stray
            self._txn.needs_bump = self._txn.needs_bump or may_arrive
        elif producer is not None and producer.number >= 0:
            self._adopt(producer)
            self._txn.needs_bump = False
        else:
            self._txn.needs_bump = True
        self._finish()

    def refused(self, job: PendingRequest, reaction: Reaction, error: Kip848Error) -> None:
        """A refusal that retrying does not cure."""
        if self._txn.asks_further(job, error, has_added=self._requests.has_added):
            return
        if job.api is Api.END_TRANSACTION:
            reaction = self._end_refused(job, reaction, error)
        if job.ticket is not None and not job.is_dropped:
            self._on_harm(reaction, error)
            self._emit(do.Failed(job.ticket, self._told()))
            return
        self._on_harm(reaction, error)

    def _end_refused(self, job: PendingRequest, reaction: Reaction, error: Kip848Error) -> Reaction:
        if job.in_doubt and self._version is TransactionVersion.V1:
            self._txn.may_be_ended = True
        if job.commit:
            self._txn.is_doubtful = job.in_doubt or not is_certain(reaction, error)
        if reaction in (Reaction.FATAL, Reaction.RECOVER):
            return reaction
        if reaction is Reaction.ABORT_AND_BUMP:
            # the coordinator has forgotten this producer, and whether it had committed
            return Reaction.RECOVER if self._txn.is_doubtful else Reaction.ASK
        # if EndTxn does not end it, a new epoch does
        return Reaction.ASK if self._state is State.ABORTING else reaction

    def _on_harm(self, reaction: Reaction, error: Kip848Error) -> None:
        if self._state is State.FATAL:
            self._ignored += 1
            return
        if reaction in (Reaction.FATAL, Reaction.RECOVER):
            self._fail(reaction, error)
            return
        is_late = self._state in (State.UNINITIALIZED, State.READY, State.BUMPING)
        if not is_late and not self._txn.is_over:
            self._txn.is_asking = self._txn.is_asking or reaction is Reaction.ASK
            self._txn.needs_bump = self._txn.needs_bump or reaction is Reaction.ABORT_AND_BUMP
        if self._apply(Trigger.HARMED).effect is not TriggerEffect.GO:
            return
        self._txn.harm = aborted(self._id, error)
        self._txn.is_harm_asked = reaction is Reaction.ASK
        self._limit_ms = None
        self._drop(self._told_harm())
        if not self._txn.is_asking:
            self._calls.commits.fail(self._told_harm())

    def _fail(self, reaction: Reaction, error: Kip848Error) -> None:
        self._apply(Trigger.FAILED)
        doubt = self._txn.is_doubtful
        self._fatal = failed(self._id, reaction, error, doubt=doubt)
        self._limit_ms = None
        told = in_doubt(self._id, self._told_fatal()) if doubt else self._told_fatal()
        self._calls.commits.fail(told)
        self._calls.fail(self._told_fatal)
        self._drop(self._told_fatal())

    def _adopt(self, producer: ProducerId) -> None:
        self.who = producer
        self._epoch_version = None
        self._requests.has_stray = False
        self._batches.begin_anew(producer)

    # -- settling ----------------------------------------------------------------------------

    def settle(self, now_ms: int) -> None:
        """Do the work of the current state and of those that follow, until nothing changes."""
        self._additions.settle(now_ms)
        before = None
        while before is not self._state:
            before = self._state
            self._markers.settle(now_ms, is_begun=self._is_open)
            self._look_at_time(now_ms)
            self._do_what_is_due()
            self._requests.settle(now_ms)

    def _do_what_is_due(self) -> None:
        if self._is_closing and self._state in (State.IN_TRANSACTION, State.ABORTABLE):
            if self._txn.has_sent or self._requests.may_hold or not self._batches.is_empty:
                self._emit(do.Notice(left_open(self._id), warning=True))
            self._begin_abort()
        match self._state:
            case State.UNINITIALIZED if self._is_wanted and not self._is_closing:
                self._requests.want_producer_id(NO_PRODUCER)
            case State.BUMPING if not self._is_closing:
                self._requests.want_producer_id(self.who)
            case State.COMMITTING:
                self._go_on_committing()
            case State.ABORTABLE:
                self._batches.drop_unsent(self._told_harm())
                if self._txn.is_asking and self._is_quiet():
                    self._requests.want_producer_id(self._txn.asks_as or self.who)
            case State.ABORTING:
                self._batches.drop_unsent(self._told_harm())
                self._go_on_aborting()
            case State.FATAL:
                self._batches.drop_unsent(self._told_fatal())
            case _:
                pass

    def _is_quiet(self) -> bool:
        """Nothing of the transaction is in flight."""
        return self._requests.is_idle and not self._batches.is_in_flight

    def _go_on_committing(self) -> None:
        if not self._batches.is_empty:
            self._batches.flush_now()
        elif self._requests.is_idle:
            if self._txn.has_sent or self._requests.may_hold:
                self._requests.want_end(commit=True)
            else:  # a broker would refuse to commit an empty transaction
                self._finish()

    def _go_on_aborting(self) -> None:
        if not self._is_quiet():
            return
        if self._txn.is_asking:
            self._requests.want_producer_id(self._txn.asks_as or self.who)
        elif not self._txn.is_over and (self._txn.has_sent or self._requests.may_hold):
            self._requests.want_end(commit=False)
        else:
            self._finish()

    def _finish(self) -> None:
        """The transaction has ended as requested."""
        is_commit = self._state in (State.COMMITTING, State.IN_DOUBT)
        self._apply(Trigger.ENDED)
        self._limit_ms = None
        if self._txn.needs_bump and not self._txn.is_over:
            self._state = State.BUMPING
        self._tell_end(is_commit=is_commit)
        self._begin_next()

    def _tell_end(self, *, is_commit: bool) -> None:
        self._txn.is_told_commit = is_commit
        self._txn.end_told = (self._calls.commits if is_commit else self._calls.aborts).done()
        if not self._txn.end_told:
            self._is_untold(is_commit=is_commit)

    def _is_untold(self, *, is_commit: bool) -> None:
        """No caller received the result of the transaction."""
        if is_commit:
            self._outcome, self._state = self._state, State.IN_DOUBT
        else:
            self._txn.is_abort_untold = True

    def _look_at_time(self, now_ms: int) -> None:
        if self._limit_ms is not None and self._limit_ms <= now_ms:
            self._limit_ms = None
            if self._state is State.COMMITTING:
                self._give_up_commit()
        # another caller has a later deadline, or the coordinator is being asked for the result
        is_open = self._state is State.COMMITTING or self._txn.is_doubtful
        self._calls.overdue(
            now_ms,
            commit=lambda: in_doubt(self._id, None) if is_open else self._told_harm(),
            abort=lambda: late_abort(self._id, self._trouble),
            init=lambda: late_init(self._id, self._requests.trouble),
        )

    @property
    def _trouble(self) -> str:
        """Why the transaction has not ended yet, for an error."""
        told = None if self._batches.is_empty else self._batches.trouble
        return told or self._requests.trouble

    def _give_up_commit(self) -> None:
        """The last deadline for the commit has passed."""
        why = RequestTimedOut(f"the time for the commit is over: {self._trouble}")
        if not self._requests.is_end_in_doubt:
            self._on_harm(Reaction.ABORT, why)
            return
        self._apply(Trigger.OVERDUE)
        self._requests.is_held = True
        self._calls.commits.fail(in_doubt(self._id, why))

    # -- errors ------------------------------------------------------------------------------

    def _apply(self, trigger: Trigger) -> Cell:
        cell = TABLE[self._state][trigger]
        if cell.to is not None:
            self._state = cell.to
        if cell.effect is TriggerEffect.IGNORE:
            self._ignored += 1
        return cell

    def _told_harm(self) -> TransactionAborted:
        """The transaction's error, as a new instance for another caller."""
        return harm_again(self._id, self._txn.harm)

    def _told_fatal(self) -> ProducerFailed:
        assert self._fatal is not None
        return fatal_again(self._fatal)

    def _told(self) -> Kip848Error:
        return self._told_harm() if self._fatal is None else self._told_fatal()

    def _drop(self, error: Kip848Error) -> None:
        """Drop all open requests. Batches are dropped later, in ``settle``, because a report of a
        failed batch arrives while they are being iterated over."""
        for job in self._requests.drop():
            if job.ticket is not None:
                self._emit(do.Failed(job.ticket, error))
