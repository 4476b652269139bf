"""What is measured of connections, and that telemetry opens none in vain."""

from __future__ import annotations

import pytest

from kip848_client import Metrics, Producer
from kip848_client.errors import UnsupportedVersion
from kip848_client.metrics import producer_rows
from kip848_client.watching import ConnectionMeter
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio


async def test_a_broker_is_called_by_its_number_as_far_as_it_is_known() -> None:
    metrics = Metrics()
    client = metrics.open({"client-id": "c"}, lambda: 0)
    meter = ConnectionMeter(client, producer_rows.CONNECTIONS, producer_rows.NODE_LATENCY)
    assert metrics.value("connection-creation-total") == 0
    meter.opened()
    meter.answered(None, 20)
    meter.answered(3, 7)
    meter.answered(3, 9)
    assert metrics.value("connection-creation-total") == 1
    assert metrics.value("request-latency-max", node_id="node--1") == 20
    assert metrics.value("request-latency-avg", node_id="node-3") == 8


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
