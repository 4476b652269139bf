"""At least once: a consumer that processes records, and commits what it has processed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from abc import ABC, abstractmethod
from typing import Any, Final

from kip848_client import Consumer, Kip848Error, Record
from tests.torture.clients import Reached, a_reader
from tests.torture.names import MAX_POLL_MS, Diary

__all__ = ["PROCESSED", "AutoReader", "Reader"]

PROCESSED: Final = "processed"
"""What is noted of records, before anybody may commit them."""

_RECORDS_MAX: Final = 60
_DAWDLE_S: Final = MAX_POLL_MS / 1000 + 2.0


class _Reading(ABC):
    """What the two have in common."""

    def __init__(self, bootstrap: str, name: str, seed: int, diary: Diary) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self._dice = random.Random(seed)
        self._note = diary
        self._stopping = asyncio.Event()
        self._is_slow = False

    def stop(self) -> None:
        """End after what is in hand."""
        self._stopping.set()

    def dawdle(self) -> None:
        """Take longer than allowed over what comes next."""
        self._is_slow = True

    @abstractmethod
    async def run(self) -> None: ...

    async def _process(self, records: list[Record[Any, Any]]) -> None:
        if self._is_slow:
            self._is_slow = False
            self._note("dawdled")
            await asyncio.sleep(_DAWDLE_S)
        first, last = records[0], records[-1]
        self._note(
            PROCESSED,
            at=time.monotonic(),
            partition=first.partition,
            offsets=[record.offset for record in records],
            records=last.offset - first.offset + 1,
        )


class Reader(_Reading):
    """Commits by hand."""

    async def run(self) -> None:
        """Read until it is stopped. Raises what ended the consumer."""
        consumer = a_reader(self._bootstrap, self._name)
        async with Reached(consumer):
            self._note("started")
            while not self._stopping.is_set():
                limit = self._dice.randint(1, _RECORDS_MAX)
                batches = await consumer.getmany(timeout_ms=200, max_records=limit)
                for records in batches.values():
                    await self._process(records)
                if batches:
                    await self._commit(consumer)

    async def _commit(self, consumer: Consumer[Any, Any]) -> None:
        try:
            await consumer.commit()
        except Kip848Error as err:
            self._note("not committed", error=f"{type(err).__name__}: {err}")


class AutoReader(_Reading):
    """Has it committed."""

    async def run(self) -> None:
        """Read until it is stopped. Raises what ended the consumer."""
        consumer = a_reader(self._bootstrap, self._name, enable_auto_commit=True)
        async with Reached(consumer):
            self._note("started")
            stopping = asyncio.create_task(self._stop(consumer))
            try:
                async for record in consumer:
                    await self._process([record])
            finally:
                stopping.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await stopping

    async def _stop(self, consumer: Consumer[Any, Any]) -> None:
        await self._stopping.wait()
        await consumer.stop()
