"""Where replicas go: round the live brokers, racks in turn."""

from __future__ import annotations

import pytest

from mock_coordinator.core.nodes import Node, Nodes
from mock_coordinator.core.nodes.placement import placed, racks_in_turn


def nodes(*racks: str | None, down: tuple[int, ...] = ()) -> list[Node]:
    return [
        Node(i, rack=rack, up=i not in down, fenced=i in down)
        for i, rack in enumerate(racks, start=1)
    ]


def test_leaders_go_round() -> None:
    where = placed(nodes(None, None, None), 0, range(7), 1)
    assert where == [(1,), (2,), (3,), (1,), (2,), (3,), (1,)]


def test_another_topic_begins_elsewhere() -> None:
    assert placed(nodes(None, None, None), 1, range(3), 1) == [(2,), (3,), (1,)]


def test_followers_shift_when_the_round_is_done() -> None:
    where = placed(nodes(None, None, None), 0, range(6), 2)
    assert where == [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]


def test_later_partitions_go_on_where_the_first_ended() -> None:
    whole = placed(nodes(None, None, None), 2, range(9), 3)
    assert placed(nodes(None, None, None), 2, range(4, 9), 3) == whole[4:]


def test_racks_take_turns() -> None:
    ring = racks_in_turn(nodes("a", "a", "b", "b"))
    assert [node.rack for node in ring] == ["a", "b", "a", "b"]
    for replicas in placed(nodes("a", "a", "b", "b"), 0, range(8), 2):
        assert {(r - 1) // 2 for r in replicas} == {0, 1}, "one replica in each rack"


def test_a_broker_that_is_down_leads_nothing_and_follows_only_when_it_must() -> None:
    three = nodes(None, None, None, down=(3,))
    assert placed(three, 0, range(4), 1) == [(1,), (2,), (1,), (2,)]
    assert placed(three, 0, range(2), 3) == [(1, 2, 3), (2, 1, 3)]


def test_with_all_down_the_replicas_are_written_down_all_the_same() -> None:
    assert placed(nodes(None, None, down=(1, 2)), 0, range(1), 2) == [(1, 2)]


def test_nodes_have_different_ids() -> None:
    with pytest.raises(ValueError, match="must be unique"):
        Nodes([Node(1), Node(1)])
    with pytest.raises(ValueError, match="must be unique"):
        Nodes([])
