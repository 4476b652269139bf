"""Which assignor a group uses, and whether its subscriptions are homogeneous.

Both are decided from counters that the coordinator keeps for the group: pure functions of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kip848_client.core.assignors._java_order import (
    bucket_order,
    map_copy_capacity,
    string_spread,
    table_order,
)
from kip848_client.core.assignors._spec import SubscriptionType

__all__ = ["described_assignor", "elect_assignor", "subscription_type"]


def elect_assignor(
    votes: Mapping[str, int],
    default: str,
    *,
    withdrawn: str | None = None,
    cast: str | None = None,
) -> str:
    """The assignor that computes the next target: the one most members ask for.

    ``votes``: assignor name -> number of members that ask for it, as applied so far, in the order
    of the group's timeline table of assignor names (``TimelineOrder``). ``withdrawn`` and ``cast``:
    the ServerAssignor of the member whose heartbeat is being handled, before and after it; give
    both when they are equal, too, because Kafka takes the vote back and casts it again, and that
    can decide a tie. Members that name none do not vote. Without a vote the result is ``default``,
    the first entry of ``group.consumer.assignors``.

    Among equals the first in the order of a Java map wins. With one vote for ``uniform`` and one
    for ``range`` that is whichever of the two the member at hand asks for.
    """
    counts = {name: count for name, count in votes.items() if count > 0}
    capacity = map_copy_capacity(len(counts))
    order = table_order(list(counts), string_spread, capacity)
    if withdrawn is not None and withdrawn in counts:
        counts[withdrawn] -= 1
        if not counts[withdrawn]:
            order.remove(withdrawn)
    if cast is not None:
        # Map.compute puts a new key in front of its bucket; a copy has room for one more.
        counts[cast] = counts.get(cast, 0) + 1
        if cast not in order:
            order.insert(0, cast)
    order = bucket_order(order, string_spread, capacity)
    return _first_maximum(((name, counts[name]) for name in order), default)


def described_assignor(votes: Mapping[str, int], default: str) -> str:
    """The assignor that ConsumerGroupDescribe reports.

    ``votes`` in the order of the group's timeline table of assignor names (``TimelineOrder``):
    that order, not a hash map's, breaks ties here.
    """
    return _first_maximum(votes.items(), default)


def _first_maximum(counts: Iterable[tuple[str, int]], default: str) -> str:
    best, most = default, 0
    for name, count in counts:
        if count > most:
            best, most = name, count
    return best


def subscription_type(
    member_count: int,
    names: Mapping[str, tuple[int, int]],
    regexes: Collection[int],
) -> SubscriptionType:
    """Whether all members subscribe to the same topics, as the coordinator's counters show.

    ``names``: topic name -> (members that subscribe by name, distinct resolved regexes in use that
    cover it). ``regexes``: for each regex in use, how many members use it. Both include the member
    whose heartbeat is being handled. Without any subscription the group is homogeneous.
    """
    if not regexes:
        same = all(by_name == member_count for by_name, _ in names.values())
    else:
        same = next(iter(regexes)) == member_count and all(
            by_regex == 1 and by_name == 0 for by_name, by_regex in names.values()
        )
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS
