"""The data file: what was written is read, a torn end is cut, damage is an error and stays."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kip848_client.core.types import TopicId
from mock_coordinator.storage.data_file import DataDamaged, DataFile
from mock_coordinator.storage.entries import Batch, Document, Entry, read_entries, write_entry
from tests.support.examples import examples

ID = TopicId(bytes(range(16)))
GROUPS: list[list[Entry]] = [
    [Document("a", {"x": [1, None, "ü"]}), Batch(ID, 3, b"first")],
    [Document("a", None), Batch(ID, 0, b"")],
    [Batch(ID, 1, bytes(300))],
]


def written(folder: Path) -> Path:
    path = folder / "data"
    file = DataFile(path)
    assert list(file.read()) == []
    for group in GROUPS:
        file.append(group)
    file.sync()
    file.close()
    return path


def read(path: Path) -> list[Entry]:
    file = DataFile(path)
    try:
        return list(file.read())
    finally:
        file.close()


entries = st.one_of(
    st.builds(Document, st.text(max_size=20), st.none() | st.lists(st.integers())),
    st.builds(Batch, st.just(ID), st.integers(0, 2**31 - 1), st.binary(max_size=50)),
)


@given(st.lists(entries))
def test_entries_are_read_as_they_were_written(given_entries: list[Entry]) -> None:
    data = b"".join(map(write_entry, given_entries))
    assert list(read_entries(data)) == given_entries


@given(st.binary(max_size=80))
def test_bytes_of_any_kind_are_entries_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        list(read_entries(data))


def test_groups_come_back_in_order(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert read(path) == [entry for group in GROUPS for entry in group]


def test_a_file_cut_anywhere_keeps_every_whole_group(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = written(tmp_path).read_bytes()
    sizes: dict[int, int] = {}
    for size in range(len(whole) + 1):
        path = tmp_path / f"cut-{size}"
        path.write_bytes(whole[:size])
        with caplog.at_level(logging.WARNING, "mock_coordinator"):
            caplog.clear()
            got = read(path)
        groups = next(n for n in range(4) if got == [e for g in GROUPS[:n] for e in g])
        sizes[groups] = sizes.get(groups, 0) + 1
        assert bool(caplog.records) == (path.stat().st_size != size or size < 19)
        assert read(path) == got, "a file that was cut is whole"
        file = DataFile(path)
        list(file.read())
        file.append(GROUPS[2])
        file.close()
        assert read(path) == [*got, *GROUPS[2]]
    assert sizes.keys() == {0, 1, 2, 3}


def test_zeros_at_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = read(path)
    with path.open("ab") as file:
        file.write(bytes(5000))
    assert read(path) == before


def test_a_last_group_with_wrong_content_is_a_torn_tail(tmp_path: Path) -> None:
    path = written(tmp_path)
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    assert read(path) == [entry for group in GROUPS[:2] for entry in group]


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_damage_before_the_end_is_said_and_nothing_is_touched(
    tmp_path: Path, at: int, bit: int
) -> None:
    path = tmp_path / "data"
    path.unlink(missing_ok=True)
    whole = written(tmp_path).read_bytes()
    last = whole.rindex(write_entry(GROUPS[2][0])) - 16
    content = bytearray(whole)
    content[at % last] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(DataDamaged, match="data"):
        read(path)
    assert path.read_bytes() == bytes(content)


def test_rewriting_replaces_everything_at_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    file = DataFile(path)
    list(file.read())
    file.rewrite([Document("only", 1)])
    file.append([Document("then", 2)])
    file.close()
    assert read(path) == [Document("only", 1), Document("then", 2)]
    assert [each.name for each in tmp_path.iterdir()] == ["data"]
