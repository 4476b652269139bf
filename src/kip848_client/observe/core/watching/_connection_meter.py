"""Metrics of connections: openings, requests and answers, by broker. Decides nothing.

It sees connections and frames, never a record. Brokers are named as in Kafka's client: ``node-1``
is broker 1, ``node--1`` the first bootstrap server while its broker id is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from kip848_client.observe.core.metrics import ClientMetrics, Sensor
from kip848_client.observe.core.metrics.connection_rows import ConnectionRows

__all__ = ["ConnectionMeter", "OpenConnection"]

Address = tuple[str, int]


class ConnectionMeter:
    """Measures all connections of one client. See ``kip848_client.core.ports.ConnectionWatch``."""

    def __init__(self, metrics: ClientMetrics, rows: ConnectionRows) -> None:
        self._metrics = metrics
        self.rows = rows
        self._names: dict[Address, str] = {}
        self._open = 0
        for row in (rows.creation, rows.close, rows.login, rows.failed_login):
            metrics.sensor(row)  # 0 before the first record, not missing
        self.requests = metrics.sensor(rows.request)
        self.request_sizes = metrics.sensor(rows.request_size)
        self.outgoing = metrics.sensor(rows.outgoing)
        self.responses = metrics.sensor(rows.response)
        self.incoming = metrics.sensor(rows.incoming)
        self.network_io = metrics.sensor(rows.network_io)
        metrics.gauge(rows.count, lambda: {(): self._open})

    def now_ms(self) -> int:
        """The time used for recording."""
        return self._metrics.now_ms()

    def servers(self, addresses: Sequence[Address]) -> None:
        """Set the bootstrap servers."""
        for number, address in enumerate(addresses, start=1):
            self._names.setdefault(address, f"node-{-number}")

    def brokers(self, nodes: Mapping[int, Address]) -> None:
        """Set the addresses of brokers."""
        for node_id, address in nodes.items():
            self._names[address] = f"node-{node_id}"

    def name_of(self, address: Address) -> str:
        """Return the tag ``node-id`` of an address."""
        return self._names.get(address, "node--1")

    def opened(self, host: str, port: int) -> OpenConnection:
        """Record an opened connection, before its login."""
        self._open += 1
        self._metrics.record(self.rows.creation, self.now_ms(), 1)
        return OpenConnection(self, (host, port))

    def closed(self) -> None:
        """Record the end of an open connection."""
        self._open -= 1
        self._metrics.record(self.rows.close, self.now_ms(), 1)

    def logged_in(self) -> None:
        """Record a successful login."""
        self._metrics.record(self.rows.login, self.now_ms(), 1)

    def refused(self) -> None:
        """Record a refused login."""
        self._metrics.record(self.rows.failed_login, self.now_ms(), 1)

    def sensors_of(self, name: str) -> tuple[Sensor, ...]:
        """Return the sensors of one broker."""
        rows, sensor = self.rows, self._metrics.sensor
        return (
            sensor(rows.node_request, name),
            sensor(rows.node_request_size, name),
            sensor(rows.node_outgoing, name),
            sensor(rows.node_response, name),
            sensor(rows.node_incoming, name),
            sensor(rows.node_latency, name),
        )


class OpenConnection:
    """Measures one connection. Answers come in the order of their requests."""

    __slots__ = ("_address", "_meter", "_name", "_sensors", "_sent_ms")

    def __init__(self, meter: ConnectionMeter, address: Address) -> None:
        self._meter = meter
        self._address = address
        self._name = ""
        self._sensors: tuple[Sensor, ...] = ()
        self._sent_ms: deque[int] = deque()
        """Send times of unanswered requests."""

    def sent(self, size_bytes: int, *, is_answered: bool) -> None:
        """Record a request of this size."""
        meter, now_ms = self._meter, self._meter.now_ms()
        requests, sizes, outgoing, *_ = self._of_node()
        for each in (meter.requests, meter.network_io, requests):
            each.record(now_ms)
        for each in (meter.request_sizes, meter.outgoing, sizes, outgoing):
            each.record(now_ms, size_bytes)
        if is_answered:
            self._sent_ms.append(now_ms)

    def received(self, size_bytes: int) -> None:
        """Record an answer of this size."""
        meter, now_ms = self._meter, self._meter.now_ms()
        *_, responses, incoming, latency = self._of_node()
        for each in (meter.responses, meter.network_io, responses):
            each.record(now_ms)
        for each in (meter.incoming, incoming):
            each.record(now_ms, size_bytes)
        if self._sent_ms:
            latency.record(now_ms, now_ms - self._sent_ms.popleft())

    def closed(self) -> None:
        """Record the end of the connection."""
        self._meter.closed()

    def _of_node(self) -> tuple[Sensor, ...]:
        name = self._meter.name_of(self._address)
        if name != self._name:
            self._name, self._sensors = name, self._meter.sensors_of(name)
        return self._sensors
