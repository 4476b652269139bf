"""Metrics of connections that are played by hand."""

from __future__ import annotations

import math

from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.metrics.connection_rows import CONSUMER, PRODUCER, ConnectionRows
from kip848_client.observe.core.watching import ConnectionMeter


class Played:
    def __init__(self, rows: ConnectionRows = CONSUMER) -> None:
        self.now = 1_000
        self.metrics = Metrics()
        self.meter = ConnectionMeter(self.metrics.open({"client-id": "c"}, lambda: self.now), rows)
        self.meter.servers([("a", 1), ("b", 1)])

    def value(self, name: str, **tags: str) -> float:
        return self.metrics.value(name, **tags)


def test_nothing_has_happened_yet() -> None:
    h = Played()
    names = {each.name for each in h.metrics.samples()}
    assert {"connection-count", "connection-close-total", "failed-authentication-total"} <= names
    assert h.value("connection-count") == h.value("request-total") == 0
    assert math.isnan(h.value("request-size-max"))


def test_connections_are_counted_while_they_are_open() -> None:
    h = Played()
    first, second = h.meter.opened("a", 1), h.meter.opened("a", 1)
    h.meter.logged_in()
    first.closed()
    h.meter.refused()
    second.closed()
    h.meter.opened("b", 1)
    assert h.value("connection-count") == 1
    assert h.value("connection-creation-total") == 3
    assert h.value("connection-close-total") == 2
    assert h.value("successful-authentication-total") == 1
    assert h.value("failed-authentication-total") == 1


def test_requests_and_answers_are_measured_in_their_order() -> None:
    h = Played()
    h.meter.brokers({7: ("a", 1)})
    there = h.meter.opened("a", 1)
    there.sent(100, is_answered=True)
    h.now += 10
    there.sent(50, is_answered=False)
    there.sent(30, is_answered=True)
    h.now += 20
    there.received(1_000)
    h.now += 300
    there.received(2_000)
    assert h.value("request-total") == 3
    assert h.value("response-total") == 2
    assert h.value("network-io-total") == 5
    assert h.value("outgoing-byte-total") == 180
    assert h.value("incoming-byte-total") == 3_000
    assert h.value("request-size-avg") == 60
    assert h.value("request-size-max") == 100
    node = {"node_id": "node-7"}
    assert h.value("request-total", **node) == 3
    assert h.value("response-total", **node) == 2
    assert h.value("outgoing-byte-total", **node) == 180
    assert h.value("incoming-byte-total", **node) == 3_000
    assert h.value("request-size-max", **node) == 100
    assert h.value("request-latency-max", **node) == 320
    assert h.value("request-latency-avg", **node) == 175
    assert h.value("request-total", node_id="node--1") == 0


def test_a_server_has_its_own_name_until_somebody_says_which_broker_it_is() -> None:
    h = Played()
    there, elsewhere = h.meter.opened("b", 1), h.meter.opened("c", 9)
    there.sent(1, is_answered=True)
    elsewhere.sent(1, is_answered=True)
    h.meter.brokers({0: ("b", 1)})
    there.sent(1, is_answered=True)
    names = ("node--2", "node--1", "node-0")
    assert [h.value("request-total", node_id=name) for name in names] == [1, 1, 1]
    assert h.value("request-total") == 3


def test_an_answer_that_nobody_asked_for_has_no_latency() -> None:
    h = Played(PRODUCER)
    h.meter.opened("a", 1).received(10)
    assert h.value("response-total") == 1
    assert math.isnan(h.value("request-latency-max", node_id="node--1"))


def test_consumers_and_producers_have_the_same_metrics() -> None:
    assert [each.name for each in CONSUMER.all] == [each.name for each in PRODUCER.all]
    assert {each.client for each in CONSUMER.all} == {"consumer"}
    assert {each.client for each in PRODUCER.all} == {"producer"}
