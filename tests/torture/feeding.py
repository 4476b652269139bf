"""What processes have to do: records in ``in``, and until when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kip848_client import Producer
from tests.torture.brokers import Brokers, committed
from tests.torture.names import GROUP, IN, PARTITIONS

__all__ = ["drained", "feed"]

_FEED_PAUSE_S: Final = 0.05
_FED_AT_ONCE: Final = 15
_PATIENCE_S: Final = 90.0
_PAUSE_S: Final = 0.2


async def feed(brokers: Brokers, is_over: Callable[[], bool]) -> int:
    """Write numbers to ``in``; returns how many were acknowledged, which is all."""
    sent = 0
    async with Producer(bootstrap_servers=brokers.bootstrap, client_id="feeder") as producer:
        while not is_over():
            for _ in range(_FED_AT_ONCE):
                await producer.send(IN, b"%d" % sent, partition=sent % PARTITIONS)
                sent += 1
            await asyncio.sleep(_FEED_PAUSE_S)
        last = [
            await producer.send(IN, b"%d" % (sent + number), partition=number)
            for number in range(PARTITIONS)
        ]
        await producer.flush()
        for future in last:
            future.result()
    return sent + PARTITIONS


async def drained(brokers: Brokers, fed: int, group: str = GROUP) -> None:
    """Return when a group has committed everything that is in ``in``. Raises ``TimeoutError``."""
    give_up = time.monotonic() + _PATIENCE_S
    while (offsets := await committed(brokers, group)) is None or sum(offsets.values()) < fed:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{offsets} are committed by {group}, of {fed} records")
        await asyncio.sleep(_PAUSE_S)
