"""Settings of one broker among several: its own id and rack, its own alterations, and those of
all."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness

BROKER, GROUP = 4, 32


def setting(harness: ClusterHarness, node_id: int, name: str) -> str | None:
    wanted = DescribeConfigsRequestDescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configuration_keys=(name,)
    )
    result = harness.at(node_id, DescribeConfigsRequest(resources=(wanted,)), 4).results[0]
    assert result.error_code == 0, result
    value: str | None = result.configs[0].value
    return value


def alter(
    harness: ClusterHarness, node_id: int, kind: int, whose: str, name: str, value: str
) -> int:
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name=name, config_operation=0, value=value
    )
    wanted = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=whose, configs=(change,)
    )
    response = harness.at(node_id, IncrementalAlterConfigsRequest(resources=(wanted,)), 1)
    code: int = response.responses[0].error_code
    return code


def test_each_broker_has_its_own_id_and_rack() -> None:
    harness = ClusterHarness(racks=("a", "b"))
    assert [setting(harness, n, "node.id") for n in (1, 2, 3)] == ["1", "2", "3"]
    assert [setting(harness, n, "broker.rack") for n in (1, 2, 3)] == ["a", "b", "a"]


def test_a_brokers_own_alteration_is_its_own() -> None:
    harness = ClusterHarness()
    assert alter(harness, 2, BROKER, "2", "message.max.bytes", "1000") == 0
    found = [setting(harness, n, "message.max.bytes") for n in (1, 2, 3)]
    assert found == ["1048588", "1000", "1048588"]
    assert alter(harness, 1, BROKER, "2", "message.max.bytes", "1000") == 42, "another broker's"


def test_an_alteration_for_all_is_everybodys() -> None:
    harness = ClusterHarness()
    alter(harness, 2, BROKER, "2", "message.max.bytes", "1000")
    assert alter(harness, 1, BROKER, "", "message.max.bytes", "2000") == 0
    found = [setting(harness, n, "message.max.bytes") for n in (1, 2, 3)]
    assert found == ["2000", "1000", "2000"]
    brokers = harness.cluster.core.broker.disk.configs
    assert [brokers[n].integer("message.max.bytes") for n in (1, 2, 3)] == [2000, 1000, 2000]


def test_groups_are_configured_for_whoever_coordinates_them() -> None:
    harness = ClusterHarness()
    assert alter(harness, 3, GROUP, "g", "consumer.heartbeat.interval.ms", "7000") == 0
    config = harness.cluster.core.broker.disk.config
    assert config.consumer_heartbeat_interval_ms("g") == 7000


@pytest.mark.parametrize("brokers", [1, 3])
def test_the_first_broker_answers_for_the_user_interface(brokers: int) -> None:
    harness = ClusterHarness(brokers)
    assert harness.cluster.core.broker.config.node_id == 1
