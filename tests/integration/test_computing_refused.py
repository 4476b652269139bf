"""Errors on the way to a computed assignment, once each: the group is assigned soon nevertheless.

After an abandoned computation it would rest for the rebalance timeout: a minute with workers, five
with consumers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client import Consumer
from kip848_client.connect import AssignedItem, Worker
from kip848_client.core.client_assignors import StickyAssignor
from kip848_client.error_codes import ErrorCode
from mock_coordinator import Fault, Match, MockBroker
from mock_coordinator.core.faults import Refuse

pytestmark = pytest.mark.asyncio

CONFIG = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
SOON_S = 5
CASES = [
    ("PrepareAssignment", ErrorCode.FENCED_MEMBER_EPOCH, 1),
    ("InstallAssignment", ErrorCode.FENCED_MEMBER_EPOCH, 1),
    ("PrepareAssignment", ErrorCode.STALE_MEMBER_EPOCH, 1),
    ("InstallAssignment", ErrorCode.STALE_MEMBER_EPOCH, 1),
    ("Heartbeat", ErrorCode.COMPUTE_ASSIGNMENT, 1),  # the join
    ("Heartbeat", ErrorCode.COMPUTE_ASSIGNMENT, 2),
    ("Heartbeat", ErrorCode.COMPUTE_ASSIGNMENT, 3),
]


def fault(group: str, api: str, code: ErrorCode, nth: int) -> Fault:
    return Fault(Refuse(code), Match(api=f"{group}{api}"), nth=nth)


class Items:
    def on_assigned(self, items: tuple[AssignedItem, ...]) -> None: ...

    def on_revoked(self, items: tuple[AssignedItem, ...]) -> None: ...

    def on_lost(self, items: tuple[AssignedItem, ...]) -> None: ...


@pytest.mark.parametrize(("api", "code", "nth"), CASES)
async def test_workers(api: str, code: ErrorCode, nth: int) -> None:
    async with MockBroker(config=CONFIG) as broker:
        broker.faults.add(fault("ConnectGroup", api, code, nth))
        servers = broker.bootstrap
        async with asyncio.timeout(SOON_S):
            async with Worker({"a": 2}, Items(), bootstrap_servers=servers, group_id="w") as worker:
                running = asyncio.create_task(worker.run())
                await broker.wait_for(lambda: len(worker.assigned) == 3)
                assert not running.done()
                running.cancel()


@pytest.mark.parametrize(("api", "code", "nth"), CASES)
async def test_consumers(api: str, code: ErrorCode, nth: int) -> None:
    async with MockBroker(config=CONFIG) as broker:
        broker.create_topic("t", partitions=3)
        broker.faults.add(fault("ConsumerGroup", api, code, nth))
        async with asyncio.timeout(SOON_S):
            consumer: Consumer[Any, Any] = Consumer(
                "t",
                bootstrap_servers=broker.bootstrap,
                group_id="g",
                group_local_assignors=[StickyAssignor()],
            )
            async with consumer:
                reading = asyncio.create_task(consumer.getone())
                await broker.wait_for(lambda: len(consumer.assignment()) == 3)
                assert not reading.done()
                reading.cancel()
