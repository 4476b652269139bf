"""Streams of events: bounded, for any number of readers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import pytest

from kip848_client.errors import LocalProtocolError
from kip848_client.observe.core.watching import (
    EventsMissed,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    MemberFenced,
    MembershipEvent,
)
from kip848_client.runtime.client._event_streams import EventHub

pytestmark = pytest.mark.asyncio


def event(number: int) -> MembershipEvent:
    return MemberFenced(time_ms=number, member_epoch=1, cause="UNKNOWN_MEMBER_ID")


async def test_each_reader_gets_each_event() -> None:
    hub = EventHub()
    streams = [hub.stream(10) for _ in range(2)]
    for number in range(3):
        hub.put(event(number))
    hub.close()
    for stream in streams:
        assert [each.time_ms async for each in stream] == [0, 1, 2]


async def test_a_reader_waits_for_the_next_event() -> None:
    hub = EventHub()
    stream = hub.stream(10)
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    hub.put(event(1))
    assert await reading == event(1)


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    hub = EventHub()
    stream = hub.stream(2)
    for number in range(5):
        hub.put(event(number))
    assert await anext(stream) == EventsMissed(3, 1, 3)
    assert [await anext(stream) for _ in range(2)] == [event(3), event(4)]
    hub.put(event(5))
    assert await anext(stream) == event(5), "they are told once"


async def test_heartbeats_go_to_who_asks_for_them_and_are_wanted_as_long_as_that() -> None:
    hub = EventHub()
    plain, all_of_them = hub.stream(10), hub.stream(10, heartbeats=True)
    assert hub.with_heartbeats
    beats = [
        HeartbeatAnswered(time_ms=1, member_epoch=1, latency_ms=5),
        HeartbeatRefused(time_ms=2, member_epoch=1, latency_ms=5, cause="X"),
        HeartbeatLost(time_ms=3, member_epoch=1, waited_ms=5, cause="Y"),
    ]
    for each in [*beats, event(4)]:
        hub.put(each)
    all_of_them.close()
    assert not hub.with_heartbeats
    plain.close()
    assert [each.time_ms async for each in plain] == [4]
    assert [each.time_ms async for each in all_of_them] == [1, 2, 3, 4]


async def test_the_end_of_the_consumer_ends_the_streams() -> None:
    hub = EventHub()
    stream = hub.stream(2)
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    hub.close()
    with pytest.raises(StopAsyncIteration):
        await reading
    assert [each async for each in hub.stream(2)] == []


async def test_a_closed_stream_takes_no_more() -> None:
    hub = EventHub()
    stream = hub.stream(2)
    hub.put(event(1))
    stream.close()
    hub.put(event(2))
    assert [each async for each in stream] == [event(1)]


async def test_a_stream_that_nobody_has_any_more_costs_nothing() -> None:
    hub = EventHub()
    hub.stream(2)
    gc.collect()
    assert not list(hub._streams)


def elsewhere(reading: Coroutine[Any, Any, object], loop: asyncio.AbstractEventLoop) -> None:
    """Read in another event loop, in vain, and leave it as it is."""
    task = loop.create_task(reading)
    loop.run_until_complete(asyncio.sleep(0))
    assert not task.done()


@pytest.mark.parametrize("is_debugging", [False, True])
@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_reader_in_another_event_loop_does_no_harm_to_the_consumer(
    is_debugging: bool, is_closed: bool
) -> None:
    hub = EventHub()
    stream, other = hub.stream(2), asyncio.new_event_loop()
    other.set_debug(is_debugging)
    await asyncio.to_thread(elsewhere, anext(stream), other)
    if is_closed:
        other.close()
    hub.put(event(1))
    hub.close()
    if not is_closed:
        await asyncio.to_thread(other.run_until_complete, asyncio.sleep(0))
        other.close()


async def test_a_stream_is_not_read_where_the_consumer_does_not_live() -> None:
    def refuse() -> None:
        raise LocalProtocolError("in another event loop")

    hub = EventHub()
    stream = hub.stream(2)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    hub.checked_by(refuse)
    hub.put(event(1))
    with pytest.raises(LocalProtocolError):
        await waiting
    with pytest.raises(LocalProtocolError):
        await anext(stream)
    hub.close()
    assert [each async for each in stream] == [event(1)], "what is left may be read anywhere"


async def test_a_stream_is_closed_as_asynchronous_generators_are() -> None:
    hub = EventHub()
    stream = hub.stream(10)
    async with aclosing(stream) as events:
        reading = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await reading
    await stream.aclose()
    hub.put(event(1))
    assert [each async for each in stream] == []
