"""The store of all clients, and the table of what may be in it."""

from __future__ import annotations

import math

from kip848_client.observe.core.metrics import TABLE, Metrics, Row, producer_rows, rows


def test_what_clients_recorded_has_their_tags() -> None:
    metrics = Metrics()
    for group in ("a", "b"):
        client = metrics.open({"client-id": "c", "group-id": group}, lambda: 1_000)
        client.record(rows.FENCED, 1_000, 1, "UNKNOWN_MEMBER_ID")
    found = [(each.name, each.tags, each.value) for each in metrics.samples()]
    assert found == [
        (
            "fenced-total",
            {"client-id": "c", "group-id": group, "cause": "UNKNOWN_MEMBER_ID"},
            1,
        )
        for group in ("a", "b")
    ]


def test_a_value_is_the_sum_of_what_fits() -> None:
    metrics = Metrics()
    client = metrics.open({"client-id": "c", "group-id": "g"}, lambda: 0)
    client.record(rows.FENCED, 0, 1, "UNKNOWN_MEMBER_ID")
    client.record(rows.FENCED, 0, 1, "FENCED_MEMBER_EPOCH")
    assert metrics.value("fenced-total") == 2
    assert metrics.value("fenced-total", cause="UNKNOWN_MEMBER_ID", group_id="g") == 1
    assert metrics.value("fenced-total", cause="STALE_MEMBER_EPOCH") == 0


def test_a_gauge_is_looked_at_when_somebody_asks() -> None:
    metrics = Metrics()
    client = metrics.open({}, lambda: 0)
    lags: dict[tuple[str, ...], float] = {("t", "0"): 5.0}
    client.gauge(rows.RECORDS_LAG, lambda: lags)
    assert metrics.value("records-lag", topic="t", partition="0") == 5
    lags["t", "0"] = 6.0
    assert metrics.value("records-lag") == 6


def test_partitions_can_be_left_out() -> None:
    metrics = Metrics(per_partition=False)
    client = metrics.open({}, lambda: 0)
    client.gauge(rows.RECORDS_LAG, lambda: {("t", "0"): 5.0})
    client.gauge(rows.RECORDS_LAG_MAX, lambda: {(): 5.0})
    assert [each.name for each in metrics.samples()] == ["records-lag-max"]


def test_a_client_that_ended_is_gone() -> None:
    metrics = Metrics()
    client = metrics.open({}, lambda: 0)
    client.sensor(rows.HEARTBEAT)
    metrics.close(client)
    metrics.close(client)
    assert metrics.samples() == []


def test_an_average_of_nothing_is_nan_as_in_kafka() -> None:
    metrics = Metrics()
    metrics.open({}, lambda: 0).sensor(rows.COMMIT_LATENCY)
    assert all(math.isnan(each.value) for each in metrics.samples())


def test_no_name_is_there_twice() -> None:
    names = [(row.group, row.of, name) for row in TABLE for name in row.names]
    assert len(names) == len(set(names))
    for module in (rows, producer_rows):
        constants = [value for value in vars(module).values() if isinstance(value, Row)]
        assert set(module.TABLE) == set(constants)


def test_clients_with_the_same_tags_are_told_apart() -> None:
    metrics = Metrics()
    tags = {"client-id": "c", "group-id": "g"}
    one, two, three = (metrics.open(tags, lambda: 0) for _ in range(3))
    other = metrics.open({**tags, "group-id": "h"}, lambda: 0)
    assert [each.tags["client-id"] for each in (one, two, three, other)] == ["c", "c-2", "c-3", "c"]
    metrics.close(two)
    assert metrics.open(tags, lambda: 0).tags["client-id"] == "c-2"


def test_the_value_of_a_client_does_not_count_its_topics_again() -> None:
    metrics = Metrics()
    client = metrics.open({"client-id": "c"}, lambda: 0)
    client.record(producer_rows.RECORD_SEND, 0, 3)
    client.record(producer_rows.TOPIC_RECORD_SEND, 0, 1, "t")
    client.record(producer_rows.TOPIC_RECORD_SEND, 0, 2, "u")
    assert metrics.value("record-send-total") == 3
    assert metrics.value("record-send-total", topic="u") == 2
    assert metrics.value("record-send-total", client_id="c") == 3
