"""What processes have to do: records in ``in``, and until when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kip848_client import Producer
from tests.torture.brokers import Brokers, committed
from tests.torture.names import GROUP, IN, PARTITIONS

__all__ = ["PATIENCE_S", "Patience", "drained", "feed"]

_FEED_PAUSE_S: Final = 0.05
_FED_AT_ONCE: Final = 15
PATIENCE_S: Final = 90.0
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


class Patience:
    """How long nothing more was done: pure."""

    def __init__(self, now: float) -> None:
        self._most = 0
        self._since = now

    def is_over(self, done: int, now: float) -> bool:
        """Whether nothing was done for too long, if so much is done now; what cannot be told at
        the moment is 0."""
        if done > self._most:
            self._most, self._since = done, now
        return now - self._since > PATIENCE_S


async def drained(brokers: Brokers, fed: int, group: str = GROUP) -> None:
    """Return when a group has committed everything that is in ``in``. Raises ``TimeoutError`` when
    it has committed no more for a while, however much it has to catch up with."""
    patience = Patience(time.monotonic())
    while (offsets := await committed(brokers, group)) is None or sum(offsets.values()) < fed:
        # while one transaction follows the other nothing is stable
        seen = await committed(brokers, group, is_stable=False) or {}
        if patience.is_over(sum(seen.values()), time.monotonic()):
            raise TimeoutError(
                f"{seen} are committed by {group}, of {fed} records, and no more for "
                f"{PATIENCE_S:.0f} s"
            )
        await asyncio.sleep(_PAUSE_S)
