"""Runs of assignors: one that was abandoned before it began does not begin."""

from __future__ import annotations

import pytest

from kip848_client.core.client_assignors import AssignorFailed
from kip848_client.runtime._assignor_runs import AssignorRun

pytestmark = pytest.mark.asyncio


async def test_a_run_that_was_abandoned_before_its_task_began() -> None:
    called: list[int] = []

    async def assign(number: int) -> int:
        called.append(number)
        return number

    run = AssignorRun()
    run.abandon(1)
    with pytest.raises(AssignorFailed, match="not called"):
        await run.of(1, "mine", assign, (1,), 1_000, {})
    assert await run.of(2, "mine", assign, (2,), 1_000, {}) == 2
    assert called == [2]
