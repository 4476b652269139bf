"""What is found wrong with what was processed and committed, and how long nothing came."""

from __future__ import annotations

from typing import Final

import pytest

from tests.chaos.judge import Committed, Processed, judged_reading
from tests.chaos.silence import Progress, Silence, copied, longest_silence, told_silences
from tests.torture.chronicle import Chronicle, Event

SIZES: Final = {0: 3, 1: 1}
PROCESSED: Final = [Processed(1.0, 0, [0, 1]), Processed(2.0, 1, [0]), Processed(3.0, 0, [1, 2])]


def test_everything_processed_before_it_is_committed_is_clean() -> None:
    looks = [Committed(1.0, {0: 2, 1: -1}), Committed(2.5, {0: 2, 1: 1}), Committed(3.0, {0: 3})]
    verdict = judged_reading(SIZES, PROCESSED, looks)
    assert verdict.is_clean
    assert verdict.records == 4
    assert verdict.again == 1
    assert verdict.looks == 3


@pytest.mark.parametrize(
    ("processed", "looks", "wrong"),
    [
        (PROCESSED[:2], [], "1 lost [(0, 2)]"),
        (PROCESSED, [Committed(2.9, {0: 3})], "1 committed too early [(0, 2)]"),
        (PROCESSED[1:], [Committed(3.0, {0: 3})], "1 committed too early [(0, 0)]"),
        ([*PROCESSED, Processed(4.0, 1, [1])], [], "1 strange [(1, 1)]"),
    ],
)
def test_what_is_wrong_is_told(
    processed: list[Processed], looks: list[Committed], wrong: str
) -> None:
    verdict = judged_reading(SIZES, processed, looks)
    assert not verdict.is_clean
    assert wrong in str(verdict)


@pytest.mark.parametrize(
    ("times", "longest"),
    [
        ([], Silence(10.0, 20.0)),
        ([11.0, 12.0, 18.5, 19.0], Silence(12.0, 18.5)),
        ([15.5], Silence(10.0, 15.5)),
        ([9.0, 13.0, 25.0], Silence(13.0, 20.0)),
    ],
)
def test_the_longest_silence(times: list[float], longest: Silence) -> None:
    assert longest_silence(times, 10.0, 20.0) == longest


def test_only_more_than_ever_before_is_progress() -> None:
    looks = [Committed(1.0, {0: -1}), Committed(2.0, {0: 5}), Committed(3.0, {0: 5})]
    looks += [Committed(4.0, {0: 2}), Committed(5.0, {0: 6, 1: 1})]
    assert copied(looks) == [Progress(2.0, 0, 5), Progress(5.0, 0, 1), Progress(5.0, 1, 1)]


def test_a_silence_tells_what_happened() -> None:
    killed = Event("killed a", 12.5, 13.0)
    silence = Silence(12.0, 14.25)
    assert silence.told(10.0, [killed]) == "2,250 ms, 2.0 to 4.2 s: killed a (2.5 to 3.0 s)"
    frozen = Event("frozen b", 11.0, 30.0)
    assert "s: frozen b (1.0 to 4.2 s), killed a (" in silence.told(10.0, [killed, frozen])
    assert silence.told(10.0, []).endswith("nothing was done")
    assert silence.told(10.0, [killed] * 8).endswith(", and 2 more")


def test_silences_tell_of_each_partition_and_of_all() -> None:
    done = [Progress(11.0, 0, 5), Progress(12.0, 1, 3), Progress(14.0, 0, 7), Progress(19.0, 1, 2)]
    assert told_silences("read", done, Chronicle(), 10.0, 20.0) == [
        "in-0 read: 6,000 ms, 4.0 to 10.0 s: nothing was done; meanwhile 2 records of others",
        "in-1 read: 7,000 ms, 2.0 to 9.0 s: nothing was done; meanwhile 7 records of others",
        "in-2 read: 9,000 ms, 1.0 to 10.0 s: nothing was done; meanwhile 12 records of others",
        "all read: 5,000 ms, 4.0 to 9.0 s: nothing was done",
    ]
