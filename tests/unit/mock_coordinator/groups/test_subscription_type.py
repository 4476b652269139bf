"""When a group counts as homogeneous: settled by its members' records, not by its regexes'."""

from __future__ import annotations

from kip848_client.core.assignors import SubscriptionType
from mock_coordinator.core.groups.records.state_records import (
    CurrentAssignment,
    MemberSubscription,
    ResolvedRegex,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup

HOMOGENEOUS, HETEROGENEOUS = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS


def subscription(*names: str, regex: str = "") -> MemberSubscription:
    return MemberSubscription(
        subscribed_topic_names=tuple(sorted(names)), subscribed_topic_regex=regex
    )


def test_members_with_the_same_names_are_homogeneous() -> None:
    group = ConsumerGroup("g", 0)
    assert group.subscription_type is HOMOGENEOUS
    group.apply_subscription("A", subscription("foo"))
    group.apply_subscription("B", subscription("foo"))
    assert group.subscription_type is HOMOGENEOUS
    group.apply_subscription("B", subscription("foo", "bar"))
    assert group.subscription_type is HETEROGENEOUS
    group.apply_subscription("B", None)
    assert group.subscription_type is HOMOGENEOUS


def test_a_regex_that_is_dropped_after_its_member_still_counts() -> None:
    """Kafka 4.0 to 4.4: the member's tombstone comes before that of its regex."""
    group = ConsumerGroup("g", 0)
    group.apply_subscription("A", subscription("foo"))
    group.apply_subscription("B", subscription(regex="ba.*"))
    group.apply_regex("ba.*", ResolvedRegex(topics=("bar",), version=1, timestamp_ms=0))
    group.apply_subscription("B", None)
    group.apply_regex("ba.*", None)
    assert group.subscribed_topics() == {"foo": (1, 0)}
    assert group.subscription_type is HETEROGENEOUS
    group.apply_current("A", CurrentAssignment(member_epoch=1, previous_member_epoch=0))
    assert group.subscription_type is HOMOGENEOUS
