"""The user's calls about positions: seeks, ``position()``, offsets by time.

The fetch core decides where a partition begins; here are the calls that wait. A call that fails or
is cancelled changes nothing: the core moves partitions only once it has the result, and a newer
seek or the loss of the partition wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._fetch_driver import FetchDriver
from kip848_client.core.cluster import NO_EPOCH
from kip848_client.core.fetch import (
    ErrorDelivered,
    FoundOffset,
    SeekBegun,
    SeekEnded,
    Sought,
    Started,
    StoredOffset,
)
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.ports import Clock
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, not_assigned

__all__ = ["Positions"]

Committed = Mapping[TopicPartition, CommittableOffset | None]
"""A group's committed offsets; ``None`` for none."""


class Positions:
    """Positions of one consumer. ``patience_ms``: how long a call retries."""

    def __init__(
        self, fetching: FetchDriver, errors: ErrorBox, clock: Clock, *, patience_ms: int
    ) -> None:
        self._fetching = fetching
        self._errors = errors
        self._clock = clock
        self._patience_ms = patience_ms
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    async def at(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, FoundOffset]:
        """Offsets by time; see ``FetchDriver.offsets``."""
        return await self._fetching.offsets(times, self._clock.now_ms() + self._patience_ms)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continue at ``offset``, overriding older seeks."""
        self._fetching.post(Sought(tp, offset))

    async def seek_to(self, partitions: Collection[TopicPartition], time: int) -> None:
        """Move to the beginning or end (``EARLIEST``, ``LATEST``) and wait until that is done."""

        async def look_up() -> dict[TopicPartition, StoredOffset]:
            found = await self.at(dict.fromkeys(partitions, time))
            # the epoch in the answer is the leader's, not that of the record before
            return {tp: StoredOffset(each.offset, NO_EPOCH) for tp, each in found.items()}

        await self._seek(partitions, look_up)

    async def seek_to_committed(
        self,
        partitions: Collection[TopicPartition],
        look_up: Callable[[Collection[TopicPartition]], Awaitable[Committed]],
    ) -> Committed:
        """As ``seek_to``, to the offsets that ``look_up`` finds."""
        stored: Committed = {}

        async def look_up_committed() -> dict[TopicPartition, StoredOffset]:
            nonlocal stored
            stored = await look_up(partitions)
            return {
                tp: StoredOffset(each.offset, each.leader_epoch)
                for tp, each in stored.items()
                if each is not None
            }

        await self._seek(partitions, look_up_committed, committed=True)
        return stored

    async def _seek(
        self,
        partitions: Collection[TopicPartition],
        look_up: Callable[[], Awaitable[Mapping[TopicPartition, StoredOffset]]],
        *,
        committed: bool = False,
    ) -> None:
        ticket = self._fetching.ticket()
        self._fetching.post(SeekBegun(ticket, tuple(partitions)))
        found: Mapping[TopicPartition, StoredOffset] = {}
        try:
            found = await look_up()
        finally:
            self._fetching.post(SeekEnded(ticket, found, committed))

    async def wait_for(self, tp: TopicPartition) -> int:
        """Wait for the position, starting a look-up if needed: inside the listener's call there is
        none yet. Raises ``NotAssigned``, also if the partition is revoked meanwhile, and the error
        that stops the partition, typically ``NoOffsetForPartition``."""
        core = self._fetching.core
        if not self._closed and core.position(tp) is None:
            self._fetching.post(Started((tp,)))
        while True:
            if self._closed:
                raise ConsumerClosed("the consumer is closed")
            self._errors.check_fatal()
            if not core.generation(tp):
                raise not_assigned(tp[0], tp[1])
            position = core.position(tp)
            if position is not None:
                return position
            trouble = core.pending_error((tp,))
            if trouble is not None:
                self._fetching.post(ErrorDelivered(tp))
                raise trouble[1].with_traceback(None)
            moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(moved)
            moved.add_done_callback(self._waiting.discard)
            await moved

    def close(self) -> None:
        """End every wait."""
        self._closed = True
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Let every wait check its condition again."""
        for moved in tuple(self._waiting):
            if not moved.done():
                moved.set_result(None)
