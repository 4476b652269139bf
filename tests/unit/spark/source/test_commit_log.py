"""Which batches Spark has committed, from the files of its checkpoint."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kip848_client.errors import ConfigError
from kip848_client.spark.source._commit_log import CommitLog
from kip848_client.spark.source.core._manifest import Manifest
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, committed, produce

_OTHER_SOURCE = '{"b":{"0":7}}'


def _write(folder: Path, number: int, manifest: Manifest, *, is_committed: bool = True) -> None:
    """A batch as Spark writes it."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
    text = json.dumps(manifest.to_json())
    lines = ["v1", '{"batchWatermarkMs":0}', _OTHER_SOURCE, text]
    (folder / "offsets" / str(number)).write_text("\n".join(lines))
    if is_committed:
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_it_has_the_last_batch_that_is_committed_once(tmp_path: Path) -> None:
    log = CommitLog(f"file://{tmp_path}")
    assert log.news("t") is None
    first, second = Manifest(1, token="t"), Manifest(2, token="t")
    _write(tmp_path, 0, first)
    _write(tmp_path, 1, second, is_committed=False)
    assert log.news("t") == first
    assert log.news("t") is None
    assert CommitLog(str(tmp_path)).news("another") is None
    _write(tmp_path, 1, second)
    assert log.news("t") == second


@pytest.mark.parametrize("path", ["hdfs://host/data", "s3a://bucket/x", "relative/path", ""])
def test_a_path_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="is not an absolute path of this machine"):
        CommitLog(path)


@pytest.mark.mock_broker(topics={"a": 3})
@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
@pytest.mark.parametrize("is_stopped", [True, False])
def test_the_group_hears_of_a_batch_without_another_trigger(
    mock_broker: BrokerThread, begin: Begin, tmp_path: Path, ownership: str, is_stopped: bool
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership, checkpoint=str(tmp_path))
    assert query.plan()
    assert query.planned is not None
    _write(tmp_path, 0, query.planned, is_committed=False)
    query.read()
    assert sum(committed(mock_broker).values()) == 0
    _write(tmp_path, 0, query.log[-1])
    if is_stopped:
        query.runner.close()
    deadline = time.monotonic() + 20
    while committed(mock_broker) != {0: 3, 1: 3, 2: 3}:
        assert time.monotonic() < deadline


@pytest.mark.mock_broker(topics={"a": 3})
def test_a_file_that_cannot_be_understood_does_not_keep_the_query_in_its_group(
    mock_broker: BrokerThread, begin: Begin, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared", checkpoint=str(tmp_path))
    assert query.plan()
    assert query.planned is not None
    _write(tmp_path, 0, query.planned)
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"@kip848": {"version": 99}}')
    query.runner.close()
    assert "the checkpoint cannot be read" in caplog.text
    group = mock_broker.snapshot("g")
    assert group is not None
    assert not group.members
