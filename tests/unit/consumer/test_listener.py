"""Listeners: their shape, and every way to end a call."""

from __future__ import annotations

import asyncio

import pytest

from kip848_client import TopicPartition
from kip848_client.consumer._listener import call_listener, checked_listener, listener_method
from kip848_client.errors import CallbackError, ConfigError
from kip848_client.runtime import _hooks

TP = TopicPartition("t", 0)


class Plain:
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass


class WithLost(Plain):
    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        pass


def test_a_listener_needs_two_methods() -> None:
    plain = Plain()
    assert checked_listener(plain) is plain
    with pytest.raises(ConfigError, match="on_partitions_revoked"):
        checked_listener("listener")


def test_lost_falls_back_to_revoked() -> None:
    plain, full = Plain(), WithLost()
    assert listener_method(plain, "on_partitions_lost") == plain.on_partitions_revoked
    assert listener_method(full, "on_partitions_lost") == full.on_partitions_lost
    assert listener_method(None, "on_partitions_lost") is None


@pytest.mark.asyncio
async def test_plain_functions_and_coroutines_are_called_with_a_set() -> None:
    got: list[set[TopicPartition]] = []

    def plain(partitions: set[TopicPartition]) -> None:
        got.append(partitions)

    async def coroutine(partitions: set[TopicPartition]) -> None:
        await asyncio.sleep(0)
        got.append(partitions)

    assert await call_listener(plain, [TP], 1000) is None
    assert await call_listener(coroutine, [TP], 1000) is None
    assert got == [{TP}, {TP}]


@pytest.mark.asyncio
async def test_what_it_raises_becomes_a_callback_error() -> None:
    def raising(_partitions: set[TopicPartition]) -> None:
        raise KeyError("x")

    failure = await call_listener(raising, [TP], 1000)
    assert isinstance(failure, CallbackError)
    assert "raising raised KeyError: 'x'" in str(failure)
    assert isinstance(failure.__cause__, KeyError)


@pytest.mark.asyncio
async def test_one_that_does_not_return_is_cancelled() -> None:
    cancelled: list[bool] = []

    async def hanging(_partitions: set[TopicPartition]) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    failure = await call_listener(hanging, [TP], 10)
    assert "did not return within 10 ms" in str(failure)
    assert cancelled == [True]


@pytest.mark.asyncio
async def test_cancelling_the_caller_goes_through() -> None:
    started = asyncio.Event()

    async def hanging(_partitions: set[TopicPartition]) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(call_listener(hanging, [TP], 60_000))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.asyncio
async def test_a_cancelled_error_that_it_lets_out_is_a_failure_and_not_our_cancellation() -> None:
    worker = asyncio.get_running_loop().create_task(asyncio.Event().wait())

    async def stopping_its_worker(_partitions: set[TopicPartition]) -> None:
        worker.cancel()
        await worker

    failure = await call_listener(stopping_its_worker, [TP], 1000)
    assert isinstance(failure, CallbackError)
    assert "stopping_its_worker let a CancelledError out" in str(failure)
    assert isinstance(failure.__cause__, asyncio.CancelledError)


@pytest.mark.asyncio
async def test_one_that_swallows_its_cancellation_is_not_waited_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_hooks, "_PATIENCE_S", 0.01)
    started, finish = asyncio.Event(), asyncio.Event()
    cancellations: list[bool] = []

    async def stubborn(_partitions: set[TopicPartition]) -> None:
        started.set()
        while not finish.is_set():
            try:
                await finish.wait()
            except asyncio.CancelledError:
                cancellations.append(True)

    task = asyncio.get_running_loop().create_task(call_listener(stubborn, [TP], 60_000))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancellations == [True]  # once, and not in each turn of the loop
    assert "stubborn does not end although it was cancelled" in caplog.text
    finish.set()


@pytest.mark.asyncio
async def test_one_that_overran_its_time_is_cancelled_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_hooks, "_REPEAT_CANCEL_S", 0.01)
    cancellations: list[bool] = []

    async def slow_to_learn(_partitions: set[TopicPartition]) -> None:
        while len(cancellations) < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancellations.append(True)

    failure = await call_listener(slow_to_learn, [TP], 10)
    assert "did not return within 10 ms" in str(failure)
    assert len(cancellations) == 3
