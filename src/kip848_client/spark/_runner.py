"""``SourceRunner``: what lives in Spark's source process for as long as a query does.

Spark calls from one thread and waits without any limit of its own. So the work is done in an event
loop in another thread, and each call has a deadline. Nothing is begun before the first call that
needs brokers: Spark makes readers in several processes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, TypeVar

from kip848_client.errors import ConfigError
from kip848_client.spark._cluster import Cluster
from kip848_client.spark._control import ControlServer
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.core._manifest import Manifest
from kip848_client.spark.core._options import SourceOptions
from kip848_client.spark.core._ownership import check_ownership
from kip848_client.spark.core._planning import Planning, Seen

__all__ = ["LEAVE_MS", "SourceRunner"]

_log = logging.getLogger("kip848_client.spark")

LEAVE_MS: Final = 5_000
"""What disconnecting may take."""

T = TypeVar("T")


class SourceRunner(ABC):
    """One query. The methods that Spark calls come from its thread, one at a time, and raise what
    ends the query; the others run in the loop."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planning = Planning(options.fails_on_data_loss, options.at_least, options.delay_ms)
        self._freed = asyncio.Condition()
        """Told whenever Spark has finished a batch."""
        self._loop = LoopThread("kip848-spark-source")
        self._opened: Cluster | None = None
        self._control: ControlServer | None = None
        self._seen: Seen | None = None
        self._is_planned = False
        """Whether this process has planned a batch: one that comes before is an earlier run's."""

    # -- what Spark calls --------------------------------------------------------------------

    def first(self) -> Manifest:
        """Where a query without a checkpoint begins."""
        return self._mine(self._call(self._first()))

    def stop_at_what_is_there(self) -> None:
        """AvailableNow: what is there now, in all partitions, is all that will be read."""
        seen = self._call(self._look())
        self._planning.until = {tp: end for tp, (_, end) in seen.bounds.items()}

    def next(self, start: Manifest, limit: int | None) -> Manifest:
        """The batch after ``start``, which Spark has; ``start`` itself for none."""
        check_ownership(start, self._options)
        return self._call(self._next(start, limit))

    def batch(self, planned: Manifest) -> Manifest:
        """The part of a batch to read now: all of it, unless an earlier run planned it. Raises
        ``ConfigError`` for a checkpoint of the other ownership, as ``next`` does."""
        if self._is_planned:
            return planned
        check_ownership(planned, self._options)
        found = self._call(self._repeated(planned))
        self._is_planned = True
        return found

    def ends(self) -> dict[str, Any] | None:
        """The ends of the partitions when they were last looked at."""
        return None if self._seen is None else self._seen.ends_json()

    def close(self) -> None:
        """Leave and disconnect. Never raises. After an error Spark may ask twice."""
        if self._loop.is_closed:
            return
        try:
            self._loop.call(self._end(), LEAVE_MS)
        except Exception as err:  # noqa: BLE001  # the process ends, and there is nobody to tell
            _log.warning("the source did not disconnect in time: %s", err)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.call(work, self._options.poll_timeout_ms)

    # -- in the loop -------------------------------------------------------------------------

    async def _next(self, start: Manifest, limit: int | None) -> Manifest:
        await self._connected()
        await self.batch_done(start)
        if self._planning.is_draining:
            return start
        found = self._planned(start, await self._look(), limit, int(time.monotonic() * 1000))
        self._warn_of_losses()
        self._is_planned = True
        return start if found is start else self._mine(found)

    def _mine(self, batch: Manifest) -> Manifest:
        """The form that is written to the checkpoint."""
        return replace(batch, ownership=self._options.ownership)

    async def batch_done(self, batch: Manifest) -> None:
        """Spark has this batch: tell the group. What cannot be told now is told with the next one:
        the truth is in Spark's checkpoint, and a query whose data is safe goes on."""
        self._take_done(batch)
        await self._tell()
        async with self._freed:
            self._freed.notify_all()

    async def drained(self) -> None:
        """Plan nothing more, wait until Spark has what was planned, tell the group and leave."""
        self._planning.is_draining = True
        async with self._freed:
            await self._freed.wait_for(lambda: not self._is_busy())
        await self._tell()
        await self._leave()

    async def _connected(self) -> Cluster:
        if self._opened is None:
            cluster = Cluster(self._options)
            await cluster.start()
            self._opened = cluster
            if self._options.control is not None:
                self._control = ControlServer(self._options.control, self._controlled)
                await self._control.start()
            await self._join()
        return self._opened

    async def _controlled(self, request: dict[str, Any]) -> dict[str, Any]:
        """What came by the control channel. Raises ``ConfigError``."""
        match request:
            case {"done": dict(said)}:
                await self.batch_done(Manifest.of(said))
            case {"drain": True}:
                await self.drained()
            case {"status": True}:
                pass
            case _:
                raise ConfigError(f"{request!r} is no request of the control channel")
        return self._status()

    async def _look(self) -> Seen:
        """Ask for the bounds of all partitions."""
        self._seen = await (await self._connected()).seen()
        return self._seen

    async def _end(self) -> None:
        await self._leave()
        if self._control is not None:
            await self._control.stop()
        if self._opened is not None:
            await self._opened.stop()

    def _warn_of_losses(self) -> None:
        for what in self._planning.losses:
            _log.warning("records are lost, and the query goes on: %s", what)
        self._planning.losses.clear()

    # -- what the kinds of ownership differ in -------------------------------------------------

    @abstractmethod
    async def _join(self) -> None:
        """Become a member, if that is what this query is."""

    @abstractmethod
    async def _leave(self) -> None:
        """Cease to be one. May be called again."""

    @abstractmethod
    async def _first(self) -> Manifest:
        """Where a query without a checkpoint begins."""

    @abstractmethod
    def _planned(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch, or ``start``."""

    @abstractmethod
    async def _repeated(self, planned: Manifest) -> Manifest:
        """What is to be read of a batch that an earlier run has planned and not ended."""

    @abstractmethod
    def _take_done(self, batch: Manifest) -> None:
        """Spark has this batch."""

    @abstractmethod
    async def _tell(self) -> None:
        """Commit what Spark has, where the group was not told. Never raises an error of Kafka's."""

    @abstractmethod
    def _is_busy(self) -> bool:
        """Whether Spark has a batch in hand."""

    @abstractmethod
    def _status(self) -> dict[str, Any]:
        """What the control channel tells of this query."""
