"""What becomes of records: each future is told once, by row of its batch."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import pytest

from kip848_client import BrokerError, DeliveryTimedOut, LocalProtocolError, TopicPartition
from kip848_client.core.produce import BatchDone, BatchFailed, BatchSplit, Place
from kip848_client.error_codes import ErrorCode
from kip848_client.producer._deliveries import Deliveries, OnItsWay, Receipts, RecordMetadata

pytestmark = pytest.mark.asyncio

TP = TopicPartition("t", 3)
Futures = list[asyncio.Future[RecordMetadata]]


def with_batch(records: int = 3, number: int = 1, *, is_silent: bool = True) -> Deliveries:
    """So many records of the times 100, 101, ... are on their way."""
    deliveries = Deliveries(is_silent=is_silent, receipts=Receipts())
    add(deliveries, number, records)
    return deliveries


def add(deliveries: Deliveries, number: int, records: int) -> Futures:
    batch = deliveries.batches[number] = OnItsWay(TP)
    loop = asyncio.get_running_loop()
    futures = [loop.create_future() for _ in range(records)]
    batch.futures = [*futures]
    batch.times = [100 + row for row in range(records)]
    return futures


def futures_of(deliveries: Deliveries, number: int = 1) -> Futures:
    return [each for each in deliveries.batches[number].futures if each is not None]


def error(text: str = "no") -> DeliveryTimedOut:
    return DeliveryTimedOut(text, maybe_written=False)


def failed(
    number: int, why: DeliveryTimedOut, culprits: Mapping[int, BrokerError] | None = None
) -> BatchFailed:
    return BatchFailed(number, why, culprits or {})


async def test_each_record_has_its_offset_and_its_own_time() -> None:
    deliveries = with_batch()
    futures = futures_of(deliveries)
    deliveries.done(BatchDone(1, Place(10, -1, 4)))
    assert [each.result() for each in futures] == [
        ("t", 3, TP, 10, 100, 0, 4),
        ("t", 3, TP, 11, 101, 0, 4),
        ("t", 3, TP, 12, 102, 0, 4),
    ]
    assert type(futures[0].result()) is RecordMetadata
    assert not deliveries.batches


async def test_receipts_of_another_make() -> None:
    receipts = Receipts(
        receipt=lambda row: row[2:4],
        partition=lambda tp: f"{tp.topic}/{tp.partition}",
        error=lambda err: ValueError(str(err)),
    )
    deliveries = Deliveries(is_silent=True, receipts=receipts)
    kept, refused, left = (add(deliveries, number, 2) for number in (1, 2, 3))
    deliveries.done(BatchDone(1, Place(10, -1)))
    told: list[object] = [each.result() for each in kept]
    assert told == [("t/3", 10), ("t/3", 11)]
    culprit = BrokerError(ErrorCode.INVALID_RECORD, "INVALID_RECORD", "no key")
    deliveries.failed(failed(2, error("with it"), {1: culprit}))
    assert [repr(each.exception()) for each in refused] == [
        "ValueError('with it')",
        repr(ValueError(str(culprit))),
    ]
    deliveries.end(error("over"))
    assert [repr(each.exception()) for each in left] == ["ValueError('over')"] * 2


async def test_what_nobody_waits_for_counts_all_the_same() -> None:
    deliveries = with_batch()
    batch = deliveries.batches[1]
    futures = [*futures_of(deliveries)]
    batch.futures[1] = None
    deliveries.split(BatchSplit(1, ((2, 2), (3, 1))))
    deliveries.done(BatchDone(3, Place(22, -1)))
    deliveries.done(BatchDone(2, Place(20, -1)))
    assert [each.result().offset for each in (futures[0], futures[2])] == [20, 22]
    assert not futures[1].done()
    deliveries = with_batch(1)
    deliveries.batches[1].futures[0] = None
    deliveries.failed(failed(1, error()))
    assert not deliveries.batches


async def test_where_the_broker_gives_the_time_it_counts_for_all() -> None:
    deliveries = with_batch(2)
    futures = futures_of(deliveries)
    deliveries.done(BatchDone(1, Place(10, 777)))
    assert [(each.result().timestamp, each.result().timestamp_type) for each in futures] == [
        (777, 1),
        (777, 1),
    ]


async def test_an_offset_that_nobody_told_is_not_counted_from() -> None:
    deliveries = with_batch(2)
    futures = futures_of(deliveries)
    deliveries.done(BatchDone(1, Place(-1, -1)))
    assert [each.result().offset for each in futures] == [-1, -1]


async def test_a_future_that_was_cancelled_takes_no_other_ones_place() -> None:
    deliveries = with_batch()
    futures = futures_of(deliveries)
    futures[1].cancel()
    deliveries.done(BatchDone(1, Place(10, -1)))
    assert (futures[0].result().offset, futures[2].result().offset) == (10, 12)
    deliveries = with_batch()
    futures = futures_of(deliveries)
    futures[1].cancel()
    deliveries.failed(failed(1, error()))
    assert futures[1].cancelled()
    assert isinstance(futures[2].exception(), DeliveryTimedOut)


async def test_the_record_that_is_to_blame_hears_of_itself() -> None:
    deliveries = with_batch()
    futures = futures_of(deliveries)
    blame = BrokerError(ErrorCode.INVALID_RECORD, "INVALID_RECORD", "no key")
    went_down = error()
    deliveries.failed(failed(1, went_down, {1: blame}))
    assert [each.exception() for each in futures] == [went_down, blame, went_down]


async def test_the_records_of_a_batch_that_is_split_go_with_its_parts() -> None:
    deliveries = with_batch(5)
    futures = futures_of(deliveries)
    deliveries.split(BatchSplit(1, ((2, 3), (3, 2))))
    deliveries.split(BatchSplit(3, ((4, 1), (5, 1))))
    deliveries.failed(failed(2, error()))
    deliveries.done(BatchDone(5, Place(21, -1)))
    deliveries.done(BatchDone(4, Place(20, -1)))
    assert all(isinstance(each.exception(), DeliveryTimedOut) for each in futures[:3])
    told = [each.result() for each in futures[3:]]
    assert [(each.offset, each.timestamp) for each in told] == [(20, 103), (21, 104)]
    assert not deliveries.batches


async def test_at_the_end_everybody_is_told_and_what_comes_later_changes_nothing() -> None:
    deliveries = with_batch(2)
    batches = deliveries.batches
    futures = [*futures_of(deliveries), *add(deliveries, 2, 1)]
    closed = LocalProtocolError("closed")
    deliveries.end(closed)
    assert [each.exception() for each in futures] == [closed] * 3
    deliveries.done(BatchDone(1, Place(10, -1)))
    deliveries.failed(failed(2, error()))
    deliveries.split(BatchSplit(1, ((2, 1), (3, 1))))
    assert not deliveries.batches
    assert batches is deliveries.batches, "who appends holds on to it"


@pytest.mark.parametrize("is_silent", [True, False])
async def test_failures_that_no_task_awaits_are_one_line_by_partition(
    caplog: pytest.LogCaptureFixture, *, is_silent: bool
) -> None:
    """In a transaction the commit tells. asyncio would log a traceback for each record."""
    said: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    deliveries = with_batch(2, is_silent=is_silent)
    add(deliveries, 2, 1)
    deliveries.failed(failed(1, error("too late")))
    deliveries.failed(failed(2, error("too late as well")))
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert not said
    lines = [(each.levelname, each.getMessage(), vars(each)["topic"]) for each in caplog.records]
    text = "3 records of t-3 failed, and no task awaits what send() returned: DeliveryTimedOut: "
    assert lines == ([] if is_silent else [("ERROR", text + "too late", "t")])


async def test_failures_that_a_task_awaits_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    deliveries = with_batch(1, is_silent=False)
    (future,) = futures_of(deliveries)
    waiting = asyncio.gather(future)
    deliveries.failed(failed(1, error("too late")))
    with pytest.raises(DeliveryTimedOut, match="too late"):
        await waiting
    assert not caplog.records


async def test_what_is_under_way_at_the_end_is_logged_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The event loop may not have another turn."""
    deliveries = with_batch(2, is_silent=False)
    (first, _) = futures_of(deliveries)
    deliveries.end(LocalProtocolError("the producer is closed"))
    (line,) = caplog.records
    assert line.getMessage() == (
        "2 records of t-3 failed, and no task awaits what send() returned: LocalProtocolError: "
        "the producer is closed"
    )
    with pytest.raises(LocalProtocolError):
        await first
