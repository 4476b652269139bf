"""Files of events as they are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from kip848_client.errors import ConfigError
from kip848_client.history.core import LINE_BYTES_MAX, line_of
from kip848_client.history.recording import HistoryFile, Stamp, read_files
from tests.support.histories import event


def test_lines_that_are_no_events_are_counted_and_told(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    good = line_of(event("epoch", 1))
    huge = b"x" * (LINE_BYTES_MAX + 5) + b"\n"
    path.write_bytes(good + b"\n  \n" + b"hello\n" + huge + good + b'{"schema":1,"wri')
    record = read_files([path])
    assert len(record.events) == 2
    assert (record.bad, record.cut) == (2, 1)
    assert [(each.line, each.why.split(" (")[0]) for each in record.complaints] == [
        (4, "it is not JSON"),
        (5, f"it has more than {LINE_BYTES_MAX} bytes"),
    ]


def test_only_the_first_bad_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line_of(event("epoch", 1)) + b"no\n" * 1_000)
    record = read_files([path])
    assert (record.bad, len(record.complaints)) == (1_000, 20)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PAR1\x00\xff\x15", "line 1: it is not text"),
        (b"time,group\n1,g\n", "line 1: it is not JSON"),
        (b'{"level": "INFO"}\n', "line 1: it has no schema"),
        (b'\n{"schema": 7}\n', "line 2: its schema is 7; this version reads 1"),
        (b"y" * (LINE_BYTES_MAX * 2), "line 1: it has more than"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"other has no event of a group's history; {why}"):
        read_files([path])


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing: No such file"):
        read_files([tmp_path / "missing"])
    with pytest.raises(ConfigError, match="Is a directory"):
        read_files([tmp_path])


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    record = read_files([path])
    assert (record.events, record.bad, record.missing) == ([], 0, 0)


def test_events_that_lack_are_counted() -> None:
    from kip848_client.history.recording import Record

    first = [event("epoch", 1, seq=seq) for seq in (7, 8, 11, 11)]
    missed = event("missed", 2, "n", seq=0, count=5)
    assert Record(events=[*first, missed]).missing == 2 + 5


def test_who_writes_after_a_torn_line_begins_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line_of(event("epoch", 1)) + b'{"schema":1,"wri')
    stamp = Stamp()
    for _ in range(2):
        file = HistoryFile(path)
        file.append(stamp.on(event("epoch", 2)))
        file.end()
        file.end()
    record = read_files([path])
    assert (len(record.events), record.bad, record.cut) == (3, 1, 0)
    assert [each.seq for each in record.events[1:]] == [0, 1]
    assert len({each.writer for each in record.events[1:]}) == 1
