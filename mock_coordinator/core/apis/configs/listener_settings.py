"""The settings of a broker's listeners: as if its file had named the addresses that it has
bound."""

from __future__ import annotations

from mock_coordinator.core.state.broker import Broker

__all__ = ["listener_settings"]

_PLAINTEXT = "PLAINTEXT"


def listener_settings(broker: Broker) -> dict[str, str]:
    """``listeners`` and ``advertised.listeners`` of one broker, in Kafka's notation
    ``NAME://host:port``, separated by commas; nothing for a broker that has no port."""
    node = broker.node
    if node.port == 0:
        return {}
    places = {_PLAINTEXT: (node.host, node.port)}
    for name, by_node in broker.disk.security.addresses.items():
        if node.node_id in by_node:
            places[name] = by_node[node.node_id]
    text = ",".join(f"{name}://{_host(host)}:{port}" for name, (host, port) in places.items())
    return {"listeners": text, "advertised.listeners": text}


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
