"""Requests that name several groups: split by coordinator, and their responses merged.

All other requests about groups have a single group, and one coordinator answers them. The order of
the result is Kafka's: the groups of one coordinator stay together, and the coordinators come in the
order of a Java ``HashMap`` of ``TopicPartition``; groups that need no coordinator come first.
OffsetFetch keeps the order of its request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from kip848_client.core.assignors._java_order import DEFAULT_CAPACITY, string_hash, table_order
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.connect_group import ConnectGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest

__all__ = ["SPLITS", "Split", "coordinator_order", "partition_for"]

_OFFSETS_TOPIC: Final = "__consumer_offsets"
_MASK_32: Final = 0xFFFFFFFF
_LOWEST: Final = -(1 << 31)


def partition_for(key: str, partitions: int) -> int:
    """Which of the ``partitions`` of an internal topic a group, or a transactional id, belongs
    to."""
    code = string_hash(key)
    return 0 if code == _LOWEST else abs(code) % partitions


@lru_cache(maxsize=1 << 12)
def _spread(partition: int) -> int:
    """``HashMap``'s spreading of ``TopicPartition.hashCode()``."""
    code = (31 * (31 + partition) + string_hash(_OFFSETS_TOPIC)) & _MASK_32
    return code ^ code >> 16


def coordinator_order(partitions: Iterable[int]) -> list[int]:
    """Partitions of ``__consumer_offsets`` in the order of a Java map that got them in this
    order."""
    return table_order(list(dict.fromkeys(partitions)), _spread, DEFAULT_CAPACITY)


@dataclass(frozen=True, slots=True)
class Split:
    """How one kind of request is cut.

    ``groups`` gives its group ids as they come, ``only`` a request for some of its places, and
    ``merge`` one response of several. ``in_order``: the answers have the order of the request.
    ``nameless``: an empty group id is refused before any node is asked.
    """

    groups: Callable[[Any], Sequence[str]]
    only: Callable[[Any, Sequence[int]], Message]
    merge: Callable[[Sequence[Any]], Message]
    in_order: bool = False
    nameless: bool = False

    def parts(
        self, request: Message, partition_of: Callable[[str], int]
    ) -> list[tuple[int, Message]]:
        """The requests to make of one, each with the partition of its groups, in the order of
        their answers. Just the request itself when all its groups have one coordinator."""
        groups = self.groups(request)
        if self.in_order:
            if len(groups) == 1:
                return [(partition_of(groups[0]), request)]
            return [(partition_of(g), self.only(request, (i,))) for i, g in enumerate(groups)]
        places: dict[int, list[int]] = {}
        nameless = [i for i, g in enumerate(groups) if self.nameless and not g]
        for place, group in enumerate(groups):
            if group or not self.nameless:
                places.setdefault(partition_of(group), []).append(place)
        if len(places) + bool(nameless) == 1:
            return [(next(iter(places), 0), request)]
        parts = [(0, self.only(request, nameless))] if nameless else []
        parts += [(p, self.only(request, places[p])) for p in coordinator_order(places)]
        return parts


def _some_described(
    request: ConsumerGroupDescribeRequest | ConnectGroupDescribeRequest, places: Sequence[int]
) -> Message:
    return replace(request, group_ids=tuple(request.group_ids[i] for i in places))


def _some_classic(request: DescribeGroupsRequest, places: Sequence[int]) -> Message:
    return replace(request, groups=tuple(request.groups[i] for i in places))


def _some_deleted(request: DeleteGroupsRequest, places: Sequence[int]) -> Message:
    return replace(request, groups_names=tuple(request.groups_names[i] for i in places))


def _some_fetched(request: OffsetFetchRequest, places: Sequence[int]) -> Message:
    return replace(request, groups=tuple(request.groups[i] for i in places))


def _merged_groups(answers: Sequence[Any]) -> Message:
    merged: Message = replace(answers[0], groups=tuple(g for a in answers for g in a.groups))
    return merged


def _merged_results(answers: Sequence[Any]) -> Message:
    merged: Message = replace(answers[0], results=tuple(r for a in answers for r in a.results))
    return merged


SPLITS: Final[dict[type, Split]] = {
    ConsumerGroupDescribeRequest: Split(
        lambda request: request.group_ids, _some_described, _merged_groups, nameless=True
    ),
    ConnectGroupDescribeRequest: Split(
        lambda request: request.group_ids, _some_described, _merged_groups, nameless=True
    ),
    DeleteGroupsRequest: Split(
        lambda request: request.groups_names, _some_deleted, _merged_results
    ),
    DescribeGroupsRequest: Split(lambda request: request.groups, _some_classic, _merged_groups),
    OffsetFetchRequest: Split(
        lambda request: [group.group_id for group in request.groups],
        _some_fetched,
        _merged_groups,
        in_order=True,
    ),
}
"""By request class. OffsetFetch before version 8 has its one group in a field of its own."""
