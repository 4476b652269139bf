"""Java's clients beside our producer: they see its transactions as what they are, and of two
producers with one transactional id the later one has it, whosever they are."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import pytest
import pytest_asyncio

from kip848_client import Producer, ProducerFenced
from tests.integration.cluster import Cluster
from tests.integration.conftest import running_mock
from tests.support.kafka_tools import (
    MESSAGE_COPIER,
    TRANSACTIONS,
    VERIFIABLE_CONSUMER,
    run_tool,
    tool_command,
)
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.real_kafka,
    pytest.mark.asyncio,
    pytest.mark.timeout(120),
]

COMMITTED: Final = [b"%d" % number for number in range(12)]
MANY: Final = 5_000
"""So many transactions take longer than it takes to start a producer."""
PATIENCE_S: Final = 40.0
HANGS_AFTER_MINUTES: Final = "0"
"""Every transaction that is open is looked at."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    newest = chosen_versions(metafunc.config)[-1]
    metafunc.parametrize("side", ["mock-4.4", f"kafka-{newest}"], indirect=True)


@pytest_asyncio.fixture
async def side(
    request: pytest.FixtureRequest, real_kafka_pool: Callable[[str], RealKafka]
) -> AsyncIterator[Cluster]:
    """A broker."""
    kind, _, version = str(request.param).partition("-")
    async with AsyncExitStack() as stack:
        if kind == "mock":
            mock = await stack.enter_async_context(running_mock(version))
            found = Cluster(kind, version, mock.host, mock.port)
        else:
            with skip_without_kafka():
                kafka = real_kafka_pool(version)
            found = Cluster(version, kafka.profile, kafka.host, kafka.port)
        stack.push_async_callback(found.close)
        yield found


def ours(side: Cluster, name: str) -> Producer[Any, Any]:
    return Producer(bootstrap_servers=side.bootstrap, transactional_id=name)


async def tool(main_class: str, *arguments: str) -> str:
    def call() -> str:
        with skip_without_kafka():
            return run_tool(main_class, *arguments)

    return await anyio.to_thread.run_sync(call)


async def transactions(side: Cluster, *arguments: str) -> list[dict[str, str]]:
    """The rows of a table that ``kafka-transactions`` prints."""
    printed = await tool(TRANSACTIONS, "--bootstrap-server", side.bootstrap, *arguments)
    head, *rows = [line.split("\t") for line in printed.splitlines()]
    names = [name.strip() for name in head]
    return [
        dict(zip(names, (cell.strip() for cell in row), strict=True))
        for row in rows
        if len(row) > 1
    ]


async def test_javas_tools_see_our_transactions_as_what_they_are(
    side: Cluster, tmp_path: Path
) -> None:
    topic, name = side.unique("t"), side.unique("tx")
    await side.create_topic(topic, 1)
    async with ours(side, name) as producer:
        async with producer.transaction() as txn:
            for value in COMMITTED[:-1]:
                await txn.send(topic, value)
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"never")
        await producer.abort_transaction()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, COMMITTED[-1])
        open_, hanging, producers = await asyncio.gather(
            transactions(side, "describe", "--transactional-id", name),
            transactions(
                side,
                *("find-hanging", "--broker-id", "1"),
                *("--max-transaction-timeout", HANGS_AFTER_MINUTES),
            ),
            transactions(side, "describe-producers", "--topic", topic, "--partition", "0"),
        )
        assert [row["TransactionState"] for row in open_] == ["Ongoing"]
        assert open_[0]["TopicPartitions"] == f"{topic}-0"
        assert open_[0]["TransactionTimeoutMs"] == "60000"
        assert [row for row in hanging if row["Topic"] == topic] == []
        first = len(COMMITTED[:-1]) + 1 + 1 + 1  # and two markers, and what was aborted
        assert [row["CurrentTransactionStartOffset"] for row in producers] == [str(first)]
        assert [row["ProducerId"] for row in producers] == [open_[0]["ProducerId"]]
        assert [row["ProducerEpoch"] for row in producers] == [open_[0]["ProducerEpoch"]]
        await producer.commit_transaction()
        listed, read = await asyncio.gather(
            transactions(side, "list"), read_by_java(side, topic, tmp_path)
        )
    assert [row["TransactionState"] for row in listed if row["TransactionalId"] == name] == [
        "CompleteCommit"
    ]
    assert read == [value.decode() for value in COMMITTED]


