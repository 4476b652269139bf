"""``kip848 pipeline`` without Spark: what it shows, and how it counts."""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kip848_client.cli import main
from kip848_client.cli.pipeline import configure
from kip848_client.cli.pipeline._accounting import Accounting
from kip848_client.cli.pipeline._display import Display, line_of
from kip848_client.cli.pipeline._run import _metrics, metrics_text
from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline import PipelineStatus
from kip848_client.spark.pipeline.config import load_config
from tests.support.terminal import Terminal


def _status(**said: Any) -> PipelineStatus:
    known: dict[str, Any] = {
        "state": "running",
        "ownership": "shared",
        "batches": 1,
        "last_batch": 7,
        "last_batch_ms": 1_250,
        "records": 12_000,
        "records_per_second": 1200.4,
        "rows": 11_999,
        "bad": 1,
        "lag": 3_000,
        "partitions": 3,
        "leaving": 0,
        "member_epoch": 4,
    }
    return PipelineStatus(**(known | said))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_tells_what_matters() -> None:
    assert line_of(_status(leaving=2).to_json()) == (
        "running   batch 7 (1,250 ms)  records 12,000  rows 11,999  undecodable 1  1,200/s"
        "  lag 3,000  partitions 3 (2 leaving)"
    )
    nothing = _status(last_batch=None, last_batch_ms=None, rows=None, bad=None, lag=None)
    assert line_of(nothing.to_json()) == (
        "running   no batch yet  records 12,000  1,200/s  partitions 3"
    )


def test_what_is_no_news_is_no_line() -> None:
    out = io.StringIO()
    display = Display(out, is_json=False)
    for status in (_status(), _status(lag=9), _status(batches=2), _status(batches=2, partitions=1)):
        display.show(status)
    display.close("done")
    assert len(out.getvalue().splitlines()) == 4


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = _Terminal()
    display = Display(out, is_json=False)
    display.show(_status())
    display.show(_status())
    display.close("done")
    assert out.getvalue().count("\n") == 2
    assert out.getvalue().count("\r\x1b[2K") == 2


@pytest.mark.parametrize("columns", [40, 80, 100, 160])
def test_a_line_that_is_wider_than_the_terminal_is_cut(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with Terminal(columns, 24) as terminal:
        display = Display(terminal.out, is_json=False)
        for _ in range(3):
            display.show(_status(records=10**12, lag=10**12))
        assert len(terminal.rows()) == 1
        terminal.resize(columns // 2, 24)
        display.show(_status(lag=1))
        display.show(_status(lag=2))
        rows = terminal.rows()
        assert len(rows) == 2
        assert all(row.startswith("running   batch 7") for row in rows)
        display.close("done")
        assert terminal.rows()[-1] == "done"


def test_json_is_an_object_a_line() -> None:
    out = io.StringIO()
    display = Display(out, is_json=True)
    display.show(_status())
    display.close("done")
    first, last = map(json.loads, out.getvalue().splitlines())
    assert (first["state"], first["lag"], first["member_epoch"]) == ("running", 3_000, 4)
    assert last == {"end": "done"}


def test_metrics_are_prometheus_text() -> None:
    lines = metrics_text(_status(lag=None)).splitlines()
    assert "# TYPE kip848_pipeline_records_total counter" in lines
    assert "kip848_pipeline_records_total 12000" in lines
    assert "kip848_pipeline_up 1" in lines
    assert not [line for line in lines if "lag" in line]
    assert "kip848_pipeline_up 0" in metrics_text(_status(state="failed")).splitlines()


def test_metrics_are_served() -> None:
    class Running:
        def status(self) -> PipelineStatus:
            return _status()

    running: Any = Running()
    with _metrics(running, 0) as url:
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert "kip848_pipeline_lag 3000" in answer.read().decode()
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(ConfigError, match=f"--metrics-port {port}: "), _metrics(running, port):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=10)


def test_the_verdict_states_what_is_lost_duplicated_or_changed() -> None:
    accounting = Accounting({(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4}, [(1, 0)])
    good = accounting.verdict([(0, 0, 1), (0, 1, 2), (1, 1, 4)])
    assert good.is_good
    assert str(good).splitlines() == [
        "rows produced 4  in Parquet 3  by the other consumer 1  lost 0  duplicated 0",
        "ok: each record is there once",
    ]
    bad = accounting.verdict([(0, 0, 1), (0, 0, 1), (1, 0, 9)])
    assert (bad.lost, bad.duplicated, bad.changed, bad.is_good) == (2, 2, 1, False)
    assert not Accounting().verdict([]).is_good


def test_a_file_that_is_wrong_ends_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kip848_client.spark._environment._check_java", lambda _environment: None)
    file = tmp_path / "pipeline.toml"
    file.write_text('[source]\nbootstrap = "x"\n')
    assert main(["pipeline", "run", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"kip848 pipeline: {file}:2: unknown setting source.bootstrap; did")


def test_the_commands_of_the_page_about_clusters_are_commands(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "spark-clusters.md"
    found = re.findall(r"^    kip848 pipeline (.*)$", page.read_text(), re.MULTILINE)
    parser = argparse.ArgumentParser()
    configure(parser)
    parsed = [parser.parse_args(shlex.split(each)) for each in found]
    assert {each.action for each in parsed} == {"run", "package"}
    assert [each.master for each in parsed if each.action == "run"] == [
        None,
        "spark://master:7077",
        "yarn",
    ]
    assert parsed[1].py_files == "rows.py"
    [settings] = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    rest = "[source]\nbootstrap_servers = 'h:1'\ntopics = ['a']\n[sink]\npath = '/o'\n"
    (tmp_path / "pipeline.toml").write_text(rest + settings)
    run = load_config(tmp_path / "pipeline.toml").run
    assert run.archives == ("environment.tar.gz#environment",)
    assert run.ship
