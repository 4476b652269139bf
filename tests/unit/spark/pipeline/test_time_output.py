"""Directories by time: whatever interrupts a batch, each offset is in the output once."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from kip848_client.spark.pipeline._errors import DriverReplaced, OutputRefused
from kip848_client.spark.pipeline._files import LocalFiles
from kip848_client.spark.pipeline._time_output import TimeOutput
from kip848_client.spark.pipeline.core._written_index import INDEX, PART

_IDS = {"a": "id-a"}


class _Killed(BaseException):
    """The process ends here."""


class _Files(LocalFiles):
    """The process is killed before its operation number ``left``."""

    left = 1_000_000

    def _count(self) -> None:
        if self.left == 0:
            raise _Killed
        self.left -= 1

    def write(self, path: str, text: str) -> None:
        self._count()
        super().write(path, text)

    def replace(self, path: str, target: str) -> None:
        self._count()
        super().replace(path, target)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)


def _output(path: Path, files: LocalFiles | None = None) -> TimeOutput:
    output = TimeOutput(files or LocalFiles(), str(path))
    output.take_over()
    return output


def _write(output: TimeOutput, number: int, start: int, end: int) -> None:
    """As Spark would stage it: three offsets are of one hour."""
    parts = output.lacking({"a": {"0": (start, end)}}, _IDS)
    for index, part in enumerate(parts):
        for offset in range(part.start, part.end):
            folder = Path(output.staged(number)) / f"hour={offset // 3}" / f"{PART}={index}"
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "part-0.parquet").open("a") as file:
                file.write(f"{offset}\n")
    output.publish(number, parts, _IDS)


def _offsets(path: Path) -> list[int]:
    """What a reader sees, and in which hour."""
    found: list[int] = []
    for file in path.rglob("*.parquet"):
        if not any(part[0] in "_." for part in file.relative_to(path).parts):
            offsets = [int(line) for line in file.read_text().split()]
            assert {f"hour={each // 3}" for each in offsets} == {file.parent.name}
            found += offsets
    return sorted(found)


def test_batches_with_other_boundaries_add_nothing_twice(tmp_path: Path) -> None:
    for spans in ([(0, 7), (7, 10)], [(0, 4), (4, 12)], [(2, 15)]):
        output = _output(tmp_path)  # a new checkpoint: batches begin at 0 again
        for number, (start, end) in enumerate(spans):
            _write(output, number, start, end)
    assert _offsets(tmp_path) == list(range(15))
    assert not list((tmp_path / "_staging").iterdir())


def test_a_kill_at_any_moment_leaves_nothing_behind_that_is_written_again(tmp_path: Path) -> None:
    seen: set[int] = set()
    for kill_at in range(40):
        folder = tmp_path / str(kill_at)
        files = _Files()
        output = _output(folder, files)
        _write(output, 0, 0, 4)
        files.left = kill_at
        try:
            _write(output, 1, 4, 11)
        except _Killed:
            during = _offsets(folder)
            assert len(set(during)) == len(during)
            seen.add(len(during))
        else:
            break
        _write(_output(folder), 1, 4, 8)  # the batch is repeated with another end
        _write(_output(folder), 2, 8, 12)
        assert _offsets(folder) == list(range(12)), kill_at
    else:
        pytest.fail("it was killed each time")
    assert len(seen) > 2, "kills between the files of a batch were among them"


def test_a_kill_while_the_files_of_a_kill_are_removed_is_none_the_worse(tmp_path: Path) -> None:
    for kill_at in range(2, 12):
        folder = tmp_path / str(kill_at)
        files = _Files()
        output = _output(folder, files)
        files.left = 4  # of the index, and two files
        with pytest.raises(_Killed):
            _write(output, 0, 0, 12)
        again = _Files()
        again.left = kill_at
        with suppress(_Killed):
            _output(folder, again)
        _write(_output(folder), 0, 0, 12)
        assert _offsets(folder) == list(range(12))


class _FullDisk(_Files):
    """One file cannot be put in place."""

    def replace(self, path: str, target: str) -> None:
        if "hour=2" in target:
            raise OSError(28, "No space left on device", target)
        super().replace(path, target)


def test_a_file_that_cannot_be_put_in_place_takes_back_the_others(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        _write(_output(tmp_path, _FullDisk()), 0, 0, 9)
    assert _offsets(tmp_path) == []
    _write(_output(tmp_path), 0, 0, 9)
    assert _offsets(tmp_path) == list(range(9))


def test_a_driver_that_was_replaced_publishes_nothing(tmp_path: Path) -> None:
    first = _output(tmp_path)
    second = _output(tmp_path)
    _write(second, 0, 0, 5)
    with pytest.raises(DriverReplaced, match="has taken over the output"):
        _write(first, 0, 0, 9)
    assert _offsets(tmp_path) == list(range(5))


def test_an_output_without_its_index_is_refused(tmp_path: Path) -> None:
    _write(_output(tmp_path), 0, 0, 5)
    (tmp_path / INDEX).unlink()
    with pytest.raises(OutputRefused, match=re.escape(INDEX) + ".* is missing. Restore it"):
        _output(tmp_path)
