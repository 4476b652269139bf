"""What every process of a torture is made of."""

from __future__ import annotations

from typing import Any

from kip848_client import Consumer, Producer
from tests.torture.names import GROUP, IN, MAX_POLL_MS, READERS, TRANSACTION_MS

__all__ = ["AbandonedError", "a_consumer", "a_producer", "a_reader"]


class AbandonedError(Exception):
    """The application does not want this transaction any more."""


def a_consumer(bootstrap: str, name: str, *topics: str) -> Consumer[Any, Any]:
    """One of the group."""
    return Consumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
    )


def a_reader(bootstrap: str, name: str, *, enable_auto_commit: bool = False) -> Consumer[Any, Any]:
    """One of the group that only reads."""
    return Consumer(
        IN,
        bootstrap_servers=bootstrap,
        group_id=READERS,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=enable_auto_commit,
        auto_commit_interval_ms=500,
        max_poll_interval_ms=MAX_POLL_MS,
        fetch_max_wait_ms=100,
    )


def a_producer(bootstrap: str, name: str) -> Producer[Any, Any]:
    """The one with this transactional id."""
    return Producer(
        bootstrap_servers=bootstrap,
        client_id=name,
        transactional_id=name,
        transaction_timeout_ms=TRANSACTION_MS,
        linger_ms=0,
    )
