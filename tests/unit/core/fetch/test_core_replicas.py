"""The core and replicas that the leader names (KIP-392)."""

from __future__ import annotations

import itertools

import pytest

from kip848_client.core.cluster import ClusterChanged, LeadersLearnt, PartitionLeader, TopicLeaders
from kip848_client.core.fetch import FetchSettings, ListOffsets, SendFetch
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, data, row, tid, tp


def near() -> Harness:
    """The leader 1 has named replica 2."""
    h = Harness(FetchSettings(rack="b"), partitions=2).assign(0)
    assert h.fetch(1).intent.rack == "b"
    h.answer(None, row(preferred_replica=2))
    return h


def test_the_replica_is_asked_in_the_same_step() -> None:
    """KAFKA-13767."""
    h = near()
    assert list(h.open) == [2]
    h.answer({0: data(0)}, node=2)
    assert h.asked(2) == {0: 1}


def test_the_lease_ends() -> None:
    """KAFKA-14372."""
    h = near()
    for _ in range(599):
        h.answer(node=2)
    assert list(h.open) == [2]
    for _ in range(3):
        if 2 in h.open:
            h.answer(node=2)
    assert list(h.open) == [1], "the leader may know a better one by now"
    assert h.fetch(1).intent.rack == "b"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_replica_that_refuses_is_left_for_the_leader_and_avoided(code: ErrorCode) -> None:
    """librdkafka #4616, librdkafka #4754, librdkafka #2830."""
    h = near()
    listed = len(h.all(ListOffsets))
    h.answer(None, row(error_code=code), node=2)
    assert list(h.open) == [1]
    assert h.asked(1) == {0: 0}
    assert h.fetch(1).intent.rack == "", "or the leader would name it again at once"
    assert len(h.all(ListOffsets)) == listed, "a replica never resets anything"
    h.answer({0: data(0)}, node=1)
    assert h.fetch(1).intent.rack == ""
    h.advance(301_000)
    h.answer({0: data(1)}, node=1)
    assert h.fetch(1).intent.rack == "b"


def test_of_another_cluster_no_replica_is_avoided() -> None:
    """The broker with this number may be another one."""
    h = near()
    h.answer(None, row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER), node=2)
    assert h.fetch(1).intent.rack == ""
    h.open.clear()
    h.post(ClusterChanged())
    assert h.fetch(1).intent.rack == "b"
    h.answer(None, row(preferred_replica=2), node=1)
    assert list(h.open) == [2]


def test_out_of_range_at_the_leader_is_asked_of_the_leader() -> None:
    """librdkafka #4616, librdkafka #4754."""
    h = near()
    h.answers_offsets = False
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), node=2)
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), node=1)
    assert {each.node for each in h.all(ListOffsets)[1:]} == {1}


@pytest.mark.parametrize("names", [(2,), (3,), (2, 3)])
def test_a_leader_that_names_one_all_the_same_is_paced(names: tuple[int, ...]) -> None:
    """librdkafka #4616, librdkafka #4754."""
    named = itertools.cycle(names)
    h = near()
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), node=2)
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + 10_000:
        assert len(h.all(SendFetch)) - count < 20, "a loop"
        if 1 in h.open:
            h.answer(None, row(preferred_replica=next(named)))
        elif h.open:
            h.answer(None, row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER), node=min(h.open))
        else:
            h.advance(10)


def test_a_replica_that_is_not_there_is_not_used() -> None:
    h = Harness(FetchSettings(rack="b"), nodes=(1, 3)).assign(0)
    h.answer(None, row(preferred_replica=2))
    h.advance(200)
    assert h.fetch(1).intent.rack == ""


def test_a_replica_that_went_is_left() -> None:
    h = near()
    h.nodes = (1, 3)
    h.learn()
    h.answer(node=2)
    assert list(h.open) == [1]


def test_a_replica_that_does_not_answer_is_left() -> None:
    h = near()
    h.lose(node=2)
    assert list(h.open) == [1]
    assert h.fetch(1).intent.rack == ""
    h.answer()
    h.advance(31_000)
    h.answer({0: data(0)})
    assert h.fetch(1).intent.rack == "b"


def test_a_new_leader_ends_the_lease() -> None:
    h = near()
    told = TopicLeaders("t", tid(1), {0: PartitionLeader(3, 6, (2, 3))})
    h.post(LeadersLearnt(0, (told,), frozenset(), frozenset(h.nodes)))
    assert list(h.open) == [2, 3]


def test_a_late_word_of_a_replica_is_not_believed() -> None:
    """Its lease is over, and the leader is asked by now."""
    h = near()
    late = h.fetch(2)
    h.advance(300_100)
    assert list(h.open) == [2, 1]
    assert late.node == 2
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), node=2)
    h.answer({0: data(0)}, node=1)
    assert h.read() == [(tp(0), 0, 1)]
    assert len(h.all(ListOffsets)) == 1
