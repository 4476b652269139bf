"""Applications that read, and one that writes: as users write them, with a diary."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from kip848_client import (
    Consumer,
    ConsumerClosed,
    Kip848Error,
    MemberState,
    Producer,
    TopicPartition,
)
from kip848_client.observe.core.watching import MemberFenced, MembershipEvent
from tests.integration.cluster import kill
from tests.situations.diary import Entry, What

__all__ = ["Application", "Feed"]

_PAUSE_S: Final = 0.01
_POLL_MS: Final = 200
_POLL_RECORDS: Final = 20
_COMMIT_INTERVAL_MS: Final = 300


class Application:
    """A process of a user's: a consumer, which is its own listener, and the task that works on what
    comes. ``revoking_s`` is how long it needs to give partitions back."""

    def __init__(self, name: str, entries: list[Entry], **settings: Any) -> None:
        settings.setdefault("auto_offset_reset", "earliest")
        settings.setdefault("fetch_max_wait_ms", 100)
        settings.setdefault("auto_commit_interval_ms", _COMMIT_INTERVAL_MS)
        self.name = name
        self.consumer: Consumer[Any, Any] = Consumer(**settings)
        self.events: list[MembershipEvent] = []
        self.errors: list[Kip848Error] = []
        """What calls for records raised."""
        self.callbacks: list[tuple[str, int]] = []
        """Which of them, and with how many partitions."""
        self.revoking_s = 0.0
        self.free = asyncio.Event()
        """If it is not set, the application keeps the records that it got."""
        self.free.set()
        self._entries = entries
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, topics: Collection[str] = (), pattern: str | None = None) -> Application:
        """Join the group. Raises what the consumer's start does."""
        self.consumer.subscribe(topics, pattern, listener=self)
        self._tasks = [asyncio.create_task(self._follow())]
        await asyncio.sleep(0)  # so that it misses nothing
        await self.consumer.start()
        self._tasks.append(asyncio.create_task(self._work()))
        return self

    async def stop(self) -> None:
        """End in good order."""
        self.free.set()
        await self.consumer.stop()
        await asyncio.gather(*self._tasks)

    async def crash(self, committed: dict[TopicPartition, int]) -> None:
        """End as a crash does, with so much committed."""
        held = self.consumer.assignment()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await kill(self.consumer)
        for tp in held:
            self._note(What.CRASHED, tp, committed.get(tp, 0))

    @property
    def _fences(self) -> int:
        return sum(isinstance(each, MemberFenced) for each in self.events)

    @property
    def is_over(self) -> bool:
        """Whether it has failed for good."""
        member = self.consumer.member
        return member is not None and member.state is MemberState.FATAL

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._called("assigned", assigned)
        for tp in assigned:
            self._note(What.ASSIGNED, tp)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._called("revoked", revoked)
        for tp in revoked:
            self._note(What.REVOKING, tp)
        fences = self._fences
        await asyncio.sleep(self.revoking_s)
        # Who is put out in the middle of this is not called again with these as lost.
        what = What.REVOKED if self._fences == fences else What.LOST
        for tp in revoked:
            self._note(what, tp)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._called("lost", lost)
        for tp in lost:
            self._note(What.LOST, tp)

    def _called(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self.callbacks.append((what, len(partitions)))

    def _note(self, what: What, tp: TopicPartition, offset: int = -1, value: bytes = b"") -> None:
        at = asyncio.get_running_loop().time()
        self._entries.append(Entry(at, self.name, what, tp, offset, value))

    async def _work(self) -> None:
        while True:
            try:
                found = await self.consumer.getmany(timeout_ms=_POLL_MS, max_records=_POLL_RECORDS)
            except ConsumerClosed:
                return
            except Kip848Error as err:
                self.errors.append(err)
                if self.is_over:
                    return
                continue
            for tp, records in found.items():
                for record in records:
                    self._note(What.READ, tp, record.offset, record.value)
            if found:
                await self.free.wait()

    async def _follow(self) -> None:
        async for event in self.consumer.events():
            self.events.append(event)


class Feed:
    """Writes numbers to its targets in turn, a record each 10 ms, for the length of a block."""

    def __init__(self, bootstrap: str, targets: list[TopicPartition], **settings: Any) -> None:
        self.targets = targets
        self.written: dict[bytes, TopicPartition] = {}
        """What brokers have acknowledged, and where."""
        self.refused: list[BaseException] = []
        self._producer: Producer[Any, Any] = Producer(bootstrap_servers=bootstrap, **settings)
        self._number = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Feed:
        await self._producer.start()
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Write no more; returns when all is acknowledged or refused."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._producer.stop()

    async def _write(self) -> None:
        while True:
            tp = self.targets[self._number % len(self.targets)]
            value = b"%d" % self._number
            self._number += 1
            try:
                future = await self._producer.send(tp.topic, value, partition=tp.partition)
            except Kip848Error as err:
                self.refused.append(err)
            else:
                future.add_done_callback(self._answered(value, tp))
            await asyncio.sleep(_PAUSE_S)

    def _answered(self, value: bytes, tp: TopicPartition) -> Any:
        def answered(future: asyncio.Future[Any]) -> None:
            error = future.exception()
            if error is None:
                self.written[value] = tp
            else:
                self.refused.append(error)

        return answered
