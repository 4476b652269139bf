"""A processor of the torture: copies the topic ``in`` to ``out`` exactly once, whatever happens.

``python -m tests.torture.processor BOOTSTRAP NAME SEED DIARY``. It abandons some transactions by
itself, ends gently on SIGTERM, with ``FENCED_EXIT`` when another process has taken its
transactional id over, and at once when the process that started it is gone. What goes on it writes
into its diary.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kip848_client import (
    CommitFailed,
    CommitInDoubt,
    Consumer,
    CoordinatorUnavailable,
    Kip848Error,
    NotAssigned,
    Producer,
    ProducerFailed,
    ProducerFenced,
    Record,
    RequestTimedOut,
    TopicPartition,
    TransactionAborted,
)
from tests.torture.names import FENCED_EXIT, GROUP, IN, OUT, TRANSACTION_MS, Diary

__all__ = ["main"]

_RECORDS_MAX: Final = 60
"""Of a transaction."""
_ABANDONED: Final = 0.1
"""How many of the transactions are given up by the application."""
_PAUSE_S: Final = 0.1

Batches = Mapping[TopicPartition, list[Record[Any, Any]]]


class _AbandonedError(Exception):
    """The application does not want this transaction any more."""


class Processor:
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
        consumer: Consumer[Any, Any] = Consumer(
            IN,
            bootstrap_servers=self._bootstrap,
            group_id=GROUP,
            client_id=self._name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
        )
        async with consumer:
            while not self._stopping.is_set():
                producer: Producer[Any, Any] = Producer(
                    bootstrap_servers=self._bootstrap,
                    client_id=self._name,
                    transactional_id=self._name,
                    transaction_timeout_ms=TRANSACTION_MS,
                    linger_ms=0,
                )
                try:
                    async with producer:
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
        except _AbandonedError:
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
                raise _AbandonedError
            await txn.send_offsets(consumer)
            if is_abandoned:
                raise _AbandonedError

    async def _outcome(self, producer: Producer[Any, Any]) -> bool:
        """Ask until it is known whether a transaction is committed."""
        while True:
            try:
                await producer.commit_transaction()
            except CommitInDoubt:
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


def _end_with_parent() -> None:
    """Nobody writes to our standard input: it can be read when it is closed."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os._exit(1))


async def _run(bootstrap: str, name: str, seed: int, diary: Diary) -> int:
    _end_with_parent()
    processor = Processor(bootstrap, name, seed, diary)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, processor.stop)
    try:
        await processor.run()
    except ProducerFenced as err:
        diary("fenced", error=str(err))
        return FENCED_EXIT
    except Kip848Error as err:
        diary("ended", error=f"{type(err).__name__}: {err}")
        raise
    return 0


def main(arguments: list[str]) -> int:
    """Run a processor to its end."""
    bootstrap, name, seed, path = arguments
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    return asyncio.run(_run(bootstrap, name, int(seed), Diary(Path(path))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
