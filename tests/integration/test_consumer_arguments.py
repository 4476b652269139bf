"""Every public method gets everything that it cannot mean, at every time of a consumer's life.

Whatever comes in: no call hangs, nothing but our own errors comes out, and a consumer that runs
goes on to hand out records.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from kip848_client import Consumer
from kip848_client.config import ConsumerConfig
from kip848_client.errors import CommitFailed, ConfigError, Kip848Error, RequestTimedOut
from mock_coordinator import MockBroker

pytestmark = pytest.mark.asyncio

PATIENCE_S: Final = 5.0
TP: Final = ("t", 0)


class NoRepr:
    """Its repr fails; so must no message that mentions it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class BadIndex:
    """As numpy's arrays are: the method is there and fails."""

    def __index__(self) -> int:
        raise TypeError("only arrays of one element")


def odd_values() -> list[Any]:
    nan = float("nan")
    partitions: list[Any] = [
        ("t",),
        ("t", "0"),
        ("t", -1),
        ("t", 2**31),
        ("t", nan),
        ("t", True),
        ("t", None),
        ("t", 0, 0),
        ("t", 99),
        (None, 0),
        (b"t", 0),
        ("\ud800", 0),
        ("x" * 300, 0),
        ("nowhere", 0),
        ["t", None],
    ]
    numbers: list[Any] = [True, 0, -1, 5, 2**31, 2**63, 10**400, 1.5, -1.5, nan, float("inf"), 1j]
    texts: list[Any] = ["", " ", "t", "t0", "(", "\ud800", "\x00", "x" * 40_000]
    binary: list[Any] = [b"", b"t", bytearray(b"t0")]
    collections: list[Any] = [(), [], {}, set(), frozenset(), [None], ["t"], [b"t"], [("t", "0")]]
    mappings: list[Any] = [{TP: None}, {TP: nan}, {TP: -1}, {TP: (1,)}, {TP: (1, None)}]
    mappings += [{TP: (1, "\ud800")}, {TP: 2**63}, {"t": 1}, {None: None}, {(b"t", 0): 1}]
    objects: list[Any] = [None, object(), NoRepr(), BadIndex(), Consumer, len, range(3)]
    generators: list[Any] = [iter(()), (each for each in (None, 5))]
    return partitions + numbers + texts + binary + collections + mappings + objects + generators


def is_long(value: object) -> bool:
    """A time to wait that is right, and longer than a test."""
    return isinstance(value, int) and value > 1_000


Call = Callable[[Consumer[Any, Any], Any], Any]

CALLS: Final[dict[str, Call]] = {
    "subscribe topics": lambda consumer, value: consumer.subscribe(value),
    "subscribe pattern": lambda consumer, value: consumer.subscribe(pattern=value),
    "subscribe listener": lambda consumer, value: consumer.subscribe(["t"], listener=value),
    "assign": lambda consumer, value: consumer.assign(value),
    "getone": lambda consumer, value: consumer.getone(value),
    "getmany": lambda consumer, value: consumer.getmany(value),
    "getmany timeout_ms": lambda consumer, value: consumer.getmany(
        timeout_ms=0 if is_long(value) else value
    ),
    "getmany max_records": lambda consumer, value: consumer.getmany(max_records=value),
    "getbatches": lambda consumer, value: consumer.getbatches(value),
    "getbatches timeout_ms": lambda consumer, value: consumer.getbatches(
        timeout_ms=0 if is_long(value) else value
    ),
    "getbatches max_records": lambda consumer, value: consumer.getbatches(max_records=value),
    "seek": lambda consumer, value: consumer.seek(value, 0),
    "seek offset": lambda consumer, value: consumer.seek(TP, value),
    "seek_to_beginning": lambda consumer, value: consumer.seek_to_beginning(value),
    "seek_to_end": lambda consumer, value: consumer.seek_to_end(value),
    "seek_to_committed": lambda consumer, value: consumer.seek_to_committed(value),
    "position": lambda consumer, value: consumer.position(value),
    "pause": lambda consumer, value: consumer.pause(value),
    "resume": lambda consumer, value: consumer.resume(value),
    "commit": lambda consumer, value: consumer.commit(value),
    "offsets_for_transaction": lambda consumer, value: consumer.offsets_for_transaction(value),
    "committed": lambda consumer, value: consumer.committed(value),
    "beginning_offsets": lambda consumer, value: consumer.beginning_offsets(value),
    "end_offsets": lambda consumer, value: consumer.end_offsets(value),
    "offsets_for_times": lambda consumer, value: consumer.offsets_for_times(value),
    "highwater": lambda consumer, value: consumer.highwater(value),
    "last_stable_offset": lambda consumer, value: consumer.last_stable_offset(value),
    "last_poll_timestamp": lambda consumer, value: consumer.last_poll_timestamp(value),
    "partitions_for_topic": lambda consumer, value: consumer.partitions_for_topic(value),
    "wait_assigned": lambda consumer, value: consumer.wait_assigned(value),
    "wait_stable": lambda consumer, value: consumer.wait_stable(value),
    "events": lambda consumer, value: consumer.events(size=value),
    "enforce_rebalance": lambda consumer, value: consumer.enforce_rebalance(value),
    "client_instance_id": lambda consumer, value: consumer.client_instance_id(value),
}


