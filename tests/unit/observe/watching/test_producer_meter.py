"""Metrics of a producer core that is played by hand."""

from __future__ import annotations

import math

from kip848_client.core.produce import (
    AbortRequested,
    BeginRequested,
    CommitRequested,
    Done,
    Failed,
    FlushRequested,
    ProduceAnswered,
    Produced,
    ProduceSettings,
    StartRequested,
    TopicWanted,
    WaitEnded,
)
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._core import Command, Event
from kip848_client.errors import LocalProtocolError
from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.watching import ProducerMeter
from tests.unit.core.produce._harness import RECORD_BYTES, Harness, batch_bytes, tp


class Metered(Harness):
    """A core that somebody measures."""

    def __init__(self, settings: ProduceSettings | None = None) -> None:
        self.metrics = Metrics()
        self._meter: ProducerMeter | None = None
        super().__init__(settings)
        client = self.metrics.open({"client-id": "p"}, lambda: self.now)
        self._meter = ProducerMeter(client, self.core, is_transactional=True)

    def post(self, event: Event) -> tuple[Command, ...]:
        commands = super().post(event)
        if self._meter is not None:
            self._meter.on_step(self.now, event, commands)
        return commands

    @property
    def meter(self) -> ProducerMeter:
        assert self._meter is not None
        return self._meter

    def value(self, name: str, **tags: str) -> float:
        return self.metrics.value(name, **tags)


def test_a_request_is_measured_with_its_batches() -> None:
    h = Metered(ProduceSettings(linger_ms=5))
    h.append("abc", "def")
    h.advance(5)
    assert h.value("requests-in-flight") == 1
    h.now += 40
    told = {tp(): Produced(base_offset=0)}
    h.post(ProduceAnswered(h.open.pop().produce, told, throttle_time_ms=7))
    assert h.value("record-send-total") == 2
    assert h.value("record-send-total", topic="t") == 2
    assert h.value("records-per-request-avg") == 2
    assert h.value("record-queue-time-max") == 5
    assert h.value("request-latency-avg") == 40
    assert h.value("produce-throttle-time-max") == 7
    assert h.value("record-size-avg") == batch_bytes(2) / 2
    assert h.value("batch-size-max") == h.value("byte-total", topic="t") > 2 * RECORD_BYTES
    assert h.value("compression-rate-avg") == h.value("compression-rate", topic="t") > 0
    assert h.value("requests-in-flight") == h.value("record-error-total") == 0
    assert h.value("record-retry-total") == 0


def test_what_is_sent_again_counts_as_retry_and_a_failure_as_error() -> None:
    h = Metered(ProduceSettings(linger_ms=0))
    h.append("abc")
    h.advance(0)
    not_leader, too_large = 6, 87
    h.post(ProduceAnswered(h.open.pop().produce, {tp(): Produced(not_leader)}))
    h.advance(200)
    assert h.value("record-retry-total") == h.value("record-retry-total", topic="t") == 1
    assert h.value("record-send-total") == 2
    h.post(ProduceAnswered(h.open.pop().produce, {tp(): Produced(too_large)}))
    assert h.value("record-error-total") == h.value("record-error-total", topic="t") == 1
    assert not h.meter._sent


def test_a_split_is_counted() -> None:
    h = Metered(ProduceSettings(linger_ms=5))
    h.append("abc", "def")
    h.advance(5)
    message_too_large = 10
    h.post(ProduceAnswered(h.open.pop().produce, {tp(): Produced(message_too_large)}))
    assert h.value("batch-split-total") == 1


def test_room_is_shown_and_those_who_wait_for_it() -> None:
    h = Metered(ProduceSettings(buffer_bytes=100_000, batch_bytes=1_000))
    assert h.value("buffer-available-bytes") == h.value("buffer-total-bytes") == 100_000
    h.append("abc")
    assert h.value("buffer-available-bytes") == 99_000
    since_ms = h.meter.waits_for_room()
    assert h.value("waiting-threads") == 1
    h.now += 300
    h.meter.found_no_room()
    h.meter.goes_on(since_ms)
    assert h.value("waiting-threads") == 0
    assert h.value("buffer-exhausted-total") == 1
    assert h.value("bufferpool-wait-time-ns-total") == 300_000_000
    assert math.isclose(h.value("bufferpool-wait-ratio"), 0.01), "of the last 30 s"


def test_calls_that_were_not_in_vain_are_timed() -> None:
    h = Metered()
    h.meter.on_step(0, BeginRequested(7, 100), [])
    h.meter.on_step(30, WaitEnded(0), [Done(7)])
    h.meter.on_step(30, AbortRequested(8, 100), [])
    h.meter.on_step(90, WaitEnded(0), [Failed(8, LocalProtocolError("no"))])
    h.meter.on_step(90, FlushRequested(9), [])
    h.meter.on_step(95, WaitEnded(0), [Done(9)])
    h.meter.on_step(95, TopicWanted(10, "t", 200), [])
    h.meter.on_step(99, WaitEnded(10), [Done(10)])
    h.meter.on_step(100, StartRequested(11, 200), [])
    h.meter.on_step(103, WaitEnded(0), [Done(11)])
    h.meter.on_step(110, CommitRequested(12, 200), [])
    h.meter.on_step(118, WaitEnded(0), [Done(12)])
    assert h.value("txn-init-time-ns-total") == 3_000_000
    assert h.value("txn-commit-time-ns-total") == 8_000_000
    assert h.value("txn-begin-time-ns-total") == 30_000_000
    assert h.value("txn-abort-time-ns-total") == 0, "it was in vain"
    assert h.value("flush-time-ns-total") == 5_000_000
    assert h.value("metadata-wait-time-ns-total") == 0
    assert not h.meter._calls


def test_metadata_has_an_age() -> None:
    h = Metered()
    h.learn()
    h.now += 2_500
    assert h.value("metadata-age") == 2.5
    assert h.all(do.SendProduce) == []
