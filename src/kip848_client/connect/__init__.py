"""Workers of Kafka Connect, without I/O: what they say and are told, in bytes, and the assignors
that share connectors and tasks among them."""

from __future__ import annotations

from kip848_client.connect._encoding import CONFIG_MISMATCH, WorkerAssignment, WorkerMetadata
from kip848_client.connect._items import (
    ITSELF,
    NO_ITEMS,
    ConnectorTaskId,
    Items,
    item_name,
    items_of,
)
from kip848_client.connect._protocols import PROTOCOL_TYPE, ConnectProtocol, RebalanceReason
from kip848_client.connect._rounds import Round, RoundMemory, WorkerRound, incremental_round

__all__ = [
    "CONFIG_MISMATCH",
    "ITSELF",
    "NO_ITEMS",
    "PROTOCOL_TYPE",
    "ConnectProtocol",
    "ConnectorTaskId",
    "Items",
    "RebalanceReason",
    "Round",
    "RoundMemory",
    "WorkerAssignment",
    "WorkerMetadata",
    "WorkerRound",
    "incremental_round",
    "item_name",
    "items_of",
]
