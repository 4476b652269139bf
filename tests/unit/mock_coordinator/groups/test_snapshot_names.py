"""Snapshots name the topics of partitions: nobody has to look into the broker for them."""

from __future__ import annotations

from typing import Any

from kip848_client.core.types import TopicId, TopicPartition, format_topic_id
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.groups import MemberSnapshot


class Group:
    """A broker and members that beat when they are told."""

    def __init__(self) -> None:
        self.broker = MockBroker(
            {"b": 2, "a": 2},
            clock=VirtualClock(),
            listen=False,
            config={"group.consumer.assignment.interval.ms": "0"},
        )
        self._epochs: dict[str, int] = {}

    def beat(self, member_id: str, *, joins: bool = False, has: tuple[Any, ...] = ()) -> None:
        fields: dict[str, Any] = (
            {
                "subscribed_topic_names": ("a", "b"),
                "rebalance_timeout_ms": 60_000,
                "topic_partitions": has,
            }
            if joins
            else {}
        )
        with self.broker.connect() as connection:
            answer = connection.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id="g",
                    member_id=member_id,
                    member_epoch=self._epochs.get(member_id, 0),
                    **fields,
                )
            )
        assert answer.error_code == 0
        self._epochs[member_id] = answer.member_epoch

    def member(self, member_id: str) -> MemberSnapshot:
        group = self.broker.snapshot("g")
        assert group is not None
        return group.members[member_id]


ALL = (("a", 0), ("a", 1), ("b", 0), ("b", 1))


def test_what_a_member_has_gives_up_and_should_have_is_named() -> None:
    group = Group()
    group.beat("one", joins=True)
    one = group.member("one")
    assert one.owned_partitions == one.target_partitions == ALL
    assert one.owned_partitions[0] == TopicPartition("a", 0)
    assert one.owned_partitions[0].topic == "a"
    assert one.pending_revocation_partitions == ()
    group.beat("two", joins=True)
    group.beat("one")
    one, two = group.member("one"), group.member("two")
    assert len(one.pending_revocation_partitions) == 2
    assert sorted((*one.owned_partitions, *one.pending_revocation_partitions)) == list(ALL)
    assert two.target_partitions == one.pending_revocation_partitions
    assert two.owned_partitions == ()


def test_a_snapshot_keeps_the_names_of_its_moment() -> None:
    group = Group()
    group.beat("one", joins=True)
    before = group.member("one")
    (gone,) = [topic_id for topic_id, name in before.topic_names.items() if name == "a"]
    group.broker.delete_topic("a")
    group.broker.create_topic("a", 1)
    after = group.member("one")
    assert before.owned_partitions == ALL
    text = format_topic_id(TopicId(gone))
    assert set(after.owned_partitions) == {(text, 0), (text, 1), ("b", 0), ("b", 1)}


def test_names_make_no_difference_between_snapshots() -> None:
    group = Group()
    group.beat("one", joins=True)
    before = group.member("one")
    group.broker.create_topic("more", 1)
    after = group.member("one")
    assert before.topic_names != after.topic_names
    assert before == after
    assert ", topic_names=" not in repr(after)


def test_names_are_gathered_once() -> None:
    group = Group()
    group.beat("one", joins=True)
    assert group.member("one").topic_names is group.member("one").topic_names
