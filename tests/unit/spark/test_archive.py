"""The package as one file: Python imports it from there, without anything of C, and reads."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from kip848_client.cli import main
from kip848_client.errors import ConfigError
from kip848_client.spark import write_archive
from mock_coordinator.threaded import BrokerThread
from tests.support.own_process import printed_by

_MORE = pytest.mark.everything("to compile the package takes seconds")
_READ = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import kip848_client
assert kip848_client.__file__.startswith(sys.argv[1]), kip848_client.__file__
from pyspark_kip848 import DefaultSource
from kip848_client.records import COMPILED
from kip848_client.spark import write_archive
from kip848_client.spark.source.core._options import source_options
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source._reading import read_ranges
from kip848_client.spark.source.core._slots import TaskRanges
from kip848_client.core.types import TopicPartition
said = {"kafka.bootstrap.servers": sys.argv[2], "subscribe": "a"}
ranges = (OffsetRange(TopicPartition("a", 0), 0, 7),)
read = read_ranges(TaskRanges(ranges, source_options(said, is_stream=True)))
copy = write_archive(Path(sys.argv[1]).with_name("copy.zip"))
same = copy.read_bytes() == Path(sys.argv[1]).read_bytes()
print(DefaultSource.name(), COMPILED, sum(each.num_rows for each in read), same)
"""


@pytest.mark.asyncio
@pytest.mark.parametrize("by", ["this Python", pytest.param("another Python", marks=_MORE)])
@pytest.mark.mock_broker(topics={"a": 1})
async def test_a_task_reads_with_a_package_that_is_a_file(
    mock_broker: BrokerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "another Python":
        monkeypatch.setattr(importlib.util, "MAGIC_NUMBER", b"\x00\x00\r\n")
    for number in range(7):
        mock_broker.produce("a", b"%d" % number)
    file = write_archive(tmp_path / "kip848_client.zip")
    monkeypatch.undo()
    printed = await printed_by(_READ, str(file), mock_broker.bootstrap)
    assert printed == "kip848 False 7 True"


@_MORE
def test_the_command_writes_the_same_file_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    assert main(["pipeline", "package", str(first)]) == 0
    assert capsys.readouterr().out.startswith(f"{first}: ")
    write_archive(second)
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"kip848_client/py.typed", "pyspark_kip848/__init__.py"} <= set(names)
    assert not [name for name in names if name.endswith((".so", ".c", ".h"))]


def test_what_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"must end with \.zip"):
        write_archive(tmp_path / "a.tar")
    assert main(["pipeline", "package", str(tmp_path / "missing" / "a.zip")]) == 2
    assert "cannot be written" in capsys.readouterr().err
