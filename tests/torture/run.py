"""A torture from its beginning to its verdict."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from kip848_client import Consumer, Producer
from tests.torture.brokers import Brokers, committed
from tests.torture.harm import Moves, Violence
from tests.torture.judge import Verdict, judged
from tests.torture.names import END, IN, OUT, PARTITIONS
from tests.torture.processes import Processes

__all__ = ["Report", "torture"]

_NAMES: Final = ("a", "b")
_FEED_PAUSE_S: Final = 0.05
_FED_AT_ONCE: Final = 15
_PATIENCE_S: Final = 90.0
_PAUSE_S: Final = 0.2
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, what came of it, and what is wrong with it."""

    seconds: float
    done: Counter[str]
    """Harm and moves."""
    told: Counter[str]
    """What is in the diaries of processors."""
    errors: Counter[str]
    """The same, of errors."""
    verdict: Verdict | None
    troubles: list[str]

    @property
    def is_clean(self) -> bool:
        """Whether all is as it should be."""
        return not self.troubles and self.verdict is not None and self.verdict.is_clean

    def __str__(self) -> str:
        def counted(counts: Counter[str]) -> str:
            return ", ".join(f"{what} {times}" for what, times in sorted(counts.items()))

        lines = [
            f"{self.seconds:.0f} s; {counted(self.done)}",
            f"processors: {counted(self.told)}",
            *(f"  {times} x {error}" for error, times in self.errors.most_common(_SHOWN)),
            str(self.verdict),
            *(f"TROUBLE: {each}" for each in self.troubles),
        ]
        return "\n".join(lines)


async def torture(kind: str, brokers: Brokers, folder: Path, seconds: float, seed: int) -> Report:
    """Torture two processors of a kind for so long, let them finish, and look at what there is."""
    began = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - began >= seconds

    troubles: list[str] = []
    verdict: Verdict | None = None
    async with Processes.running(kind, brokers.bootstrap, _NAMES, seed, folder) as processes:
        violence = Violence(processes, random.Random(seed))
        moves = Moves(brokers, random.Random(seed + 1))
        supervising = asyncio.create_task(processes.supervise())
        try:
            async with asyncio.TaskGroup() as tasks:
                harming = tasks.create_task(violence.go_on(is_over))
                # a zombie that has nothing to do would not be found out
                feeding = tasks.create_task(_feed(brokers, harming.done))
                tasks.create_task(moves.go_on(harming.done))
            fed = feeding.result()
            await _drained(brokers, fed)
            supervising.cancel()
            await violence.end()
            verdict = await _look(brokers, fed)
        except TimeoutError as err:
            troubles.append(f"it does not come to an end: {err}")
        finally:
            supervising.cancel()
        troubles += [*violence.troubles, *processes.troubles()]
        return Report(
            seconds=time.monotonic() - began,
            done=violence.done + moves.done,
            told=processes.counts(),
            errors=processes.errors(),
            verdict=verdict,
            troubles=troubles,
        )


async def _feed(brokers: Brokers, is_over: Callable[[], bool]) -> int:
    """Write numbers to ``in``; returns how many were acknowledged, which is all."""
    sent = 0
    async with Producer(bootstrap_servers=brokers.bootstrap, client_id="feeder") as producer:
        while not is_over():
            for _ in range(_FED_AT_ONCE):
                await producer.send(IN, b"%d" % sent, partition=sent % PARTITIONS)
                sent += 1
            await asyncio.sleep(_FEED_PAUSE_S)
        last = [
            await producer.send(IN, b"%d" % (sent + number), partition=number)
            for number in range(PARTITIONS)
        ]
        await producer.flush()
        for future in last:
            future.result()
    return sent + PARTITIONS


async def _drained(brokers: Brokers, fed: int) -> None:
    """Return when everything that is in ``in`` is committed. Raises ``TimeoutError``."""
    give_up = time.monotonic() + _PATIENCE_S
    while (offsets := await committed(brokers)) is None or sum(offsets.values()) < fed:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{offsets} are committed, of {fed} records")
        await asyncio.sleep(_PAUSE_S)


async def _look(brokers: Brokers, fed: int) -> Verdict:
    """What the topics have. Raises ``TimeoutError`` where a transaction hangs."""
    settings: dict[str, Any] = {"bootstrap_servers": brokers.bootstrap}
    last = Producer(**settings, transactional_id="the-end")
    async with last as producer, producer.transaction() as txn:
        for number in range(PARTITIONS):
            await txn.send(OUT, END, partition=number)
    async with Producer(**settings) as producer:
        for number in range(PARTITIONS):
            await producer.send_and_wait(IN, END, partition=number)
    source = await _read(brokers, IN)
    copies = await _read(brokers, OUT)
    theirs = await _read_by_aiokafka(brokers, OUT)
    assert copies == theirs, "two readers see different things"
    return judged(fed, source, copies)


def _empty() -> dict[int, list[bytes]]:
    return {number: [] for number in range(PARTITIONS)}


def _is_whole(values: dict[int, list[bytes]]) -> bool:
    return all(each and each[-1] == END for each in values.values())


def _without_end(values: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
    return {number: each[:-1] for number, each in values.items()}


async def _read(brokers: Brokers, topic: str) -> dict[int, list[bytes]]:
    """All committed values, by partition, up to the last one."""
    values = _empty()
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=brokers.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    async with asyncio.timeout(_PATIENCE_S), consumer:
        consumer.assign([(topic, number) for number in values])
        while not _is_whole(values):
            for tp, records in (await consumer.getmany(timeout_ms=500)).items():
                values[tp.partition] += [record.value for record in records]
    return _without_end(values)


async def _read_by_aiokafka(brokers: Brokers, topic: str) -> dict[int, list[bytes]]:
    values = _empty()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with asyncio.timeout(_PATIENCE_S), consumer:
        consumer.assign([TopicPartition(topic, number) for number in values])
        while not _is_whole(values):
            got: dict[Any, list[Any]] = await consumer.getmany(timeout_ms=500)
            for tp, records in got.items():
                values[tp.partition] += [record.value for record in records]
    return _without_end(values)
