"""What a group subscribes to, and whether that changed: names, regexes, and the topics behind them.

A group epoch is the version of the inputs of the target assignment. This module computes the inputs
after a heartbeat: which topics (``prospective_topics``), the shape of these topics
(``TopicSummary``), and the effect of a changed regex (``regex_change``).

Topic changes are detected by comparing summaries. Kafka 4.0 stores the topics themselves, 4.1 and
later a 64-bit hash of them (KIP-1101, ``metadata_hash``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kip848_client.core.assignors import string_set_order
from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.assignment.metadata_hash import group_hash, topic_hash
from mock_coordinator.core.groups.assignment.regex import require_valid_regex
from mock_coordinator.core.groups.records.state_records import (
    GroupEpoch,
    GroupEpochMetadata,
    MemberSubscription,
    PartitionMetadata,
    RegularExpression,
    StateRecord,
    TopicShape,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.topics.catalog import Catalog

__all__ = [
    "RegexChange",
    "TopicSummary",
    "changed_regex",
    "epoch_records",
    "prospective_regexes",
    "prospective_topics",
    "regexes_to_resolve",
    "subscribed_names",
    "subscribed_topic_ids",
    "summarize",
]

REGEX_BRAKE_MS = 10_000
"""The least time between two resolutions of a group's regexes."""


# --- Topics ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """The subscribed topics that exist, as a group remembers them: one of the two is used."""

    shapes: tuple[TopicShape, ...] = ()
    metadata_hash: int = 0

    def matches(self, group: ConsumerGroup) -> bool:
        """Whether the group remembers the same."""
        return self.metadata_hash == group.metadata_hash and self.shapes == group.topic_shapes


def summarize(env: Environment, names: Iterable[str]) -> TopicSummary:
    """Look at the topics of these names."""
    found = [topic for name in sorted(names) if (topic := env.catalog.topic(name)) is not None]
    if not env.profile.metadata_hash:
        shapes = (TopicShape(topic.name, topic.topic_id, topic.partitions) for topic in found)
        return TopicSummary(shapes=tuple(shapes))
    racks_of = env.catalog.racks_of
    return TopicSummary(
        metadata_hash=group_hash(
            topic_hash(topic.name, topic.topic_id, topic.partitions, racks_of(topic))
            for topic in found
        )
    )


def epoch_records(
    group: ConsumerGroup, summary: TopicSummary, epoch: int, *, bump: bool
) -> list[StateRecord]:
    """The records of a new group epoch; before 4.1 also of changed topics."""
    records: list[StateRecord] = []
    if summary.shapes != group.topic_shapes:
        records.append(PartitionMetadata(group.group_id, summary.shapes))
    if bump:
        value = GroupEpoch(epoch, summary.metadata_hash)
        records.append(GroupEpochMetadata(group.group_id, value))
    return records


def prospective_topics(
    group: ConsumerGroup, old: MemberSubscription, new: MemberSubscription
) -> dict[str, tuple[int, int]]:
    """topic -> (members by name, resolved regexes) once the member's change is counted in."""
    counts = group.subscribed_topics()
    if old.subscribed_topic_names != new.subscribed_topic_names:
        _shift(counts, old.subscribed_topic_names, by_name=-1)
        _shift(counts, new.subscribed_topic_names, by_name=1)
    regex = old.subscribed_topic_regex
    if regex != new.subscribed_topic_regex and group.regexes.get(regex) == 1:
        resolved = group.resolved.get(regex)
        if resolved is not None:
            _shift(counts, resolved.topics, by_regex=-1)
    return counts


def _shift(
    counts: dict[str, tuple[int, int]],
    topics: Iterable[str],
    *,
    by_name: int = 0,
    by_regex: int = 0,
) -> None:
    for topic in topics:
        names, regexes = counts.get(topic, (0, 0))
        count = (names + by_name, regexes + by_regex)
        if count == (0, 0):
            counts.pop(topic, None)
        else:
            counts[topic] = count


