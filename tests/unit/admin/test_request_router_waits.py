"""An admin says what it waits for while a request hangs; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

import pytest

from kip848_client.admin._request_router import RequestRouter
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime.clock import LoopClock
from kip848_client.runtime.net._transport import KafkaTransport
from tests.support.virtual_loop import run_virtually

FOUND = FindCoordinatorResponse(
    coordinators=(
        FindCoordinatorResponseCoordinator(key="g", node_id=1, host="h", port=1, error_code=0),
    )
)


class Slow:
    """Looking up takes ``lookup_s``, any other answer ``answer_s``."""

    def __init__(self, lookup_s: float = 0, answer_s: float = 0) -> None:
        self._lookup_s = lookup_s
        self.answer_s = answer_s

    async def any_broker(self, _request: Any, **_: Any) -> Any:
        await asyncio.sleep(self._lookup_s)
        return FOUND

    def add_brokers(self, _: Any) -> None: ...


def asking(transport: Slow) -> RequestRouter:
    clock = LoopClock(asyncio.get_running_loop())
    return RequestRouter(cast("KafkaTransport", transport), clock, Backoff(100, 1_000), 30_000)


async def ask_coordinator(transport: Slow) -> None:
    made = asking(transport)

    async def ask(_node: int, names: tuple[str, ...]) -> Mapping[str, int]:
        await asyncio.sleep(transport.answer_s)
        return dict.fromkeys(names, 1)

    done, _ = await made.of_coordinators(["g"], ask, made.deadline_ms(60_000))
    assert done == {"g": 1}


async def ask_anyone(transport: Slow) -> None:
    made = asking(transport)
    await made.any_broker(MetadataRequest(topics=()), made.deadline_ms(60_000))


CASES: dict[str, tuple[Callable[[Slow], Coroutine[Any, Any, None]], Slow, str]] = {
    "coordinator": (ask_coordinator, Slow(answer_s=5), "broker 1 has not answered"),
    "lookup": (ask_coordinator, Slow(lookup_s=5), "which broker is responsible"),
    "any broker": (ask_anyone, Slow(lookup_s=5), "no broker has answered"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_request_that_hangs_is_told_once(case: str, caplog: pytest.LogCaptureFixture) -> None:
    call, transport, why = CASES[case]
    run_virtually(lambda: call(transport))
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("admin: waiting for ")
    assert "for 1 s: " in line
    assert why in line


@pytest.mark.parametrize("call", [ask_coordinator, ask_anyone])
def test_a_request_that_is_answered_in_time_is_not_told(
    call: Callable[[Slow], Any], caplog: pytest.LogCaptureFixture
) -> None:
    run_virtually(lambda: call(Slow(0.9)))
    assert not caplog.records
