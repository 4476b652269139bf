"""A topic that does not exist, where topics are not created on their own: what is said of it, and
that nobody who stops waits for it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import pytest

from kip848_client import BrokerError, Consumer, ExactlyOnceProcessor, Producer, ProducerRecord
from mock_coordinator import MockBroker
from tests.unit.waiting import until

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.everything("a wait is announced after a second; the core's tests have the rule"),
]

NO_TOPICS: Final = {"auto.create.topics.enable": "false"}
WHAT: Final = "waiting for the partitions of topic invoices"


def processor(bootstrap: str) -> ExactlyOnceProcessor[Any, Any]:
    return ExactlyOnceProcessor(
        "orders",
        lambda order: ProducerRecord("invoices", value=order.value),
        consumer=Consumer(
            bootstrap_servers=bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ),
        producer=Producer(bootstrap_servers=bootstrap, transactional_id="billing-1"),
    )


async def test_a_processor_says_what_it_waits_for_and_stops_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MockBroker({"orders": 1}, config=NO_TOPICS) as broker:
        broker.produce("orders", b"1")
        made = processor(broker.bootstrap)
        async with made:
            running = asyncio.create_task(made.run())
            async with asyncio.timeout(10):
                await until(lambda: WHAT in caplog.text)
            assert "UNKNOWN_TOPIC_OR_PARTITION" in caplog.text
            (problem,) = made.health().problems
            assert "topic invoices" in problem
            began_s = time.monotonic()
            await made.stop()
            assert time.monotonic() - began_s < 5
            with pytest.raises(BrokerError, match="topic invoices"):
                await running
    assert caplog.text.count(WHAT) == 1


async def test_a_topic_that_is_created_late_ends_the_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "kip848_client")
    async with (
        MockBroker({"orders": 1}, config=NO_TOPICS) as broker,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        sent = asyncio.create_task(producer.send_and_wait("invoices", b"1"))
        async with asyncio.timeout(10):
            await until(lambda: bool(producer.problems))
            broker.create_topic("invoices", 1)
            await sent
            await until(lambda: "done waiting for the partitions of topic invoices" in caplog.text)
        assert producer.problems == ()


async def test_a_producer_that_stops_says_why_a_record_was_not_sent() -> None:
    async with MockBroker({"orders": 1}, config=NO_TOPICS) as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap)
        await producer.start()
        sent = asyncio.create_task(producer.send_and_wait("invoices", b"1"))
        async with asyncio.timeout(10):
            await until(lambda: bool(producer.problems))
        began_s = time.monotonic()
        await producer.stop()
        assert time.monotonic() - began_s < 5
        with pytest.raises(BrokerError, match="topic invoices"):
            await sent
