"""The changing copy of a target: what it holds, and that the order follows Java's maps."""

from __future__ import annotations

from kip848_client.core.assignors import NO_PARTITIONS
from kip848_client.core.assignors._draft import Draft, same_partitions, stored_topic_order
from kip848_client.core.assignors._java_order import topic_spread
from kip848_client.core.types import TopicId


def topic(bucket: int, number: int = 0) -> TopicId:
    """A topic id that falls into this bucket of tables of up to 256 buckets."""
    made = TopicId(bytes([number, 0, 0, 0, number, 0, 0, 0]) + bytes(7) + bytes([bucket]))
    assert topic_spread(made) & 0xFF == bucket
    return made


def test_an_unchanged_draft_gives_the_previous_object_back() -> None:
    target = {topic(1): (3, 1), topic(2): (0,)}
    assert Draft(target).freeze() is target
    draft = Draft(target)
    draft.discard(topic(1), [1])
    draft.add(topic(1), [1], 16)
    assert draft.freeze() is target
    assert Draft(NO_PARTITIONS).freeze() is NO_PARTITIONS


def test_add_discard_drop() -> None:
    draft = Draft({topic(1): (0, 1), topic(2): (0,), topic(3): (5,)})
    draft.add(topic(1), [2], 16)
    draft.discard(topic(2), [0])
    draft.drop(topic(3))
    draft.add(topic(4), [7, 6], 16)
    assert draft.freeze() == {topic(1): (0, 1, 2), topic(4): (6, 7)}


def test_a_new_topic_comes_first_in_its_bucket() -> None:
    old, new, other = topic(1, 1), topic(1, 2), topic(0)
    draft = Draft({old: (0,)})
    draft.add(new, [0], 16)
    draft.add(other, [0], 16)
    assert list(draft.freeze()) == [other, new, old]


def test_the_table_grows_before_the_next_lookup() -> None:
    # two topics that differ in bit 1 of the bucket: one bucket in a table of 2, two in one of 4
    low, high = topic(1), topic(3)
    draft = Draft(NO_PARTITIONS)
    draft.add(low, [0], 16)
    draft.add(high, [0], 16)
    assert list(draft.freeze()) == [high, low]
    draft = Draft(NO_PARTITIONS)
    draft.add(low, [0], 16)
    draft.add(high, [0, 1], 16)  # the lookup for the second partition grows it to 4
    assert list(draft.freeze()) == [low, high]


def test_a_set_keeps_the_capacity_that_it_reached() -> None:
    draft = Draft({topic(1): tuple(range(13))})  # 32 buckets
    draft.discard(topic(1), range(1, 13))
    draft.add(topic(1), [17, 16], 16)
    assert draft.freeze() == {topic(1): (0, 16, 17)}
    draft = Draft(NO_PARTITIONS)
    draft.add(topic(1), [17, 16, 1], 16)
    assert draft.freeze() == {topic(1): (16, 17, 1)}


def test_same_partitions() -> None:
    one, two = topic(1), topic(2)
    assert same_partitions({one: (1, 2), two: (0,)}, {two: (0,), one: (2, 1)})
    assert not same_partitions({one: (1, 2)}, {one: (1, 3)})
    assert not same_partitions({one: (1, 2)}, {two: (1, 2)})
    assert not same_partitions({one: (1,)}, {})


def test_stored_topic_order_is_by_bucket() -> None:
    target = {topic(3): (0,), topic(1, 2): (0,), topic(2): (0,), topic(1, 1): (0,)}
    assert stored_topic_order(target) == [topic(1, 2), topic(1, 1), topic(2), topic(3)]
    assert stored_topic_order({topic(9): (1,)}) == [topic(9)]
