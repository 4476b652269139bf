"""Sets the addresses of brokers in responses to those of the listener that the client uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

__all__ = ["readdressed"]


def readdressed(response: Any, addresses: Mapping[int, tuple[str, int]]) -> Any:
    """A response in which every node has the address that is given for it."""
    response = _moved(response, addresses)
    for name in ("brokers", "coordinators", "node_endpoints"):
        nodes = getattr(response, name, ())
        if nodes:
            moved = tuple(_moved(node, addresses) for node in nodes)
            response = replace(response, **{name: moved})
    return response


def _moved(node: Any, addresses: Mapping[int, tuple[str, int]]) -> Any:
    names = [field.name for field in fields(node)]
    if "host" not in names:
        return node
    node_id = node.node_id if "node_id" in names else node.broker_id
    if node_id not in addresses or not node.port:
        return node
    host, port = addresses[node_id]
    return replace(node, host=host, port=port)
