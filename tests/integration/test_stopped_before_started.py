"""Closed is closed: what was stopped does not start, whichever of the two calls came first."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client import (
    Consumer,
    ConsumerClosed,
    ExactlyOnceProcessor,
    LocalProtocolError,
    Producer,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

NOWHERE = "127.0.0.1:9"


async def test_a_consumer() -> None:
    consumer = Consumer("orders", bootstrap_servers=NOWHERE, group_id="g")
    events = consumer.events()
    assert not consumer.was_stopped
    await consumer.stop()
    await consumer.stop()
    assert "closed" in repr(consumer)
    assert consumer.was_stopped
    assert [each async for each in events] == []
    assert str(consumer.health().state) == "CLOSED"
    with pytest.raises(ConsumerClosed, match="stopped before"):
        await consumer.start()
    calls: tuple[Any, ...] = (
        consumer.unsubscribe,
        lambda: consumer.subscribe(["other"]),
    )
    for call in calls:
        with pytest.raises(ConsumerClosed, match="is closed"):
            call()
    with pytest.raises(ConsumerClosed, match="is closed"):
        await consumer.getone()
    by_hand = Consumer(bootstrap_servers=NOWHERE)
    await by_hand.stop()
    with pytest.raises(ConsumerClosed, match="is closed"):
        by_hand.assign([("orders", 0)])


async def test_a_producer() -> None:
    producer = Producer(bootstrap_servers=NOWHERE)
    assert not producer.was_stopped
    await producer.stop()
    await producer.stop()
    assert "closed" in repr(producer)
    assert producer.was_stopped
    with pytest.raises(LocalProtocolError, match="stopped before"):
        await producer.start()
    with pytest.raises(LocalProtocolError, match="is closed"):
        await producer.send_and_wait("orders", b"1")


@pytest.mark.parametrize("which", ["consumer", "producer"])
async def test_a_client_that_was_stopped_is_not_given_to_a_processor(which: str) -> None:
    consumer = Consumer(
        bootstrap_servers=NOWHERE,
        group_id="g",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = Producer(bootstrap_servers=NOWHERE, transactional_id="t")
    await (consumer if which == "consumer" else producer).stop()
    processor = ExactlyOnceProcessor("orders", lambda _: None, consumer=consumer, producer=producer)
    with pytest.raises(LocalProtocolError, match="leave them alone"):
        await processor.start()
    assert not consumer.subscription()
