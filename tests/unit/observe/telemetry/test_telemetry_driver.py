"""The driver of telemetry: what it sends, and that it harms nobody."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kip848_client import Metrics
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError, RequestTimedOut, UnsupportedVersion
from kip848_client.observe.core.metrics import ClientMetrics, rows
from kip848_client.runtime.clock import LoopClock
from kip848_client.runtime.telemetry import (
    NoTelemetry,
    TelemetryDriver,
    _telemetry_driver,
    telemetry_of,
)

pytestmark = pytest.mark.asyncio

ME = bytes(range(16))
MY_NAME = "AAECAwQFBgcICQoLDA0ODw"
HEARTBEATS = "org.apache.kafka.consumer.coordinator.heartbeat.total"
GZIP = 1


class Broker:
    """A courier that answers at once. ``before`` is called with each request; it may raise or
    wait."""

    def __init__(
        self, *, requested: tuple[str, ...] = ("org.apache.",), delta: bool = True
    ) -> None:
        self.subscription = GetTelemetrySubscriptionsResponse(
            client_instance_id=ME,
            subscription_id=3,
            accepted_compression_types=(GZIP,),
            push_interval_ms=1,
            telemetry_max_bytes=10_000,
            delta_temporality=delta,
            requested_metrics=requested,
        )
        self.asked: list[Any] = []
        self.before: Callable[[Any], Any] = lambda _request: None
        self.errors: list[int] = []
        """Error codes of the next pushes."""
        self._changed = asyncio.Event()

    async def one_broker(self, request: Any, *, timeout_ms: int) -> Any:
        assert timeout_ms == 30_000
        self.asked.append(request)
        self._changed.set()
        waits = self.before(request)
        if waits is not None:
            await waits
        if isinstance(request, GetTelemetrySubscriptionsRequest):
            return self.subscription
        return PushTelemetryResponse(error_code=self.errors.pop(0) if self.errors else 0)

    @property
    def pushes(self) -> list[PushTelemetryRequest]:
        return [each for each in self.asked if isinstance(each, PushTelemetryRequest)]

    async def pushed(self, count: int) -> None:
        """Return after so many pushes."""
        async with asyncio.timeout(20):
            while len(self.pushes) < count:
                self._changed.clear()
                await self._changed.wait()


def counting(count: int = 5) -> ClientMetrics:
    """Metrics of a consumer that has sent so many heartbeats."""
    metrics = Metrics().open({"client-id": "c", "group-id": "g"}, lambda: 0)
    for _ in range(count):
        metrics.record(rows.HEARTBEAT, 0, 1)
    metrics.gauge(rows.RECORDS_LAG, lambda: {("t", "0"): 7.0})
    return metrics


def telemetry(broker: Broker, metrics: ClientMetrics | None = None) -> TelemetryDriver:
    return TelemetryDriver(
        broker,
        LoopClock(asyncio.get_running_loop()),
        metrics or counting(),
        {"group_id": "g"},
        {"client_id": "c"},
        request_timeout_ms=30_000,
    )


def read(push: PushTelemetryRequest) -> dict[str, list[float]]:
    """The values in it, by name."""
    raw = zlib.decompress(push.metrics, 31) if push.compression_type == GZIP else push.metrics
    (resource,) = MetricsData.FromString(raw).resource_metrics
    assert [(each.key, each.value.string_value) for each in resource.resource.attributes] == [
        ("group_id", "g")
    ]
    (scope,) = resource.scope_metrics
    return {
        each.name: [point.as_double for point in each.sum.data_points or each.gauge.data_points]
        for each in scope.metrics
    }


async def test_it_pushes_what_is_asked_for_until_it_is_closed() -> None:
    broker = Broker()
    reporter = telemetry(broker)
    reporter.begin()
    reporter.begin()
    assert await reporter.instance_id(20_000) == MY_NAME
    await broker.pushed(2)
    await reporter.close(5)
    await reporter.close(5)
    assert broker.asked[0] == GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))
    assert [each.terminating for each in broker.pushes] == [
        *[False] * (len(broker.pushes) - 1),
        True,
    ]
    first = broker.pushes[0]
    assert (first.client_instance_id, first.subscription_id, first.compression_type) == (ME, 3, 1)
    values = read(first)
    assert values[HEARTBEATS] == [5]
    assert values["org.apache.kafka.consumer.fetch.manager.records.lag"] == [7]
    assert sum(read(each)[HEARTBEATS][0] for each in broker.pushes) == 5
    asked = len(broker.asked)
    await asyncio.sleep(0)
    assert len(broker.asked) == asked


async def test_counters_are_told_whole_where_a_broker_wants_that() -> None:
    broker = Broker(delta=False, requested=(HEARTBEATS,))
    reporter = telemetry(broker)
    reporter.begin()
    await broker.pushed(3)
    await reporter.close(5)
    assert [read(each) for each in broker.pushes] == [{HEARTBEATS: [5.0]}] * len(broker.pushes)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (NotSent("no connection"), [5, 5]),
        (ConnectionBroken("it may have arrived"), [5, 0]),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, [5, 5]),
    ],
)
async def test_a_difference_that_was_not_taken_is_told_again(
    first: Exception | int, told: list[float]
) -> None:
    broker = Broker()
    if isinstance(first, int):
        broker.errors = [first]
    else:

        def fails_once(request: Any) -> None:
            if len(broker.pushes) == 1 and isinstance(request, PushTelemetryRequest):
                raise first

        broker.before = fails_once
    reporter = telemetry(broker)
    reporter.begin()
    await broker.pushed(2)
    await reporter.close(5)
    assert [read(each)[HEARTBEATS][0] for each in broker.pushes[:2]] == told


async def test_a_broker_that_says_nothing_does_not_keep_who_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_telemetry_driver, "_LAST_PUSH_S", 0.01)
    broker = Broker()
    reporter = telemetry(broker)
    reporter.begin()
    await broker.pushed(1)
    never = asyncio.Event()
    broker.before = lambda _request: never.wait()
    async with asyncio.timeout(10):
        await reporter.close(30)


async def test_who_has_no_time_left_does_not_wait() -> None:
    broker = Broker()
    never = asyncio.Event()
    broker.before = lambda _request: never.wait()
    reporter = telemetry(broker)
    reporter.begin()
    async with asyncio.timeout(10):
        await reporter.close(0)
    with pytest.raises(UnsupportedVersion):
        await reporter.instance_id(0)


async def test_a_bug_ends_it_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    broken = counting()

    def raises() -> dict[tuple[str, ...], float]:
        raise RuntimeError("a gauge that is broken")

    broken.gauge(rows.LAST_POLL, raises)
    broker = Broker()
    reporter = telemetry(broker, broken)
    reporter.begin()
    async with asyncio.timeout(20):
        while not caplog.records:  # noqa: ASYNC110 - nobody is woken by the log
            await asyncio.sleep(0)
    (told,) = caplog.records
    assert told.levelno == logging.ERROR
    assert "by a bug of this client" in told.getMessage()
    assert told.__dict__["client_id"] == "c"
    assert await reporter.instance_id(0) == MY_NAME
    await reporter.close(5)
    assert broker.pushes == []


async def test_an_instance_id_is_waited_for_and_not_for_ever() -> None:
    broker = Broker()
    never = asyncio.Event()
    broker.before = lambda _request: never.wait()
    reporter = telemetry(broker)
    reporter.begin()
    with pytest.raises(RequestTimedOut, match="within 10 ms"):
        await reporter.instance_id(10)
    await reporter.close(0)


async def test_brokers_that_take_no_metrics_are_no_reason_for_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuses(_request: Any) -> None:
        raise UnsupportedVersion("the broker does not offer GetTelemetrySubscriptions")

    broker = Broker()
    broker.before = refuses
    reporter = telemetry(broker)
    reporter.begin()
    with caplog.at_level(logging.INFO), pytest.raises(UnsupportedVersion, match="does not offer"):
        await reporter.instance_id(20_000)
    await reporter.close(5)
    assert caplog.records == []


@pytest.mark.parametrize("is_asked_for", [False, True])
@pytest.mark.parametrize(
    ("is_wanted", "has_metrics", "has_library", "why"),
    [
        (False, True, True, "enable_metrics_push is False"),
        (True, False, True, "metrics=Metrics"),
        (True, True, False, r"pip install '\.\[telemetry\]'"),
    ],
)
async def test_who_pushes_nothing_says_why_to_who_asks(
    is_asked_for: bool,
    is_wanted: bool,
    has_metrics: bool,
    has_library: bool,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_telemetry_driver, "is_installed", lambda: has_library)
    found = telemetry_of(
        Broker(),
        LoopClock(asyncio.get_running_loop()),
        counting() if has_metrics else None,
        {"group_id": "g", "client_rack": None},
        {},
        is_wanted=is_wanted,
        is_asked_for=is_asked_for,
        request_timeout_ms=30_000,
    )
    assert isinstance(found, NoTelemetry)
    found.begin()
    await found.close(1)
    with pytest.raises(LocalProtocolError, match=why):
        await found.instance_id(0)
    assert len(caplog.records) == (1 if is_asked_for and is_wanted else 0)
