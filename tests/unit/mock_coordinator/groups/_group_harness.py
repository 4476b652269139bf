"""A group coordinator in virtual time, driven in the words of the behaviour scenarios.

``GroupHarness`` has the topics ``foo`` (6 partitions) and ``bar`` (3), one group ``g``, and a
clock that only ``pass_ms`` moves. Heartbeats are ``join("A")`` and ``beat("A", 1)``; what they
return is an ``Answer`` that compares like the scenarios read: error or epoch, and the assignment
by topic name.
In profiles from 4.3 on the assignment interval is 0 unless a test sets it, and ``first`` is 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from kip848_client.core.types import TopicId
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from mock_coordinator.core.groups import GroupCoordinator, GroupSnapshot, MemberSnapshot
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.profiles import PROFILES, profile_named
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Catalog

__all__ = [
    "ALL_PROFILES",
    "BAR",
    "EVERY_PROFILE",
    "FOO",
    "FROM_4_3",
    "Answer",
    "GroupHarness",
    "parts",
    "topic_id",
]

ALL_PROFILES: Final = tuple(PROFILES)
EVERY_PROFILE: Final = pytest.mark.parametrize("profile", ALL_PROFILES)
FROM_4_3: Final = ("4.3", "4.4")


def topic_id(number: int) -> TopicId:
    """The ids of the scenarios: 0..01, 0..02, ..."""
    return TopicId(number.to_bytes(16, "big"))


FOO: Final = topic_id(1)
BAR: Final = topic_id(2)

Assigned = dict[str, list[int]]


def parts(**topics: Iterable[int]) -> Assigned:
    """``parts(foo=range(6))``; topics without partitions are left out."""
    return {name: sorted(numbers) for name, numbers in topics.items() if list(numbers)}


@dataclass(frozen=True)
class Answer:
    """What a heartbeat answered. ``assigned`` None is a null assignment."""

    error: int
    message: str | None
    member_id: str | None
    epoch: int
    interval_ms: int
    assigned: Assigned | None


class GroupHarness:
    """See the module."""

    def __init__(
        self,
        profile: str = "4.4",
        *,
        member_id: str = "0123456789abcdefghijkl",
        **config: str | int,
    ) -> None:
        self.profile = profile_named(profile)
        self.catalog = Catalog()
        self.names: dict[TopicId, str] = {}
        self.now = 1_000_000
        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        if self.profile.has_assignment_interval:
            settings.setdefault("group.consumer.assignment.interval.ms", "0")
        self.config = BrokerConfig(self.profile, settings)
        self._member_id = member_id
        self._pick = 0
        self.create("foo", 6)
        self.create("bar", 3)
        self.groups = GroupCoordinator(
            self.profile, self.config, self.catalog, self._new_member_id, self.now
        )

    def _new_member_id(self) -> str:
        return self._member_id

    @property
    def first(self) -> int:
        """The epoch after the first join with topic names."""
        return self.profile.first_group_epoch + 1

    # --- Time and topics --------------------------------------------------------------------------

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass, stopping at every deadline on the way."""
        end = self.now + milliseconds
        while (deadline := self.groups.deadline_ms) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.groups.run_due(self.now)
        self.now = end

    def create(self, name: str, partitions: int, *, id_: TopicId | None = None) -> TopicId:
        """Add a topic; the group coordinator is told."""
        id_ = id_ or topic_id(len(self.names) + 1)
        self.catalog.create(name, partitions, id_)
        self.names[id_] = name
        if hasattr(self, "groups"):
            self._tell()
        return id_

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions to a topic."""
        self.catalog.grow(name, partitions)
        self._tell()

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.catalog.delete(name)
        self._tell()

    def _tell(self) -> None:
        changes = self.catalog.take_changes()
        assert changes is not None
        self.groups.topics_changed(self.now, changes.names, changes.deleted)

    def restart(self) -> None:
        """Throw the coordinator away and replay its records."""
        self.groups = GroupCoordinator.replay(
            self.profile,
            self.config,
            self.catalog,
            self._new_member_id,
            self.groups.records,
            self.now,
        )

    # --- Heartbeats -------------------------------------------------------------------------------

    def join(
        self,
        member: str,
        names: Sequence[str] | None = ("foo",),
        *,
        rto: int = 30_000,
        regex: str | None = None,
        inst: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
    ) -> Answer:
        """A heartbeat with epoch 0 and everything that a join needs."""
        return self.beat(
            member,
            0,
            {},
            names=names,
            rto=rto,
            regex=regex,
            inst=inst,
            rack=rack,
            assignor=assignor,
        )

    def beat(
        self,
        member: str,
        epoch: int,
        owned: Mapping[str, Iterable[int]] | None = None,
        *,
        names: Sequence[str] | None = None,
        regex: str | None = None,
        rto: int = -1,
        inst: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
        group: str = "g",
        version: int = 1,
        client: ClientInfo | None = None,
    ) -> Answer:
        """A heartbeat that carries what is given and null for the rest."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            instance_id=inst,
            rack_id=rack,
            rebalance_timeout_ms=rto,
            subscribed_topic_names=None if names is None else tuple(names),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None if owned is None else self._owned(owned),
        )
        response = self.ask(request, version, client)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        return self._answer(response)

    def _owned(
        self, owned: Mapping[str, Iterable[int]]
    ) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...]:
        ids = {name: id_ for id_, name in self.names.items()}
        return tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=ids.get(name, topic_id(999)), partitions=tuple(numbers)
            )
            for name, numbers in owned.items()
        )

    def _answer(self, response: ConsumerGroupHeartbeatResponse) -> Answer:
        assigned: Assigned | None = None
        if response.assignment is not None:
            assigned = {
                self.names[TopicId(topic.topic_id)]: sorted(topic.partitions)
                for topic in response.assignment.topic_partitions
            }
        return Answer(
            int(response.error_code),
            response.error_message,
            response.member_id,
            response.member_epoch,
            response.heartbeat_interval_ms,
            assigned,
        )

    def settle(self, *members: str) -> None:
        """Let members heartbeat and acknowledge until nothing changes any more."""
        for _ in range(20):
            before = len(self.groups.records)
            for member in members:
                known = self.member(member)
                owned = {self.names[id_]: list(held) for id_, held in known.owned.items()}
                assert self.beat(member, known.epoch, owned).error == 0
            if len(self.groups.records) == before:
                return
        raise AssertionError("the group does not settle")

    # --- Offsets ----------------------------------------------------------------------------------

    def commit(
        self,
        member: str,
        epoch: int,
        offsets: Mapping[str, Mapping[int, int]],
        *,
        group: str = "g",
        version: int = 9,
        metadata: str | None = "",
        inst: str | None = None,
        retention_ms: int = -1,
    ) -> dict[str, dict[int, int]]:
        """OffsetCommit; topic -> partition -> error code."""
        ids = {name: id_ for id_, name in self.names.items()}
        response = self.ask(
            OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=epoch,
                member_id=member,
                group_instance_id=inst,
                retention_time_ms=retention_ms,
                topics=tuple(
                    OffsetCommitRequestTopic(
                        name="" if version >= 10 else name,
                        topic_id=ids.get(name, topic_id(999)) if version >= 10 else bytes(16),
                        partitions=tuple(
                            OffsetCommitRequestPartition(
                                partition_index=partition,
                                committed_offset=offset,
                                committed_leader_epoch=3,
                                committed_metadata=metadata,
                            )
                            for partition, offset in partitions.items()
                        ),
                    )
                    for name, partitions in offsets.items()
                ),
            ),
            version,
        )
        assert isinstance(response, OffsetCommitResponse)
        return {
            topic.name or self.names.get(TopicId(topic.topic_id), "nope"): {
                part.partition_index: int(part.error_code) for part in topic.partitions
            }
            for topic in response.topics
        }

    def fetch(
        self,
        topics: Mapping[str, Iterable[int]] | None,
        *,
        group: str = "g",
        member: str | None = None,
        epoch: int = -1,
        version: int = 9,
    ) -> int | dict[str, dict[int, int]]:
        """OffsetFetch v8+ of one group: topic -> partition -> offset, or the group's error."""
        request = OffsetFetchRequestGroup(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            topics=None
            if topics is None
            else tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=tuple(numbers))
                for name, numbers in topics.items()
            ),
        )
        response = self.ask(OffsetFetchRequest(groups=(request,)), version)
        assert isinstance(response, OffsetFetchResponse)
        found = response.groups[0]
        if found.error_code:
            return int(found.error_code)
        return {
            topic.name: {part.partition_index: part.committed_offset for part in topic.partitions}
            for topic in found.topics
        }

    # --- Looking ----------------------------------------------------------------------------------

    def ask(self, request: Message, version: int, client: ClientInfo | None = None) -> Message:
        """Any request."""
        self.groups.run_due(self.now)
        received = RequestReceived(1, 1, version, client or ClientInfo("client"), request)
        response = self.groups.handle(self.now, received)
        assert response is not None
        return response

    def group(self, group_id: str = "g") -> GroupSnapshot:
        """The group as a value."""
        snapshot = self.groups.snapshot(group_id)
        assert snapshot is not None
        return snapshot

    def member(self, member_id: str) -> MemberSnapshot:
        """A member as a value."""
        return self.group().members[member_id]

    def shape(self) -> str:
        """The group as the scenarios write it: ``#G2/A1 Assigning``."""
        group = self.group()
        return f"#G{group.epoch}/A{group.assignment_epoch} {group.state}"

    def epochs(self, member_id: str) -> tuple[int, int]:
        """(member epoch, previous member epoch)."""
        member = self.member(member_id)
        return member.epoch, member.previous_epoch

    def target(self, member_id: str) -> Assigned:
        """A member's target by topic name."""
        return {
            self.names[id_]: sorted(numbers)
            for id_, numbers in self.member(member_id).target.items()
            if numbers
        }

    def owned(self, member_id: str) -> Assigned:
        """What a member may use, by topic name."""
        return {
            self.names[id_]: sorted(numbers)
            for id_, numbers in self.member(member_id).owned.items()
        }

    def written(self, since: int) -> list[str]:
        """The names of the records after ``since``; tombstones with a minus."""
        return [
            type(record).__name__
            if getattr(record, "value", None) is not None
            else f"-{type(record).__name__}"
            for record in self.groups.records[since:]
        ]
