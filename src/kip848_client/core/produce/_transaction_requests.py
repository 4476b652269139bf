"""The requests of a transaction to coordinators: their order and their retries.

One request is open at a time. Requests are queued as *jobs*, and a job is sent when those before it
are done: a producer id, partitions, a group, its offsets, the end. With transactions V1, separate
requests add partitions and groups before anything is written; with V2, writing adds them.

A job with a retriable refusal backs off, for longer each time, and is sent again, to another
coordinator if necessary. Offsets of one group stay in order, because its coordinator keeps those
that arrive last. For the same reason, once offsets were lost in flight, different ones for the same
partitions cannot follow in the same transaction. Errors that no retry cures are reported to
``RequestResults`` with the reaction from the error table, and so is every success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.partition_names import listed
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._coordinators import Coordinators, Key
from kip848_client.core.produce._error_rules import Api, Reaction, reaction
from kip848_client.core.produce._markers import Markers
from kip848_client.core.produce._model import (
    NO_PRODUCER,
    CoordinatorKind,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.produce._partition_additions import GROUP, PartitionAdditions
from kip848_client.core.produce._pending_requests import (
    ORDER,
    PendingRequest,
    command,
    error_of,
    gravest,
    not_committed,
    said_of,
)
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import Kip848Error

__all__ = ["GONE_MS", "RequestResults", "Requests"]

_SOON_MS: Final = 2
"""Markers, or another part of the transaction, are being written; that takes little time."""

_NOT_DONE: Final = frozenset(
    {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""Refusals after which the coordinator has certainly done nothing. After a failed write
(REQUEST_TIMED_OUT, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR) it may still have done it."""

_ADDING: Final = frozenset({Api.ADD_PARTITIONS, Api.ADD_OFFSETS, Api.COMMIT_OFFSETS})

GONE_MS: Final = 5_000
"""How long to retry with a broker that does not know a new topic yet. A deleted topic id does not
come back, even if a topic of the same name is created again."""

_PASSING: Final = frozenset({Reaction.RETRY, Reaction.REFRESH})


class RequestResults(Protocol):
    """Receives the results of jobs."""

    def initialized(self, producer: ProducerId) -> None:
        """Adopt the producer id and epoch that were returned."""
        ...

    def offsets_taken(self, job: PendingRequest) -> None:
        """The group coordinator has accepted the offsets."""
        ...

    def ended(self, producer: ProducerId | None) -> None:
        """The transaction is committed or aborted. ``producer``: the next producer id and epoch, if
        returned."""
        ...

    def refused(self, job: PendingRequest, reaction: Reaction, error: Kip848Error) -> None:
        """Retrying does not help; the job is over."""
        ...


