"""Awaits the user's async deserializers, for calls for records.

They run in the task that asks for records, one after the other in each partition, and end with it:
a cancelled call cancels the deserializer, and the next call runs it again for the same record.
While one runs, no record that depends on it is delivered, so the partition may be revoked
meanwhile.
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
"""Maximum number of records deserialized for a call without a limit of its own: Kafka's
``max.poll.records``."""


class Deserializing:
    """The deserializers of one consumer."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding
        self._locks: WeakKeyDictionary[AheadReader, asyncio.Lock] = WeakKeyDictionary()
        """One lock per partition, because several tasks may ask for its records."""
        self._running: dict[asyncio.Timeout, asyncio.Task[Any] | None] = {}
        """The timeout scope of each running call, with its task."""

    async def make(self, readers: Iterable[AheadReader], limit: int) -> None:
        """Deserialize at most ``limit`` records, unless that many are ready. If a deserializer
        raises, the reader raises that. Ends early at ``stop``."""
        task = asyncio.current_task()
        if task in self._running.values():  # it would wait for itself
            raise LocalProtocolError("a deserializer cannot ask for records")
        try:
            async with asyncio.timeout(None) as scope:
                self._running[scope] = task
                try:
                    await self._make_of_all(readers, limit)
                finally:
                    self._running.pop(scope, None)
        except TimeoutError:
            return  # of the scope; a deserializer's is stored in the reader

    def stop(self, caller: asyncio.Task[Any] | None) -> None:
        """Cancel the running calls, except that of ``caller``, which is in a deserializer that
        stops the consumer."""
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
