"""Are two answers the same? Field by field, with every exception in a table.

``differences(real, other, prefix)`` walks two response messages of one class. What may differ is
listed here and nowhere else: ids that the broker chooses, hosts, ports; and lists whose order
Kafka leaves to the iteration order of hash maps, which are compared as sets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.types import format_topic_id
from mock_coordinator.core.logs.record_batch import HEADER_BYTES, read_header
from tests.differential._consumer_protocol import assigned, assignment

__all__ = ["Difference", "differences", "plain", "texts", "value_at"]

IGNORED: Final = {
    ("FindCoordinatorResponse", "node_id"),
    ("FindCoordinatorResponse", "host"),
    ("FindCoordinatorResponse", "port"),
    ("FindCoordinatorResponseCoordinator", "node_id"),
    ("FindCoordinatorResponseCoordinator", "host"),
    ("FindCoordinatorResponseCoordinator", "port"),
    ("DescribeTransactionsResponseTransactionState", "transaction_start_time_ms"),
    ("DescribeProducersResponseProducerState", "last_timestamp"),
    ("MetadataResponse", "brokers"),
    ("MetadataResponse", "cluster_id"),
    ("DescribeClusterResponse", "cluster_id"),
    ("DescribeClusterResponseBroker", "port"),
}
"""(class, field): where the broker is, and the id it gave itself."""

UNORDERED: Final = {
    ("ConsumerGroupHeartbeatResponseAssignment", "topic_partitions"): ("topic_id",),
    ("ConsumerGroupHeartbeatResponseTopicPartitions", "partitions"): (),
    ("ConsumerGroupDescribeResponseAssignment", "topic_partitions"): ("topic_id",),
    ("ConsumerGroupDescribeResponseTopicPartitions", "partitions"): (),
    ("ConsumerGroupDescribeResponseDescribedGroup", "members"): ("member_id",),
    ("ListGroupsResponse", "groups"): ("group_id",),
    ("DeleteGroupsResponse", "results"): ("group_id",),
    ("DescribeConfigsResponse", "results"): ("resource_type", "resource_name"),
    ("DescribeConfigsResponseDescribeConfigsResult", "configs"): ("name",),
    ("IncrementalAlterConfigsResponse", "responses"): ("resource_type", "resource_name"),
    ("CreateTopicsResponse", "topics"): ("name",),
    ("CreateTopicsResponseCreatableTopicResult", "configs"): ("name",),
    ("DeleteTopicsResponse", "responses"): ("name", "topic_id"),
    ("CreatePartitionsResponse", "results"): ("name",),
    ("MetadataResponse", "topics"): ("name",),
    ("MetadataResponseTopic", "partitions"): ("partition_index",),
    ("DescribeGroupsResponseDescribedGroup", "members"): ("member_id",),
    ("JoinGroupResponse", "members"): ("member_id",),
    ("DescribeTransactionsResponse", "transaction_states"): ("transactional_id",),
    ("DescribeTransactionsResponseTransactionState", "topics"): ("topic",),
    ("DescribeTransactionsResponseTopicData", "partitions"): (),
    ("DescribeProducersResponsePartitionResponse", "active_producers"): ("producer_id",),
    ("DescribeAclsResponse", "resources"): ("resource_type", "resource_name", "pattern_type"),
    ("DescribeAclsResponseDescribeAclsResource", "acls"): (
        "principal",
        "host",
        "operation",
        "permission_type",
    ),
    ("DeleteAclsResponseDeleteAclsFilterResult", "matching_acls"): (
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    ),
    ("AddPartitionsToTxnResponse", "results_by_topic_v3_and_below"): ("name",),
    ("AddPartitionsToTxnResponseAddPartitionsToTxnResult", "topic_results"): ("name",),
    ("AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult", "results_by_partition"): (
        "partition_index",
    ),
    ("ListTransactionsResponse", "transaction_states"): ("transactional_id",),
    ("OffsetFetchResponse", "topics"): ("name",),
    ("OffsetFetchResponseTopic", "partitions"): ("partition_index",),
    ("OffsetFetchResponseGroup", "topics"): ("name", "topic_id"),
    ("OffsetFetchResponseTopics", "partitions"): ("partition_index",),
}
"""(class, field): the fields to sort by; none for a list of numbers."""


ASSIGNMENTS: Final = {
    ("SyncGroupResponse", "assignment"),
    ("DescribeGroupsResponseDescribedGroupMember", "member_assignment"),
}
"""(class, field): assignments in the format of consumers, whose order is that of hash maps when
the broker wrote them."""

_OWNED: Final = {
    ("ListGroupsResponse", "groups"): "group_id",
    ("ListTransactionsResponse", "transaction_states"): "transactional_id",
}
"""(class, field): lists of a whole broker, of which only what the sequence made is compared, and
the field that tells."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not equal. ``is_text`` for the words of an error."""

    path: str
    real: object
    other: object

    @property
    def is_text(self) -> bool:
        return self.path.endswith("error_message")

    def __str__(self) -> str:
        return f"{self.path}: real {self.real!r}, other {self.other!r}"


