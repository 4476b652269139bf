"""What takes long is told, once, with the time since it began; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kip848_client.core.member import Subscribed
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RequestTimedOut
from tests.support.virtual_loop import run_virtually
from tests.unit.consumer.test_group_driver import TP, GroupDriverHarness, accepted, found, running

STEP_MS = 100
WHAT = "the committed offsets of t-0"


def loading(_request: Any) -> OffsetFetchResponse:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g", error_code=code),))


async def look_up(harness: GroupDriverHarness, seconds: float) -> tuple[str, ...]:
    """The problems after so long, and after the answer."""
    async with running(harness):
        await harness.join()
        asked = asyncio.create_task(
            harness.group_driver.commits.fetch_committed((TP,), harness.clock.ms + 60_000)
        )
        await pass_time(harness, seconds)
        problems = harness.group_driver.problems()
        harness.answers["OffsetFetch"] = lambda _: found(4)
        await pass_time(harness, 3)
        assert asked.done()
        assert not harness.group_driver.problems()
    return problems


async def pass_time(harness: GroupDriverHarness, seconds: float) -> None:
    for _ in range(int(seconds * 1_000 / STEP_MS)):
        harness.clock.ms += STEP_MS
        await asyncio.sleep(STEP_MS / 1_000)


def test_committed_offsets_that_take_long(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[str, ...]:
        return await look_up(GroupDriverHarness(OffsetFetch=loading), 4)

    (problem,) = run_virtually(main)
    assert problem.startswith(f"waiting for {WHAT} for ")
    assert "COORDINATOR_LOAD_IN_PROGRESS" in problem
    (line,) = [each for each in caplog.messages if f"waiting for {WHAT}" in each]
    assert "COORDINATOR_LOAD_IN_PROGRESS" in line


def test_committed_offsets_that_come_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[str, ...]:
        return await look_up(GroupDriverHarness(), 4)

    assert run_virtually(main) == ()
    assert not [each for each in caplog.messages if WHAT in each]


@pytest.mark.parametrize("passed_s", [0.2, 0.9])
def test_a_coordinator_that_does_not_answer(
    passed_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Each time is told as it was: the look once a second may come at any time after the start."""

    async def main() -> tuple[str, ...]:
        harness = GroupDriverHarness(ConsumerGroupHeartbeat=lambda _: RequestTimedOut("slow"))
        async with running(harness):
            await pass_time(harness, passed_s)
            harness.group_driver.post(Subscribed(frozenset({"t"})))
            harness.group_driver.polled(waiting=False)
            await pass_time(harness, 2.1)
            problems = harness.group_driver.problems()
            harness.answers["ConsumerGroupHeartbeat"] = lambda _: accepted(1, 0)
            await pass_time(harness, 3)
            return problems

    with caplog.at_level(logging.INFO):
        (problem,) = run_virtually(main)
    assert problem == "waiting for the group coordinator for 2 s: slow"
    begun, over = [each for each in caplog.messages if "waiting for the group coordinator" in each]
    assert begun in [f"group g: waiting for the group coordinator for {n} s: slow" for n in (1, 2)]
    assert "done waiting for the group coordinator after" in over
