"""ApiVersions, FindCoordinator, DescribeCluster: what a client asks first."""

from __future__ import annotations

import pytest

from kip848_client.core.wire import APIS, DRAFT_API_KEYS
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.cluster import DescribeClusterRequest
from kip848_client.core.wire.messages.connect_group import ConnectGroupHeartbeatRequest
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError, UnsupportedVersion
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.profiles import PROFILES
from tests.support.plain_message import message
from tests.unit.mock_coordinator.broker_harness import BrokerHarness


def software(*, cluster_id: str | None = None, node_id: int = -1) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name="me",
        client_software_version="1.0",
        cluster_id=cluster_id,
        node_id=node_id,
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_only_what_is_served_is_advertised_and_all_of_it_can_be_read(profile: str) -> None:
    response = BrokerHarness(profile=profile).ask(software(), 3)
    assert response.error_code == 0
    ranges = {a.api_key: (a.min_version, a.max_version) for a in response.api_keys}
    drafts = {key: ranges.pop(key) for key in DRAFT_API_KEYS if key in ranges}
    assert drafts == dict.fromkeys(DRAFT_API_KEYS, (0, 0)), "unless switched off"
    assert {APIS[key].name: both for key, both in ranges.items()} == PROFILES[profile].api_versions
    for key, (low, high) in ranges.items():
        assert APIS[key].versions[1] >= high
        assert low <= high
    features = {f.name: f.max_version_level for f in response.finalized_features}
    assert features["group.version"] == 1
    assert "metadata.version" in {f.name for f in response.supported_features}


def test_nothing_of_ours_is_offered_when_client_side_assignors_are_off() -> None:
    broker = MockBroker(listen=False, clock=VirtualClock(), draft_protocols=False)
    response = broker.connect().ask(software(), 3)
    offered = {APIS[each.api_key].name for each in response.api_keys}
    assert offered == set(PROFILES["4.4"].api_versions)


def test_the_consumer_protocol_can_be_switched_off() -> None:
    harness = BrokerHarness(group_coordinator_rebalance_protocols="classic")
    keys = {a.api_key for a in harness.ask(software(), 3).api_keys}
    assert {8, 9, 68, 69} <= keys, "real brokers advertise what they will refuse"
    assert not set(DRAFT_API_KEYS) & keys
    assert (
        harness.ask(message("ConsumerGroupHeartbeat", group_id="g", member_id="m"), 1).error_code
        == ErrorCode.UNSUPPORTED_VERSION
    )
    described = harness.ask(message("ConsumerGroupDescribe", group_ids=["g", "h"]), 1)
    assert [(each.group_id, each.error_code) for each in described.groups] == [("g", 35), ("h", 35)]


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [
        ("me", "1", 0),
        ("a-b.c", "1.2-3", 0),
        ("r w", "1", 42),
        ("", "1", 42),
        ("me", "", 42),
        ("-me", "1", 42),
        ("me.", "1", 42),
    ],
)
def test_the_clients_name(name: str, version: str, code: int) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    response = BrokerHarness().ask(request, 3)
    assert response.error_code == code
    assert bool(response.api_keys) is (code == 0)


def test_before_version_3_there_is_no_name_to_check() -> None:
    assert BrokerHarness().ask(ApiVersionsRequest(), 2).error_code == 0


def test_the_client_may_check_where_it_is() -> None:
    harness = BrokerHarness(node_id="2")
    here = harness.broker.core.broker.disk.cluster_id
    for cluster, node, code in (
        (here, 2, 0),
        (None, -1, 0),
        ("elsewhere", 2, 129),
        (here, 3, 129),
        (None, 3, 42),
        (here, -1, 42),
    ):
        assert harness.ask(software(cluster_id=cluster, node_id=node), 5).error_code == code


def test_an_api_that_is_not_served_closes_the_connection() -> None:
    harness = BrokerHarness(group_coordinator_rebalance_protocols="classic")
    with pytest.raises(UnsupportedVersion, match="does not offer ConnectGroupHeartbeat"):
        harness.ask(ConnectGroupHeartbeatRequest())
    with pytest.raises(TransportError, match="API key 10482 version 0 is not served"):
        harness.ask(ConnectGroupHeartbeatRequest(), 0)
    assert harness.connection.is_closed


# -- FindCoordinator -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_one_key_up_to_version_3(version: int) -> None:
    harness = BrokerHarness()
    answer = harness.ask(FindCoordinatorRequest(key="g"), version)
    assert (answer.error_code, answer.node_id, answer.host) == (0, 1, "127.0.0.1")
    assert answer.error_message == ("NONE" if version else "")


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("key_type", [0, 1])
def test_many_keys_from_version_4(version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=("g", "", "g"), key_type=key_type)
    answers = BrokerHarness().ask(request, version).coordinators
    assert [(a.key, a.error_code, a.node_id, a.error_message) for a in answers] == [
        ("g", 0, 1, ""),
        ("", 0, 1, ""),
        ("g", 0, 1, ""),
    ]


@pytest.mark.parametrize(
    ("profile", "version", "key", "code"),
    [
        ("4.4", 6, "g:AAAAAAAAAAAAAAAAAAAABw:0", 15),
        ("4.0", 6, "g:AAAAAAAAAAAAAAAAAAAABw:0", 42),
        ("4.4", 5, "g:AAAAAAAAAAAAAAAAAAAABw:0", 42),
        ("4.4", 6, "g", 42),
        ("4.4", 6, "x:y:0", 42),
    ],
)
def test_share_keys_have_no_coordinator(profile: str, version: int, key: str, code: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=2)
    (answer,) = BrokerHarness(profile=profile).ask(request, version).coordinators
    assert (answer.error_code, answer.node_id, answer.port, answer.host) == (code, -1, -1, "")
    assert answer.error_message == ""


def test_an_unknown_key_type() -> None:
    harness = BrokerHarness()
    old = harness.ask(FindCoordinatorRequest(key="g", key_type=7), 3)
    (new,) = harness.ask(
        FindCoordinatorRequest(coordinator_keys=("g",), key_type=-1), 6
    ).coordinators
    for answer in (old, new):
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message.startswith("This most likely occurs because of a request")


@pytest.mark.parametrize(
    ("key_type", "name"), [(0, "__consumer_offsets"), (1, "__transaction_state")]
)
def test_the_first_key_of_its_kind_brings_its_internal_topic(key_type: int, name: str) -> None:
    harness = BrokerHarness()
    for _ in range(2):
        harness.ask(FindCoordinatorRequest(coordinator_keys=("k",), key_type=key_type), 6)
    (topic,) = harness.broker.core.broker.catalog.topics.values()
    assert (topic.name, topic.partitions, topic.internal) == (name, 50, True)


# -- DescribeCluster -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(version: int) -> None:
    harness = BrokerHarness(broker_rack="r")
    answer = harness.ask(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.controller_id) == (0, 1)
    assert answer.cluster_id == harness.broker.core.broker.disk.cluster_id
    assert [(b.broker_id, b.rack) for b in answer.brokers] == [(1, "r")]
    assert answer.cluster_authorized_operations == -2147483648
    with_operations = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert harness.ask(with_operations, version).cluster_authorized_operations == 8096


@pytest.mark.parametrize(("endpoint", "code"), [(2, 114), (3, 115), (0, 115)])
def test_other_endpoints(endpoint: int, code: int) -> None:
    answer = BrokerHarness().ask(DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert (answer.error_code, answer.brokers) == (code, ())
