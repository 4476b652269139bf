"""How many tasks read a batch where nobody says so."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.spark._cores import cores
from kip848_client.spark.source.core._options import SourceOptions, source_options
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import divided, tasks_of

_KAFKA = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"}


def _options(**said: str) -> SourceOptions:
    return source_options(_KAFKA | said, is_stream=True)


def _ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("a", n), 7, 7 + size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [
        ((100_000,) * 8, 4),  # the cores
        ((100_000,) * 3, 3),  # the partitions
        ((20, 0, 0, 0), 1),  # a second task would cost more than it saves
        ((1_000, 0, 0, 0), 1),
        ((1_001, 0, 0, 0), 2),
        ((600,) * 5, 3),
        ((0, 0), 1),
        ((), 1),
    ],
)
def test_as_many_as_there_are_cores_partitions_and_records_for(
    sizes: tuple[int, ...], tasks: int
) -> None:
    assert tasks_of(_options(), _ranges(*sizes), 4) == tasks


@pytest.mark.parametrize("option", ["tasks", "minPartitions"])
def test_an_option_sets_the_number_of_tasks(option: str) -> None:
    assert tasks_of(_options(**{option: "7"}), _ranges(3, 3), 4) == 7


def test_min_partitions_is_a_minimum() -> None:
    """As in Spark: at least one task per partition with records."""
    said = _options(minPartitions="2")
    assert tasks_of(said, _ranges(400, 400, 400), 4) == 3
    assert len(divided(_ranges(400, 400, 400, 0), said, 4)) == 3
    assert tasks_of(said, _ranges(400), 4) == 2


def test_the_cores_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {2, 3, 5}, raising=False)
    assert cores() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    assert cores() == 8
