"""FindCoordinator (key 10): the broker that leads a key's partition of an internal topic."""

from __future__ import annotations

import re
from typing import Final

from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.internal_topics import (
    create_offsets_topic,
    create_transactions_topic,
)
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

__all__ = ["find_coordinator"]

_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_BATCHED_SINCE: Final = 4
_SHARE_SINCE: Final = 6

_TOPICS: Final = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTIONS_TOPIC}
_PARTITIONS: Final = {
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
    TRANSACTIONS_TOPIC: "transaction.state.log.num.partitions",
}

_SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:\d+")
"""``group:topicId:partition`` (KIP-932)."""


def find_coordinator(call: ApiCall[FindCoordinatorRequest]) -> FindCoordinatorResponse:
    """Where to send group (or transaction) requests; any key will do, it need not exist."""
    broker, now_ms, version, request = call.broker, call.now_ms, call.version, call.request
    if version < _BATCHED_SINCE:
        found = _find(broker, now_ms, version, request.key_type, request.key)
        # versions 1-3 name the error even when there is none
        message = "NONE" if not found.error_code else found.error_message
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    return FindCoordinatorResponse(
        coordinators=tuple(
            _find(broker, now_ms, version, request.key_type, key)
            for key in request.coordinator_keys
        )
    )


def _find(
    broker: Broker, now_ms: int, version: int, key_type: int, key: str
) -> FindCoordinatorResponseCoordinator:
    if key_type == _SHARE and version >= _BATCHED_SINCE:
        readable = version >= _SHARE_SINCE and _SHARE_KEY.fullmatch(key) is not None
        usable = readable and broker.profile.share_groups
        # share groups are not served: a broker that has no coordinator for a key says so
        return _missing(
            key, ErrorCode.COORDINATOR_NOT_AVAILABLE if usable else ErrorCode.INVALID_REQUEST, ""
        )
    if key_type not in _TOPICS:
        return _missing(key, ErrorCode.INVALID_REQUEST, default_message(ErrorCode.INVALID_REQUEST))
    if key_type == _GROUP:
        create_offsets_topic(broker, now_ms)
    else:
        create_transactions_topic(broker, now_ms)
    return _found(broker, key, _TOPICS[key_type])


def _found(broker: Broker, key: str, topic: str) -> FindCoordinatorResponseCoordinator:
    partitions = broker.config.integer(_PARTITIONS[topic])
    node_id = broker.coordinator_node(partition_for(key, partitions), topic)
    if node_id is None:
        return _missing(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    node = broker.nodes[node_id]
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=node_id, host=node.host, port=node.port, error_message=""
    )


def _missing(key: str, code: ErrorCode, message: str | None) -> FindCoordinatorResponseCoordinator:
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
