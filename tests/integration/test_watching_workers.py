"""What can be seen of a worker, on both protocols: health, events, metrics, KIP-714."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any, Final

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from kip848_client import Metrics
from kip848_client.connect import (
    ItemsAssigned,
    ItemsLost,
    ItemsRevoked,
    Worker,
)
from kip848_client.core.member import MemberState
from kip848_client.core.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryResponse,
)
from kip848_client.errors import LocalProtocolError
from kip848_client.observe import (
    CoordinatorLost,
    HeartbeatAnswered,
    HeartbeatLost,
    MemberEpochChanged,
    StateChanged,
)
from kip848_client.otel import instrument
from kip848_client.prometheus import register
from kip848_client.runtime.net._transport import KafkaTransport
from mock_coordinator import Fault, Match
from mock_coordinator.core.faults import Drop, Moment
from tests.integration.cluster import eventually
from tests.integration.test_workers import ALL, Items, group

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(30)]

PROTOCOLS: Final = {"connect": "ConnectGroupHeartbeat", "classic": "Heartbeat"}
"""And by which request a worker shows that it lives."""
both = pytest.mark.parametrize("protocol", PROTOCOLS)
GZIP: Final = 1
QUICK: Final[dict[str, Any]] = {"heartbeat_interval_ms": 100}


@both
async def test_metrics_of_a_worker(protocol: str) -> None:
    metrics, registry, reader = Metrics(), CollectorRegistry(), InMemoryMetricReader()
    register(metrics, registry)
    instrument(metrics, MeterProvider([reader]))
    async with group() as workers:
        worker = await workers.join(
            "w1", group_protocol=protocol, metrics=metrics, client_id="c1", **QUICK
        )
        await workers.until(lambda: worker.assigned == ALL)
        await workers.until(lambda: metrics.value("heartbeat-total") > 2)
        expected = {
            "assigned-connectors": 2,
            "assigned-tasks": 5,
            "connector-count": 2,
            "task-count": 5,
            "failed-rebalance-total": 0,
            "member-epoch": worker.generation,
        }
        assert {name: metrics.value(name) for name in expected} == expected
        carried_out = metrics.value("rebalance-total")
        assert carried_out >= 1
        for name in (
            "connection-count",
            "request-total",
            "heartbeat-response-time-max",
            "rebalance-latency-max",
            "items-assigned-latency-max",
        ):
            assert metrics.value(name) >= 0, name
        groups = {(each.group, each.tags["group-id"]) for each in metrics.samples()}
        assert groups == {
            (f"connect-{part}metrics", "workers")
            for part in ("", "node-", "coordinator-", "worker-")
        }

        scraped = generate_latest(registry).decode()
        assert 'kip848_connect_assigned_tasks{client_id="c1",group_id="workers"} 5.0' in scraped
        assert "kip848_connect_heartbeat_total" in scraped
        found = reader.get_metrics_data()
        assert found is not None
        names = {
            each.name
            for resource in found.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
        }
        assert {"kafka.connect.assigned_tasks", "kafka.connect.rebalance_total"} <= names

        await workers.join("w2", group_protocol=protocol, **QUICK)
        await workers.until(lambda: workers.shared("w1", "w2"))
        await workers.until(lambda: metrics.value("rebalance-total") > carried_out)
        assert metrics.value("assigned-tasks") < 5
        assert metrics.value("items-revoked-latency-max") >= 0
    assert not list(metrics.samples())


@both
async def test_the_health_of_a_worker(protocol: str) -> None:
    async with group() as workers:
        settings: dict[str, Any] = {"bootstrap_servers": workers.broker.bootstrap, "group_id": "g"}
        new = Worker({"a": 1}, Items("w", {}), **settings)
        assert (str(new.health().state), new.health().live, new.health().ready) == (
            *("NOT_STARTED", True),
            False,
        )
        await new.stop()
        assert str(new.health().state) == "CLOSED"

        worker = await workers.join("w1", group_protocol=protocol, **QUICK)
        await workers.until(lambda: worker.assigned == ALL)
        await workers.until(lambda: worker.health().ready)
        await workers.until(lambda: worker.health().heartbeat_age_ms is not None)
        health = worker.health()
        assert health.state in (MemberState.STABLE, MemberState.RECONCILING)
        assert health.assigned == len(ALL)
        assert health.member_epoch == worker.generation
        assert health.heartbeat_interval_ms == 100
        assert health.coordinator is not None
        assert health.unreachable_ms < 1_000
        assert (health.consecutive_fences, health.problems) == (0, ())
        assert repr(health).startswith("WorkerHealth(live=True, ready=True, problems=()")

        silent = Fault(Drop(Moment.REQUEST), Match(api=PROTOCOLS[protocol]), times=None)
        workers.broker.faults.add(silent)
        await eventually(lambda: worker.health().unreachable_ms > 1_000)
        await eventually(lambda: "coordinator" in "".join(worker.health().problems))
        workers.broker.faults.clear()
        await worker.stop()
        assert (str(worker.health().state), worker.health().assigned) == ("CLOSED", 0)


@both
async def test_the_events_of_a_worker(protocol: str) -> None:
    async with group() as workers:
        items = Items("w1", {})
        settings: dict[str, Any] = {
            "bootstrap_servers": workers.broker.bootstrap,
            "group_protocol": protocol,
            "session_timeout_ms": 1_500,
            "request_timeout_ms": 300,
            "rest_advertised_url": "u",
            **QUICK,
        }
        worker = Worker({"a": 2}, items, group_id="events", **settings)
        events, closely = worker.events(), worker.events(heartbeats=True)
        await worker.start()
        await workers.until(lambda: len(worker.assigned) == 3)
        generation = worker.generation
        silent = Fault(Drop(Moment.REQUEST), Match(api=PROTOCOLS[protocol]), times=None)
        workers.broker.faults.add(silent)
        await workers.until(lambda: not worker.assigned)
        workers.broker.faults.clear()
        await workers.until(lambda: len(worker.assigned) == 3)
        await worker.stop()

        seen = [each async for each in events]
        assert isinstance(seen[0], StateChanged)
        assert (seen[0].old, seen[0].new) == (MemberState.UNSUBSCRIBED, MemberState.JOINING)
        told = [each for each in seen if isinstance(each, ItemsAssigned | ItemsLost | ItemsRevoked)]
        counts = [(type(each), len(each.items)) for each in told if each.items]
        assert counts == [
            *((ItemsAssigned, 3), (ItemsLost, 3)),
            *((ItemsAssigned, 3), (ItemsRevoked, 3)),
        ]
        assert all(each.cause for each in told if isinstance(each, ItemsLost))
        epochs = [each.member_epoch for each in seen if isinstance(each, MemberEpochChanged)]
        assert epochs[0] == generation or generation in epochs
        assert epochs[-1] == 0
        assert any(isinstance(each, CoordinatorLost) for each in seen)
        assert not [each for each in seen if isinstance(each, HeartbeatAnswered)]
        kinds = {type(each) for each in [each async for each in closely]}
        assert {HeartbeatAnswered, HeartbeatLost} <= kinds


@both
async def test_a_worker_pushes_what_brokers_ask_for(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushes: list[Any] = []

    async def one_broker(_transport: KafkaTransport, request: Any, *, timeout_ms: int) -> Any:
        del timeout_ms
        if isinstance(request, GetTelemetrySubscriptionsRequest):
            return GetTelemetrySubscriptionsResponse(
                client_instance_id=bytes(range(16)),
                subscription_id=1,
                accepted_compression_types=(GZIP,),
                push_interval_ms=50,
                telemetry_max_bytes=1_000_000,
                delta_temporality=True,
                requested_metrics=("org.apache.kafka.connect.",),
            )
        pushes.append(request)
        return PushTelemetryResponse(error_code=0)

    monkeypatch.setattr(KafkaTransport, "one_broker", one_broker)
    async with group() as workers:
        worker = await workers.join("w1", group_protocol=protocol, metrics=Metrics(), **QUICK)
        assert await worker.client_instance_id(10_000) == "AAECAwQFBgcICQoLDA0ODw"
        await workers.until(lambda: len(pushes) > 2)
        plain = await workers.join("w2", group_protocol=protocol, **QUICK)
        with pytest.raises(LocalProtocolError, match="it counts nothing"):
            await plain.client_instance_id()
        member_id = worker.member_id
    assert pushes[-1].terminating
    (resource,) = MetricsData.FromString(zlib.decompress(pushes[1].metrics, 31)).resource_metrics
    labels = {each.key: each.value.string_value for each in resource.resource.attributes}
    expected = {"group_id": "workers"}
    if protocol == "connect":  # a classic coordinator gives the id later
        expected["group_member_id"] = member_id or ""
    assert labels == expected
    names = {each.name for scope in resource.scope_metrics for each in scope.metrics}
    assert "org.apache.kafka.connect.coordinator.heartbeat.total" in names
    assert "org.apache.kafka.connect.coordinator.assigned.tasks" in names


async def test_a_blocked_event_loop_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with group() as workers:
        worker = await workers.join("w1", **QUICK)
        await workers.until(lambda: worker.assigned == ALL)
        driver = worker._driver
        assert driver is not None
        driver._on_late(499)
        assert "did not run" not in caplog.text
        driver._on_late(5_000)
        assert "the event loop did not run for at least 5.0 s" in caplog.text
        assert worker.health().event_loop_late_ms == 5_000
        await asyncio.sleep(0)
