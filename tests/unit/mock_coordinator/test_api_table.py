"""The table of APIs: nothing that a profile offers is missing, and each row keeps its promises."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from kip848_client.core.wire import APIS, DRAFT_API_KEYS
from kip848_client.errors import TransportError
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.apis.table import SERVED
from mock_coordinator.core.profiles import PROFILES
from mock_coordinator.security import SecurityOptions
from mock_coordinator.storage.documents import documents_of
from tests.support.plain_message import message

ROWS = {APIS[api.request.API_KEY].name: api for api in SERVED}


def test_every_api_of_every_profile_has_one_row() -> None:
    offered = {name for profile in PROFILES.values() for name in profile.api_versions}
    offered.update(APIS[key].name for key in DRAFT_API_KEYS)
    assert set(ROWS) == offered
    assert len(ROWS) == len(SERVED)


NOT_SERVED = {"GetTelemetrySubscriptions", "PushTelemetry"}
"""What our clients say to real brokers alone: telemetry serves none of those for whom the bundled
broker is."""


def test_every_message_that_we_can_read_is_served() -> None:
    assert set(ROWS) | NOT_SERVED == {api.name for api in APIS.values()}
    assert not NOT_SERVED.intersection(ROWS)


def test_the_rows_are_in_the_order_of_kafkas_keys() -> None:
    keys = [api.request.API_KEY for api in SERVED]
    assert keys == sorted(keys)


def _topic(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1}


def _set(kind: int, name: str, key: str, value: str) -> dict[str, Any]:
    config = {"name": key, "config_operation": 0, "value": value}
    return {"resource_type": kind, "resource_name": name, "configs": [config]}


def _plainly_set(name: str, key: str, value: str) -> dict[str, Any]:
    configs = [{"name": key, "value": value}]
    return {"resource_type": 2, "resource_name": name, "configs": configs}


_ACL = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "x"}],
    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
}
_USER = {"name": "x", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
_GROWN = {"name": "t", "count": 5, "assignments": None}
_MOVED = {"name": "t", "partitions": [{"partition_index": 0, "replicas": [1]}]}

ORDERS: dict[str, dict[str, Any]] = {
    "AlterClientQuotas": {"entries": [_QUOTA]},
    "AlterConfigs": {"resources": [_plainly_set("t", "retention.ms", "7")]},
    "AlterPartitionReassignments": {"timeout_ms": 1000, "topics": [_MOVED]},
    "AlterUserScramCredentials": {"deletions": [], "upsertions": [_USER]},
    "CreateAcls": {"creations": [_ACL]},
    "CreatePartitions": {"timeout_ms": 1000, "topics": [_GROWN]},
    "CreateTopics": {"timeout_ms": 1000, "topics": [_topic("new")]},
    "DeleteAcls": {"filters": [_ANY_ACL]},
    "DeleteRecords": {
        "timeout_ms": 1000,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "offset": 1}]}],
    },
    "DescribeAcls": _ANY_ACL,
    "DeleteTopics": {"timeout_ms": 1000, "topics": [{"name": "t"}]},
    "ElectLeaders": {"timeout_ms": 1000, "topic_partitions": None},
    "IncrementalAlterConfigs": {"resources": [_set(2, "t", "retention.ms", "7")]},
    # and what changes documents by the way
    "FindCoordinator": {"coordinator_keys": ["k"], "key_type": 0},
    "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 1000},
    "Metadata": {"topics": [{"name": "automatic"}], "allow_auto_topic_creation": True},
}
"""Requests that change something where they can, by API; any other is sent with its defaults."""

NOTHING_TO_CHANGE = {"AlterPartitionReassignments", "ElectLeaders"}
"""On one broker."""


@pytest.mark.parametrize("name", sorted(ROWS))
def test_an_api_that_changes_documents_says_so(name: str) -> None:
    """Else a change could be lost: a storage looks at documents after such requests alone, and
    where one of its counters has moved."""
    security = SecurityOptions(super_users=("User:ANONYMOUS",))
    broker = MockBroker({"t": 2}, security=security, clock=VirtualClock(), listen=False)
    broker.produce("t", b"a", partition=0)
    broker.produce("t", b"b", partition=0)
    disk = broker.core.broker.disk
    if name == "DeleteAcls":
        broker.connect().ask(message("CreateAcls", creations=[_ACL]))

    def seen() -> tuple[int, int, int]:
        return disk.catalog.version, disk.producer_ids_taken, disk.leaders.version

    counters, before = seen(), dict(documents_of(disk))
    request = message(name, **ORDERS.get(name, {}))
    with contextlib.suppress(TransportError):  # some have to wait, or are never answered
        broker.connect().ask(request)
    changed = documents_of(disk) != before
    row = ROWS[name]
    assert not changed or row.writes_documents or seen() != counters
    if row.writes_documents and name not in NOTHING_TO_CHANGE:
        assert changed, "the request of this test changes something"
