"""A broker that throttles us is left alone until its time is over (KIP-219)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.core.ports import NotSent
from kip848_client.core.throttle import Throttle
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._links import Link
from tests.unit.consumer.fakes import FakeClock

REQUEST = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))


def answer(throttle_time_ms: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(throttle_time_ms=throttle_time_ms)


def test_the_rule() -> None:
    throttle = Throttle()
    assert throttle.remaining_ms(1_000) == 0
    throttle.note(1_000, answer(0))
    throttle.note(1_000, object())  # a message without the field
    assert throttle.remaining_ms(1_000) == 0
    throttle.note(1_000, answer(500))
    assert throttle.remaining_ms(1_200) == 300
    throttle.note(1_200, answer(100))  # a shorter one does not end the longer one
    assert throttle.remaining_ms(1_200) == 300
    assert throttle.remaining_ms(1_500) == 0
    throttle.note(2_000, answer(-1))
    assert throttle.remaining_ms(2_000) == 0


class FakeConnection:
    """Answers at once, with the throttle times that it is given."""

    _versions: dict[int, tuple[int, int]]

    def __init__(self, clock: FakeClock, throttle_times_ms: list[int]) -> None:
        self._clock = clock
        self._throttle_times_ms = throttle_times_ms
        self.sent_at_ms: list[int] = []

    is_due = False

    def connected(self) -> bool:
        return True

    def send(self, _request: Any) -> asyncio.Future[Any]:
        self.sent_at_ms.append(self._clock.ms)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(answer(self._throttle_times_ms.pop(0)))
        return future


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """A clock that sleeping moves."""
    clock = FakeClock()
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        clock.ms += round(seconds * 1000)
        await real_sleep(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return clock


def link_over(connection: FakeConnection, clock: FakeClock) -> Link:
    link = Link("a", 1, ConnectionOptions("c", 30_000), clock)
    given: Any = connection
    link._connection = given
    return link


@pytest.mark.asyncio
async def test_no_request_goes_out_before_the_time_is_over(clock: FakeClock) -> None:
    connection = FakeConnection(clock, [0, 700, 0, 0])
    link = link_over(connection, clock)
    for _ in range(4):
        await link.send(REQUEST, (0, 4), 30_000)
    assert connection.sent_at_ms == [1_000, 1_000, 1_700, 1_700]


@pytest.mark.asyncio
async def test_whoever_waits_waits_longer_when_the_broker_says_so(clock: FakeClock) -> None:
    connection = FakeConnection(clock, [700, 0])
    link = link_over(connection, clock)
    await link.send(REQUEST, (0, 4), 30_000)
    link._throttle.note(clock.ms, answer(900))
    assert link.is_muted
    await link.send(REQUEST, (0, 4), 30_000)
    assert connection.sent_at_ms == [1_000, 1_900]
    assert not link.is_muted


@pytest.mark.asyncio
async def test_a_time_beyond_the_timeout_is_an_error_at_once(clock: FakeClock) -> None:
    connection = FakeConnection(clock, [5_000])
    link = link_over(connection, clock)
    await link.send(REQUEST, (0, 4), 30_000)
    with pytest.raises(NotSent, match=r"FindCoordinator to a:1: a quota is used up.* 5000 ms"):
        await link.send(REQUEST, (0, 4), 1_000)
    assert connection.sent_at_ms == [1_000]
