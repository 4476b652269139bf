"""What is kept of an answer to a Fetch."""

from __future__ import annotations

from kip848_client import TopicPartition
from kip848_client._aiokafka._fetch_answer import sifted

ASKED = [("t", [(0, 5, 100), (1, 6, 100)]), ("u", [(0, 7, 100)])]


def test_an_answer_as_it_should_be_stays_as_it_is() -> None:
    answer = [("t", [(1, 0, 9), (0, 0, 9)]), ("u", [(0, 3, 9)])]
    assert sifted(ASKED, answer) == (answer, [])


def test_what_was_not_asked_for_is_left_out() -> None:
    answer = [("t", [(0, 0, 9), (2, 0, 9)]), ("ghost", [(0, 0, 9)]), ("u", [(0, 0, 9)])]
    kept, left_out = sifted(ASKED, answer)
    assert kept == [("t", [(0, 0, 9)]), ("ghost", []), ("u", [(0, 0, 9)])]
    assert left_out == [TopicPartition("t", 2), TopicPartition("ghost", 0)]


def test_of_a_partition_that_comes_twice_the_first_counts() -> None:
    kept, left_out = sifted(ASKED, [("t", [(0, 0, 9), (0, 1, 8)]), ("t", [(0, 1, 7)])])
    assert kept == [("t", [(0, 0, 9)]), ("t", [])]
    assert left_out == [TopicPartition("t", 0)] * 2


def test_no_topics_are_none() -> None:
    assert sifted(ASKED, None) == ([], [])
