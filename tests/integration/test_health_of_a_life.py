"""The health of a consumer and of a processor, from before the start until after the stop."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client import BootstrapFailed, Consumer, ConsumerClosed, LocalProtocolError
from kip848_client.errors import ConsumerNotStarted
from mock_coordinator import MockBroker
from tests.integration.test_missing_topics import processor

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("settings", [{"group_id": "g"}, {}])
async def test_a_consumer(settings: dict[str, Any]) -> None:
    async with MockBroker({"t": 1}) as broker:
        consumer = Consumer(bootstrap_servers=broker.bootstrap, **settings)
        before = consumer.health()
        assert (str(before.state), before.live, before.ready) == ("NOT_STARTED", True, False)
        await consumer.start()
        if settings:
            consumer.subscribe(["t"])
            await consumer.getmany(timeout_ms=10)
            await consumer.wait_stable(5_000)
            assert str(consumer.health().state) == "STABLE"
        assert consumer.health().ready
        await consumer.stop()
        after = consumer.health()
        assert (str(after.state), after.live, after.ready) == ("CLOSED", True, False)
        assert after.problems == ()


async def test_a_consumer_that_is_stopped_before_its_start() -> None:
    consumer = Consumer()
    await consumer.stop()
    assert str(consumer.health().state) == "CLOSED"


async def test_a_start_that_fails() -> None:
    consumer = Consumer(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(BootstrapFailed):
        await consumer.start()
    assert str(consumer.health().state) == "CLOSED"


async def test_what_is_not_started_is_not_called_closed() -> None:
    with pytest.raises(ConsumerNotStarted, match="not started") as caught:
        await Consumer(group_id="g").getone()
    assert isinstance(caught.value, LocalProtocolError)
    assert isinstance(caught.value, ConsumerClosed), "as it was"


async def test_a_processor() -> None:
    async with MockBroker({"orders": 1, "invoices": 1}) as broker:
        made = processor(broker.bootstrap)
        assert str(made.health().state) == "NOT_STARTED"
        async with made:
            assert made.health().live
        assert str(made.health().state) == "CLOSED"
