"""Which offsets an output by time lacks, and where its files go."""

from __future__ import annotations

import pytest

from kip848_client.spark.pipeline._errors import OutputRefused, PipelineFailed
from kip848_client.spark.pipeline.core._written_index import (
    PART,
    Part,
    WrittenIndex,
    file_name,
    targets,
)

_IDS = {"a": "id-a"}


def _spans(*spans: tuple[int, int], partition: int = 0) -> list[Part]:
    return [Part("a", partition, start, end) for start, end in spans]


def _index(*spans: tuple[int, int]) -> WrittenIndex:
    return WrittenIndex().done(_spans(*spans), _IDS)


@pytest.mark.parametrize(
    ("written", "wanted", "lacking"),
    [
        ([], (0, 10), [(0, 10)]),
        ([(0, 10)], (0, 10), []),
        ([(0, 10)], (2, 8), []),
        ([(0, 10)], (5, 15), [(10, 15)]),
        ([(10, 20)], (5, 15), [(5, 10)]),
        ([(2, 4), (6, 8)], (0, 10), [(0, 2), (4, 6), (8, 10)]),
        ([(2, 4), (6, 8)], (3, 7), [(4, 6)]),
        ([(20, 30)], (0, 10), [(0, 10)]),
        ([(0, 10)], (20, 30), [(20, 30)]),
        ([(0, 10)], (10, 10), []),
    ],
)
def test_what_is_written_is_left_out(
    written: list[tuple[int, int]], wanted: tuple[int, int], lacking: list[tuple[int, int]]
) -> None:
    found = _index(*written).lacking({"a": {"0": wanted}}, _IDS, "out")
    assert found == _spans(*lacking)


def test_partitions_are_apart_and_in_the_order_of_their_numbers() -> None:
    ranges = {"a": {"10": (0, 5), "9": (0, 5), "0": (0, 5)}}
    assert _index((0, 5)).lacking(ranges, _IDS, "out") == [
        Part("a", 9, 0, 5),
        Part("a", 10, 0, 5),
    ]


def test_a_topic_that_was_created_again_is_refused() -> None:
    with pytest.raises(OutputRefused, match="topic a was created again since the output out"):
        _index((0, 5)).lacking({"a": {"0": (0, 5)}}, {"a": "another"}, "out")


def test_adjacent_ranges_are_joined_and_the_text_is_read_again() -> None:
    index = _index((0, 10), (20, 30), (10, 15))
    assert index.written == {("a", 0): ((0, 15), (20, 30))}
    index = index.begun(["date=2026-11-26/b", "a"])
    assert index.pending == ("a", "date=2026-11-26/b")
    assert WrittenIndex.of(index.to_json(), "x") == index
    assert not index.done([], {}).pending
    for text in ("", "[]", "{}", '{"topics": {}, "written": {"a": [1]}, "pending": []}'):
        with pytest.raises(OutputRefused, match=r"x, .* cannot be read"):
            WrittenIndex.of(text, "x")


def test_files_have_the_first_offset_in_their_name_and_no_reader_ignores_them() -> None:
    assert file_name(Part("orders", 3, 400, 900)) == "orders+3+00000000000000000400.parquet"
    assert file_name(Part("_own", 0, 0, 1)) == "+_own+0+00000000000000000000.parquet"
    assert file_name(Part(".own", 0, 0, 1))[0] == "+"


def test_staged_files_go_to_the_folder_of_their_time() -> None:
    parts = _spans((0, 10), (20, 30))
    staged = [
        f"date=2026-11-26/hour=18/{PART}=1/part-0-x.c000.snappy.parquet",
        f"{PART}=0/part-0-x.parquet",
        f"date=2026-11-26/hour=18/{PART}=1/.part-0-x.parquet.crc",
        f"date=2026-11-26/hour=18/{PART}=1/_SUCCESS",
        "_SUCCESS",
    ]
    assert targets(staged, parts) == {
        staged[0]: "date=2026-11-26/hour=18/a+0+00000000000000000020.parquet",
        staged[1]: "a+0+00000000000000000000.parquet",
    }
    with pytest.raises(PipelineFailed, match="two files"):
        targets([staged[0], staged[0].replace("part-0", "part-1")], parts)
