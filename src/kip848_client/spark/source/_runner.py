"""``SourceRunner``: the state of a query in Spark's source process.

Spark calls from one thread and waits without a timeout. So the work is done in an event loop in
another thread, and each call has a deadline. Nothing connects before the first call that needs
brokers, because Spark makes readers in several processes.
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
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.control._channel import ControlServer
from kip848_client.spark.source._cluster import Cluster
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import check_ownership
from kip848_client.spark.source.core._planning import Planning, Seen

__all__ = ["LEAVE_MS", "SourceRunner"]

_log = logging.getLogger("kip848_client.spark")

LEAVE_MS: Final = 5_000
"""The timeout for disconnecting."""

T = TypeVar("T")


class SourceRunner(ABC):
    """One query. Spark calls its methods from one thread, one at a time, and what they raise ends
    the query. All other methods run in the loop."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planning = Planning(options.fails_on_data_loss, options.at_least, options.delay_ms)
        self._freed = asyncio.Condition()
        """Notified when Spark has finished a batch."""
        self._loop = LoopThread("kip848-spark-source")
        self._opened: Cluster | None = None
        self._control: ControlServer | None = None
        self._seen: Seen | None = None
        self._is_planned = False
        """Whether this process has planned a batch: a batch before that is an earlier run's."""

    # -- what Spark calls --------------------------------------------------------------------

    def first(self) -> Manifest:
        """The offsets at which a query without a checkpoint starts."""
        return self._mine(self._call(self._first()))

    def stop_at_what_is_there(self) -> None:
        """AvailableNow: read no further than the current ends of all partitions."""
        seen = self._call(self._look())
        self._planning.until = {tp: end for tp, (_, end) in seen.bounds.items()}

    def next(self, start: Manifest, limit: int | None) -> Manifest:
        """The batch after ``start``, which is committed; ``start`` itself if there is none."""
        check_ownership(start, self._options)
        return self._call(self._next(start, limit))

    def batch(self, planned: Manifest) -> Manifest:
        """The part of a batch to read now: all of it, unless an earlier run planned it. Raises
        ``ConfigError`` for a checkpoint of the other ownership, like ``next``."""
        if self._is_planned:
            return planned
        check_ownership(planned, self._options)
        found = self._call(self._repeated(planned))
        self._is_planned = True
        return found

    def ends(self) -> dict[str, Any] | None:
        """The ends of the partitions when the brokers were last asked."""
        return None if self._seen is None else self._seen.ends_json()

    def close(self) -> None:
        """Leave the group and disconnect. Never raises. After an error Spark may call it twice."""
        if self._loop.is_closed:
            return
        try:
            self._loop.call(self._end(), LEAVE_MS)
        except Exception as err:  # noqa: BLE001  # the process ends, and no caller would see it
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
        """Spark has committed this batch: commit its offsets to the group. If that fails, they are
        committed with the next batch: Spark's checkpoint counts, and the query continues."""
        self._take_done(batch)
        await self._commit()
        async with self._freed:
            self._freed.notify_all()

    async def drained(self) -> None:
        """Plan nothing more, wait until Spark has finished its batch, commit, leave the group."""
        self._planning.is_draining = True
        async with self._freed:
            await self._freed.wait_for(lambda: not self._is_busy())
        await self._commit()
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
        """Answer a request of the control channel. Raises ``ConfigError``."""
        match request:
            case {"done": dict(said)}:
                await self.batch_done(Manifest.of(said))
            case {"drain": True}:
                await self.drained()
            case {"status": True}:
                pass
            case _:
                raise ConfigError(f"unknown control request: {request!r}")
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
            _log.warning("records are lost, and the query continues: %s", what)
        self._planning.losses.clear()

    # -- differs by ownership -------------------------------------------------------------------

    @abstractmethod
    async def _join(self) -> None:
        """Join the group, if the query is a member."""

    @abstractmethod
    async def _leave(self) -> None:
        """Leave the group, if the query is a member. May be called again."""

    @abstractmethod
    async def _first(self) -> Manifest:
        """The offsets at which a query without a checkpoint starts."""

    @abstractmethod
    def _planned(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch, or ``start`` if there is none."""

    @abstractmethod
    async def _repeated(self, planned: Manifest) -> Manifest:
        """The part to read of a batch that an earlier run planned and did not finish."""

    @abstractmethod
    def _take_done(self, batch: Manifest) -> None:
        """Spark has committed this batch."""

    @abstractmethod
    async def _commit(self) -> None:
        """Commit to the group what Spark has committed. Never raises an error of Kafka's."""

    @abstractmethod
    def _is_busy(self) -> bool:
        """Whether Spark is processing a batch."""

    @abstractmethod
    def _status(self) -> dict[str, Any]:
        """The answer of the control channel about this query."""
