"""What the clients of a process know at this moment, for who asks why nothing comes of it."""

from __future__ import annotations

import asyncio
import sys
from pprint import pformat
from typing import Any

from kip848_client import Consumer, Kip848Error, Producer
from kip848_client.core.produce._transaction import Transactions

__all__ = ["NEWEST", "tell"]

NEWEST: dict[str, Consumer[Any, Any] | Producer[Any, Any]] = {}
"""The client of each kind that was made last."""


def tell() -> None:
    """On standard error: where every task waits, and what the newest clients know."""
    for task in asyncio.all_tasks():
        task.print_stack(limit=4, file=sys.stderr)
    for kind, client in NEWEST.items():
        sys.stderr.write(f"the newest {kind}: {pformat(_known(client), width=200)}\n")
    sys.stderr.flush()


def _known(client: Consumer[Any, Any] | Producer[Any, Any]) -> list[object]:
    if isinstance(client, Producer):
        return [client, *_of_producer(client)]
    return [client, *_of_consumer(client)]


def _of_consumer(consumer: Consumer[Any, Any]) -> list[object]:
    if consumer._engine is None:
        return []
    try:
        health: object = consumer.health()
    except Kip848Error as err:
        health = err
    return [health, consumer.member, consumer._engine.core.snapshot()]


def _of_producer(producer: Producer[Any, Any]) -> list[object]:
    if producer._engine is None:
        return []
    core = producer._engine.core
    found: list[object] = [core.snapshot()]
    identity = core._identity
    if isinstance(identity, Transactions):
        asked = identity._requests
        found += [identity.state, identity.who, asked._open, asked._jobs]
        found.append(asked._coordinators._by_key)
    return found
