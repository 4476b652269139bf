"""Positions as the user asks for them: seeks, ``position()``, offsets by time.

Where a partition begins is for the fetch core to find; here are the calls that wait for something.
A call that fails or is cancelled changes nothing: the core moves partitions only when it is told
what was found, and lets a younger seek win, and the loss of the partition.
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
"""What a group has stored; ``None`` for nothing."""


class Positions:
    """``patience_ms``: how long a call goes on trying."""

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
        """Continue at ``offset``, wherever an older wish leads."""
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
        """As ``seek_to``, to what ``look_up`` finds, where it finds something."""
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
        """The position, as soon as there is one, which this makes sure of: inside the listener's
        call it has not been looked for yet. Raises ``NotAssigned``, also when the partition is
        taken away meanwhile, and what stands in its way, ``NoOffsetForPartition`` above all."""
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
        self.stir()

    def stir(self) -> None:
        """Let every wait look again whether it still makes sense."""
        for moved in tuple(self._waiting):
            if not moved.done():
                moved.set_result(None)
