"""A disk is full: no file of Spark's process may grow beyond some size, which is what a full disk
looks like to it. What is told, what is committed, and that a restart goes on."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kip848_client.records._arrow import pyarrow
from mock_coordinator.threaded import BrokerThread
from tests.spark.streams import committed
from tests.unit.spark.sink._committed import committed_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"a": 2, "b": 2}),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Limit = Callable[[int], None]


@pytest.fixture
def limit(spark: SparkSession) -> Iterator[Limit]:
    """No file of Spark's grows beyond so many bytes, until the test is over."""
    jvm: Any = spark.sparkContext._jvm
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)

    def set_to(size: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[1]))

    yield set_to
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def _produce(broker: BrokerThread, count: int) -> None:
    chance = random.Random(0)
    for number in range(count):
        broker.produce("a", chance.randbytes(2_000), partition=number % 2)


def _settings(broker: BrokerThread, folder: Path, sink: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": {"bootstrap_servers": broker.bootstrap, "topics": ["a"], "group": "g"},
        "sink": sink,
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "0 seconds"},
    }


def test_what_a_full_disk_has_no_room_for_is_not_committed(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path, limit: Limit
) -> None:
    from kip848_client.spark import Pipeline
    from kip848_client.spark.pipeline import PipelineFailed

    output = tmp_path / "out"
    # a compression has a library of its own to unpack
    sink = {"path": str(output), "options": {"compression": "uncompressed"}}
    settings = _settings(mock_broker, tmp_path, sink)
    _produce(mock_broker, 200)
    limit(100_000)
    running = Pipeline(settings, spark=spark).start()
    with pytest.raises(PipelineFailed, match="a disk is full: free space for the output"):
        running.wait(120)
    assert committed(mock_broker, "g") == 0
    assert not [each.name for each in output.iterdir() if each.name.startswith("batch_id")]
    assert not [*(output / "_staging").iterdir()]
    limit(10_000_000)
    calm = settings | {"run": settings["run"] | {"trigger": "available-now"}}
    assert Pipeline(calm, spark=spark).start().wait(120)
    pyarrow()
    import pyarrow.dataset as ds

    rows = ds.dataset(str(output)).to_table(["partition", "offset"]).to_pylist()
    assert len(rows) == len({(each["partition"], each["offset"]) for each in rows}) == 200
    assert committed(mock_broker, "g") == 200


def test_a_topic_gets_nothing_where_the_checkpoint_has_no_room(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path, limit: Limit
) -> None:
    from kip848_client.spark import Pipeline
    from kip848_client.spark.pipeline import PipelineFailed

    once = {"kafka.transactional.id": "t"}
    sink = {"format": "kip848", "topic": "b", "options": once}
    settings = _settings(mock_broker, tmp_path, sink)
    running = Pipeline(settings, spark=spark).start()
    mock_broker.wait_for(lambda broker: len(broker.requests("OffsetCommit")) > 0, timeout_s=120)
    limit(30)
    _produce(mock_broker, 20)
    with pytest.raises(PipelineFailed, match="a disk is full: free space for the output, the ch"):
        running.wait(120)
    assert committed_values(mock_broker.bootstrap, "b", 2) == []
    assert committed(mock_broker, "g") == 0
    limit(10_000_000)
    calm = settings | {"run": settings["run"] | {"trigger": "available-now"}}
    assert Pipeline(calm, spark=spark).start().wait(120)
    assert len(committed_values(mock_broker.bootstrap, "b", 2)) == 20
    assert committed(mock_broker, "g") == 20