async def test_no_method_is_left_out() -> None:
    takes_arguments = {
        name
        for name, method in inspect.getmembers(Consumer, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
    }
    assert takes_arguments == {name.split()[0] for name in CALLS} | {"stop"}


async def attempt(call: Call, consumer: Consumer[Any, Any], value: Any) -> None:
    """Nothing but a result or an error of ours, and that soon."""
    shown = f"{type(value).__name__} {value!r:.60}" if not isinstance(value, NoRepr) else "NoRepr"
    mine = asyncio.timeout(PATIENCE_S)
    try:
        async with mine:
            result = call(consumer, value)
            if inspect.isawaitable(result):
                await result
    except Kip848Error as err:
        if "bug of its own" in str(err):
            raise AssertionError(f"it killed the consumer: {shown}") from err
    except TimeoutError:
        assert not mine.expired(), f"hangs: {shown}"  # else it is wait_assigned's own
    except Exception as err:
        raise AssertionError(f"raw {type(err).__name__}: {err}: {shown}") from err


@asynccontextmanager
async def consumer_of(phase: str) -> AsyncGenerator[tuple[MockBroker, Consumer[Any, Any]]]:
    async with MockBroker({"t": 1}, check_ownership=False) as broker:
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id=None if phase == "alone" else "g",
            auto_offset_reset="earliest",
            default_api_timeout_ms=50,
        )
        if phase == "alone":
            consumer.assign([TP])
        else:
            consumer.subscribe(["t"])
        if phase != "before start":
            await consumer.start()
            await consumer.wait_assigned(10_000)
        if phase == "after stop":
            await consumer.stop()
        try:
            yield broker, consumer
        finally:
            await consumer.stop(timeout_ms=1_000)


async def commit_at_last(consumer: Consumer[Any, Any]) -> None:
    """Calls have little time in here, and a busy machine may need more."""
    while True:
        try:
            await consumer.commit()
        except CommitFailed as err:
            if not isinstance(err.cause, RequestTimedOut):
                raise
        else:
            return


@pytest.mark.parametrize("phase", ["before start", "in a group", "alone", "after stop"])
@pytest.mark.parametrize("name", CALLS)
async def test_odd_arguments_are_refused_and_harm_nothing(
    name: str, phase: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with consumer_of(phase) as (broker, consumer):
        for value in odd_values():
            await attempt(CALLS[name], consumer, value)
        if phase == "after stop":
            return
        if phase == "before start":
            await consumer.start()
        if phase == "alone":
            consumer.assign([TP])
        else:
            consumer.subscribe(["t"])  # some of the values were patterns
        broker.produce("t", b"still alive")
        async with asyncio.timeout(PATIENCE_S):
            assert (await consumer.getone()).value == b"still alive"
            if phase != "alone":
                await commit_at_last(consumer)


@pytest.mark.parametrize("phase", ["before start", "in a group", "after stop"])
async def test_odd_ways_to_stop_stop_nothing(phase: str) -> None:
    async with consumer_of(phase) as (broker, consumer):
        for value in odd_values():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and value == value:  # noqa: PLR0124 - a nan is not equal to itself
                continue  # a time
            await attempt(lambda one, odd: one.stop(leave=odd), consumer, value)
            if value is not None:
                await attempt(lambda one, odd: one.stop(timeout_ms=odd), consumer, value)
        if phase == "in a group":
            broker.produce("t", b"still alive")
            async with asyncio.timeout(PATIENCE_S):
                assert (await consumer.getone()).value == b"still alive"


@pytest.mark.parametrize("setting", [*ConsumerConfig.model_fields, "strict"])
async def test_odd_settings_are_refused_or_fit(setting: str) -> None:
    """What is accepted must work: the consumer is made, and stopped without having been started."""
    for value in odd_values():
        try:
            consumer: Consumer[Any, Any] = Consumer(**{setting: value})
        except ConfigError:
            continue
        await consumer.stop()


async def test_odd_topics_and_deserializers_are_refused() -> None:
    for value in odd_values():
        for topic, settings in (
            (value, {}),
            ("t", {"key_deserializer": value}),
            ("t", {"value_deserializer": value}),
        ):
            with contextlib.suppress(ConfigError):
                Consumer(topic, group_id="g", **settings)
