"""A process of the torture: copies the topic ``in`` to ``out`` exactly once, or reads it at
least once, whatever happens.

``python -m tests.torture.processor KIND BOOTSTRAP NAME SEED DIARY``, where KIND is a
``Role``. It abandons some transactions by itself, ends gently on SIGTERM, with ``FENCED_EXIT`` when
another process has taken its transactional id over, with ``UNREACHABLE_EXIT`` when it could not
reach any broker, and at once when the process that started it is gone. SIGUSR1 makes it tell where
it waits and what it knows, SIGUSR2 block its event loop, SIGHUP keep records for too long. What
goes on it writes into its diary.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from kip848_client import (
    CommitInDoubt,
    ExactlyOnceProcessor,
    Kip848Error,
    ProducerFailed,
    ProducerFenced,
    ProducerRecord,
    Record,
)
from tests.torture.by_hand import ByHand
from tests.torture.clients import (
    AbandonedError,
    Reached,
    UnreachableError,
    a_consumer,
    a_producer,
)
from tests.torture.names import FENCED_EXIT, FREEZE_S, IN, OUT, UNREACHABLE_EXIT, Diary
from tests.torture.readers import AutoReader, Reader
from tests.torture.roles import Role
from tests.torture.telling import tell

__all__ = ["main"]

_RECORDS_MAX: Final = 60
"""Of a transaction."""
_ABANDONED: Final = 0.001
"""How many of the records the application gives up at."""


class Processor(Protocol):
    """What runs in this process."""

    def stop(self) -> None:
        """End after the transaction that is open."""
        ...

    async def run(self) -> None:
        """Copy until it is stopped. Raises ``ProducerFenced``, and what else ends it."""
        ...


class Ready:
    """One ``ExactlyOnceProcessor`` after the other: each runs until the function raises."""

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
        """Copy until it is stopped. Raises ``ProducerFenced``, and what else ends it."""
        while not self._stopping.is_set():
            processor: ExactlyOnceProcessor[Any, Any] = ExactlyOnceProcessor(
                IN,
                self._copy,
                consumer=a_consumer(self._bootstrap, self._name),
                producer=a_producer(self._bootstrap, self._name),
                max_records=_RECORDS_MAX,
            )
            try:
                async with Reached(processor):
                    self._note("started")
                    await self._run(processor)
            except AbandonedError:
                self._note("abandoned")
            except CommitInDoubt as err:
                self._note("in doubt", error=str(err))
                if isinstance(err.cause, ProducerFenced):
                    raise err.cause from err
            except ProducerFenced:
                raise
            except ProducerFailed as err:
                self._note("failed", error=str(err))

    async def _run(self, processor: ExactlyOnceProcessor[Any, Any]) -> None:
        async def stop() -> None:
            await self._stopping.wait()
            await processor.stop()

        stopping = asyncio.create_task(stop())
        try:
            await processor.run()
        finally:
            stopping.cancel()

    def _copy(self, record: Record[Any, Any]) -> ProducerRecord:
        if self._dice.random() < _ABANDONED:
            raise AbandonedError
        value = b"%d:%d" % (record.partition, record.offset)
        return ProducerRecord(OUT, value, partition=record.partition)


class _Warnings(logging.Handler):
    """Writes warnings into the diary, too."""

    def __init__(self, diary: Diary) -> None:
        super().__init__(logging.WARNING)
        self._note = diary

    def emit(self, record: logging.LogRecord) -> None:
        self._note("warned", error=record.getMessage())


_KINDS: Final[dict[Role, Callable[[str, str, int, Diary], Processor]]] = {
    Role.BY_HAND: ByHand,
    Role.PROCESSOR: Ready,
    Role.READER: Reader,
    Role.AUTO_READER: AutoReader,
}


def _end_with_parent() -> None:
    """Nobody writes to our standard input: it can be read when it is closed."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os._exit(1))


def _block(diary: Diary) -> None:
    """What an application should not do."""
    diary("blocked")
    time.sleep(FREEZE_S)


async def _run(processor: Processor, diary: Diary) -> int:
    _end_with_parent()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, processor.stop)
    loop.add_signal_handler(signal.SIGUSR1, tell)
    loop.add_signal_handler(signal.SIGUSR2, _block, diary)
    if isinstance(processor, Reader | AutoReader):
        loop.add_signal_handler(signal.SIGHUP, processor.dawdle)
    try:
        await processor.run()
    except ProducerFenced as err:
        diary("fenced", error=str(err))
        return FENCED_EXIT
    except UnreachableError as err:
        diary("unreachable", error=str(err))
        return UNREACHABLE_EXIT
    except Kip848Error as err:
        diary("ended", error=f"{type(err).__name__}: {err}")
        raise
    return 0


def main(arguments: list[str]) -> int:
    """Run a processor to its end."""
    kind, bootstrap, name, seed, path = arguments
    diary = Diary(Path(path))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kip848_client").setLevel(logging.INFO)
    logging.getLogger().addHandler(_Warnings(diary))

    async def run() -> int:
        return await _run(_KINDS[Role(kind)](bootstrap, name, int(seed), diary), diary)

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