def prospective_regexes(
    group: ConsumerGroup, old: MemberSubscription, new: MemberSubscription
) -> dict[str, int]:
    """regex -> members that use it once the member's change is counted in."""
    counts = dict(group.regexes)
    if old.subscribed_topic_regex != new.subscribed_topic_regex:
        for regex, change in ((old.subscribed_topic_regex, -1), (new.subscribed_topic_regex, 1)):
            if regex:
                counts[regex] = counts.get(regex, 0) + change
                if not counts[regex]:
                    del counts[regex]
    return counts


def subscribed_names(
    subscription: MemberSubscription,
    resolved: Mapping[str, object],
    order: Iterable[str] | None = None,
) -> list[str]:
    """The topics of one member, by name and by resolved regex, in Kafka's order of iteration.

    ``order``: the names as the request of this very member lists them.
    """
    names = string_set_order(subscription.subscribed_topic_names if order is None else order)
    regex = resolved.get(subscription.subscribed_topic_regex)
    topics: tuple[str, ...] = getattr(regex, "topics", ())
    if not topics:
        return names
    matched = string_set_order(topics)
    if not names:
        return matched
    return list(dict.fromkeys([*names, *matched]))


def subscribed_topic_ids(catalog: Catalog, names: Iterable[str]) -> tuple[TopicId, ...]:
    """The ids of those that exist."""
    return tuple(topic.topic_id for name in names if (topic := catalog.topic(name)) is not None)


# --- Regexes --------------------------------------------------------------------------------------


class RegexChange(Enum):
    """What a heartbeat does to its member's regex."""

    NONE = "none"
    UPDATED = "updated"
    """Another one, whose topics are not known yet."""
    UPDATED_AND_KNOWN = "updated and known"
    """The member's topics are known at once: the regex is resolved already, or was removed."""


def changed_regex(
    env: Environment, group: ConsumerGroup, old: str, new: str, records: list[StateRecord]
) -> RegexChange:
    """Compare the member's regexes; note a tombstone for one that no other member uses.

    Raises ``Refused`` INVALID_REGULAR_EXPRESSION when the new one is new to the group and not
    valid.
    """
    if old == new:
        return RegexChange.NONE
    if old and group.regexes.get(old) == 1:
        records.append(RegularExpression(group.group_id, old, None))
    if not new:
        return RegexChange.UPDATED_AND_KNOWN
    if new not in group.regexes:
        require_valid_regex(new, named_groups=env.profile.regex_named_groups)
        return RegexChange.UPDATED
    return RegexChange.UPDATED_AND_KNOWN if new in group.resolved else RegexChange.UPDATED


def regexes_to_resolve(
    env: Environment,
    group: ConsumerGroup,
    old: MemberSubscription,
    new: MemberSubscription,
    now_ms: int,
) -> tuple[str, ...]:
    """The regexes to resolve now: all that the group will use, or none.

    A resolution starts when none is in flight, the latest is more than 10 s old, and there is a
    reason: a regex that is not resolved, topics created since, or (4.1+) age.
    """
    brings_new = (
        old.subscribed_topic_regex != new.subscribed_topic_regex
        and bool(new.subscribed_topic_regex)
        and new.subscribed_topic_regex not in group.regexes
    )
    if not brings_new and not group.regexes:
        return ()
    if env.timers.deadline_of(Timer(TimerKind.REGEX, group.group_id)) is not None:
        return ()
    latest = group.newest_regex()
    if latest is not None and now_ms <= latest.timestamp_ms + REGEX_BRAKE_MS:
        return ()
    regexes = prospective_regexes(group, old, new)
    due = brings_new or len(regexes) != len(group.resolved)
    if latest is not None and not due:
        due = latest.version < env.catalog.created_version
        if not due and env.profile.regex_refresh:
            refresh_ms = env.config.integer("group.consumer.regex.refresh.interval.ms")
            due = now_ms > latest.timestamp_ms + refresh_ms
    return tuple(regexes) if due else ()
