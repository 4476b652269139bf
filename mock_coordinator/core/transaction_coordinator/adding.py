"""AddPartitionsToTxn and AddOffsetsToTxn (APIs 24 and 25): the partitions of a transaction.

Clients of transaction version 1 add partitions with these requests before they write to them.
Brokers use version 4 and later of AddPartitionsToTxn: to add partitions for clients of version 2,
or only to verify that a partition was added (``verify_only``, KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.map_orders import java_order, partition_code, string_map_order
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.transaction_coordinator.environment import Change, Environment
from mock_coordinator.core.transaction_coordinator.records import (
    ClientVersion,
    TransactionState,
    TxnPartition,
)
from mock_coordinator.core.transaction_coordinator.state import TransactionEntry

__all__ = [
    "add_partitions_response",
    "decide_add",
    "missing_partitions",
    "results_as_asked",
    "results_by_partition",
    "verified",
]

BATCHED_SINCE: Final = 4
"""From this version on a request is about several transactions, and comes from a broker."""

_Topics = Sequence[AddPartitionsToTxnRequestAddPartitionsToTxnTopic]
_TopicResult = AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult
Results = dict[TxnPartition, ErrorCode]
TopicResults = tuple[_TopicResult, ...]


def decide_add(
    env: Environment,
    now_ms: int,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: Sequence[TxnPartition],
    client_version: ClientVersion,
) -> Change | None:
    """Make partitions part of the producer's transaction, which begins if none is open; ``None``
    when they are part of it. Raises ``Refused``."""
    entry = _current(env, transactional_id, producer)
    value = entry.value
    added = tuple(dict.fromkeys(p for p in partitions if p not in value.partitions))
    open_already = value.state is TransactionState.ONGOING
    if open_already and not added:
        return None
    following = replace(
        value,
        state=TransactionState.ONGOING,
        partitions=(*value.partitions, *added),
        last_update_ms=now_ms,
        start_ms=value.start_ms if open_already else now_ms,
        client_version=client_version,
    )
    return Change(transactional_id, following, entry.last_producer_epoch)


def verified(
    env: Environment,
    transactional_id: str,
    producer: tuple[int, int],
    partitions: Sequence[TxnPartition],
) -> Results:
    """Whether each partition is part of the producer's transaction (TRANSACTION_ABORTABLE when
    it is not). Raises ``Refused``."""
    known = _current(env, transactional_id, producer).value.partitions
    return {
        p: ErrorCode.NONE if p in known else ErrorCode.TRANSACTION_ABORTABLE for p in partitions
    }


def _current(
    env: Environment, transactional_id: str, producer: tuple[int, int]
) -> TransactionEntry:
    entry = env.entry(transactional_id, producer[0])
    if entry.value.producer_epoch != producer[1]:
        raise Refused(ErrorCode.PRODUCER_FENCED)
    if entry.value.state.is_prepared:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return entry


def missing_partitions(env: Environment, topics: _Topics) -> Results | None:
    """The answer when some partition does not exist: then none of them is added."""
    results: Results = {}
    missing = False
    for topic in topics:
        found = env.catalog.topic(topic.name)
        for index in topic.partitions:
            exists = found is not None and 0 <= index < found.partitions
            missing = missing or not exists
            results[topic.name, index] = (
                ErrorCode.OPERATION_NOT_ATTEMPTED
                if exists
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    return results if missing else None


def add_partitions_response(
    version: int, request: AddPartitionsToTxnRequest, results: Iterable[TopicResults]
) -> AddPartitionsToTxnResponse:
    """The answers for all transactions of a request, in its order."""
    if version < BATCHED_SINCE:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=next(iter(results)))
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            AddPartitionsToTxnResponseAddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=found
            )
            for transaction, found in zip(request.transactions, results, strict=True)
        )
    )


def results_as_asked(topics: _Topics, code: ErrorCode) -> TopicResults:
    """One code for all, topic by topic as they were named."""
    return tuple(
        _topic_result(topic.name, ((index, code) for index in topic.partitions)) for topic in topics
    )


def results_by_partition(results: Results) -> TopicResults:
    """Each partition once, in the order of the maps that Kafka collects them in."""
    topics: dict[str, list[tuple[int, ErrorCode]]] = {}
    for name, index in java_order(results, partition_code):
        topics.setdefault(name, []).append((index, results[name, index]))
    return tuple(_topic_result(name, topics[name]) for name in string_map_order(topics))


def _topic_result(name: str, codes: Iterable[tuple[int, ErrorCode]]) -> _TopicResult:
    return _TopicResult(
        name=name,
        results_by_partition=tuple(
            AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code
            )
            for index, code in codes
        ),
    )
