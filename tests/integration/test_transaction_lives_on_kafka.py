"""Random lives of a transactional id on Apache Kafka: what is told is what became of it.

The same lives as in ``tests/properties/test_transactions.py``, in real time.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from kip848_client.core.wire import api_named
from tests.support.raw_transactions import RawTransactions, committed_values
from tests.support.real_kafka import RealKafka
from tests.support.transaction_core_world import CoreWorld
from tests.support.transaction_world import World, check

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(300)]

CONFIGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
LIVES: tuple[tuple[tuple[int, ...], type[World]], ...] = (
    ((1,), CoreWorld),
    ((2,), CoreWorld),
    ((1, 2), CoreWorld),
    ((1, 2), World),
)
"""Levels of ``transaction.version``, and whether batches are the core's or a stand-in's."""


class Real:
    """A broker, and names that nobody else uses."""

    def __init__(self, kafka: RealKafka, name: str, topic_id: bytes) -> None:
        self.topic = self.group = self.transactional_id = name
        self.raw = RawTransactions(kafka.connect, {name: topic_id})

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def advance(self, by_ms: int) -> None:
        time.sleep(by_ms / 1000)

    def values(self, partition: int) -> list[bytes]:
        return committed_values(self.raw.fetch(self.topic, partition))


def until_transactions_are_served(kafka: RealKafka) -> None:
    deadline = time.monotonic() + 30
    find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("warm-up",))
    with kafka.connect() as connection, closing(RawTransactions(kafka.connect, {})) as raw:
        while connection.request(find, 4).coordinators[0].error_code or raw.init("warm-up")[0][0]:
            assert time.monotonic() < deadline, "the transaction coordinator does not come up"
            time.sleep(0.05)


def test_what_is_told_is_what_became_of_it(kafka_version: str) -> None:
    with RealKafka.start(kafka_version, CONFIGS) as kafka:
        until_transactions_are_served(kafka)
        seeds = range(len(LIVES))
        ids = [bytes(kafka.create_topic(_name(seed), 3)) for seed in seeds]

        def life(seed: int) -> None:
            levels, kind = LIVES[seed]
            real = Real(kafka, _name(seed), ids[seed])
            with closing(real.raw):
                world = kind(seed, real, levels=levels, fence_within_ms=4_000, late_ms=5_000)
                check(world.run(6))

        with ThreadPoolExecutor(len(LIVES)) as together:  # they mostly wait
            list(together.map(life, seeds))


def _name(seed: int) -> str:
    return f"life-{seed}"
