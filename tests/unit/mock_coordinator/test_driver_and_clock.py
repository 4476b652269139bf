"""The driver around the core, and the two kinds of clock."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.metadata import MetadataRequest
from mock_coordinator import VirtualClock, wall_clock
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.core.outputs import TornReply
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.driver.core_driver import CoreDriver
from tests.unit.mock_coordinator.broker_harness import counting


class Sink:
    """Writes down what happens to one connection."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def replied(self, reply: Any) -> None:
        self.seen.append(f"replied {reply.correlation}")

    def torn(self, torn: TornReply) -> None:
        raise AssertionError(f"there is no fault: {torn}")

    def closed(self, why: str) -> None:
        self.seen.append(f"closed: {why}")


def driver(clock: Any) -> CoreDriver:
    return CoreDriver(ClusterCore.create(BrokerConfig(), counting(), clock()), clock)


def metadata(connection: int) -> RequestReceived:
    return RequestReceived(connection, 5, 12, LOCAL_CLIENT, MetadataRequest(topics=None))


def test_replies_reach_their_connection_and_no_other() -> None:
    made = driver(VirtualClock())
    one, two = Sink(), Sink()
    first = made.connect(one)
    made.connect(two)
    made.submit(metadata(first))
    assert (one.seen, two.seen) == (["replied 5"], [])
    made.disconnect(first)
    made.disconnect(first)
    made.submit(metadata(first))
    assert one.seen == ["replied 5"]
    assert made.connections == 1


def test_a_request_that_breaks_the_broker_closes_its_connection_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = driver(VirtualClock())
    sink = Sink()
    number = made.connect(sink)

    def explode(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(made.core, "_request", explode)
        with caplog.at_level(logging.ERROR, "mock_coordinator"):
            made.submit(metadata(number))
    assert sink.seen == ["closed: the broker failed on a request"]
    assert "ZeroDivisionError" in caplog.text
    other = Sink()
    made.submit(metadata(made.connect(other)))
    assert other.seen == ["replied 5"]


def test_the_latest_requests_are_kept() -> None:
    clock = VirtualClock(1000)
    made = CoreDriver(ClusterCore.create(BrokerConfig(), counting(), 1000), clock, log_size=2)
    number = made.connect(Sink())
    for _ in range(3):
        clock.advance(1)
        made.submit(metadata(number))
    assert [entry.at_ms for entry in made.requests] == [1002, 1003]
    assert {(entry.api, entry.version) for entry in made.requests} == {("Metadata", 12)}


def test_of_long_requests_fewer_are_kept() -> None:
    made = driver(VirtualClock())
    number = made.connect(Sink())
    for size in (10, 10_000_000, 20, 7_000_000, 30, 40_000_000, 50):
        made.submit(replace(metadata(number), correlation=size, size_bytes=size))
        assert made.requests[-1].correlation == size, "the last one is there, however long it is"
        kept = [entry.correlation for entry in made.requests]
        assert sum(kept) <= 16_000_000 or len(kept) == 1
    assert kept == [50]
    made.requests.clear()
    for _ in range(20_000):
        made.submit(metadata(number))
    assert len(made.requests) == 10_000


def test_time_does_not_go_backwards() -> None:
    times = iter([100, 200, 150, 150, 300])
    made = CoreDriver(ClusterCore.create(BrokerConfig(), counting(), 0), lambda: next(times))
    assert [made.now_ms() for _ in range(4)] == [200, 200, 200, 300]


def test_a_virtual_clock_stops_at_each_deadline_on_its_way() -> None:
    clock = VirtualClock(0)
    fired: list[int] = []
    due = [30, 10, 20, 99]

    def deadline() -> int | None:
        return min(due, default=None)

    def fire() -> None:
        fired.append(clock())
        due.remove(min(due))

    clock.attach(deadline, fire)
    clock.advance(50)
    assert fired == [10, 20, 30]
    assert clock() == 50
    clock.advance(0)
    assert fired == [10, 20, 30]


def test_a_virtual_clock_refuses_to_go_back_or_to_run_in_circles() -> None:
    clock = VirtualClock(0)
    with pytest.raises(ValueError, match="must not be negative"):
        clock.advance(-1)
    clock.attach(lambda: 5, lambda: None)
    clock.advance(4)
    with pytest.raises(RuntimeError, match="is still due after"):
        clock.advance(1)


def test_the_wall_clock_is_about_now_and_steady() -> None:
    import time

    clock = wall_clock()
    assert abs(clock() - time.time() * 1000) < 5000
    assert clock() <= clock()


@pytest.mark.asyncio
async def test_waiting_for_a_condition_gives_up_in_time() -> None:
    made = driver(VirtualClock())
    with pytest.raises(TimeoutError):
        await made.wait_for(lambda: False, 0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.wait_for, lambda: len(made.requests) == 2, 5)
        tasks.start_soon(made.wait_for, lambda: len(made.requests) == 1, 5)
        await anyio.lowlevel.checkpoint()
        number = made.connect(Sink())
        made.submit(metadata(number))
        await anyio.lowlevel.checkpoint()
        made.submit(metadata(number))
