"""Resolution of a group's regexes: which topics they match, and whether that changes anything.

Resolution reads every topic of the broker, so it never happens inside a heartbeat: a heartbeat that
finds it due requests it, the result arrives as separate records, and the next heartbeat of any
member computes the new target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mock_coordinator.core.groups.assignment.regex import matching_topics
from mock_coordinator.core.groups.assignment.subscriptions import epoch_records, summarize
from mock_coordinator.core.groups.records.state_records import (
    RegularExpression,
    ResolvedRegex,
    StateRecord,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment

__all__ = ["decide_resolution"]


def decide_resolution(
    env: Environment,
    now_ms: int,
    group_id: str,
    regexes: Iterable[str],
    is_visible: Callable[[str], bool] | None = None,
) -> Decision[None]:
    """Match the regexes that are still in use. The group epoch moves when topics came or went.

    ``is_visible``: which topics the member may describe that made this necessary (``None``: all).
    """
    group = env.state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return Decision(None)
    records: list[StateRecord] = []
    covered = dict(group.by_regex)
    bump = False
    for regex in regexes:
        if regex not in group.regexes:
            continue
        topics = matching_topics(regex, env.catalog.topics)
        if is_visible is not None:
            topics = tuple(topic for topic in topics if is_visible(topic))
        old = group.resolved.get(regex)
        before = () if old is None else old.topics
        if topics != before:
            bump = True
            for topic in before:
                covered[topic] -= 1
            for topic in topics:
                covered[topic] = covered.get(topic, 0) + 1
        resolved = ResolvedRegex(topics, env.catalog.version, now_ms)
        records.append(RegularExpression(group_id, regex, resolved))
    names = [*group.by_name, *(topic for topic, count in covered.items() if count > 0)]
    summary = summarize(env, dict.fromkeys(names))
    bump = bump or not summary.matches(group)
    records += epoch_records(group, summary, group.epoch + bump, bump=bump)
    return Decision(None, records, metadata_checked=group_id if bump else None)
