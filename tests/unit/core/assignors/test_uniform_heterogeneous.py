"""Worked sequences of the heterogeneous uniform assignor, and its scale."""

from __future__ import annotations

from kip848_client.core.assignors._uniform_heterogeneous import _Scale
from tests.unit.core.assignors.replay import ReplayedGroup, topic_id


def test_two_topics() -> None:
    group = ReplayedGroup({"foo": (topic_id(1), 6), "bar": (topic_id(2), 3)})
    group.join("A", ["foo"])
    group.join("B", ["foo", "bar"])
    assert group.shown() == {"A": {"foo": [0, 1, 2, 3, 4]}, "B": {"foo": [5], "bar": [0, 1, 2]}}
    group.join("C", ["bar"])
    assert group.shown() == {
        "A": {"foo": [0, 1, 2, 3]},
        "B": {"foo": [4, 5], "bar": [0]},
        "C": {"bar": [1, 2]},
    }


def test_three_topics() -> None:
    group = ReplayedGroup({"t1": (topic_id(1), 4), "t2": (topic_id(2), 4), "t3": (topic_id(3), 2)})
    group.join("A", ["t1", "t2"])
    assert group.shown() == {"A": {"t1": [0, 1, 2, 3], "t2": [0, 1, 2, 3]}}
    group.join("B", ["t2", "t3"])
    assert group.shown() == {
        "A": {"t1": [0, 1, 2, 3], "t2": [0]},
        "B": {"t2": [1, 2, 3], "t3": [0, 1]},
    }
    group.join("C", ["t1", "t3"])
    assert group.shown() == {
        "A": {"t1": [0, 1], "t2": [0, 3]},
        "B": {"t2": [1, 2], "t3": [0]},
        "C": {"t1": [2, 3], "t3": [1]},
    }


def test_a_topic_no_longer_subscribed_is_dropped() -> None:
    group = ReplayedGroup({"foo": (topic_id(1), 2), "bar": (topic_id(2), 2)})
    group.join("A", ["foo", "bar"])
    group.members = {key: type(m)(("foo",), None, None) for key, m in group.members.items()}
    group.join("B", ["bar"])
    assert group.shown() == {"A": {"foo": [0, 1]}, "B": {"bar": [0, 1]}}
    assert group.written == {"A", "B"}


# --- The scale ------------------------------------------------------------------------------------


def test_the_low_side_fills_level_by_level() -> None:
    loads = [2, 0, 1, 0]
    scale = _Scale([0, 1, 2, 3], loads)
    given: list[int] = []
    for _ in range(7):
        member = scale.lightest()
        loads[member] += 1
        given.append(member)
    assert given == [1, 3, 1, 3, 2, 1, 3]
    assert scale.spread == 2


def test_the_high_side_is_worn_down_level_by_level() -> None:
    loads = [3, 1, 3, 2]
    scale = _Scale([0, 1, 2, 3], loads)
    taken: list[int | None] = []
    for _ in range(5):
        member = scale.heaviest()
        assert member is not None
        loads[member] -= 1
        taken.append(member)
    assert taken == [2, 0, 2, 0, 3]


def test_excluded_members_are_not_yielded_again() -> None:
    loads = [1, 2, 2]
    scale = _Scale([0, 1, 2], loads)
    assert scale.heaviest() == 2
    scale.exclude()
    assert scale.heaviest() == 1
    scale.exclude()
    assert scale.heaviest() == 0
    scale.exclude()
    assert scale.heaviest() is None
