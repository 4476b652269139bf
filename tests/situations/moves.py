"""Leaders and coordinators move, and brokers are restarted, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kip848_client import Consumer, ExactlyOnceProcessor, Producer, ProducerRecord, Record
from kip848_client.observe.core.watching import CoordinatorLost
from tests.integration.cluster import eventually
from tests.situations.diary import Verdict
from tests.situations.situation import Situation
from tests.torture.brokers import OFFSETS, TRANSACTIONS, Brokers

__all__ = ["brokers_are_restarted", "the_controller_is_restarted"]

_TRANSACTION_MS: Final = 10_000
_WAIT_S: Final = 60.0
_RESTARTED: Final = (2, 3)
"""The first one is the controller as well, without which nobody can become a leader."""


async def brokers_are_restarted(situation: Situation, brokers: Brokers) -> Verdict:
    """A group reads, and a processor copies exactly once, while all leaders move, the coordinators
    of groups and transactions move, and who leads and coordinates is restarted: nothing is
    lost, nothing comes twice, and nobody in the group hears a word of it."""

    async def restart() -> None:
        for node_id in _RESTARTED:
            await brokers.bounce(node_id)
            await situation.flows()

    return await _moved_and(restart, situation, brokers)


async def the_controller_is_restarted(situation: Situation, brokers: Brokers) -> Verdict:
    """The same, but it is the only controller that is killed and comes back: meanwhile no broker
    can say that a replica is missing, so that nothing is acknowledged by all of them."""

    async def restart() -> None:
        await brokers.bounce_controller()
        await situation.flows()
        await _move(brokers, situation.topic, 0)
        await situation.flows()

    return await _moved_and(restart, situation, brokers)


async def _moved_and(
    restart: Callable[[], Awaitable[None]], situation: Situation, brokers: Brokers
) -> Verdict:
    copies = f"{situation.topic}.copies"
    async with situation.fed():
        await situation.create(copies, situation.partitions)
        readers = [await situation.start(f"m{n}") for n in range(2)]
        await situation.shared(2, 2)
        async with _processor(situation, copies) as processor:
            copying = asyncio.create_task(processor.run())
            await situation.flows()
            called = [list(each.callbacks) for each in readers]
            for number in range(situation.partitions):
                await _move(brokers, situation.topic, number)
                await _move(brokers, copies, number)
            await situation.flows()
            await _move(brokers, OFFSETS, 0)
            await situation.flows()
            await _move(brokers, TRANSACTIONS, 0)
            await restart()
            assert [each.callbacks for each in readers] == called
            verdict = await situation.finish()
            await _is_copied(situation, copying)
            await processor.stop()
            await copying
    assert (verdict.again, verdict.losers) == (0, ())
    assert [each.errors for each in readers] == [[], []]
    for each in readers:
        assert any(isinstance(event, CoordinatorLost) for event in each.events)
    assert not situation.feed.refused
    copied = await situation.content(copies, isolation_level="read_committed")
    assert sorted(copied) == sorted(situation.feed.written), "each exactly once"
    return verdict


def _processor(situation: Situation, target: str) -> ExactlyOnceProcessor[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=situation.bootstrap,
        group_id=_copiers(situation),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
    )
    producer: Producer[Any, Any] = Producer(
        bootstrap_servers=situation.bootstrap,
        transactional_id=_copiers(situation),
        transaction_timeout_ms=_TRANSACTION_MS,
    )

    def copy(record: Record[Any, Any]) -> ProducerRecord:
        return ProducerRecord(target, record.value, partition=record.partition)

    return ExactlyOnceProcessor(situation.topic, copy, consumer=consumer, producer=producer)


def _copiers(situation: Situation) -> str:
    return f"{situation.group}.copiers"


async def _move(brokers: Brokers, topic: str, partition: int) -> None:
    """To another one of those that will be restarted."""
    why_not = await brokers.lead(topic, partition, lambda at: _RESTARTED[at == _RESTARTED[0]])
    assert why_not is None, why_not


async def _is_copied(situation: Situation, copying: asyncio.Task[None]) -> None:
    """Wait until the processor has committed all that was written."""

    async def is_copied() -> bool:
        assert not copying.done(), copying.result()
        return await situation.committed(_copiers(situation)) == len(situation.feed.written)

    await eventually(is_copied, _WAIT_S)
