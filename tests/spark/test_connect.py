"""Spark Connect: a server of Spark's own, and a client that is another process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mock_coordinator.threaded import BrokerThread
from tests.spark.streams import committed
from tests.support.spark_cluster import ConnectServer
from tests.unit.spark.sink._committed import committed_values

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.mock_broker(topics={"a": 3, "b": 1}),
    pytest.mark.timeout(300),
]


def test_what_works_on_connect(mock_broker: BrokerThread, tmp_path: Path) -> None:
    """Where the server's machine has the package: all but pipelines, and these say so."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, but there is no java")
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    for number in range(90):
        mock_broker.produce("a", b"%d" % number, partition=number % 3)
    with ConnectServer(tmp_path / "server") as server:
        ran = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "tests.spark.on_connect"),
                *(server.url, mock_broker.bootstrap, str(tmp_path)),
            ],
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["batch"] == 90
    assert said["stream"] == [90, [60, 30]]
    assert committed(mock_broker, "g") == 90
    assert said["write"] is None
    assert len(committed_values(mock_broker.bootstrap, "b", 1)) == 50
    assert said["control"] == [3, False]
    assert committed(mock_broker, "c") == 90
    assert said["pipeline"].startswith("ConfigError: a pipeline cannot use Spark Connect")
    assert "did you mean subscribe" in said["wrong"]
