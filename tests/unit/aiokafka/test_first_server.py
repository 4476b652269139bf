"""Bootstrap servers that are slow, silent, gone or strict."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.core.ports import NotSent
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BootstrapFailed, BrokerError
from kip848_client.runtime.net._first_server import first_to_connect
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio

SILENT = float("inf")
REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


class FakeLink:
    """Connects, or fails with ``error``, after some turns of the loop."""

    def __init__(self, turns: float = 0, error: Exception | None = None) -> None:
        self.turns = turns
        self.error = error
        self.tried = False
        self.cancelled = False

    async def connect(self) -> None:
        self.tried = True
        try:
            if self.turns == SILENT:
                await asyncio.Event().wait()
            for _ in range(int(self.turns)):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self.error is not None:
            raise self.error


async def first(*links: FakeLink, head_start_s: float = 0.001) -> Any:
    chosen: Any = links
    async with asyncio.timeout(5):
        return await first_to_connect(chosen, head_start_s)


async def test_the_first_one_is_enough() -> None:
    one, two = FakeLink(3), FakeLink()
    assert await first(one, two, head_start_s=60) is one
    assert not two.tried


async def test_silent_servers_do_not_hold_up_the_one_that_answers() -> None:
    one, two, three = FakeLink(SILENT), FakeLink(SILENT), FakeLink(1)
    assert await first(one, two, three) is three
    assert (one.cancelled, two.cancelled) == (True, True)


async def test_a_refusal_does_not_wait_for_the_head_start() -> None:
    two = FakeLink()
    assert await first(FakeLink(1, NotSent("a: refused")), two, head_start_s=60) is two


async def test_every_reason_is_told() -> None:
    with pytest.raises(BootstrapFailed, match="a: refused; b: refused"):
        await first(FakeLink(2, NotSent("b: refused")), FakeLink(0, NotSent("a: refused")))


async def test_refused_credentials_are_told_at_once() -> None:
    one, two = FakeLink(SILENT), FakeLink(0, BrokerError(REFUSED, REFUSED.name))
    with pytest.raises(BrokerError):
        await first(one, two, FakeLink())
    assert one.cancelled


async def test_whoever_gives_up_leaves_no_attempt_behind() -> None:
    one, two = FakeLink(SILENT), FakeLink(SILENT)
    task = asyncio.get_running_loop().create_task(first(one, two))
    await until(lambda: two.tried)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (one.cancelled, two.cancelled) == (True, True)
