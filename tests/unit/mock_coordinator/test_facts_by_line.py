"""Facts of release lines that administrators see, or that are seldom seen: words, odd answers."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.security import SecurityOptions
from tests.support.plain_message import message

LINES = pytest.mark.parametrize("profile", ["4.0", "4.1", "4.2", "4.3", "4.4"])


def ask(profile: str, who: str, request: Any, version: int) -> Any:
    """What a broker with access control lists answers ``who``; root may do everything."""
    security = SecurityOptions(super_users=("User:root",))
    broker = MockBroker(profile=profile, security=security, clock=VirtualClock(), listen=False)
    return broker.connect(principal=f"User:{who}").ask(request, version)


def altered(kind: int, name: str, setting: str, value: str) -> Any:
    change = {"name": setting, "config_operation": 0, "value": value}
    resource = {"resource_type": kind, "resource_name": name, "configs": [change]}
    return message("IncrementalAlterConfigs", resources=[resource])


@LINES
def test_a_request_that_the_controller_refuses(profile: str) -> None:
    quotas = message("AlterPartitionReassignments", topics=[], timeout_ms=1000)
    answer = ask(profile, "alice", quotas, 0)
    said = "is not authorized." if profile == "4.0" else "needs ALTER permission."
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.error_message == f"Request AlterPartitionReassignmentsRequest {said}"


@LINES
def test_who_may_not_alter_a_broker_hears_no_reason_in_4_2_and_4_4(profile: str) -> None:
    (row,) = ask(profile, "alice", altered(4, "1", "log.cleaner.threads", "2"), 1).responses
    said = None if profile in ("4.2", "4.4") else "Cluster authorization failed."
    assert (row.error_code, row.error_message) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, said)


@LINES
def test_an_access_control_list_has_a_host_from_4_4_on(profile: str) -> None:
    creation = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:x",
        "host": "",
        "operation": 3,
        "permission_type": 3,
    }
    (row,) = ask(profile, "root", message("CreateAcls", creations=[creation]), 3).results
    refused = (ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty")
    assert (row.error_code, row.error_message) == (refused if profile == "4.4" else (0, ""))


@LINES
def test_how_a_duration_is_written(profile: str) -> None:
    request = altered(32, "g", "share.auto.offset.reset", "by_duration:soon")
    (row,) = ask(profile, "root", request, 1).responses
    form = "PnDTnHnMn.nS." if profile == "4.0" else "PnDTnHnMn.nS"
    assert row.error_message.endswith(f"or of the format 'by_duration:<{form}>'.")


@LINES
def test_loggers_of_another_broker(profile: str) -> None:
    (row,) = ask(profile, "root", altered(8, "7", "root", "INFO"), 1).responses
    named = 1 if profile == "4.0" else 7
    said = f"Unexpected node id. Expected 1, but received {named}"
    assert (row.error_code, row.error_message) == (ErrorCode.INVALID_REQUEST, said)


@LINES
def test_a_pattern_may_name_its_groups_from_4_1_on(profile: str) -> None:
    heartbeat = message(
        "ConsumerGroupHeartbeat",
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="(?<all>.*)",
        topic_partitions=[],
    )
    answer = ask(profile, "root", heartbeat, 1)
    assert answer.error_code == (ErrorCode.INVALID_REGULAR_EXPRESSION if profile == "4.0" else 0)
