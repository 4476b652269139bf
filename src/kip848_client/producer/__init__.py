"""The producer: ``Producer`` and what it hands out. The decisions are those of
``kip848_client.core.produce``; here they are performed."""

from __future__ import annotations

from kip848_client.producer._deliveries import Receipts, RecordMetadata
from kip848_client.producer._engine import connections
from kip848_client.producer._groups import GroupSource
from kip848_client.producer._producer import Producer
from kip848_client.producer._transaction import Transaction

__all__ = ["GroupSource", "Producer", "Receipts", "RecordMetadata", "Transaction", "connections"]
