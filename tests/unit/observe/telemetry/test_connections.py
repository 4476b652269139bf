"""What is measured of connections, and that telemetry opens none in vain."""

from __future__ import annotations

import pytest

from kip848_client import Metrics, Producer
from kip848_client.errors import UnsupportedVersion
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio


async def test_connections_are_measured_and_none_is_opened_for_brokers_that_take_no_metrics() -> (
    None
):
    metrics = Metrics()
    async with (
        MockBroker({"t": 1}) as broker,
        Producer(bootstrap_servers=broker.bootstrap, metrics=metrics) as producer,
    ):
        with pytest.raises(UnsupportedVersion, match="GetTelemetrySubscriptions"):
            await producer.client_instance_id(10_000)
        before = metrics.value("connection-creation-total")
        assert before == 1
        await producer.send_and_wait("t", b"v")
        assert metrics.value("connection-creation-total") == before + 1, "records have their own"
        assert 0 <= metrics.value("request-latency-max", node_id="node-1") < 60_000
