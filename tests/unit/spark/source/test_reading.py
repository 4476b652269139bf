"""What an executor does for a task, beside what the runners' tests show of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.spark.source import _batch, _reading
from kip848_client.spark.source._reading import read_ranges
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._planning import DataLost
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import TaskRanges, divided
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import options_of


@pytest.fixture
def options(mock_broker: BrokerThread) -> Iterator[SourceOptions]:
    """As an executor has them, whose consumer lives until the test is over."""
    found = options_of(mock_broker.bootstrap, kafka_fetch_max_wait_ms="10000")
    yield found
    _reading._loop().call(_reading._discard(found), 10_000)


def _read(options: SourceOptions, start: int, end: int) -> list[int]:
    ranges = (OffsetRange(TopicPartition("a", 0), start, end),)
    batches = read_ranges(TaskRanges(ranges, options))
    return [offset for each in batches for offset in each["offset"].to_pylist()]


@pytest.mark.mock_broker(topics={"a": 1})
def test_a_task_asks_from_its_begin_wherever_the_one_before_has_ended(
    mock_broker: BrokerThread, options: SourceOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch from the end would be answered when there is more, or when its time is over."""
    asked: list[int] = []
    came = threading.Event()
    """What comes next was asked for beyond the end of a task, and got."""
    fetch = KafkaTransport.fetch

    async def noted(self: KafkaTransport, node: int, request: Any, **rest: Any) -> Any:
        offsets = [each.fetch_offset for topic in request.topics for each in topic.partitions]
        asked.extend(offsets)
        answer = await fetch(self, node, request, **rest)
        if 1 in offsets:
            came.set()
        return answer

    monkeypatch.setattr(KafkaTransport, "fetch", noted)
    mock_broker.produce("a", b"x", partition=0)
    assert _read(options, 0, 1) == [0]
    mock_broker.produce("a", b"x", partition=0)
    assert came.wait(10)
    asked.clear()
    assert _read(options, 1, 2) == [1]
    assert asked[0] == 1


def _plan(options: SourceOptions) -> list[TaskRanges]:
    """The one task of a batch query over all records of topic ``a``."""
    ranges, ids = asyncio.run(_batch._ranges(options))
    return divided(ranges, options, 1, ids)


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.mock_broker(topics={"a": 1})
def test_a_topic_that_was_created_again_is_read_by_the_process_that_read_the_old_one(
    mock_broker: BrokerThread, options: SourceOptions, fails: str
) -> None:
    options = replace(options, fails_on_data_loss=fails == "true")
    for count in (3, 2, 5):
        for number in range(count):
            mock_broker.produce("a", b"%d of %d" % (number, count), partition=0)
        (task,) = _plan(options)
        values = [value for each in read_ranges(task) for value in each["value"].to_pylist()]
        assert values == [b"%d of %d" % (number, count) for number in range(count)]
        mock_broker.delete_topic("a")
        mock_broker.create_topic("a")


@pytest.mark.mock_broker(topics={"a": 1})
def test_a_topic_that_is_created_again_after_it_was_planned_is_not_read_as_the_old_one(
    mock_broker: BrokerThread, options: SourceOptions
) -> None:
    mock_broker.produce("a", b"old", partition=0)
    (task,) = _plan(options)
    mock_broker.delete_topic("a")
    mock_broker.create_topic("a")
    mock_broker.produce("a", b"new", partition=0)
    with pytest.raises(DataLost, match="topic a was deleted and created again while it was read"):
        list(read_ranges(task))
    going_on = replace(options, fails_on_data_loss=False)
    assert list(read_ranges(replace(task, options=going_on))) == []
