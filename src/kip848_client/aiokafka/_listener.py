"""The application's rebalance listener, called as aiokafka calls it.

KIP-848 changes an assignment partition by partition, and our consumer calls its listener so. A
program that was written for aiokafka expects pairs of calls: ``on_partitions_revoked`` with all
partitions that it had, then ``on_partitions_assigned`` with all that it has now. So each change
becomes such a pair. No records are delivered between the two calls, not even of partitions that
stay. Those keep their positions.
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
    """A listener of our consumer that calls aiokafka's listener of the application. ``notify`` is
    called for each assignment, even an empty one, before the listener.

    The consumer makes one call at a time, and repeats a call that failed or was cancelled with the
    same partitions. If the second call of a pair fails, the whole pair is repeated. A call without
    partitions is not repeated.
    """

    def __init__(self, inner: ConsumerAdapter, notify: Callable[[], None]) -> None:
        self._inner = inner
        self._notify = notify
        self._listener: Any = None
        self._owned: set[OurPartition] = set()
        """The partitions that our consumer has reported as assigned."""
        self._told: set[OurPartition] = set()
        """The partitions of the application's last call, without those revoked since."""
        self._is_unknown = False
        """Whether this listener was never called."""
        self._is_new = False
        """Whether no assignment was reported since the subscription, or since all was lost."""
        self._is_open = False
        """Whether a pair of calls has begun and is not complete."""
        self._is_revoked = False
        """Whether its first call has succeeded."""
        self._waiting: asyncio.TimerHandle | None = None
        """The wait for other members to give up partitions, if we got none at first."""
        self._has_waited = False
        self.is_revoking = False
        """Whether we are between the starts of the first and the second call."""

    def listen(self, listener: Any) -> None:
        """``subscribe`` was called, with this listener (or ``None``)."""
        self._is_unknown = self._is_unknown or listener is not self._listener
        self._listener = listener
        self._is_new = True
        if self._told:  # it must be called before more records are delivered
            self._is_open = True
            self._inner.hold(everything=listener is not None)

    def end(self) -> None:
        """Stop waiting."""
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
        finally:  # they are lost, even if the listener fails
            self._owned -= lost
            self._told = set()
            self._is_revoked = self._is_new = True

    async def on_partitions_assigned(self, assigned: set[OurPartition]) -> None:
        self._owned |= assigned
        if self._is_new and not self._owned and not self._has_waited:
            self._wait()
            self._notify()
        elif self._is_new or self._is_open or self._owned != self._told:
            if self._is_unknown:  # another listener may have got the first call
                self._is_revoked = False
            await self._revoke("on_partitions_revoked")
            await self._assign()
        else:
            self._notify()

    # -- inside ----------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait before reporting an empty assignment: a member that joins late often has no
        partitions at first."""
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
        if not self._is_new:  # otherwise a new subscription came meanwhile; its pair follows
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
            # Without partitions there is nothing to repeat. aiokafka's commit() raises in the
            # first call.
            _log.exception("the rebalance listener failed in %s without partitions", name)
