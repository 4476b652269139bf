"""Writers of the Spark sink that write exactly once, called by hand, on Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kip848_client import Consumer
from kip848_client.core.types import TopicPartition
from kip848_client.spark.sink.core import _decisions
from kip848_client.spark.sink.core._two_phase_commit import BatchRefused, End
from tests.integration.cluster import eventually
from tests.support.real_kafka import RealKafka
from tests.unit.spark.sink._writing import Died, Query, open_transactions, time_out

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(120)]  # a broker starts


async def _await_markers(bootstrap: str, tps: list[TopicPartition]) -> None:
    """Return when each transaction that was ended counts: a broker writes its markers after it has
    answered. Fails where one stays open."""

    def reader(level: str) -> Consumer[Any, Any]:
        return Consumer(bootstrap_servers=bootstrap, isolation_level=level)

    async with reader("read_committed") as stable, reader("read_uncommitted") as last:

        async def are_written() -> bool:
            return await stable.end_offsets(tps) == await last.end_offsets(tps)

        await eventually(are_written)


def _play(
    kafka: RealKafka, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str], size: int
) -> None:
    monkeypatch.setattr(_decisions, "_TEXT_MAX", size)
    topic = unique(f"out-{size}")
    kafka.create_topic(topic, 3)
    query = Query(kafka.bootstrap, monkeypatch, topic=topic, name=unique(f"billing-{size}"))
    name = query.said["kafka.transactional.id"]

    def values() -> list[bytes]:
        asyncio.run(_await_markers(kafka.bootstrap, [TopicPartition(topic, p) for p in range(3)]))
        return query.values(3)

    query.batch(0, [b"1", b"2"], [b"3"], [b"4"], [])
    assert values() == [b"1", b"2", b"3", b"4"]
    messages = query.write([b"5"], [b"6"])
    live = query.dies_before(End)
    with pytest.raises(Died):
        query.writer().commit(messages, 1)
    live()
    query.restart()
    query.batch(1, [b"6", b"5"])
    assert values() == [b"1", b"2", b"3", b"4", b"5", b"6"]
    query.batch(1, [b"5", b"6"])
    messages = query.write([b"7"], [b"8"])
    time_out(kafka.bootstrap, f"{name}-{query.run}-1-0")
    with pytest.raises(BatchRefused, match="is aborted, not open"):
        query.writer().commit(messages, 2)
    query.restart()
    query.writer().abort([*query.write([b"7"]), None], 2)
    query.write([b"x"])  # of a run that is killed
    query.restart()
    query.batch(2, [b"7"], [b"8"])
    assert values() == [b"%d" % each for each in range(1, 9)]
    assert not [each for each in open_transactions(kafka.bootstrap) if each.startswith(name)]


def test_each_row_is_there_once(
    real_kafka: RealKafka, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    _play(real_kafka, monkeypatch, unique, 3_800)
    # a decision of several texts has each at a partition of its own
    _play(real_kafka, monkeypatch, unique, 1)


def test_each_row_is_there_once_with_transactions_of_version_1(
    kafka_version: str, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str]
) -> None:
    with RealKafka.start(kafka_version, features={"transaction.version": 1}) as kafka:
        _play(kafka, monkeypatch, unique, 3_800)
