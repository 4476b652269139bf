"""From connections to their metrics. Decides nothing."""

from __future__ import annotations

from kip848_client.metrics import ClientMetrics, Row

__all__ = ["ConnectionMeter"]

_UNKNOWN_NODE = -1
"""Kafka's number for a broker that only its address is known of."""


class ConnectionMeter:
    """A ``ConnectionWatch``. ``connections`` counts those that are opened, ``latency`` measures
    answers by broker."""

    def __init__(self, metrics: ClientMetrics, connections: Row, latency: Row) -> None:
        self._metrics = metrics
        self._connections = metrics.sensor(connections)
        self._latency = latency

    def opened(self) -> None:
        """A connection was opened."""
        self._connections.record(self._metrics.now_ms())

    def answered(self, node_id: int | None, took_ms: int) -> None:
        """A broker has answered a request."""
        node = f"node-{_UNKNOWN_NODE if node_id is None else node_id}"
        self._metrics.record(self._latency, self._metrics.now_ms(), took_ms, node)
