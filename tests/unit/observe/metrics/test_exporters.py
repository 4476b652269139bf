"""Metrics as Prometheus and OpenTelemetry see them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from kip848_client.errors import ConfigError
from kip848_client.observe.core.metrics import TABLE, ClientMetrics, Metrics, producer_rows, rows
from kip848_client.otel import instrument, otel_name
from kip848_client.prometheus import prometheus_name, register


def recorded() -> tuple[Metrics, ClientMetrics]:
    metrics = Metrics()
    client = metrics.open({"client-id": "c", "group-id": "g"}, lambda: 1_000)
    client.record(rows.HEARTBEAT, 1_000, 1)
    client.record(rows.REBALANCE_LATENCY, 1_000, 600)
    client.record(rows.FETCH_SIZE, 1_000, 77)
    client.record(rows.FENCED, 1_000, 1, "UNKNOWN_MEMBER_ID")
    client.record(rows.COMMIT_SYNC, 1_000, 2_000_000_000)
    client.gauge(rows.RECORDS_LAG, lambda: {("t", "0"): 5.0})
    return metrics, client


class TestPrometheus:
    def test_a_scrape_shows_what_was_recorded(self) -> None:
        metrics, _ = recorded()
        registry = CollectorRegistry()
        register(metrics, registry)
        told = {"client_id": "c", "group_id": "g"}
        value = registry.get_sample_value
        assert value("kip848_consumer_heartbeat_total", told) == 1
        assert value("kip848_consumer_rebalance_latency_seconds_sum", told) == 0.6
        bucket = "kip848_consumer_rebalance_latency_seconds_bucket"
        assert value(bucket, {**told, "le": "0.5"}) == 0
        assert value(bucket, {**told, "le": "1.0"}) == 1
        assert value(bucket, {**told, "le": "+Inf"}) == 1
        assert value("kip848_consumer_fetch_size_bytes_sum", told) == 77
        assert value("kip848_consumer_fetch_size_bytes_count", told) == 1
        assert value("kip848_consumer_fenced_total", {**told, "cause": "UNKNOWN_MEMBER_ID"}) == 1
        assert value("kip848_consumer_commit_sync_time_seconds_total", told) == 2
        lag = {**told, "topic": "t", "partition": "0"}
        assert value("kip848_consumer_records_lag", lag) == 5

    def test_a_producer_has_names_of_its_own_and_no_group(self) -> None:
        metrics = Metrics()
        client = metrics.open({"client-id": "p"}, lambda: 1_000)
        client.record(producer_rows.RECORD_SEND, 1_000, 3)
        client.record(producer_rows.TOPIC_RECORD_SEND, 1_000, 3, "t")
        client.record(producer_rows.REQUEST_LATENCY, 1_000, 250)
        registry = CollectorRegistry()
        register(metrics, registry)
        value = registry.get_sample_value
        assert value("kip848_producer_record_send_total", {"client_id": "p"}) == 3
        told = {"client_id": "p", "topic": "t"}
        assert value("kip848_producer_topic_record_send_total", told) == 3
        assert value("kip848_producer_request_latency_seconds_sum", {"client_id": "p"}) == 0.25

    def test_a_consumer_that_has_ended_is_gone(self) -> None:
        metrics, client = recorded()
        registry = CollectorRegistry()
        collector = register(metrics, registry)
        metrics.close(client)
        assert b"heartbeat_total" not in generate_latest(registry)
        registry.unregister(collector)

    def test_names_are_each_there_once_and_in_base_units(self) -> None:
        names = [prometheus_name(row) for row in TABLE]
        assert len(set(names)) == len(names)
        assert not [name for name in names if name.endswith(("_ms", "_ns"))]

    def test_names_are_known_before_there_is_a_consumer(self) -> None:
        registry = CollectorRegistry()
        register(Metrics(), registry)
        with pytest.raises(ValueError, match="Duplicated"):
            register(Metrics(), registry)


class TestOpenTelemetry:
    def test_a_reader_sees_what_was_recorded(self) -> None:
        metrics, _ = recorded()
        reader = InMemoryMetricReader()
        instrument(metrics, MeterProvider([reader]))
        data = reader.get_metrics_data()
        assert data is not None
        found = {
            metric.name: metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        (lag,) = found["kafka.consumer.records_lag"].data.data_points
        assert lag.value == 5  # type: ignore[union-attr]  # of a gauge, which has one
        assert lag.attributes == {
            "messaging.client.id": "c",
            "messaging.consumer.group.name": "g",
            "messaging.destination.name": "t",
            "messaging.destination.partition.id": "0",
        }
        (total,) = found["kafka.consumer.heartbeat_total"].data.data_points
        assert total.value == 1  # type: ignore[union-attr]  # of a sum, which has one
        assert found["kafka.consumer.rebalance_latency_max"].unit == "ms"
        assert found["kafka.consumer.heartbeat_rate"].unit == "1/s"
        assert "kafka.consumer.commit_latency_avg" not in found, "nothing was committed"

    def test_what_is_of_the_whole_and_of_topics_is_not_added_up(self) -> None:
        metrics = Metrics()
        client = metrics.open({"client-id": "p"}, lambda: 1_000)
        client.record(producer_rows.RECORD_SEND, 1_000, 3)
        client.record(producer_rows.TOPIC_RECORD_SEND, 1_000, 3, "t")
        reader = InMemoryMetricReader()
        instrument(metrics, MeterProvider([reader]))
        data = reader.get_metrics_data()
        assert data is not None
        found = {
            metric.name: [
                (point.value, dict(point.attributes or {}))  # type: ignore[union-attr]  # for a sum
                for point in points
            ]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if (points := metric.data.data_points) and metric.name.endswith("send_total")
        }
        whole = {"messaging.client.id": "p"}
        assert found == {
            "kafka.producer.record_send_total": [(3, whole)],
            "kafka.producer.topic.record_send_total": [
                (3, {**whole, "messaging.destination.name": "t"})
            ],
        }

    def test_names_are_those_of_the_java_agent(self) -> None:
        names = {
            otel_name(row, name): row
            for row in (rows.HEARTBEAT_RESPONSE_TIME, producer_rows.TOPIC_RECORD_SEND)
            for name in row.names
        }
        assert list(names) == [
            "kafka.consumer.heartbeat_response_time_max",
            "kafka.producer.topic.record_send_rate",
            "kafka.producer.topic.record_send_total",
        ]


@pytest.mark.parametrize(
    ("module", "library", "call"),
    [
        ("kip848_client.prometheus", "prometheus_client", "register"),
        ("kip848_client.otel", "opentelemetry", "instrument"),
    ],
)
def test_without_its_library_the_error_says_what_to_install(
    module: str, library: str, call: str
) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"from kip848_client import Metrics; from {module} import {call}\n"
        f"{call}(Metrics())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert ConfigError.__name__ in done.stderr
    assert "pip install '.[" in done.stderr


@pytest.mark.parametrize("what", [None, "metrics", 1, object(), Metrics, {}])
def test_what_are_no_metrics_is_refused_at_once(what: Any) -> None:
    """Or each scrape would fail, with the metrics of everybody else."""
    registry = CollectorRegistry()
    with pytest.raises(ConfigError, match="Metrics"):
        register(what, registry)
    assert generate_latest(registry) == b""
    with pytest.raises(ConfigError, match="Metrics"):
        instrument(what, MeterProvider())


@pytest.mark.parametrize("where", ["x", 1, object(), CollectorRegistry])
def test_where_there_is_no_place_for_metrics(where: Any) -> None:
    with pytest.raises(ConfigError, match="registry"):
        register(Metrics(), where)
    with pytest.raises(ConfigError, match="meter_provider"):
        instrument(Metrics(), where)
