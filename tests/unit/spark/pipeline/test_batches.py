"""Directories of batches: a try takes the place of the one before, and one driver writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline._batches import NOTE, BatchNote, BatchOutput
from kip848_client.spark.pipeline._checkpoint import DriverLock, begun, look_into, planned
from kip848_client.spark.pipeline._errors import DriverReplaced, OutputRefused
from kip848_client.spark.pipeline._files import LocalFiles
from kip848_client.spark.source.core._manifest import Manifest

_IDS = {"a": "id-a"}


def _note(number: int, start: int, end: int, ids: dict[str, str] = _IDS) -> BatchNote:
    return BatchNote(number, end - start, {"a": {"0": (start, end)}}, ids)


def _write(output: BatchOutput, note: BatchNote, *files: str) -> None:
    staged = Path(output.staged(note.batch))
    staged.mkdir(parents=True)
    for name in files:
        (staged / name).write_text(name)
    output.publish(note)


def _output(path: Path) -> BatchOutput:
    output = BatchOutput(LocalFiles(), str(path))
    output.take_over()
    return output


def _noted(path: Path, number: int) -> BatchNote:
    file = path / f"batch_id={number}" / NOTE
    return BatchNote.of(file.read_text(), str(file))


def _seen(path: Path) -> list[str]:
    """What a reader sees: neither it nor any folder above it begins with ``_`` or a dot."""
    return sorted(
        str(each.relative_to(path))
        for each in path.rglob("*")
        if each.is_file() and not any(p[0] in "_." for p in each.relative_to(path).parts)
    )


def test_a_repeated_batch_takes_the_place_of_its_first_try(tmp_path: Path) -> None:
    output = _output(tmp_path)
    _write(output, _note(0, 0, 10), "one", "two")
    _write(output, _note(1, 10, 20), "three")
    _write(output, _note(1, 15, 20), "four")  # a part is another member's by now
    assert _seen(tmp_path) == ["batch_id=0/one", "batch_id=0/two", "batch_id=1/four"]
    assert _noted(tmp_path, 0) == _note(0, 0, 10)
    assert _noted(tmp_path, 1) == _note(1, 15, 20)


def test_what_is_half_written_is_not_seen_and_goes_with_the_next_driver(tmp_path: Path) -> None:
    output = _output(tmp_path)
    staged = Path(output.staged(0))
    staged.mkdir(parents=True)
    (staged / "half").write_text("")
    assert _seen(tmp_path) == []
    _output(tmp_path)
    assert not staged.exists()


def test_a_driver_that_was_replaced_publishes_nothing(tmp_path: Path) -> None:
    first = _output(tmp_path)
    second = _output(tmp_path)
    _write(second, _note(0, 0, 10), "second")
    with pytest.raises(
        DriverReplaced, match=f"process {os.getpid()} on .* has taken over the output"
    ):
        _write(first, _note(0, 0, 10), "first")
    with pytest.raises(DriverReplaced):
        first.withdraw(0)
    assert _seen(tmp_path) == ["batch_id=0/second"]


def test_a_batch_that_has_no_rows_there_any_more_is_withdrawn(tmp_path: Path) -> None:
    output = _output(tmp_path)
    _write(output, _note(0, 0, 1), "bad")
    output.withdraw(0)
    output.withdraw(1)
    assert _seen(tmp_path) == []


def test_a_note_that_was_changed_by_hand_is_told(tmp_path: Path) -> None:
    output = _output(tmp_path)
    _write(output, _note(0, 0, 10))
    (tmp_path / "batch_id=0" / "_batch.json").write_text("{}")
    with pytest.raises(OutputRefused, match=r"batch_id=0/_batch.json cannot be read"):
        _noted(tmp_path, 0)


def test_a_checkpoint_gets_its_id_before_it_has_batches(tmp_path: Path) -> None:
    files, path = LocalFiles(), str(tmp_path / "cp")
    assert look_into(files, path).query_id is None
    first = begun(files, look_into(files, path))
    assert first.query_id == look_into(files, path).query_id
    for name in ("offsets", "commits"):
        (tmp_path / "cp" / name).mkdir()
    for name in ("offsets/9", "offsets/10", "commits/9", "offsets/.10.crc", "commits/x.tmp"):
        (tmp_path / "cp" / name).write_text("")
    found = look_into(files, path)
    assert (found.planned, found.done) == (10, 9)
    (tmp_path / "cp" / "metadata").unlink()
    with pytest.raises(OutputRefused, match="no file 'metadata'"):
        look_into(files, path)


def test_what_spark_could_not_write_of_its_first_batch_goes(tmp_path: Path) -> None:
    """A disk was full: Spark refuses to begin with it there (4.3)."""
    files, path = LocalFiles(), str(tmp_path)
    begun(files, look_into(files, path))
    left = (".0.b0ba5a3a.tmp", "..0.b0ba5a3a.tmp.crc")
    for name in left:
        files.write(f"{path}/offsets/{name}", "v1")
    begun(files, look_into(files, path))
    assert files.names(f"{path}/offsets") == []
    for name in ("0", *left):
        files.write(f"{path}/offsets/{name}", "v1")
    begun(files, look_into(files, path))
    assert files.names(f"{path}/offsets") == sorted(("0", *left))


def test_a_second_driver_on_this_machine_is_refused(tmp_path: Path) -> None:
    first, second = DriverLock(tmp_path / "cp"), DriverLock(tmp_path / "cp")
    first.take()
    with pytest.raises(OutputRefused, match=rf"another driver \(process {os.getpid()}\)"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_what_the_source_has_planned_is_in_sparks_checkpoint(tmp_path: Path) -> None:
    manifest = Manifest(3, {TopicPartition("a", 0): (5, 9)}, {"a": "id"})
    LocalFiles().write(f"{tmp_path}/offsets/2", f"v1\n{{}}\n{json.dumps(manifest.to_json())}")
    assert planned(LocalFiles(), f"{tmp_path}/", 2) == manifest
    for text in (None, "", "v1\n{}\n-", 'v1\n{}\n{"a": 1}'):
        if text is not None:
            LocalFiles().write(f"{tmp_path}/offsets/3", text)
        with pytest.raises(ConfigError, match=r"3|checkpoint"):
            planned(LocalFiles(), str(tmp_path), 3)
