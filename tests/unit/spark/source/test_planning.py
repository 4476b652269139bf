"""What the next batch reads, for a query that has all partitions to itself."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import DataLost, Planning, Seen

_A0, _A1, _B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
_IDS = {"a": "id-a", "b": "id-b"}
_START = Manifest(4, {_A0: (0, 10), _A1: (5, 5)}, {"a": "id-a"})


def _seen(**ends: int) -> Seen:
    names = {"a0": _A0, "a1": _A1, "b0": _B0}
    return Seen({names[name]: (0, end) for name, end in ends.items()}, _IDS)


def test_a_batch_has_a_range_for_each_partition_empty_ones_too() -> None:
    batch = Planning().next(_START, _seen(a0=15, a1=5), None, 0)
    assert batch == Manifest(5, {_A0: (10, 15), _A1: (5, 5)}, _IDS)


def test_nothing_new_is_the_same_manifest() -> None:
    assert Planning().next(_START, _seen(a0=10, a1=5), None, 0) is _START


def test_a_new_partition_is_read_from_its_begin() -> None:
    seen = Seen({_A0: (0, 10), _A1: (0, 5), _B0: (3, 7)}, _IDS)
    assert Planning().next(_START, seen, None, 0).ranges[_B0] == (3, 7)


def test_less_than_the_minimum_is_waited_for_until_the_delay_is_over() -> None:
    planning = Planning(at_least=100, delay_ms=1_000)
    assert planning.next(_START, _seen(a0=20, a1=5), None, 0) is _START
    assert planning.next(_START, _seen(a0=20, a1=5), None, 999) is _START
    batch = planning.next(_START, _seen(a0=20, a1=5), None, 1_000)
    assert batch.ranges[_A0] == (10, 20)
    assert planning.next(batch, _seen(a0=30, a1=5), None, 1_001) is batch
    assert planning.next(batch, _seen(a0=120, a1=5), None, 1_002).ranges[_A0] == (20, 120)


def test_available_now_reads_what_was_there_and_no_minimum_holds_it_up() -> None:
    planning = Planning(at_least=100, delay_ms=1_000, until={_A0: 14, _A1: 5})
    batch = planning.next(_START, _seen(a0=20, a1=9, b0=4), 3, 0)
    assert batch.ranges == {_A0: (10, 13), _A1: (5, 5), _B0: (0, 0)}
    batch = planning.next(batch, _seen(a0=20, a1=9, b0=4), 3, 0)
    assert batch.ranges[_A0] == (13, 14)
    assert planning.next(batch, _seen(a0=20, a1=9, b0=4), 3, 0) is batch


_OTHER = Seen({_A0: (0, 10), _A1: (0, 5)}, {"a": "another-id"})
_LOSSES = [
    (
        Seen({_A0: (12, 15), _A1: (0, 5)}, _IDS),
        "starts at 12: older records were deleted",
        (12, 15),
    ),
    (Seen({_A0: (0, 4), _A1: (0, 5)}, _IDS), "ends at 4 and was read up to 10", None),
    (_OTHER, "deleted and created again", (0, 10)),
    (Seen({_A1: (0, 5)}, _IDS), "a-0 was read up to 10 and no longer exists", None),
]


@pytest.mark.parametrize(("seen", "told", "_goes_on"), _LOSSES)
def test_what_is_lost_ends_the_query(seen: Seen, told: str, _goes_on: object) -> None:
    with pytest.raises(DataLost, match=f"{told}.*failOnDataLoss=false"):
        Planning().next(_START, seen, None, 0)


@pytest.mark.parametrize(("seen", "told", "goes_on"), _LOSSES)
def test_or_is_told_and_the_query_goes_on(
    seen: Seen, told: str, goes_on: tuple[int, int] | None
) -> None:
    planning = Planning(fails_on_data_loss=False)
    batch = planning.next(_START, seen, None, 0)
    assert told in planning.losses[0]
    if goes_on is None:
        assert batch is _START
    else:
        assert batch.ranges[_A0] == goes_on


def test_a_batch_of_an_earlier_run_is_looked_at_before_it_is_read() -> None:
    batch = Manifest(5, {_A0: (10, 15), _A1: (5, 5)}, {"a": "id-a"})
    Planning().check(batch, Seen({_A0: (10, 15), _A1: (9, 9)}, _IDS))
    with pytest.raises(DataLost, match="starts at 11"):
        Planning().check(batch, Seen({_A0: (11, 15), _A1: (9, 9)}, _IDS))
    with pytest.raises(DataLost, match="was deleted before 10 to 15 was read"):
        Planning().check(batch, Seen({_A0: (0, 15), _A1: (9, 9)}, {"a": "another-id"}))
    with pytest.raises(DataLost, match="was deleted before"):
        Planning().check(batch, Seen({}, {}))
