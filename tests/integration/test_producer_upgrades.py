"""A cluster whose ``transaction.version`` is changed, by ``kafka-features``, under a producer that
runs: each transaction is of one version, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from kip848_client import Consumer, Producer
from kip848_client.core.produce import TransactionVersion
from tests.support.kafka_tools import FEATURES, run_tool
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.asyncio, pytest.mark.timeout(120)]

PATIENCE_S: Final = 30.0
IDLE_MS: Final = 200
"""Connections are closed after that, so that the next one tells of the new version."""
VERSIONS: Final = {1: TransactionVersion.V1, 2: TransactionVersion.V2}


def version_of(producer: Producer[Any, Any]) -> TransactionVersion:
    """Of the last transaction."""
    engine = producer._engine
    assert engine is not None
    return engine.core._identity.version


class Writer:
    """Writes numbers in transactions, every third of which is aborted."""

    def __init__(self, kafka: RealKafka, name: str, **settings: Any) -> None:
        self.producer: Producer[Any, Any] = Producer(
            bootstrap_servers=kafka.bootstrap, transactional_id=name, linger_ms=0, **settings
        )
        self.written: list[bytes] = []
        self._count = 0

    async def write(self) -> None:
        """One transaction."""
        self._count += 1
        value = b"%d" % self._count
        await self.producer.begin_transaction()
        await self.producer.send("t", value, partition=0)
        if self._count % 3:
            await self.producer.commit_transaction()
            self.written.append(value)
        else:
            await self.producer.abort_transaction()

    async def write_until(self, condition: Callable[[], bool], pause_s: float = 0.0) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.write()
                await asyncio.sleep(pause_s)


async def committed_values(kafka: RealKafka, count: int) -> list[bytes | None]:
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=kafka.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    async with asyncio.timeout(PATIENCE_S), consumer:
        consumer.assign([("t", 0)])
        return [(await consumer.getone()).value for _ in range(count)]


async def change(kafka: RealKafka, direction: str, level: int) -> None:
    await asyncio.to_thread(
        run_tool,
        FEATURES,
        *("--bootstrap-server", kafka.bootstrap, direction),
        *("--feature", f"transaction.version={level}"),
    )


@pytest.mark.parametrize(("before", "direction", "after"), [(1, "upgrade", 2), (2, "downgrade", 1)])
async def test_transactions_go_on(
    request: pytest.FixtureRequest, before: int, direction: str, after: int
) -> None:
    newest = chosen_versions(request.config)[-1]
    features = {"transaction.version": before}
    with skip_without_kafka(), RealKafka.start(newest, features=features) as kafka:
        kafka.create_topic("t", 1)
        steady = Writer(kafka, "steady")
        restless = Writer(kafka, "restless", connections_max_idle_ms=IDLE_MS)
        async with steady.producer, restless.producer:
            for writer in (steady, restless):
                await writer.write()
                assert version_of(writer.producer) is VERSIONS[before]
            changing = asyncio.create_task(change(kafka, direction, after))
            await steady.write_until(changing.done)
            await changing
            for _ in range(6):
                await steady.write()
            # whose connections end learns of it, between two transactions
            await restless.write_until(
                lambda: version_of(restless.producer) is VERSIONS[after], 2 * IDLE_MS / 1000
            )
            for _ in range(6):
                await restless.write()
        written = steady.written + restless.written
        read = await committed_values(kafka, len(written))
        assert sorted(each or b"" for each in read) == sorted(written)
