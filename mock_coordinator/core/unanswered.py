"""Requests that Kafka never answers: it fails on them where it would have to answer.

The connection stays open, and nothing more is read from it, until it has been idle for too long.
No client of good faith sends these. They are not answered here, either, so that whoever writes a
client learns of the mistake here already; the server's log says what is wrong with the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.wire.messages.config_resources import AlterConfigsRequest
from kip848_client.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.wire.messages.produce import ProduceRequest
from kip848_client.wire.messages.transaction_admin import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
)
from kip848_client.wire.messages.transactions import AddPartitionsToTxnRequest
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC

__all__ = ["never_answered"]

_BATCHED_SINCE: Final = 4
_GROUPS_SINCE: Final = 8


def never_answered(broker: Broker, version: int, request: Any) -> str | None:
    """What Kafka fails on in a request, so that there is no answer; ``None`` for a good one.

    Whether such a request has been carried out differs: a produce request has not, the others have
    as far as they go.
    """
    why = _REASONS.get(type(request))
    return None if why is None else why(broker, version, request)


def _produce(broker: Broker, _version: int, request: ProduceRequest) -> str | None:
    for topic in request.topic_data:
        found = broker.catalog.topic(topic.name) if topic.name else None
        known = found or broker.catalog.topic_by_id(topic.topic_id)
        for part in topic.partition_data:
            if part.records is None and known is not None and 0 <= part.index < known.partitions:
                return f"partition {part.index} of {known.name} has null for records"
    return None


def _add_partitions(
    _broker: Broker, version: int, request: AddPartitionsToTxnRequest
) -> str | None:
    if version >= _BATCHED_SINCE and not request.transactions:
        return "no transaction is named"
    return None


def _alter_configs(_broker: Broker, _version: int, request: AlterConfigsRequest) -> str | None:
    named = [(each.resource_type, each.resource_name) for each in request.resources]
    return "a resource is named twice" if len(set(named)) < len(named) else None


def _offset_fetch(broker: Broker, version: int, request: OffsetFetchRequest) -> str | None:
    if version < _GROUPS_SINCE or request.groups:
        return None
    return "no group is named" if broker.profile.empty_offset_fetch_unanswered else None


def _write_markers(broker: Broker, _version: int, request: WriteTxnMarkersRequest) -> str | None:
    markers = request.markers
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


_REASONS: Final[Mapping[type[Any], Callable[[Broker, int, Any], str | None]]] = {
    ProduceRequest: _produce,
    AddPartitionsToTxnRequest: _add_partitions,
    AlterConfigsRequest: _alter_configs,
    OffsetFetchRequest: _offset_fetch,
    WriteTxnMarkersRequest: _write_markers,
}
