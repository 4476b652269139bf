"""Awaits the deserializers of the user's that are to be awaited, for calls for records.

They run in the task that asks for records, one after the other in each partition, and end with it:
a call that is cancelled cancels the deserializer, and the next one calls it again for the same
record. While one runs nothing is handed out of what it is to make, so a partition may go meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

from kip848_client.errors import LocalProtocolError
from kip848_client.records import AheadReader, Decoding, is_cancelled

__all__ = ["AT_ONCE_MAX", "Deserializing"]

AT_ONCE_MAX: Final = 500
"""So many records are made at most for a call that has no limit of its own: Kafka's
``max.poll.records``."""


class Deserializing:
    """The deserializers of one consumer."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding
        self._locks: WeakKeyDictionary[AheadReader, asyncio.Lock] = WeakKeyDictionary()
        """Several tasks may ask for records of one partition."""
        self._running: dict[asyncio.Timeout, asyncio.Task[Any] | None] = {}
        """What ends the calls that are here, and the task of each."""

    async def make(self, readers: Iterable[AheadReader], limit: int) -> None:
        """Make at most ``limit`` records, unless there are so many already. What a deserializer
        raises the reader raises. Ends early at ``stop``."""
        task = asyncio.current_task()
        if task in self._running.values():  # which would wait for itself
            raise LocalProtocolError("a deserializer cannot ask for records")
        try:
            async with asyncio.timeout(None) as scope:
                self._running[scope] = task
                try:
                    await self._make_of_all(readers, limit)
                finally:
                    self._running.pop(scope, None)
        except TimeoutError:
            return  # of the scope: those of deserializers are told otherwise

    def stop(self, caller: asyncio.Task[Any] | None) -> None:
        """End what is under way, but for ``caller``, which is in a deserializer that stops the
        consumer."""
        for scope, task in list(self._running.items()):
            if task is not caller:
                del self._running[scope]
                scope.reschedule(asyncio.get_running_loop().time())

    async def _make_of_all(self, readers: Iterable[AheadReader], limit: int) -> None:
        left = limit
        for reader in readers:
            async with self._locks.setdefault(reader, asyncio.Lock()):
                while reader.ready < left and reader.wants:
                    raw = reader.next_unmade()
                    if raw is None:
                        break
                    try:
                        key, value = await self._decoding.deserialized(raw)
                    except (Exception, asyncio.CancelledError) as err:
                        if is_cancelled(err):
                            raise
                        reader.refused(raw, err)
                    else:
                        reader.made(raw, key, value)
            left -= reader.ready
            if left <= 0:
                return
