"""Metrics of a fetch core that is played by hand, of records handed out, and of polls."""

from __future__ import annotations

from kip848_client.core.fetch import (
    FetchAnswer,
    FetchAnswered,
    FetchIntent,
    FetchLost,
    PartitionAnswer,
    SendFetch,
)
from kip848_client.core.types import TopicId
from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.watching import FetchMeter, PollMeter, lag_of
from kip848_client.observe.core.watching._fetch_meter import records_in
from tests.unit.consumer.fetched import A, B, PathHarness

INTENT = FetchIntent(0, 0, (), (), 500, 1, 1_000, read_committed=False, rack="")


def test_a_fetch_is_timed_and_its_answer_measured() -> None:
    harness, metrics = PathHarness(), Metrics()
    now = 0
    meter = FetchMeter(metrics.open({}, lambda: now), harness.core, committed=False)
    meter.on_step(100, FetchLost(0, "none"), [SendFetch(1, 1, INTENT, 1_000)])
    meter.on_step(350, FetchAnswered(1, FetchAnswer(size_bytes=77, throttle_time_ms=5)), [])
    assert metrics.value("fetch-total") == 1
    assert metrics.value("fetch-latency-max") == 250
    assert metrics.value("fetch-size-avg") == 77
    assert metrics.value("fetch-throttle-time-max") == 5


def test_a_fetch_that_was_lost_is_no_fetch() -> None:
    harness, metrics = PathHarness(), Metrics()
    meter = FetchMeter(metrics.open({}, lambda: 0), harness.core, committed=False)
    meter.on_step(100, FetchLost(0, "none"), [SendFetch(1, 1, INTENT, 1_000)])
    meter.on_step(200, FetchLost(1, "gone"), [])
    assert metrics.value("fetch-total") == 0
    assert not meter._sent


def test_lag_and_lead_are_those_of_the_last_fetch() -> None:
    harness, metrics = PathHarness(), Metrics()
    FetchMeter(metrics.open({}, lambda: 0), harness.core, committed=False)
    harness.grow(A, *[b"x"] * 4)
    harness.grow(B, b"y")
    harness.begin(A, B)
    assert lag_of(harness.core, A, committed=False) == 4
    assert metrics.value("records-lag", topic="t", partition="0") == 4
    assert metrics.value("records-lag-max") == 4
    assert harness.path.take_one([A]) is not None
    assert metrics.value("records-lag", topic="t", partition="0") == 3
    assert metrics.value("records-lead-min") == 0
    assert metrics.value("assigned-partitions") == 2


def test_what_was_handed_out_is_counted_with_its_slice() -> None:
    harness, metrics = PathHarness(), Metrics()
    meter = FetchMeter(metrics.open({}, lambda: 0), harness.core, committed=False)
    harness.path._handed_out = meter.handed_out
    harness.grow(A, b"a", b"b", b"c")
    harness.begin(A)
    harness.take(2)
    assert metrics.value("records-consumed-total") == 0
    harness.grow(A, b"d")
    harness.take(2)
    assert metrics.value("records-consumed-total") == 3
    assert metrics.value("records-consumed-total", topic="t") == 3
    assert metrics.value("bytes-consumed-total", topic="t") > 0
    assert metrics.value("bytes-consumed-total", topic="t") == metrics.value("bytes-consumed-total")


def test_what_a_request_brought_is_counted_by_the_headers_of_its_batches() -> None:
    harness, metrics = PathHarness(), Metrics()
    meter = FetchMeter(metrics.open({}, lambda: 0), harness.core, committed=False)
    harness.grow(A, b"a", b"b", b"c")
    harness.grow(A, b"d")
    raw = b"".join(harness.logs[A])
    assert records_in(raw) == 4
    assert records_in(raw[:-1]) == 3, "the last batch is cut"
    assert records_in(b"\x00" * 100) == 0
    for records in (raw, b""):
        answer = FetchAnswer(partitions=(PartitionAnswer(TopicId(bytes(16)), 0, records=records),))
        meter.on_step(0, FetchAnswered(1, answer), [])
    assert metrics.value("records-per-request-avg") == 4, "an answer without records is none"


def test_lag_and_lead_of_a_partition_have_averages_and_extremes() -> None:
    harness, metrics = PathHarness(), Metrics()
    meter = FetchMeter(metrics.open({}, lambda: 0), harness.core, committed=False)
    harness.begin(A)
    assert meter._trends is not None
    for lag, lead in ((10, 1), (2, 9)):
        meter._trends.note(0, A, lag, lead)
    meter._trends.note(0, B, 7, 7)
    found = {"topic": "t", "partition": "0"}
    assert metrics.value("records-lag-avg", **found) == 6
    assert metrics.value("records-lag-max", **found) == 10
    assert metrics.value("records-lead-avg", **found) == 5
    assert metrics.value("records-lead-min", **found) == 1
    assert metrics.value("records-lag-avg", topic="t", partition="1") == 0, "it is not assigned"
    assert metrics.value("records-lag-max") == 0, "of the client: what it is now"


def test_without_partitions_no_trend_is_kept() -> None:
    metrics = Metrics(per_partition=False)
    meter = FetchMeter(metrics.open({}, lambda: 0), PathHarness().core, committed=False)
    assert meter._trends is None


def test_what_is_not_assigned_has_no_lag() -> None:
    assert lag_of(PathHarness().core, A, committed=False) is None


def test_polls_are_timed_from_one_to_the_next() -> None:
    metrics = Metrics()
    now = [1_000]
    meter = PollMeter(metrics.open({}, lambda: now[0]))
    assert metrics.value("last-poll-seconds-ago") == 0
    meter.polled()
    meter.waits()
    now[0] += 300
    assert metrics.value("last-poll-seconds-ago") == 0, "it waits for records"
    meter.goes_on()
    now[0] += 100
    meter.polled()
    assert metrics.value("time-between-poll-max") == 400
    assert metrics.value("poll-idle-ratio-avg") == 0.75
    now[0] += 2_000
    assert metrics.value("last-poll-seconds-ago") == 2
