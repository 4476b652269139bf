"""The transaction coordinator: requests and the time in, responses and records out.

Theory of operation
===================

``handle`` looks up the decision function for a request. A decision is a response and at most one
change of one transactional id, which is written to the journal and applied before the response is
returned. A change that decides the outcome (PrepareCommit, PrepareAbort) leaves an *ending*: the
core around the coordinator takes the endings (``take_endings``), has the markers written, and
reports that (``markers_written``), which completes the transaction.

An id belongs to a partition of ``__transaction_state``, and the leader of that partition
coordinates it. Other nodes refuse it with NOT_COORDINATOR, as do all nodes until the first
FindCoordinator for any id has created that topic. When the leader changes, the partition is
unloaded; the new leader replays its journal, which takes ``load_ms``, and refuses with
COORDINATOR_LOAD_IN_PROGRESS in the meantime. Then it continues from the journal: with the endings
of transactions that were decided and not complete, and the timeouts of open ones.

Two things happen by time, at the intervals of Kafka's schedulers, counted from the start of the
broker: transactions that are open for longer than their timeout are aborted under a raised epoch,
and transactional ids that were not used for ``transactional.id.expiration.ms`` are removed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator.adding import (
    BATCHED_SINCE,
    Results,
    TopicResults,
    add_partitions_response,
    decide_add,
    missing_partitions,
    results_as_asked,
    results_by_partition,
    verified,
)
from mock_coordinator.core.transaction_coordinator.ending import (
    completed,
    decide_end,
    ending_of,
    fenced_abort,
    refused_end,
)
from mock_coordinator.core.transaction_coordinator.environment import Change, Ending, Environment
from mock_coordinator.core.transaction_coordinator.initializing import (
    check_init,
    decide_init,
    refused_init,
)
from mock_coordinator.core.transaction_coordinator.inspecting import (
    describe_transactions,
    list_transactions,
)
from mock_coordinator.core.transaction_coordinator.records import (
    ClientVersion,
    TransactionLog,
    TransactionMetadata,
    TransactionState,
    TxnPartition,
)
from mock_coordinator.core.transaction_coordinator.transactions_log import TransactionLogs

if TYPE_CHECKING:
    from kip848_client.core.wire._fields import Message

__all__ = ["TransactionCoordinator"]

_Handler = Callable[[int, RequestReceived, Any], Any]
_State = TransactionState

_FENCED_SINCE: Final = 2
"""PRODUCER_FENCED is known from this version of most requests on (KIP-588)."""
_FENCED_SINCE_INIT: Final = 4
"""And from this one of InitProducerId."""


class TransactionCoordinator:
    """All transactional ids of a cluster.

    ``journal`` is where it writes, and where it takes over from (``load_all``). ``now_ms`` is when
    the broker starts. ``leader_of`` says which node leads a partition of ``__transaction_state``
    (``None``: none does); call ``leader_changed`` when that changes. ``load_ms`` says how long a
    load takes.
    """

    def __init__(
        self,
        env: Environment,
        journal: TransactionLogs,
        now_ms: int,
        *,
        leader_of: Callable[[int], int | None],
        load_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._env: Final = env
        self._leader_of: Final = leader_of
        self._load_ms: Final = load_ms
        self._journal: Final = journal
        self._started_ms: Final = now_ms
        self._endings: dict[str, None] = {}
        self._time_outs: list[tuple[int, str]] = []
        self._scheduled: Final[dict[str, int]] = {}
        self._loads: Final[dict[int, int]] = {}
        self._expiry_ms: int | None = None
        self._handlers: Final[dict[type, _Handler]] = {
            InitProducerIdRequest: self._init,
            AddPartitionsToTxnRequest: self._add_partitions,
            AddOffsetsToTxnRequest: self._add_offsets,
            EndTxnRequest: self._end,
            DescribeTransactionsRequest: self._describe,
            ListTransactionsRequest: self._list,
        }

    # --- Loading and unloading --------------------------------------------------------------------

    def load_all(self, now_ms: int) -> None:
        """Take over every partition that has a leader: the cluster starts."""
        for partition in range(self._journal.partitions):
            self._begin_load(now_ms, partition)

    def leader_changed(self, now_ms: int, partition: int) -> None:
        """A partition of ``__transaction_state`` has another leader, or none any more."""
        for transactional_id in self._env.state.of_partition(partition):
            self._endings.pop(transactional_id, None)
            self._scheduled.pop(transactional_id, None)
        self._env.state.unload(partition)
        self._loads.pop(partition, None)
        self._begin_load(now_ms, partition)

    def _begin_load(self, now_ms: int, partition: int) -> None:
        if self._leader_of(partition) is None:
            return
        load_ms = self._load_ms()
        if load_ms > 0:
            self._loads[partition] = now_ms + load_ms
        else:
            self._load(now_ms, partition)

    def _load(self, now_ms: int, partition: int) -> None:
        self._loads.pop(partition, None)
        state = self._env.state
        for record in self._journal.of(partition).records:
            state.apply(record)
        for transactional_id in state.of_partition(partition):
            entry = state.get(transactional_id)
            self._watch(now_ms, transactional_id, None if entry is None else entry.value)

    def problem(self, transactional_id: str, node_id: int | None) -> ErrorCode | None:
        """Why a node does not serve a transactional id, if it does not; for no node in particular:
        why none does. None does before a client has looked for the coordinator of some id."""
        partition = self.partition_of(transactional_id)
        leader = self._leader_of(partition)
        exists = self._env.catalog.topic(TRANSACTIONS_TOPIC) is not None
        if not exists or leader is None or node_id not in (None, leader):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if partition in self._loads else None

    def _is_loading(self, node_id: int | None) -> bool:
        """Whether a node loads any partition."""
        return any(node_id in (None, self._leader_of(partition)) for partition in self._loads)

    # --- Requests ---------------------------------------------------------------------------------

    def handle(self, now_ms: int, received: RequestReceived) -> Message:
        """Answer one request; refusals are answers, too. Raises ``KeyError`` for a request that is
        not the coordinator's."""
        handler = self._handlers[type(received.request)]
        response: Message = handler(now_ms, received, received.request)
        return response

    def partition_of(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` that a transactional id belongs to."""
        return self._journal.partition_of(transactional_id)

    def offsets_partition_of(self, group_id: str) -> TxnPartition:
        """The partition of ``__consumer_offsets`` that a group's offsets go to."""
        topic = self._env.catalog.topic(OFFSETS_TOPIC)
        count = self._env.config.integer("offsets.topic.num.partitions")
        return OFFSETS_TOPIC, partition_for(group_id, count if topic is None else topic.partitions)

    def verify(
        self,
        now_ms: int,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Sequence[TxnPartition],
        *,
        add: bool,
    ) -> Results:
        """What AddPartitionsToTxn answers a broker that is about to write to partitions: are they
        part of the producer's open transaction? ``add`` makes them so (KIP-890)."""
        code = self.problem(transactional_id, None) if transactional_id else None
        if code is not None:
            if code is ErrorCode.NOT_COORDINATOR:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return dict.fromkeys(partitions, code)
        try:
            if not add:
                return verified(self._env, transactional_id, producer, partitions)
            self._add(now_ms, transactional_id, producer, partitions, ClientVersion.V2)
        except Refused as refused:
            return dict.fromkeys(partitions, refused.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)

    def _require_here(self, received: RequestReceived, transactional_id: str | None) -> None:
        """Raise ``Refused``: NOT_COORDINATOR when another node coordinates the id,
        COORDINATOR_LOAD_IN_PROGRESS while the node still loads it."""
        if transactional_id:
            code = self.problem(transactional_id, received.node_id)
            if code is not None:
                raise Refused(code)

    def _init(
        self, now_ms: int, received: RequestReceived, request: InitProducerIdRequest
    ) -> Message:
        try:
            check_init(self._env, request)
            self._require_here(received, request.transactional_id)
            decision = decide_init(self._env, now_ms, request)
        except Refused as refused:
            return refused_init(_told(received, refused.code, _FENCED_SINCE_INIT))
        self._make(now_ms, decision.change)
        return decision.response

    def _end(self, now_ms: int, received: RequestReceived, request: EndTxnRequest) -> Message:
        try:
            self._require_here(received, request.transactional_id)
            decision = decide_end(self._env, now_ms, received.version, request)
        except Refused as refused:
            return refused_end(_told(received, refused.code))
        self._make(now_ms, decision.change)
        return decision.response

    def _add_offsets(
        self, now_ms: int, received: RequestReceived, request: AddOffsetsToTxnRequest
    ) -> Message:
        producer = (request.producer_id, request.producer_epoch)
        partition = self.offsets_partition_of(request.group_id)
        try:
            self._require_here(received, request.transactional_id)
            self._add(now_ms, request.transactional_id, producer, (partition,), ClientVersion.V0)
        except Refused as refused:
            return AddOffsetsToTxnResponse(error_code=_told(received, refused.code))
        return AddOffsetsToTxnResponse()

    def _add_partitions(
        self, now_ms: int, received: RequestReceived, request: AddPartitionsToTxnRequest
    ) -> Message:
        transactions = request.transactions
        if received.version < BATCHED_SINCE:
            transactions = (
                AddPartitionsToTxnRequestAddPartitionsToTxnTransaction(
                    transactional_id=request.v3_and_below_transactional_id,
                    producer_id=request.v3_and_below_producer_id,
                    producer_epoch=request.v3_and_below_producer_epoch,
                    topics=request.v3_and_below_topics,
                ),
            )
        answers = [self._added(now_ms, received, transaction) for transaction in transactions]
        return add_partitions_response(received.version, request, answers)

    def _added(
        self,
        now_ms: int,
        received: RequestReceived,
        transaction: AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
    ) -> TopicResults:
        """The answer for one transaction of a request."""
        topics = transaction.topics
        missing = missing_partitions(self._env, topics)
        if missing is not None:
            return results_by_partition(missing)
        found = dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions)
        partitions = sorted(found)
        transactional_id = transaction.transactional_id
        producer = (transaction.producer_id, transaction.producer_epoch)
        try:
            self._require_here(received, transactional_id)
            if transaction.verify_only:
                checked = verified(self._env, transactional_id, producer, partitions)
                return results_by_partition(checked)
            by_broker = received.version >= BATCHED_SINCE
            client_version = ClientVersion.V2 if by_broker else ClientVersion.V0
            self._add(now_ms, transactional_id, producer, tuple(found), client_version)
        except Refused as refused:
            code = _told(received, refused.code)
            if transaction.verify_only:
                return results_by_partition(dict.fromkeys(partitions, code))
            return results_as_asked(topics, code)
        return results_as_asked(topics, ErrorCode.NONE)

    def _describe(
        self, _now_ms: int, received: RequestReceived, request: DescribeTransactionsRequest
    ) -> Message:
        return describe_transactions(
            self._env, request, lambda name: self.problem(name, received.node_id)
        )

    def _list(
        self, now_ms: int, received: RequestReceived, request: ListTransactionsRequest
    ) -> Message:
        return list_transactions(
            self._env,
            now_ms,
            request,
            lambda name: self.problem(name, received.node_id),
            is_loading=self._is_loading(received.node_id),
        )

    def _add(
        self,
        now_ms: int,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Sequence[TxnPartition],
        client_version: ClientVersion,
    ) -> None:
        change = decide_add(
            self._env, now_ms, transactional_id, producer, partitions, client_version
        )
        self._make(now_ms, change)

    # --- Endings ----------------------------------------------------------------------------------

    def take_endings(self) -> tuple[Ending, ...]:
        """The transactions whose outcome was decided since the last call: markers must be written
        to all of their partitions, and then ``markers_written`` be called."""
        taken, self._endings = self._endings, {}
        found = ((name, self._env.state.get(name)) for name in taken)
        return tuple(ending_of(name, entry.value) for name, entry in found if entry is not None)

    def markers_written(self, now_ms: int, transactional_id: str) -> None:
        """Every partition of a transaction has its marker; the transaction is complete."""
        entry = self._env.state.get(transactional_id)
        if entry is not None and entry.value.state.is_prepared:
            self._make(now_ms, completed(now_ms, transactional_id, entry))

    # --- Time -------------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        if self._endings:
            return self._started_ms  # at once
        first = min(self._loads.values()) if self._loads else None
        if self._time_outs and (first is None or self._time_outs[0][0] < first):
            first = self._time_outs[0][0]
        if self._expiry_ms is not None and (first is None or self._expiry_ms < first):
            first = self._expiry_ms
        return first

    def run_due(self, now_ms: int) -> None:
        """Finish loads, abort what is open for too long, forget ids that are not used."""
        for partition in [p for p, due_ms in self._loads.items() if due_ms <= now_ms]:
            self._load(now_ms, partition)
        while self._time_outs and self._time_outs[0][0] <= now_ms:
            due_ms, transactional_id = heapq.heappop(self._time_outs)
            if self._scheduled.get(transactional_id) == due_ms:
                del self._scheduled[transactional_id]
                self._look_at_time(now_ms, transactional_id)
        if self._expiry_ms is not None and self._expiry_ms <= now_ms:
            self._expire(now_ms)

    def _look_at_time(self, now_ms: int, transactional_id: str) -> None:
        """Abort a transaction that is open for too long; a younger one has its time still."""
        entry = self._env.state.get(transactional_id)
        if entry is None or entry.value.state is not _State.ONGOING:
            return
        if _is_over(entry.value, now_ms):
            self._make(now_ms, fenced_abort(self._env, now_ms, transactional_id, entry))
        else:
            self._watch(now_ms, transactional_id, entry.value)

    def _expire(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._env.config.integer("transactional.id.expiration.ms")
        state = self._env.state
        expired = [
            TransactionLog(transactional_id, None)
            for transactional_id, entry in state
            if (entry.value.state is _State.EMPTY or entry.value.state.is_complete)
            and entry.value.last_update_ms <= oldest_ms
        ]
        if expired:
            self._journal.append(now_ms, *expired)
        for tombstone in expired:
            state.apply(tombstone)
        self._expiry_ms = None
        if len(state):
            self._watch_expiry(now_ms)

    def _watch_expiry(self, now_ms: int) -> None:
        if self._expiry_ms is None:
            name = "transaction.remove.expired.transaction.cleanup.interval.ms"
            self._expiry_ms = self._tick(now_ms + 1, self._env.config.integer(name))

    def _tick(self, at_ms: int, interval_ms: int) -> int:
        """The first run at or after a time of something that runs at an interval."""
        runs = max(1, -(-(at_ms - self._started_ms) // interval_ms))
        return self._started_ms + runs * interval_ms

    # --- Changes ----------------------------------------------------------------------------------

    def _make(self, now_ms: int, change: Change | None) -> None:
        if change is None:
            return
        record = TransactionLog(change.transactional_id, change.value)
        self._journal.append(now_ms, record)
        before = self._env.state.get(change.transactional_id)
        open_before = before is not None and before.value.state is _State.ONGOING
        self._env.state.apply(record, change.last_producer_epoch)
        if not open_before or change.value is None or change.value.state is not _State.ONGOING:
            self._watch(now_ms, change.transactional_id, change.value)

    def _watch(self, now_ms: int, transactional_id: str, value: TransactionMetadata | None) -> None:
        """See to what has to happen to a transactional id later."""
        if value is None:
            return
        self._watch_expiry(now_ms)
        if value.state.is_prepared:
            self._endings[transactional_id] = None
        elif value.state is _State.ONGOING:
            name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            over_ms = max(now_ms, value.start_ms + value.timeout_ms) + 1
            due_ms = self._tick(over_ms, self._env.config.integer(name))
            if self._scheduled.get(transactional_id, due_ms + 1) > due_ms:
                self._scheduled[transactional_id] = due_ms
                heapq.heappush(self._time_outs, (due_ms, transactional_id))


def _told(received: RequestReceived, code: ErrorCode, since: int = _FENCED_SINCE) -> ErrorCode:
    """An error in words that the version of the request knows."""
    if code is ErrorCode.PRODUCER_FENCED and received.version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def _is_over(value: TransactionMetadata, now_ms: int) -> bool:
    return value.state is _State.ONGOING and value.start_ms + value.timeout_ms < now_ms
