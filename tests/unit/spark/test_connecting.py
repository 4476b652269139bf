"""A query whose brokers cannot be reached for a moment, wherever it opens a connection."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from kip848_client.core.types import TopicPartition
from kip848_client.errors import BootstrapFailed, ConfigError
from kip848_client.spark._connecting import connected
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.sink import _writers
from kip848_client.spark.sink._options import sink_options
from kip848_client.spark.sink._running_task import RunningTask
from kip848_client.spark.sink._write_task import Prepared, write_at_least_once
from kip848_client.spark.sink.core._decisions import Participant
from kip848_client.spark.source._batch import BatchReader
from kip848_client.spark.source._reading import read_ranges
from kip848_client.spark.source.core._options import source_options
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import TaskRanges
from mock_coordinator.threaded import BrokerThread

_AWAY_S = 2.0
_SCHEMA = StructType().add("value", BinaryType())
_VALUES = pa.RecordBatch.from_pydict({"value": pa.array([b"x"], pa.binary())})


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """A broker with one record in topic ``a`` that is away for a moment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ExitStack() as stack:

        def begin() -> None:
            time.sleep(_AWAY_S)
            broker = stack.enter_context(BrokerThread(topics={"a": 1}, port=port))
            broker.produce("a", b"x", partition=0)

        beginning = threading.Thread(target=begin)
        beginning.start()
        yield f"127.0.0.1:{port}"
        beginning.join()


def _plan(bootstrap: str) -> None:
    said = {"kafka.bootstrap.servers": bootstrap, "subscribe": "a"}
    BatchReader(source_options(said, is_stream=False)).partitions()


def _read(bootstrap: str) -> None:
    said = {"kafka.bootstrap.servers": bootstrap, "subscribe": "a", "failOnDataLoss": "false"}
    ranges = (OffsetRange(TopicPartition("a", 0), 0, 1),)
    list(read_ranges(TaskRanges(ranges, source_options(said, is_stream=False))))


def _write(bootstrap: str) -> None:
    options = sink_options({"kafka.bootstrap.servers": bootstrap, "topic": "a"})
    assert write_at_least_once(options, iter([_VALUES])) == 1


def _once(bootstrap: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "topic": "a", "kafka.transactional.id": "t"}


def _write_once(bootstrap: str) -> None:
    writer = Kip848DataSource(_once(bootstrap)).writer(_SCHEMA, overwrite=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_writers, "running_task", lambda _: RunningTask("query", "0" * 12, 0, 0))
        found: Any = writer.write(iter([_VALUES]))
    assert found.prepared.participant.rows == 1


def _abort(bootstrap: str) -> None:
    task = RunningTask("query", "0" * 12, 0, 0)
    prepared = Prepared(Participant(f"t-{task.run}-0-0", 1, 0, True, 1), ("a",))
    writer = Kip848DataSource(_once(bootstrap)).writer(_SCHEMA, overwrite=False)
    writer.abort([_writers.Written(1, task, prepared)])


@pytest.mark.parametrize("work", [_plan, _read, _write, _write_once, _abort])
def test_a_moment_without_a_broker_is_waited_for(
    work: Callable[[str], None], bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kip848_client.spark")
    work(bootstrap)
    waits = [each for each in caplog.messages if each.startswith("no broker answers")]
    assert len(waits) == 1
    assert bootstrap in waits[0]  # the reason


class _Client:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def start(self) -> None:
        raise self._error


@pytest.mark.asyncio
async def test_the_wait_ends_with_the_last_reason() -> None:
    made: list[_Client] = []

    def make() -> _Client:
        made.append(_Client(BootstrapFailed(f"attempt {len(made)}")))
        return made[-1]

    with pytest.raises(BootstrapFailed, match=r"attempt [1-9]"):
        await connected(make, "max.block.ms", 500)
    assert len(made) >= 2


@pytest.mark.asyncio
async def test_an_error_that_is_not_the_networks_is_raised_at_once() -> None:
    made: list[_Client] = []

    def make() -> _Client:
        made.append(_Client(ConfigError("wrong")))
        return made[-1]

    with pytest.raises(ConfigError, match="wrong"):
        await connected(make, "max.block.ms", 60_000)
    assert len(made) == 1