async def read_by_java(side: Cluster, topic: str, folder: Path) -> list[str]:
    """What Java's consumer reads of what is committed."""
    config = folder / "consumer.properties"
    config.write_text("isolation.level=read_committed\n")
    printed = await tool(
        VERIFIABLE_CONSUMER,
        *("--bootstrap-server", side.bootstrap, "--topic", topic, "--group-id", topic),
        *("--group-protocol", "consumer", "--max-messages", str(len(COMMITTED)), "--verbose"),
        *("--command-config", str(config)),
    )
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [each["value"] for each in told if each["name"] == "record_data"]


def copying(side: Cluster, name: str, source: str, target: str, size: int) -> list[str]:
    """What makes Java's producer with this transactional id copy all that a topic has, so many
    records a transaction."""
    return [
        *("--broker-list", side.bootstrap, "--input-topic", source, "--input-partition", "0"),
        *("--output-topic", target, "--transaction-size", str(size), "--transactional-id", name),
        *("--consumer-group", source),
    ]


async def test_javas_producer_takes_our_transactional_id_over(side: Cluster) -> None:
    source, target, name = side.unique("in"), side.unique("out"), side.unique("tx")
    for topic in (source, target):
        await side.create_topic(topic, 1)
    await side.produce(source, {0: COMMITTED})
    async with ours(side, name) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(target, b"never")
        await tool(MESSAGE_COPIER, *copying(side, name, source, target, 5))
        with pytest.raises(ProducerFenced):
            await producer.commit_transaction()
        with pytest.raises(ProducerFenced):
            await producer.begin_transaction()
    assert await read_committed(side, target, COMMITTED[-1]) == COMMITTED


async def test_our_producer_takes_the_transactional_id_of_javas_over(side: Cluster) -> None:
    source, target, name = side.unique("in"), side.unique("out"), side.unique("tx")
    for topic in (source, target):
        await side.create_topic(topic, 1)
    values = [b"%d" % number for number in range(MANY)]
    await side.produce(source, {0: values})
    with skip_without_kafka():
        command = tool_command(MESSAGE_COPIER, *copying(side, name, source, target, 1))
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        await read_committed(side, target, values[2])  # it is at work
        async with ours(side, name) as producer:
            async with asyncio.timeout(PATIENCE_S):
                printed, _ = await process.communicate()
            async with producer.transaction() as txn:
                await txn.send(target, b"ours")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    # Which call of Java's producer hears of it first differs, and with that its error. A commit
    # that comes when the coordinator has just aborted for us is in an invalid state.
    fenced = (b"ProducerFenced", b"InvalidProducerEpoch", b"InvalidTxnState")
    said = [line for line in printed.splitlines() if b"xception" in line or b"rror" in line]
    assert any(name in printed for name in fenced), said
    assert process.returncode != 0
    read = await read_committed(side, target, b"ours")
    assert read == [*values[: len(read) - 1], b"ours"]
    assert len(read) <= MANY


async def read_committed(side: Cluster, topic: str, last: bytes) -> list[bytes | None]:
    """What is committed, up to this value."""
    consumer = side.consumer(group=None, isolation_level="read_committed")
    values: list[bytes | None] = []
    async with asyncio.timeout(PATIENCE_S), consumer:
        consumer.assign([(topic, 0)])
        while last not in values:
            values.append((await consumer.getone()).value)
    return values
