"""Exactly once by hand: a consumer, a producer, and the loop that an application would write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final

from kip848_client import (
    CommitFailed,
    CommitInDoubt,
    Consumer,
    CoordinatorUnavailable,
    NotAssigned,
    Producer,
    ProducerFailed,
    ProducerFenced,
    Record,
    RequestTimedOut,
    TopicPartition,
    TransactionAborted,
)
from tests.torture.clients import AbandonedError, Reached, a_consumer, a_producer
from tests.torture.names import IN, OUT, Diary

__all__ = ["ByHand"]

_RECORDS_MAX: Final = 60
"""Of a transaction."""
_ABANDONED: Final = 0.1
"""How many of the transactions are given up by the application."""
_PAUSE_S: Final = 0.1

Batches = Mapping[TopicPartition, list[Record[Any, Any]]]


class ByHand:
    """One consumer, and one producer after the other."""

    def __init__(self, bootstrap: str, name: str, seed: int, diary: Diary) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self._dice = random.Random(seed)
        self._note = diary
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End after the transaction that is open."""
        self._stopping.set()

    async def run(self) -> None:
        """Copy until it is stopped. Raises ``ProducerFenced``, and what ended the consumer."""
        consumer = a_consumer(self._bootstrap, self._name, IN)
        async with Reached(consumer):
            while not self._stopping.is_set():
                try:
                    async with Reached(a_producer(self._bootstrap, self._name)) as producer:
                        self._note("started")
                        await self._rewind(consumer)
                        await self._work(consumer, producer)
                except ProducerFenced:
                    raise
                except ProducerFailed as err:
                    self._note("failed", error=str(err))

    async def _work(self, consumer: Consumer[Any, Any], producer: Producer[Any, Any]) -> None:
        while not self._stopping.is_set():
            limit = self._dice.randint(1, _RECORDS_MAX)
            batches = await consumer.getmany(timeout_ms=200, max_records=limit)
            if batches and not await self._is_copied(consumer, producer, batches):
                await self._rewind(consumer)

    async def _is_copied(
        self, consumer: Consumer[Any, Any], producer: Producer[Any, Any], batches: Batches
    ) -> bool:
        """One transaction; returns whether it is committed. Raises ``ProducerFailed``."""
        try:
            await self._copy(consumer, producer, batches)
        except AbandonedError:
            self._note("abandoned")
            return False
        except CommitInDoubt as err:
            self._note("in doubt", error=str(err))
            return await self._outcome(producer)
        except (TransactionAborted, CommitFailed) as err:
            self._note("aborted", error=f"{type(err).__name__}: {err}")
            return False
        except (CoordinatorUnavailable, RequestTimedOut) as err:
            self._note("unavailable", error=str(err))
            return False
        self._note("committed", records=sum(map(len, batches.values())))
        return True

    async def _copy(
        self, consumer: Consumer[Any, Any], producer: Producer[Any, Any], batches: Batches
    ) -> None:
        is_abandoned = self._dice.random() < _ABANDONED
        async with producer.transaction() as txn:
            for tp, records in batches.items():
                for record in records:
                    value = b"%d:%d" % (tp.partition, record.offset)
                    await txn.send(OUT, value, partition=tp.partition)
            if is_abandoned and self._dice.random() < 0.5:
                raise AbandonedError
            await txn.send_offsets(consumer)
            if is_abandoned:
                raise AbandonedError

    async def _outcome(self, producer: Producer[Any, Any]) -> bool:
        """Ask until it is known whether a transaction is committed."""
        while True:
            try:
                await producer.commit_transaction()
            except CommitInDoubt as err:
                if isinstance(err.cause, ProducerFailed):
                    raise err.cause from err  # a new one has to look
                await asyncio.sleep(_PAUSE_S)
            except TransactionAborted:
                await producer.abort_transaction()
                return False
            else:
                return True

    async def _rewind(self, consumer: Consumer[Any, Any]) -> None:
        """What was handed out is to come again, of the partitions that are still ours."""
        while ours := consumer.assignment():
            try:
                found = await consumer.seek_to_committed(*ours)
                begin = [tp for tp, offset in found.items() if offset is None]
                if begin:
                    await consumer.seek_to_beginning(*begin)
            except NotAssigned:
                continue  # some were taken meanwhile
            except (CoordinatorUnavailable, RequestTimedOut) as err:
                self._note("unavailable", error=str(err))
                await asyncio.sleep(_PAUSE_S)
            else:
                return
