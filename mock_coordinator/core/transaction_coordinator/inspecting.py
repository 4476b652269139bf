"""DescribeTransactions and ListTransactions (APIs 65 and 66, KIP-664). Read only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import re2

from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.transaction_coordinator.environment import Environment
from mock_coordinator.core.transaction_coordinator.records import (
    TransactionMetadata,
    TransactionState,
)

__all__ = ["describe_transactions", "list_transactions"]

Problem = Callable[[str], ErrorCode | None]
"""Why the node that was asked does not coordinate a transactional id, if it does not."""

_NAMES: Final = {state.kafka_name: state for state in TransactionState}


def describe_transactions(
    env: Environment, request: DescribeTransactionsRequest, problem_of: Problem
) -> DescribeTransactionsResponse:
    """Each transactional id that is asked for, or why there is none: INVALID_REQUEST,
    TRANSACTIONAL_ID_NOT_FOUND or NOT_COORDINATOR."""
    return DescribeTransactionsResponse(
        transaction_states=tuple(
            _described(env, name, problem_of(name)) for name in request.transactional_ids
        )
    )


def _described(
    env: Environment, transactional_id: str, problem: ErrorCode | None
) -> DescribeTransactionsResponseTransactionState:
    answer = DescribeTransactionsResponseTransactionState(transactional_id=transactional_id)
    entry = env.state.get(transactional_id)
    if not transactional_id:
        answer.error_code = ErrorCode.INVALID_REQUEST
        return answer
    if entry is None or problem is not None:
        answer.error_code = problem or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return answer
    value = entry.value
    topics: dict[str, list[int]] = {}
    for topic, partition in value.partitions:
        topics.setdefault(topic, []).append(partition)
    answer.transaction_state = value.state.kafka_name
    answer.transaction_timeout_ms = value.timeout_ms
    answer.transaction_start_time_ms = value.start_ms
    answer.producer_id, answer.producer_epoch = value.producer_id, value.producer_epoch
    answer.topics = tuple(
        DescribeTransactionsResponseTopicData(topic=topic, partitions=tuple(partitions))
        for topic, partitions in topics.items()
    )
    return answer


def list_transactions(
    env: Environment,
    now_ms: int,
    request: ListTransactionsRequest,
    problem_of: Problem,
    *,
    is_loading: bool = False,
) -> ListTransactionsResponse:
    """All transactional ids of a node that pass every filter; a filter that is empty lets
    everything pass. A node that still loads some of them lists none."""
    if is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = None
    if request.transactional_id_pattern:
        try:
            options = re2.Options()
            options.log_errors = False  # a client's mistake must not be logged to stderr
            pattern = re2.compile(request.transactional_id_pattern, options)
        except re2.error:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    states = {_NAMES[name] for name in request.state_filters if name in _NAMES}
    found = [
        ListTransactionsResponseTransactionState(
            transactional_id=transactional_id,
            producer_id=entry.value.producer_id,
            transaction_state=entry.value.state.kafka_name,
        )
        for transactional_id, entry in env.state
        if _passes(now_ms, entry.value, request)
        and (not request.state_filters or entry.value.state in states)
        and (pattern is None or pattern.fullmatch(transactional_id) is not None)
        and problem_of(transactional_id) is None
    ]
    return ListTransactionsResponse(
        unknown_state_filters=tuple(
            dict.fromkeys(name for name in request.state_filters if name not in _NAMES)
        ),
        transaction_states=tuple(found),
    )


def _passes(now_ms: int, value: TransactionMetadata, request: ListTransactionsRequest) -> bool:
    if request.producer_id_filters and value.producer_id not in request.producer_id_filters:
        return False
    return request.duration_filter < 0 or now_ms - value.start_ms > request.duration_filter
