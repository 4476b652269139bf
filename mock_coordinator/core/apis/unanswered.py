"""Requests that Kafka never answers, because an exception ends their handling.

The connection stays open but nothing more is read from it, until it has been idle for too long. No
correct client sends such requests. They are not answered here either, so that the author of a
client notices the mistake before a real broker shows it; the server's log says what is wrong. Each
function returns what makes Kafka fail on a request of its API, or ``None`` for a good one.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.config_resources import AlterConfigsRequest
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.core.wire.messages.produce import ProduceRequest
from kip848_client.core.wire.messages.transaction_admin import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
)
from kip848_client.core.wire.messages.transactions import AddPartitionsToTxnRequest
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC

__all__ = ["no_group", "no_marker_to_write", "no_transaction", "null_records", "resource_twice"]

_BATCHED_SINCE: Final = 4
_GROUPS_SINCE: Final = 8


def null_records(call: ApiCall[ProduceRequest]) -> str | None:
    """Null for records of a partition that exists."""
    broker = call.broker
    for topic in call.request.topic_data:
        found = broker.catalog.topic(topic.name) if topic.name else None
        known = found or broker.catalog.topic_by_id(topic.topic_id)
        for part in topic.partition_data:
            if part.records is None and known is not None and 0 <= part.index < known.partitions:
                return f"partition {part.index} of {known.name} has null for records"
    return None


def no_transaction(call: ApiCall[AddPartitionsToTxnRequest]) -> str | None:
    """A batch of no transactions."""
    if call.version >= _BATCHED_SINCE and not call.request.transactions:
        return "no transaction is named"
    return None


def resource_twice(call: ApiCall[AlterConfigsRequest]) -> str | None:
    """One resource twice."""
    named = [(each.resource_type, each.resource_name) for each in call.request.resources]
    return "a resource is named twice" if len(set(named)) < len(named) else None


def no_group(call: ApiCall[OffsetFetchRequest]) -> str | None:
    """No group, before Kafka 4.1."""
    if call.version < _GROUPS_SINCE or call.request.groups:
        return None
    return "no group is named" if call.broker.profile.empty_offset_fetch_unanswered else None


def no_marker_to_write(call: ApiCall[WriteTxnMarkersRequest]) -> str | None:
    """A marker for one partition twice, or a last marker for none."""
    broker, markers = call.broker, call.request.markers
    if any(_appends_twice(broker, marker) for marker in markers):
        return "a marker names a partition twice"
    if not markers or _is_about_nothing(markers) or not _is_about_nothing(markers[-1:]):
        return None
    # group coordinators answer later, so that a marker of theirs comes last wherever it stands
    if any(topic.name == OFFSETS_TOPIC for marker in markers for topic in marker.topics):
        return None
    return "the last marker names no partition"


def _is_about_nothing(markers: tuple[WriteTxnMarkersRequestWritableTxnMarker, ...]) -> bool:
    return not any(topic.partition_indexes for marker in markers for topic in marker.topics)


def _appends_twice(broker: Broker, marker: WriteTxnMarkersRequestWritableTxnMarker) -> bool:
    if marker.producer_epoch < 0 or marker.transaction_version < 0:
        return False  # refused before
    seen: set[tuple[str, int]] = set()
    for topic in marker.topics:
        known = broker.catalog.topic(topic.name)
        if known is None or topic.name == OFFSETS_TOPIC:
            continue
        for index in topic.partition_indexes:
            if 0 <= index < known.partitions and (topic.name, index) in seen:
                return True
            seen.add((topic.name, index))
    return False
