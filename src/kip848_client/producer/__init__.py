"""The producer: ``Producer`` and the types of its results. ``kip848_client.core.produce`` makes the
decisions; this package executes them."""

from __future__ import annotations

from kip848_client.producer._deliveries import Receipts, RecordMetadata
from kip848_client.producer._engine import connections
from kip848_client.producer._groups import GroupSource
from kip848_client.producer._producer import Producer
from kip848_client.producer._transaction import Transaction

__all__ = ["GroupSource", "Producer", "Receipts", "RecordMetadata", "Transaction", "connections"]
