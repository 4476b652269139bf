"""Writers that are called as Spark calls them, without Spark, on the bundled broker."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, ConfigError, Kip848Error, RecordTooLarge
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.sink import _write_task
from kip848_client.spark.sink._writers import BatchWriter, StreamWriter, Written
from mock_coordinator import Fault, Match
from mock_coordinator.core.faults import Refuse
from mock_coordinator.threaded import BrokerThread

pytestmark = pytest.mark.mock_broker(topics={"a": 3})

_SCHEMA = StructType().add("value", BinaryType())
Options = dict[str, str]


@pytest.fixture
def said(mock_broker: BrokerThread) -> Iterator[Options]:
    """Options for topic ``a``. What an executor would keep is closed at the end."""
    yield {
        "kafka.bootstrap.servers": mock_broker.bootstrap,
        "kafka.linger.ms": "0",
        "kafka.max.block.ms": "5000",
        "topic": "a",
    }
    kept = [*_write_task._kept.values()]
    _write_task._kept.clear()
    for each in kept:
        _write_task.writing_loop().call(each.stop(), 10_000)


def _batch(*values: bytes, **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary()), **columns})


def _values(broker: BrokerThread) -> list[bytes]:
    return sorted(each.value or b"" for p in range(3) for each in broker.records("a", p))


def _shipped(writer: Any) -> Any:
    """What an executor gets."""
    return pickle.loads(pickle.dumps(writer))


def test_a_batch_and_a_stream_write_all_rows(mock_broker: BrokerThread, said: Options) -> None:
    source = Kip848DataSource(said)
    batch = _shipped(source.writer(_SCHEMA, overwrite=False))
    assert isinstance(batch, BatchWriter)
    found = batch.write(iter([_batch(b"1", b"2"), _batch(b"3")]))
    assert pickle.loads(pickle.dumps(found)) == Written(3)
    batch.commit([found])
    stream = _shipped(source.streamWriter(_SCHEMA, overwrite=False))
    assert isinstance(stream, StreamWriter)
    columns = {"partition": pa.array([2], pa.int32())}
    stream.commit([stream.write(iter([_batch(b"4", **columns)])), stream.write(iter([]))], 0)
    assert _values(mock_broker) == [b"1", b"2", b"3", b"4"]
    assert b"4" in [each.value for each in mock_broker.records("a", 2)]
    assert len(_write_task._kept) == 1  # one producer served all tasks


@pytest.mark.parametrize(
    ("row", "options", "error"),
    [
        (_batch(b"x" * 5_000), {"kafka.max.request.size": "2000"}, RecordTooLarge),
        (_batch(b"x", partition=pa.array([7], pa.int32())), {}, ConfigError),
        (_batch(b"x"), {"topic": "not allowed!"}, ConfigError),
    ],
)
def test_a_row_that_cannot_be_written_fails_its_task_and_the_next_task_gets_a_new_producer(
    mock_broker: BrokerThread,
    said: Options,
    row: pa.RecordBatch,
    options: Options,
    error: type[Exception],
) -> None:
    writer = Kip848DataSource(said | options).streamWriter(_SCHEMA, overwrite=False)
    with pytest.raises(error):
        writer.write(iter([row]))
    writer.abort([None], 0)
    assert not _write_task._kept
    good = Kip848DataSource(said).streamWriter(_SCHEMA, overwrite=False)
    good.write(iter([_batch(b"good")]))
    assert _values(mock_broker) == [b"good"]


def test_a_row_that_a_broker_refuses_fails_its_task(
    mock_broker: BrokerThread, said: Options
) -> None:
    mock_broker.inject(Fault(Refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED), Match(api="Produce")))
    writer = Kip848DataSource(said).streamWriter(_SCHEMA, overwrite=False)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        writer.write(iter([_batch(b"1"), _batch(b"2")]))


def test_a_topic_is_not_overwritten(said: Options) -> None:
    with pytest.raises(ConfigError, match=r"mode\('append'\)"):
        Kip848DataSource(said).writer(_SCHEMA, overwrite=True)


def test_an_error_of_what_gives_the_rows_is_raised_as_it_is(said: Options) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield _batch(b"1")
        raise ZeroDivisionError

    writer = Kip848DataSource(said).writer(_SCHEMA, overwrite=False)
    write: Callable[..., Any] = writer.write
    with pytest.raises(ZeroDivisionError):
        write(rows())


def test_brokers_that_cannot_be_reached_are_named(said: Options) -> None:
    nowhere = said | {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "2000"}
    writer = Kip848DataSource(nowhere).writer(_SCHEMA, overwrite=False)
    with pytest.raises(Kip848Error, match=r"127\.0\.0\.1"):
        writer.write(iter([_batch(b"1")]))
