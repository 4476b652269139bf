"""Stands in for the fetcher of aiokafka's consumer.

aiokafka's own methods (``getone``, ``getmany``, ``commit``, ...) are inherited, because other code
wraps them. They call this class by aiokafka's names; our ``Consumer`` does the work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._subscription import Subscription
from kip848_client.aiokafka.errors import Translating
from kip848_client.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndTimestamp,
    TopicPartition,
)
from kip848_client.core.types import TopicPartition as OurPartition
from kip848_client.errors import CallbackError, NotAssigned

__all__ = ["Fetcher"]

_log = logging.getLogger("kip848_client")

_translating: Final = Translating()
_AFTER_FAILED_LISTENER_S: Final = 1.0
"""The pause before a listener that has failed is called again."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """The fetched records of a partition that wait for the application."""

    size_bytes: int

    def has_more(self) -> bool:
        """Always true: without records there is no such object."""
        return True


class Fetcher:
    """Delivers records to aiokafka's ``getone`` and ``getmany``."""

    def __init__(self, inner: ConsumerAdapter, subscription: Subscription) -> None:
        self._inner = inner
        self._subscriptions = subscription

    @property
    def _closed(self) -> bool:
        return self._inner.is_over

    @property
    def _records(self) -> dict[Any, Buffered]:
        """The fetched records that were not delivered yet, by partition."""
        return {TopicPartition(*tp): Buffered(n) for tp, n in self._inner.buffered().items()}

    async def next_record(self, partitions: Collection[Any]) -> Any:
        """The next record, from these partitions if any are given."""
        inner = self._inner
        wanted = partitions
        with _translating:
            while True:
                try:
                    if wanted:
                        return ConsumerRecord(*await inner.getone(*wanted))
                    return ConsumerRecord(*await inner.next())
                except CallbackError as err:
                    await _after_failed_listener(err)
                except NotAssigned:
                    if not self._subscriptions.may_get(partitions):
                        raise
                    wanted = await inner.until_ours(partitions) or partitions

    async def fetched_records(
        self, partitions: Collection[Any], timeout: float = 0, max_records: int | None = None
    ) -> dict[Any, list[Any]]:
        """Records by partition; waits up to ``timeout`` seconds for the first."""
        now = asyncio.get_running_loop().time
        deadline_s = now() + timeout
        wanted = partitions
        with _translating:
            try:
                if partitions and self._subscriptions.may_get(partitions):
                    wanted = await self._inner.until_ours(partitions, timeout)
                    if not wanted:
                        return {}
                found = await self._inner.getmany(
                    *wanted,
                    timeout_ms=max(0, round((deadline_s - now()) * 1000)),
                    max_records=max_records,
                )
            except CallbackError as err:
                await _after_failed_listener(err)
                return {}
        return {
            TopicPartition(*tp): [ConsumerRecord(*each) for each in records]
            for tp, records in found.items()
        }

    def seek_to(self, tp: Any, offset: int) -> None:
        """Continue at this offset."""
        with _translating:
            self._inner.seek(tp, offset)

    async def beginning_offsets(self, partitions: Collection[Any], _timeout_ms: int) -> Any:
        """The first offset of each."""
        with _translating:
            return _by_theirs(await self._inner.beginning_offsets(partitions))

    async def end_offsets(self, partitions: Collection[Any], _timeout_ms: int) -> Any:
        """The offset after the last record of each."""
        with _translating:
            return _by_theirs(await self._inner.end_offsets(partitions))

    async def get_offsets_by_times(self, timestamps: Mapping[Any, int], _timeout_ms: int) -> Any:
        """The first record at or after a time, or ``None``."""
        with _translating:
            found = await self._inner.offsets_for_times(timestamps)
        return {
            TopicPartition(*tp): None if each is None else OffsetAndTimestamp(*each)
            for tp, each in found.items()
        }


def _by_theirs(offsets: Mapping[OurPartition, int]) -> dict[Any, int]:
    return {TopicPartition(*tp): offset for tp, offset in offsets.items()}


async def _after_failed_listener(error: CallbackError) -> None:
    """Log the error and pause; then the listener is called again with the same partitions."""
    _log.error("the rebalance listener failed and is called again: %s", error, exc_info=error)
    await asyncio.sleep(_AFTER_FAILED_LISTENER_S)
