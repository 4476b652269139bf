"""What a well-informed group of clients would know: built from the real broker's answers.

The model lets the generator choose requests that mean something (acknowledge what was assigned,
use the epoch before the last one, replace a static member that left). It predicts nothing: what
the broker should answer is for the real broker to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.differential._steps import Topic

__all__ = ["GroupModel", "MemberModel", "Partitions", "as_wire"]

Partitions = frozenset[tuple[bytes, int]]
"""(topic id, partition)."""

UNKNOWN_MEMBER = 25


@dataclass(slots=True)
class MemberModel:
    """One member as its client sees it."""

    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = frozenset()
    """The last assignment that was received."""
    owned: Partitions = frozenset()
    """What was last reported as owned."""
    names: tuple[str, ...] = ()
    pattern: str = ""
    is_away: bool = False
    """A static member that left with epoch -2."""


@dataclass(slots=True)
class GroupModel:
    """One group: its members, those that are gone, and what was committed."""

    group_id: str
    members: dict[str, MemberModel] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    """Ids of members that left or were replaced."""
    committed: set[tuple[str, int]] = field(default_factory=set)

    def pick(self, rng: random.Random) -> MemberModel | None:
        """Any member, those that are away included; ``None`` when there is none."""
        return rng.choice(list(self.members.values())) if self.members else None

    def heard(
        self, request: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Learn from one answered heartbeat."""
        member = self.members.get(request.member_id or str(answer.member_id))
        if answer.error_code == UNKNOWN_MEMBER and member is not None:
            self._forget(member)
        if answer.error_code != 0:
            return
        if request.member_epoch == -1:
            if member is not None:
                self._forget(member)
            return
        if request.member_epoch == -2:
            if member is not None:
                member.is_away = True
            return
        if member is None:
            member = self._joined(request, str(answer.member_id))
        self._update(member, request, answer)

    def deleted(self) -> None:
        """The group was deleted."""
        self.members.clear()
        self.committed.clear()

    def _joined(self, request: ConsumerGroupHeartbeatRequest, member_id: str) -> MemberModel:
        if request.instance_id is not None:
            for other in list(self.members.values()):
                if other.instance_id == request.instance_id:
                    self._forget(other)
        member = MemberModel(member_id, request.instance_id)
        self.members[member.member_id] = member
        return member

    def _forget(self, member: MemberModel) -> None:
        del self.members[member.member_id]
        self.gone.append(member.member_id)

    def _update(
        self,
        member: MemberModel,
        request: ConsumerGroupHeartbeatRequest,
        answer: ConsumerGroupHeartbeatResponse,
    ) -> None:
        member.is_away = False
        if request.instance_id is not None:
            member.instance_id = request.instance_id
        if answer.member_epoch != member.epoch:
            member.previous_epoch = member.epoch
            member.epoch = answer.member_epoch
        if answer.assignment is not None:
            member.assigned = from_wire(answer.assignment.topic_partitions)
        if request.topic_partitions is not None:
            member.owned = from_wire(request.topic_partitions)
        if request.subscribed_topic_names is not None:
            member.names = request.subscribed_topic_names
        if request.subscribed_topic_regex is not None:
            member.pattern = request.subscribed_topic_regex


def from_wire(topics: Iterable[Any]) -> Partitions:
    """The set that a message's ``topic_partitions`` lists."""
    return frozenset((each.topic_id, number) for each in topics for number in each.partitions)


def as_wire(
    partitions: Iterable[tuple[bytes, int]],
) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
    """The ``topic_partitions`` of a heartbeat, in an order that depends on the content only."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(number)
    return tuple(
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=each, partitions=tuple(numbers))
        for each, numbers in by_topic.items()
    )


def everything(topics: Mapping[str, Topic]) -> list[tuple[bytes, int]]:
    """Every partition of every topic."""
    return [
        (each.topic_id, number) for each in topics.values() for number in range(each.partitions)
    ]
