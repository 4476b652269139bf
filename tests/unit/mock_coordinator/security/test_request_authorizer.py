"""Rights before the handlers: what is refused, what passes in part, what comes out whole."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.apis.table import SERVED
from mock_coordinator.core.security.acls import acls_from_data
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.support.plain_message import message

OPTIONS = SecurityOptions(
    acls=acls_from_data(
        [
            {
                "principal": "User:alice",
                "operation": operation,
                "resource_type": kind,
                "name": "mine",
                "pattern_type": "PREFIXED",
            }
            for operation, kind in (("READ", "TOPIC"), ("WRITE", "TOPIC"), ("READ", "GROUP"))
        ]
    ),
    super_users=("User:root",),
)


@pytest.fixture
def broker() -> MockBroker:
    return MockBroker(
        {"mine": 1, "theirs": 1}, security=OPTIONS, clock=VirtualClock(), listen=False
    )


def ask(broker: MockBroker, who: str, request: Any, version: int) -> Any:
    return broker.connect(principal=f"User:{who}").ask(request, version)


def batch(broker: MockBroker) -> bytes:
    broker.produce("mine", b"x")
    log = broker.core.broker.logs.of(broker.core.broker.catalog.topics["mine"], 0)
    assert log is not None
    return log.read(0, 1000, isolation_level=0, at_least_one=True)


def produce(broker: MockBroker, *names: str, acks: int) -> Any:
    data = [{"index": 0, "records": batch(broker)}]
    topics = [{"name": name, "partition_data": data} for name in names]
    return message("Produce", acks=acks, timeout_ms=1000, topic_data=topics)


def test_the_brokers_own_methods_need_no_rights(broker: MockBroker) -> None:
    assert broker.create_topic("more").name == "more"
    assert broker.produce("theirs", b"x") == 0


def test_what_is_held_back_is_in_the_answer(broker: MockBroker) -> None:
    answer = ask(broker, "alice", produce(broker, "theirs", "mine", acks=-1), 11)
    codes = {t.name: t.partition_responses[0].error_code for t in answer.responses}
    assert codes == {"mine": 0, "theirs": 29}
    assert len(broker.records("theirs")) == 0


def test_a_producer_without_acknowledgements_is_told_by_hanging_up(broker: MockBroker) -> None:
    connection = broker.connect(principal="User:alice")
    assert connection.ask(produce(broker, "mine", acks=0), 11) is None
    with pytest.raises(TransportError):
        connection.ask(produce(broker, "mine", "theirs", acks=0), 11)
    assert connection.is_closed


def test_a_fetch_that_waits_answers_with_what_may_be_read(broker: MockBroker) -> None:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topics = [{"topic": name, "partitions": [partition]} for name in ("mine", "theirs")]
    fetch = message(
        "Fetch", max_wait_ms=500, min_bytes=1, max_bytes=9000, session_epoch=-1, topics=topics
    )
    connection = broker.connect(principal="User:alice")
    with pytest.raises(TransportError, match="no response yet"):
        connection.ask(fetch, 12)
    broker.produce("theirs", b"not for alice")
    assert broker.core.parked_requests == 1, "what may not be read does not wake anybody"
    broker.produce("mine", b"for alice")
    assert broker.core.parked_requests == 0


def test_a_right_that_is_taken_away_is_gone_at_once(broker: MockBroker) -> None:
    heartbeat = message(
        "ConsumerGroupHeartbeat",
        group_id="mine",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("mine",),
        topic_partitions=(),
    )
    assert ask(broker, "alice", heartbeat, 1).error_code == 0
    everything = {
        "resource_type_filter": 3,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    delete = message("DeleteAcls", filters=[everything])
    assert (
        ask(broker, "alice", delete, 3).filter_results[0].error_code
        == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    assert len(ask(broker, "root", delete, 3).filter_results[0].matching_acls) == 1
    assert ask(broker, "alice", heartbeat, 1).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_rights_survive_a_crash(broker: MockBroker) -> None:
    broker.restart()
    find = message("FindCoordinator", key_type=0, coordinator_keys=("mine", "theirs"))
    found = ask(broker, "alice", find, 4).coordinators
    assert [each.error_code for each in found] == [0, 30]


def test_without_an_authorizer_there_is_nothing_to_configure() -> None:
    broker = MockBroker(clock=VirtualClock(), listen=False)
    creation = {
        "resource_type": 2,
        "resource_name": "t",
        "principal": "User:x",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    answer = broker.connect().ask(message("CreateAcls", creations=[creation]), 3)
    assert answer.results[0].error_code == ErrorCode.SECURITY_DISABLED
    assert answer.results[0].error_message == "No Authorizer is configured."
    described = broker.connect().ask(
        message(
            "DescribeAcls",
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
        ),
        3,
    )
    assert described.error_code == ErrorCode.SECURITY_DISABLED
    metadata = message("Metadata", topics=None, include_topic_authorized_operations=True)
    assert broker.connect(principal="User:anybody").ask(metadata, 12).error_code == 0


@pytest.mark.asyncio
async def test_clients_are_sent_to_the_listener_that_they_came_through() -> None:
    options = SecurityOptions(listeners=(ListenerOptions(name="INSIDE"),))
    async with MockBroker({"t": 1}, security=options) as broker:
        host, port = broker.bootstrap_of("INSIDE").split(":")
        assert int(port) != broker.port
        addresses = broker.core.broker.disk.security.addresses
        assert addresses == {"INSIDE": {1: (host, int(port))}}


def test_a_listener_has_no_address_before_it_listens() -> None:
    options = SecurityOptions(listeners=(ListenerOptions(name="INSIDE"),))
    broker = MockBroker(security=options, listen=False, clock=VirtualClock())
    with pytest.raises(KeyError):
        broker.bootstrap_of("INSIDE")
    with pytest.raises(KeyError):
        broker.bootstrap_of("OUTSIDE")


@pytest.mark.parametrize(
    "api",
    [
        "ConsumerGroupPrepareAssignment",
        "ConsumerGroupInstallAssignment",
        "ConnectGroupHeartbeat",
        "ConnectGroupPrepareAssignment",
        "ConnectGroupInstallAssignment",
    ],
)
def test_draft_protocols_are_for_whom_may_read_the_group(broker: MockBroker, api: str) -> None:
    assert (
        ask(broker, "alice", message(api, group_id="theirs", member_id="m"), 0).error_code
        == ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    assert (
        ask(broker, "alice", message(api, group_id="mine", member_id="m"), 0).error_code
        != ErrorCode.GROUP_AUTHORIZATION_FAILED
    )


OPEN_TO_EVERYBODY = {
    "FetchRequest": "judged where the records are read (RequestAuthorizer.may_read)",
    "SaslHandshakeRequest": "before anybody is known",
    "ApiVersionsRequest": "before anybody is known",
    "SaslAuthenticateRequest": "before anybody is known",
}


def test_no_api_is_served_that_nobody_thought_of_the_rights_for() -> None:
    assert {api.request.__name__ for api in SERVED if api.rule is None} == set(OPEN_TO_EVERYBODY)


def test_deleting_offsets_asks_for_the_group_even_when_no_topic_may_be_read() -> None:
    rights = [{"principal": "User:*", "operation": "DELETE", "resource_type": "GROUP", "name": "*"}]
    options = SecurityOptions(acls=acls_from_data(rights), super_users=("User:root",))
    broker = MockBroker({"theirs": 1}, security=options, clock=VirtualClock(), listen=False)
    topics = [{"name": "theirs", "partitions": [{"partition_index": 0}]}]
    request = message("OffsetDelete", group_id="g", topics=topics)
    answer = ask(broker, "alice", request, 0)
    assert (answer.error_code, answer.topics) == (69, ())
    commit = [{"name": "theirs", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    ask(broker, "root", message("OffsetCommit", group_id="g", topics=commit), 8)
    answer = ask(broker, "alice", request, 0)
    assert answer.error_code == 0
    assert [p.error_code for t in answer.topics for p in t.partitions] == [29]
