"""Transactional ids that the coordinator has forgotten, because nobody used them for a while.

A producer finds out with the first request of its next transaction, whichever that is: that
transaction is aborted, and the next one has another epoch. A processor repeats it by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kip848_client import ProducerFenced, ProducerRecord, Record, TransactionAborted
from kip848_client.core.wire import api_named
from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker
from tests.integration.cluster import Cluster, eventually
from tests.integration.processing import Job
from tests.support.real_kafka import FAST_CONFIGS, RealKafka

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

_KINDS = [
    "mock-4.0",
    "mock-4.4",
    pytest.param(
        "4.4.0",
        marks=[pytest.mark.real_kafka, pytest.mark.everything("it starts a broker of its own")],
    ),
]


def _forgetful(after_ms: int) -> dict[str, str]:
    return {
        "transactional.id.expiration.ms": str(after_ms),
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
        "producer.id.expiration.ms": str(after_ms),
    }


@asynccontextmanager
async def forgetful(kind: str) -> AsyncGenerator[Cluster]:
    """A broker that soon forgets."""
    if kind.startswith("mock-"):
        profile = kind.removeprefix("mock-")
        config = {**FAST_CONFIGS, **_forgetful(200)}
        async with MockBroker(profile=profile, config=config) as mock:
            cluster = Cluster("mock", profile, mock.host, mock.port)
            yield cluster
            await cluster.close()
        return
    with RealKafka.start(kind, {**FAST_CONFIGS, **_forgetful(1_500)}) as kafka:
        cluster = Cluster(kind, kafka.profile, kafka.host, kafka.port)
        yield cluster
        await cluster.close()


async def _is_forgotten(cluster: Cluster, transactional_id: str) -> bool:
    describe = api_named("DescribeTransactions").request(transactional_ids=(transactional_id,))
    state = (await cluster.ask(describe)).transaction_states[0]
    return bool(state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("first_has_output", [False, True])
async def test_a_processor_whose_input_was_quiet_until_its_id_was_forgotten(
    kind: str, first_has_output: bool
) -> None:
    async with forgetful(kind) as cluster:
        job = await Job(cluster).prepare(2)
        calls: list[int] = []

        def function(record: Record[Any, Any]) -> ProducerRecord | None:
            number = int(record.value)
            calls.append(number)
            if number in (2, 3) and not first_has_output:
                return None  # the transaction begins with offsets alone
            return ProducerRecord(job.target, record.value)

        producer = job.producer()
        async with job.running(function, producer=producer, max_records=2):
            await eventually(lambda: _all_committed(job, 2))
            name = producer.config.transactional_id
            assert name is not None
            await eventually(lambda: _is_forgotten(cluster, name))
            await job.fill(range(2, 8))
            await eventually(lambda: _all_committed(job, 8))
        assert calls.count(2) == 2, "it was read again: the first transaction was refused"
        left_out = () if first_has_output else (2, 3)
        assert await job.seen() == [n for n in range(8) if n not in left_out]


async def _all_committed(job: Job, records: int) -> bool:
    await asyncio.sleep(0.02)
    return await job.committed() == records


@pytest.mark.parametrize("kind", _KINDS)
async def test_a_successor_that_got_the_forgotten_id_fences_its_former_owner(kind: str) -> None:
    """The same code says both; what tells them apart is the question for another epoch."""
    async with forgetful(kind) as cluster:
        job = await Job(cluster).prepare(1)
        async with job.producer("shared") as former:
            name = former.config.transactional_id
            assert name is not None
            await eventually(lambda: _is_forgotten(cluster, name))
            async with job.producer("shared") as successor:
                offsets = {(job.source, 0): 1}
                with pytest.raises(TransactionAborted):
                    async with former.transaction() as txn:
                        await txn.send_offsets(job.group, offsets)
                with pytest.raises(ProducerFenced):
                    await former.begin_transaction()
                async with successor.transaction() as txn:
                    await txn.send(job.target, b"0")
                    await txn.send_offsets(job.group, offsets)
        await eventually(lambda: _all_committed(job, 1))  # markers come after the answer
        assert await job.seen() == [0]
