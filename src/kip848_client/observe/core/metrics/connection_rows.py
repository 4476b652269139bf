"""Metrics of connections, of consumers, producers and workers: names as in Kafka's client."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from kip848_client.observe.core.metrics._row import GAUGE, METER, TIMING, Row

__all__ = ["CONNECT", "CONSUMER", "PRODUCER", "TABLE", "ConnectionRows"]


@dataclass(frozen=True, slots=True)
class ConnectionRows:
    """The rows of one kind of client. Those of nodes have the tag ``node-id``."""

    count: Row
    creation: Row
    close: Row
    network_io: Row
    request: Row
    request_size: Row
    outgoing: Row
    response: Row
    incoming: Row
    login: Row
    failed_login: Row
    node_request: Row
    node_request_size: Row
    node_outgoing: Row
    node_response: Row
    node_incoming: Row
    node_latency: Row

    @property
    def all(self) -> tuple[Row, ...]:
        """All rows, in the order of the documentation page."""
        return tuple(getattr(self, each.name) for each in fields(self))


def _rows(client: str) -> ConnectionRows:
    group, nodes = f"{client}-metrics", f"{client}-node-metrics"
    request = Row("request", group, METER, "Requests of any kind that were sent.")
    request_size = Row("request-size", group, TIMING, "Bytes of a request.", "bytes")
    outgoing = Row("outgoing-byte", group, METER, "Bytes that were sent, of requests.", "bytes")
    response = Row("response", group, METER, "Answers that came.")
    incoming = Row("incoming-byte", group, METER, "Bytes that came, of answers.", "bytes")

    def of_node(row: Row) -> Row:
        return Row(row.name, nodes, row.statistics, row.meaning, row.unit, ("node-id",), of="node")

    return ConnectionRows(
        count=Row("connection-count", group, GAUGE, "Connections that are open."),
        creation=Row("connection-creation", group, METER, "Connections that were opened."),
        close=Row("connection-close", group, METER, "Connections that ended."),
        network_io=Row(
            "network-io", group, METER, "Requests that were sent and answers that came."
        ),
        request=request,
        request_size=request_size,
        outgoing=outgoing,
        response=response,
        incoming=incoming,
        login=Row(
            "successful-authentication",
            group,
            METER,
            "Connections that were logged in, with SASL or by TLS.",
        ),
        failed_login=Row(
            "failed-authentication",
            group,
            METER,
            "Connections that were not opened because the login was refused or TLS failed.",
        ),
        node_request=of_node(request),
        node_request_size=of_node(request_size),
        node_outgoing=of_node(outgoing),
        node_response=of_node(response),
        node_incoming=of_node(incoming),
        node_latency=Row(
            "request-latency",
            nodes,
            TIMING,
            "From a request to its answer, of any kind; a Fetch waits at the broker for records.",
            "ms",
            ("node-id",),
            of="node",
        ),
    )


CONSUMER: Final = _rows("consumer")
PRODUCER: Final = _rows("producer")
CONNECT: Final = _rows("connect")
TABLE: Final = (*CONSUMER.all, *PRODUCER.all, *CONNECT.all)
"""Every row."""
