"""The examples of Spark, as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mock_coordinator import MockBroker
from mock_coordinator.threaded import BrokerThread
from tests.pages._snippets import PAGES, name_of, snippets
from tests.spark.streams import committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "spark"

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def _has_committed_twice(broker: MockBroker) -> bool:
    """Where it begins, and its first batch."""
    return len(broker.requests("OffsetCommit")) > 1


def test_the_notebook_runs_cell_by_cell(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    cells = re.split(r"^# %%.*$", (FOLDER / "notebook.py").read_text(), flags=re.MULTILINE)
    assert len(cells) > 8
    names: dict[str, Any] = {}
    try:
        for cell in cells:
            source = cell.replace("timeout_s=5", "timeout_s=0.1")
            if "running.stop()" in source:
                names["broker"].wait_for(_has_committed_twice, timeout_s=120)
            exec(source, names)  # it is what it tests
    finally:
        for query in spark.streams.active:
            query.stop()
    shown = capsys.readouterr().out
    assert "300 rows written" in shown
    assert '"customer": "c0"' in shown
    assert re.search(r"\|\s+c6\|", shown), shown


@pytest.mark.mock_broker(topics={"orders": 3})
def test_the_program_for_spark_submit(
    spark: SparkSession, mock_broker: BrokerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [page] = [each for each in PAGES if name_of(each) == "spark-clusters"]
    [program] = snippets(page)
    for number in range(9):
        mock_broker.produce("orders", b"%d" % number, partition=number % 3)
    settings = tmp_path / "pipeline.toml"
    settings.write_text(
        f"""
        [source]
        bootstrap_servers = "{mock_broker.bootstrap}"
        topics = ["orders"]
        group = "g"
        [sink]
        path = "{tmp_path}/out"
        [run]
        checkpoint = "{tmp_path}/checkpoint"
        trigger = "available-now"
        """
    )
    monkeypatch.setattr(sys, "argv", ["run_pipeline.py", str(settings)])
    exec(program, {})  # it is what it tests
    assert spark.read.parquet(f"{tmp_path}/out").count() == 9
    assert committed(mock_broker, "g") == 9


@pytest.mark.mock_broker(topics={"orders": 3})
def test_the_declarative_pipeline_runs(mock_broker: BrokerThread, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, but there is no java")
    pytest.importorskip("grpc", reason="needs pyspark[pipelines]")
    import pyspark

    project = tmp_path / "project"
    shutil.copytree(FOLDER / "declarative", project)
    spec = project / "spark-pipeline.yml"
    text = spec.read_text()
    [command] = re.findall(r"^#\s+(spark-pipelines run .*)$", text, re.MULTILINE)
    replaced = {"localhost:9092": mock_broker.bootstrap, "/tmp/orders-pipeline": f"{tmp_path}/data"}
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text)
    for number in range(30):
        order = {"id": number, "customer": f"c{number % 3}", "amount": 0.5}
        mock_broker.produce("orders", json.dumps(order).encode(), partition=number % 3)
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [
            f"{home}/bin/{command.split()[0]}",
            *command.split()[1:],
            "--conf",
            "spark.ui.enabled=false",
        ],
        cwd=project,
        env=os.environ
        | {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Run is COMPLETED" in done.stderr + done.stdout
    assert committed(mock_broker, "reports") == 30
