"""What of a client's metrics is pushed, by which names, and how it is written down."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

from kip848_client.observe.core.metrics import (
    TABLE,
    ClientMetrics,
    Metrics,
    Statistic,
    connection_rows,
    producer_rows,
    rows,
)
from kip848_client.runtime.telemetry import Ledger, Point, Subscription, telemetry_name
from kip848_client.runtime.telemetry._otlp import packed
from tools.docs.metrics.java import JAVA

ALL = Subscription(1, ("",), 1, 1, delta=True)
SENT = "org.apache.kafka.producer.topic.record.send.total"


def metrics_at(now: list[int]) -> ClientMetrics:
    return Metrics().open({"client-id": "c"}, lambda: now[0])


def test_names_are_those_of_kafkas_client() -> None:
    javas = {
        f"org.apache.kafka.{group.removesuffix('-metrics')}.{name}".replace("-", ".")
        for (group, _), names in JAVA.items()
        for name in names
    }
    for row in TABLE:
        for name in row.names:
            found = telemetry_name(row, name)
            assert (found in javas) == (not row.ours), found
            assert found.startswith("kip848.") == row.ours
    assert (
        telemetry_name(rows.COMMIT_LATENCY, "commit-latency-avg")
        == "org.apache.kafka.consumer.coordinator.commit.latency.avg"
    )
    assert telemetry_name(rows.FENCED, "fenced-total") == "kip848.consumer.coordinator.fenced.total"


def test_a_name_has_one_kind_and_counters_are_what_java_counts() -> None:
    for row in TABLE:
        for name, statistic in zip(row.names, row.statistics, strict=True):
            assert (statistic is Statistic.TOTAL) == telemetry_name(row, name).endswith(".total")


def test_differences_begin_where_the_last_one_that_was_taken_ended() -> None:
    now = [1_000]
    metrics = metrics_at(now)
    ledger = Ledger(metrics, 1_000)
    wanted = replace(ALL, requested=(SENT,))

    def points() -> list[tuple[float, int]]:
        return [(each.value, each.start_ms) for each in ledger.points(wanted, now[0])]

    metrics.record(producer_rows.TOPIC_RECORD_SEND, now[0], 3, "t")
    now[0] = 2_000
    assert points() == [(3, 1_000)]
    assert points() == [(3, 1_000)], "nobody has taken it"
    ledger.settle(ledger.points(wanted, now[0]), now[0])
    metrics.record(producer_rows.TOPIC_RECORD_SEND, now[0], 4, "t")
    metrics.record(producer_rows.TOPIC_RECORD_SEND, now[0], 1, "other")
    now[0] = 3_000
    assert points() == [(4, 2_000), (1, 1_000)]
    wanted = replace(wanted, delta=False)
    assert points() == [(7, 1_000), (1, 1_000)]


def test_nothing_but_what_is_wanted_is_looked_at() -> None:
    metrics = metrics_at([0])

    def never() -> dict[tuple[str, ...], float]:
        pytest.fail("nobody wants it")

    metrics.gauge(rows.RECORDS_LAG, never)
    metrics.sensor(rows.COMMIT_LATENCY)
    metrics.record(rows.HEARTBEAT, 0, 1)
    ledger = Ledger(metrics, 0)
    prefixes = ("org.apache.kafka.consumer.coordinator.heartbeat.", "no.such")
    found = ledger.points(replace(ALL, requested=prefixes), 0)
    assert [each.name.rpartition(".")[2] for each in found] == ["rate", "total"]
    assert ledger.points(replace(ALL, requested=()), 0) == []
    starred = ledger.points(replace(ALL, requested=("org.apache.kafka.consumer.coordinator",)), 0)
    assert not any(math.isnan(each.value) for each in starred), "what was not measured is left out"


@pytest.mark.parametrize("everything", ["", "*"])
def test_everything_is_everything(everything: str) -> None:
    metrics = metrics_at([0])
    metrics.gauge(rows.MEMBER_EPOCH, lambda: {(): 4.0})
    metrics.gauge(rows.LAST_POLL, lambda: {(): 1.0})
    found = Ledger(metrics, 0).points(replace(ALL, requested=(everything,)), 0)
    assert {each.name for each in found} == {
        "kip848.consumer.coordinator.member.epoch",
        "org.apache.kafka.consumer.last.poll.seconds.ago",
    }


def test_labels_are_written_as_kafka_writes_them() -> None:
    metrics = metrics_at([0])
    metrics.record(connection_rows.CONSUMER.node_latency, 0, 12, "node-1")
    (_, most) = Ledger(metrics, 0).points(ALL, 0)
    assert most == Point(
        "org.apache.kafka.consumer.node.request.latency.max", (("node_id", "node-1"),), 12, 0
    )


def test_what_does_not_fit_takes_turns_and_what_is_of_the_client_comes_always() -> None:
    metrics = metrics_at([0])
    metrics.gauge(rows.RECORDS_LAG, lambda: {("t", str(n)): float(n) for n in range(5)})
    metrics.gauge(rows.RECORDS_LAG_MAX, lambda: {(): 4.0})
    ledger = Ledger(metrics, 0)
    told: list[str] = []
    for _ in range(5):
        points = ledger.points(ALL, 0)[:3]
        assert points[0].labels == ()
        told += [dict(each.labels)["partition"] for each in points[1:]]
        ledger.left_out(points)
    assert told == ["0", "1", "2", "3", "4", "0", "1", "2", "3", "4"]


def _pack(points: list[Point], max_bytes: int) -> tuple[otlp.MetricsData, int]:
    data, count = packed(
        points,
        {"group_id": "g"},
        time_ms=5,
        origin_ms=1_700_000_000_000,
        delta=True,
        max_bytes=max_bytes,
    )
    assert len(data) <= max_bytes
    return otlp.MetricsData.FromString(data), count


def test_what_is_written_can_be_read() -> None:
    points = [
        Point("a.total", (("topic", "t"),), 3, 2, total=7),
        Point("a.total", (), 4, 2, total=8),
        Point("b", (), 0.5, 2),
    ]
    read, count = _pack(points, 10_000)
    assert count == 3
    (metric, gauge) = read.resource_metrics[0].scope_metrics[0].metrics
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == otlp.AGGREGATION_TEMPORALITY_DELTA
    first, second = metric.sum.data_points
    assert (first.as_double, second.as_double) == (3, 4)
    assert first.start_time_unix_nano == 1_700_000_000_002_000_000
    assert first.time_unix_nano == 1_700_000_000_005_000_000
    assert [(each.key, each.value.string_value) for each in first.attributes] == [("topic", "t")]
    (point,) = gauge.gauge.data_points
    assert (gauge.name, point.as_double) == ("b", 0.5)


@pytest.mark.parametrize("max_bytes", [0, 10, 100, 500, 1_000, 5_000])
def test_the_first_points_that_fit_are_written(max_bytes: int) -> None:
    points = [Point("x" * (n % 90), (("topic", str(n)),), n, 0) for n in range(200)]
    read, count = _pack(points, max_bytes)
    assert count < 200
    assert count > max_bytes // 150 - 2
    told = [
        int(point.as_double)
        for resource in read.resource_metrics
        for metric in resource.scope_metrics[0].metrics
        for point in metric.gauge.data_points
    ]
    assert sorted(told) == list(range(count))