def differences(real: Any, other: Any, prefix: str = "") -> list[Difference]:
    """Every field in which two answers differ. ``prefix`` is that of the sequence's group ids:
    other groups of a ListGroups answer are none of its business."""
    if real == other and type(real) is type(other):
        return []  # the usual case, and many times as fast
    return list(_walk("", plain(real, prefix), plain(other, prefix)))


def texts(answer: Any) -> int:
    """How many error texts an answer has."""
    return _count_texts(plain(answer))


def value_at(answer: Any, path: str) -> Any:
    """A field of a field of an answer: ``"groups.0.group_state"``; ``None`` where there is none."""
    value = answer
    for part in path.split("."):
        if isinstance(value, tuple):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = getattr(value, part, None)
    return value


def plain(message: Any, prefix: str = "") -> Any:
    """A message as dicts and lists: ignored fields left out, unordered lists sorted."""
    if not dataclasses.is_dataclass(message):
        if isinstance(message, bytes) and len(message) == 16:
            return format_topic_id(message)
        return message
    kind = type(message).__name__
    found: dict[str, Any] = {}
    for field in dataclasses.fields(message):
        if (kind, field.name) in IGNORED:
            continue
        value = getattr(message, field.name)
        if isinstance(value, tuple):
            items = [plain(each, prefix) for each in value]
            keys = UNORDERED.get((kind, field.name))
            if keys is not None:
                items.sort(key=_sort_key(keys))
            owned = _OWNED.get((kind, field.name))
            if owned is not None:
                items = [item for item in items if _belongs(item[owned], prefix)]
            found[field.name] = items
        elif (kind, field.name) in ASSIGNMENTS:
            found[field.name] = _assignment(value)
        elif field.name == "records" and isinstance(value, bytes):
            found[field.name] = _batches(value)
        else:
            found[field.name] = plain(value, prefix)
    return found


def _assignment(data: bytes) -> object:
    """Topics and partitions sorted, and what comes before and after them; the bytes themselves
    if they are no assignment."""
    partitions = assigned(data)
    again = assignment(0, partitions)[2:-4]  # without the version and the user data
    end = 2 + len(again)
    if not partitions or again != data[2:end]:
        return data
    return {
        "version": data[:2],
        "rest": data[end:],
        "partitions": {name: sorted(numbers) for name, numbers in sorted(partitions.items())},
    }


def _batches(records: bytes) -> list[dict[str, Any]]:
    """What is in batches of records: all but their checksums, and the times of control batches,
    which the broker made."""
    found: list[dict[str, Any]] = []
    position = 0
    while position + HEADER_BYTES <= len(records):
        header = read_header(records, position)
        fields = dataclasses.asdict(header)
        del fields["crc"]
        if header.is_control:
            del fields["base_timestamp"], fields["max_timestamp"]
        fields["payload"] = records[position + HEADER_BYTES : position + header.size_bytes]
        found.append(fields)
        position += header.size_bytes
    if position != len(records):  # of the last batch, which is cut
        found.append({"bytes": len(records) - position})
    return found


def _sort_key(keys: tuple[str, ...]) -> Callable[[Any], list[Any]]:
    return lambda item: [str(item[key]) for key in keys] or [item]


def _belongs(group_id: str, prefix: str) -> bool:
    return group_id == prefix or group_id.startswith(f"{prefix}-")


def _walk(path: str, real: Any, other: Any) -> list[Difference]:
    if isinstance(real, dict) and isinstance(other, dict):
        keys = [*real, *(key for key in other if key not in real)]
        parts = [(f"{path}.{key}".lstrip("."), real.get(key), other.get(key)) for key in keys]
    elif isinstance(real, list) and isinstance(other, list) and len(real) == len(other):
        pairs = enumerate(zip(real, other, strict=True))
        parts = [(f"{path}[{number}]", left, right) for number, (left, right) in pairs]
    elif real == other:
        return []
    else:
        return [Difference(path, real, other)]
    return [each for part in parts for each in _walk(*part)]


def _count_texts(value: Any) -> int:
    if isinstance(value, dict):
        own = 1 if value.get("error_message") else 0
        return own + sum(_count_texts(each) for each in value.values())
    return sum(_count_texts(each) for each in value) if isinstance(value, list) else 0