class Requests:
    """All requests to coordinators for one transactional id."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        emit: Callable[[do.Command], None],
        results: RequestResults,
        adding: PartitionAdditions,
        markers: Markers,
    ) -> None:
        self._additions = adding
        self._markers = markers
        self._settings = settings
        self._jitter = jitter
        self._emit = emit
        self._results = results
        self._coordinators = Coordinators(settings, jitter, emit, refused=self._no_coordinator)
        self._id = settings.transactional_id or ""
        self._own: Key = (CoordinatorKind.TRANSACTION, self._id)
        self._producer = NO_PRODUCER
        self._version = TransactionVersion.V1
        self._jobs: list[PendingRequest] = []
        """The queued jobs, in the order in which they are sent."""
        self._open: PendingRequest | None = None
        self._number = 0
        self._is_stirred = False
        """A new request was made since the last ``settle``."""
        self._added: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._lost_offsets: dict[tuple[str, TopicPartition], int] = {}
        """By group: offsets in lost requests of this transaction, which may still arrive."""
        self._stale = 0
        self.is_held = False
        """Stop requesting the end until a caller asks for it."""
        self.has_stray = False
        """A request of this epoch was lost and may still arrive."""
        self.has_stray_init = False
        """An InitProducerId naming the previous epoch was lost and may still arrive."""
        self.may_hold = False
        """Whether the coordinator has, or may have, something in this transaction."""

    # -- queries -----------------------------------------------------------------------------

    @property
    def stale(self) -> int:
        """Answers that were no longer expected."""
        return self._stale + self._coordinators.stale

    @property
    def is_idle(self) -> bool:
        """Nothing is open or queued."""
        return self._open is None and not self._jobs

    @property
    def has_added(self) -> bool:
        """V1: whether the coordinator has confirmed that something is in this transaction."""
        return bool(self._added or self._groups)

    @property
    def end(self) -> PendingRequest | None:
        """The job that ends the transaction, if there is one."""
        return next((job for job in self._all() if job.api is Api.END_TRANSACTION), None)

    @property
    def is_end_in_doubt(self) -> bool:
        """Whether the end may have happened without confirmation."""
        end = self.end
        return end is not None and (end is self._open or end.in_doubt)

    @property
    def trouble(self) -> str:
        """Why the current request has no result yet, for an error."""
        job = self._open or next(iter(self._jobs), None)
        if job is None:
            return "the records before are not answered yet"
        return job.trouble or self._coordinators.trouble(job.key)

    def is_added(self, tp: TopicPartition) -> bool:
        """V1: whether the partition is part of the transaction."""
        return tp in self._added

    def due_ms(self) -> int | None:
        """When ``settle`` has work without another event."""
        if self._is_stirred:
            return 0
        due = [each.limit_ms for each in self._jobs if each.limit_ms is not None]
        lookup = self._coordinators.due_ms()
        if lookup is not None:
            due.append(lookup)
        if self._open is None:
            due += [
                each.not_before_ms
                for each in self._jobs
                if self._is_sendable(each)
                and self._coordinators.is_known(each.key)
                and self._may_add(each)
            ]
        return min(due, default=None)

    # -- adding requests ---------------------------------------------------------------------

    def begin(self, producer: ProducerId, version: TransactionVersion) -> None:
        """Start a new transaction; the following requests belong to it."""
        self._producer = producer
        self._version = version
        self._added.clear()
        self._groups.clear()
        self._lost_offsets.clear()
        self.is_held = False
        self.may_hold = False

    def want_producer_id(self, producer: ProducerId) -> None:
        """Request a producer id, or the next epoch of this one."""
        if not self._is_wanted(Api.INIT_PRODUCER_ID):
            self._add(PendingRequest(Api.INIT_PRODUCER_ID, self._own, producer))

    def want_partition(self, tp: TopicPartition) -> None:
        """V1: add a partition."""
        waiting = [job for job in self._all() if tp in job.partitions and not job.is_dropped]
        if waiting:
            return
        for job in self._jobs:
            if job.api is Api.ADD_PARTITIONS:
                job.partitions[tp] = None
                self._is_stirred = True
                return
        self._add(PendingRequest(Api.ADD_PARTITIONS, self._own, self._producer, {tp: None}))

    def want_offsets(self, now_ms: int, event: ev.OffsetsAdded) -> None:
        """Commit these offsets with the transaction."""
        group = event.group
        limit_ms = now_ms + self._settings.delivery_timeout_ms
        if self._version is TransactionVersion.V1 and not self._is_group_wanted(group.group_id):
            self._add(
                PendingRequest(
                    Api.ADD_OFFSETS,
                    self._own,
                    self._producer,
                    group=group,
                    limit_ms=limit_ms,
                )
            )
        self._add(
            PendingRequest(
                Api.COMMIT_OFFSETS,
                (CoordinatorKind.GROUP, group.group_id),
                self._producer,
                group=group,
                offsets=dict(event.offsets),
                ticket=event.ticket,
                limit_ms=limit_ms,
            )
        )

    def _is_group_wanted(self, group_id: str) -> bool:
        """V1: whether the group is in the transaction, or will be."""
        return group_id in self._groups or any(
            job.api is Api.ADD_OFFSETS and job.group is not None and job.group.group_id == group_id
            for job in self._all()
        )

    def want_end(self, *, commit: bool) -> None:
        """Commit or abort."""
        if not self._is_wanted(Api.END_TRANSACTION):
            self._add(PendingRequest(Api.END_TRANSACTION, self._own, self._producer, commit=commit))

    def go_on(self, now_ms: int) -> None:
        """A caller waits for the end: send the request at once."""
        self.is_held = False
        for job in self._jobs:
            job.not_before_ms = min(job.not_before_ms, now_ms)

    def drop(self) -> tuple[PendingRequest, ...]:
        """Drop and return all jobs except a request for a producer id. The answer of the open
        request is still awaited."""
        dropped = [job for job in self._jobs if job.api is not Api.INIT_PRODUCER_ID]
        self._jobs = [job for job in self._jobs if job.api is Api.INIT_PRODUCER_ID]
        job = self._open
        if job is not None and job.api is not Api.INIT_PRODUCER_ID and not job.is_dropped:
            job.is_dropped = True
            dropped.append(job)
        return tuple(dropped)

    def forget_ticket(self, ticket: int) -> None:
        """The caller for these offsets no longer waits; they are committed anyway."""
        for job in self._all():
            if job.ticket == ticket:
                job.ticket = None

    def settle(self, now_ms: int) -> None:
        """Send what is due."""
        for job in tuple(self._jobs):
            if job in self._jobs and _is_over(job, now_ms):
                self._give_up(job)
            elif job in self._jobs and (undone := self._may_be_undone(job)):
                self._jobs.remove(job)
                why = f"a request of this transaction with others of {listed(undone)} was lost"
                error = not_committed(job, f"{why}, and may still arrive")
                self._results.refused(job, Reaction.ABORT, error)
        self._coordinators.want_none()
        for job in self._jobs:
            if job is self._jobs[0] or job.api in (Api.ADD_OFFSETS, Api.COMMIT_OFFSETS):
                node = self._coordinators.node(job.key)
                if node is not None and self._open is None and self._is_due(now_ms, job):
                    if not self._may_add(job):
                        continue
                    job.node = node
                    self._open = job
        if self._open is not None and self._open in self._jobs:
            self._jobs.remove(self._open)
            self._send(self._open)
        self._coordinators.settle(now_ms)
        self._is_stirred = False

    def _is_wanted(self, api: Api) -> bool:
        return any(job.api is api and not job.is_dropped for job in self._all())

    def _all(self) -> list[PendingRequest]:
        return self._jobs if self._open is None else [self._open, *self._jobs]

    def _add(self, job: PendingRequest, *, is_first: bool = False) -> None:
        """``is_first``: put it before the other jobs of its kind."""
        if job.api is Api.ADD_PARTITIONS:
            for other in [each for each in self._jobs if each.api is Api.ADD_PARTITIONS]:
                job.partitions |= other.partitions
                self._jobs.remove(other)
        self._is_stirred = True
        self._jobs.insert(0 if is_first else len(self._jobs), job)
        self._jobs.sort(key=lambda each: ORDER.index(each.api))

    def _is_sendable(self, job: PendingRequest) -> bool:
        """Whether the job waits for nothing except time or a coordinator."""
        if job.api is Api.END_TRANSACTION:
            return not self.is_held and job is self._jobs[0]
        if job.api is not Api.COMMIT_OFFSETS or job.group is None:
            return True
        group_id = job.group.group_id
        if self._version is TransactionVersion.V1 and group_id not in self._groups:
            return False
        older = (each for each in self._jobs if each.api is job.api and each.key == job.key)
        return next(older) is job

    def _may_be_undone(self, job: PendingRequest) -> list[TopicPartition]:
        """The offsets for which lost requests may still arrive with other values."""
        if job.group is None or not self._lost_offsets:
            return []
        group_id, lost = job.group.group_id, self._lost_offsets
        return [
            tp
            for tp, each in job.offsets.items()
            if lost.get((group_id, tp), each.offset) != each.offset
        ]

    def _may_add(self, job: PendingRequest) -> bool:
        """Whether the group (with V2, its coordinator) may be added to the transaction now."""
        if job.group is None:
            return True
        if self._markers.are_awaited or self._version is TransactionVersion.V1:
            return not self._markers.are_awaited
        return self._additions.is_free(job.group.group_id, GROUP)

    def _is_due(self, now_ms: int, job: PendingRequest) -> bool:
        return job.not_before_ms <= now_ms and self._is_sendable(job)

    def _send(self, job: PendingRequest) -> None:
        self._number += 1
        if job.api is Api.COMMIT_OFFSETS:
            self.may_hold = True  # with V2 even a refused one adds the group
            if job.group is not None:
                self._additions.sent(job.group.group_id, GROUP)
        self._emit(command(job, self._number, self._settings, self._version))

    # -- results -----------------------------------------------------------------------------

    def coordinator_answered(
        self, now_ms: int, event: ev.CoordinatorFound | ev.CoordinatorNotFound
    ) -> None:
        """A lookup has ended."""
        self._coordinators.answered(now_ms, event)

    def answered(
        self, now_ms: int, event: ev.ProducerIdAnswered | ev.TxnAnswered | ev.TxnLost
    ) -> None:
        """A request has ended. One that is not open is ignored."""
        job = self._open
        if job is None or event.number != self._number:
            self._stale += 1
            return
        self._open = None
        match event:
            case ev.TxnLost():
                if job.group is not None:
                    self._additions.ended(job.group.group_id)
                self._lost(now_ms, job, event)
            case ev.ProducerIdAnswered() if event.error_code:
                self._refused(now_ms, job, event.error_code, event.message)
            case ev.ProducerIdAnswered():
                self._coordinators.served(job.key)
                self.has_stray = False
                self.has_stray_init = job.in_doubt and job.producer != NO_PRODUCER
                self._results.initialized(event.producer)
            case ev.TxnAnswered():
                self._take(now_ms, job, event)
                if job.group is not None:
                    self._additions.ended(job.group.group_id)

    def _take(self, now_ms: int, job: PendingRequest, event: ev.TxnAnswered) -> None:
        codes = said_of(job, event)
        bad = {tp: code for tp, code in codes.items() if code}
        for tp in codes:
            if tp not in bad:
                job.partitions.pop(tp, None)
                job.offsets.pop(tp, None)
                if job.api is Api.ADD_PARTITIONS:
                    self._added.add(tp)
        self.may_hold = self.may_hold or self.has_added
        code = event.error_code or gravest(job.api, bad)
        if code:
            self._refused(now_ms, job, code, None, bad)
            return
        self._coordinators.served(job.key)
        if job.api is Api.ADD_OFFSETS and job.group is not None:
            self._groups.add(job.group.group_id)
            self.may_hold = True
        if job.api is Api.COMMIT_OFFSETS and not job.is_dropped:
            self._results.offsets_taken(job)
        if job.api is Api.END_TRANSACTION:
            self._markers.ended(now_ms, job.node)
            self._results.ended(event.producer)

    def _refused(
        self,
        now_ms: int,
        job: PendingRequest,
        code: int,
        message: str | None,
        bad: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        todo = reaction(job.api, code)
        if todo is not Reaction.REFRESH:
            self._coordinators.served(job.key)
        error = error_of(job, code, message, bad)
        if todo not in _PASSING:
            self._results.refused(job, todo, error)
            return
        if not job.is_gone and ErrorCode.UNKNOWN_TOPIC_ID in (bad or {}).values():
            job.give_up_by(now_ms + GONE_MS)
        if todo is Reaction.REFRESH:
            self._coordinators.forget(job.key, job.node, str(error))
        self._doubt(job, code not in _NOT_DONE)
        pause_ms = None
        if code == ErrorCode.CONCURRENT_TRANSACTIONS and job.api in _ADDING:
            pause_ms = backoff_ms(
                job.collisions, _SOON_MS, self._settings.retry_backoff_ms, self._jitter
            )
            job.collisions += 1
            if job.group is not None:
                self._additions.was_refused(job.group.group_id)
        self._again(now_ms, job, f"broker {job.node} answered {error}", pause_ms)

    def _lost(self, now_ms: int, job: PendingRequest, event: ev.TxnLost) -> None:
        self._doubt(job, event.maybe_sent)
        if event.maybe_sent and job.api is not Api.INIT_PRODUCER_ID:
            self.has_stray = True
            if job.group is not None:
                lost = {(job.group.group_id, tp): to.offset for tp, to in job.offsets.items()}
                self._lost_offsets |= lost
        if event.fatal is not None:
            self._results.refused(job, Reaction.FATAL, event.fatal)
            return
        self._coordinators.forget(job.key, job.node, event.why)
        self._again(now_ms, job, f"{job.api.value}: {event.why}")

    def _doubt(self, job: PendingRequest, maybe_done: bool) -> None:
        job.in_doubt = job.in_doubt or maybe_done
        if job.in_doubt and job.api in (Api.ADD_PARTITIONS, Api.ADD_OFFSETS):
            self.may_hold = True

    def _again(
        self, now_ms: int, job: PendingRequest, why: str, pause_ms: int | None = None
    ) -> None:
        job.trouble = why
        if job.is_dropped:
            return
        settings = self._settings
        if pause_ms is None:
            pause_ms = backoff_ms(
                job.failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
            )
            job.failures += 1
        job.not_before_ms = now_ms + pause_ms
        self._add(job, is_first=True)

    def _give_up(self, job: PendingRequest) -> None:
        self._jobs.remove(job)
        why = job.trouble or self._coordinators.trouble(job.key)
        limit = f"{GONE_MS} ms" if job.is_gone else "delivery_timeout_ms"
        error = not_committed(job, f"not within {limit}; the last trouble: {why}")
        self._results.refused(job, Reaction.ABORT, error)

    def _no_coordinator(self, key: Key, error: Kip848Error) -> None:
        """This client gets no coordinator, and waiting does not help."""
        for job in tuple(self._jobs):
            if job.key == key and job in self._jobs:
                self._jobs.remove(job)
                own = key == self._own
                todo = Reaction.FATAL if own else Reaction.ABORT
                told = error if own else not_committed(job, str(error), error)
                self._results.refused(job, todo, told)


def _is_over(job: PendingRequest, now_ms: int) -> bool:
    return job.limit_ms is not None and job.limit_ms <= now_ms
