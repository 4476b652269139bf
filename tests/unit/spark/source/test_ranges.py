"""How much a batch takes of each partition, and which task reads it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._ranges import OffsetRange, limited, packed
from tests.support.examples import examples

_A = [TopicPartition("a", number) for number in range(6)]

spans = st.dictionaries(
    st.sampled_from(_A), st.tuples(st.integers(0, 50), st.integers(0, 300)), max_size=6
).map(lambda found: {tp: (start, start + size) for tp, (start, size) in found.items()})


def test_all_of_it_is_taken_without_a_limit() -> None:
    assert limited({_A[1]: (5, 9), _A[0]: (0, 3), _A[2]: (7, 7)}, None) == (
        OffsetRange(_A[0], 0, 3),
        OffsetRange(_A[1], 5, 9),
    )


def test_a_limit_is_shared_in_proportion() -> None:
    assert limited({_A[0]: (0, 300), _A[1]: (10, 110)}, 100) == (
        OffsetRange(_A[0], 0, 75),
        OffsetRange(_A[1], 10, 35),
    )


def test_a_limit_below_the_number_of_partitions_takes_of_the_fullest() -> None:
    assert limited({_A[0]: (0, 5), _A[1]: (0, 9), _A[2]: (0, 7)}, 2) == (
        OffsetRange(_A[1], 0, 1),
        OffsetRange(_A[2], 0, 1),
    )


@given(spans, st.integers(1, 5_000))
@settings(max_examples=examples(200))
def test_a_limit_is_used_up_and_never_passed(
    available: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    taken = limited(available, limit)
    total = sum(end - start for start, end in available.values())
    assert sum(each.size for each in taken) == min(limit, total)
    for tp, start, end in taken:
        assert start == available[tp][0]
        assert start < end <= available[tp][1]


@given(spans, st.integers(1, 8), st.none() | st.integers(1, 90))
@settings(max_examples=examples(300))
def test_tasks_have_all_of_it_once_and_about_as_much_each(
    available: dict[TopicPartition, tuple[int, int]], tasks: int, longest: int | None
) -> None:
    ranges = limited(available, None)
    total = sum(each.size for each in ranges)
    found = packed(ranges, tasks, longest)
    offsets = sorted(
        (tp, offset) for task in found for tp, start, end in task for offset in range(start, end)
    )
    assert offsets == sorted(
        (tp, offset) for tp, start, end in ranges for offset in range(start, end)
    )
    sizes = [sum(each.size for each in task) for task in found]
    assert all(len({each.tp for each in task}) == len(task) for task in found)
    if longest is None:
        assert len(found) <= tasks
        assert not sizes or max(sizes) <= -(-total // tasks) * 1.2 + 1
    else:
        assert all(size <= longest for size in sizes)


def test_a_large_partition_is_split_and_small_ones_share_a_task() -> None:
    ranges = [OffsetRange(_A[0], 0, 1_000), OffsetRange(_A[1], 0, 10), OffsetRange(_A[2], 0, 10)]
    assert packed(ranges, 2) == (
        (OffsetRange(_A[0], 0, 510),),
        (OffsetRange(_A[0], 510, 1_000), OffsetRange(_A[1], 0, 10), OffsetRange(_A[2], 0, 10)),
    )


def test_what_each_task_is_spared_is_not_left_to_the_last_one() -> None:
    ranges = [
        OffsetRange(tp, 0, size) for tp, size in zip(_A, (43, 42, 1, 43, 42, 59), strict=True)
    ]
    sizes = [sum(each.size for each in task) for task in packed(ranges, 5)]
    assert sizes == [43, 49, 46, 46, 46]


def test_nothing_to_read_is_no_task() -> None:
    assert packed([OffsetRange(_A[0], 5, 5)], 4) == ()
    assert packed([], 4) == ()
