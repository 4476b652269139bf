"""The application's rebalance listener, called as aiokafka calls it.

KIP-848 changes an assignment partition by partition, and our consumer tells its listeners so. A
program that was written for aiokafka expects pairs: ``on_partitions_revoked`` with all that it was
told of, then ``on_partitions_assigned`` with all that it has now. So each change becomes such a
pair, and nothing is handed out between the two, also of what stays. Positions are kept: what stays
goes on where it was.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka.structs import TopicPartition
from kip848_client.core.types import TopicPartition as OurPartition

__all__ = ["ListenerInPairs"]


_log = logging.getLogger("kip848_client")


class ListenerInPairs:
    """Ours to the consumer, aiokafka's to the application. ``notify`` is called whenever the group
    has assigned something, or nothing, before the listener hears of it.

    The consumer makes one call at a time, and repeats one that has failed (also one that was
    cancelled) with the same partitions. Where the second half of a pair has failed, the whole pair
    is repeated. A call that names no partition is not repeated.
    """

    def __init__(self, inner: ConsumerAdapter, notify: Callable[[], None]) -> None:
        self._inner = inner
        self._notify = notify
        self._listener: Any = None
        self._owned: set[OurPartition] = set()
        """What the group has assigned, as far as our consumer has told."""
        self._told: set[OurPartition] = set()
        """What the application was told of last, and what was not revoked since."""
        self._is_unknown = False
        """Nobody has called this listener."""
        self._is_new = False
        """Nobody was told what is assigned since the subscription, or since all was lost."""
        self._is_open = False
        """A pair has begun, and is not over."""
        self._is_revoked = False
        """Its first call has succeeded."""
        self._waiting: asyncio.TimerHandle | None = None
        """Until others have given something up for a member that has got nothing at first."""
        self._has_waited = False
        self.is_revoking = False
        """From the beginning of a first call to that of the second one."""

    def listen(self, listener: Any) -> None:
        """There was a ``subscribe``, with this listener (``None``: with none)."""
        self._is_unknown = self._is_unknown or listener is not self._listener
        self._listener = listener
        self._is_new = True
        if self._told:  # it shall hear of it before anything more is read
            self._is_open = True
            self._inner.hold(everything=listener is not None)

    def end(self) -> None:
        """Wait for nothing any more."""
        if self._waiting is not None:
            self._waiting.cancel()

    # -- what the consumer calls -----------------------------------------------------------------

    async def on_partitions_revoked(self, revoked: set[OurPartition]) -> None:
        await self._revoke("on_partitions_revoked")
        self._owned -= revoked

    async def on_partitions_lost(self, lost: set[OurPartition]) -> None:
        knows = hasattr(self._listener, "on_partitions_lost")
        try:
            await self._revoke("on_partitions_lost" if knows else "on_partitions_revoked")
        finally:  # they are gone, whatever it says
            self._owned -= lost
            self._told = set()
            self._is_revoked = self._is_new = True

    async def on_partitions_assigned(self, assigned: set[OurPartition]) -> None:
        self._owned |= assigned
        if self._is_new and not self._owned and not self._has_waited:
            self._wait()
            self._notify()
        elif self._is_new or self._is_open or self._owned != self._told:
            if self._is_unknown:  # another one may have heard the first half
                self._is_revoked = False
            await self._revoke("on_partitions_revoked")
            await self._assign()
        else:
            self._notify()

    # -- inside ----------------------------------------------------------------------------------

    def _wait(self) -> None:
        """A member that joins late often has nothing at first, which says nothing. That it stays so
        is told."""
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(self._inner.nothing_after_s, self._waited)

    def _waited(self) -> None:
        self._has_waited = True
        self._inner.greet_listener()

    async def _revoke(self, name: str) -> None:
        if not self._is_revoked:
            self._is_open = self.is_revoking = True
            self._inner.hold(everything=self._listener is not None)
            await self._call(name, self._told)
            self._told, self._is_revoked = set(), True

    async def _assign(self) -> None:
        self.end()
        self._waiting, self._has_waited = None, False
        self._is_revoked = self._is_new = self.is_revoking = False
        self._told = set(self._owned)
        self._notify()
        await self._call("on_partitions_assigned", self._told)
        if not self._is_new:  # or there was a subscription meanwhile, whose pair comes next
            self._is_open = False
            self._inner.hold(everything=False)

    async def _call(self, name: str, partitions: set[OurPartition]) -> None:
        self._is_unknown = False
        if self._listener is None:
            return
        try:
            result = getattr(self._listener, name)({TopicPartition(*tp) for tp in partitions})
            if inspect.isawaitable(result):
                await result
        except Exception:
            if partitions:
                raise
            # For nothing there is nothing to lose. aiokafka's commit() raises in the first call.
            _log.exception("the rebalance listener failed in %s, of no partition", name)
