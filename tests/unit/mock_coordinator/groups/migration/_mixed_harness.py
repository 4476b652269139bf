"""A group whose members speak both protocols: a ``ClassicGroupHarness`` with consumers.

``harness.consumers.join("N")`` is a consumer heartbeat, ``harness.join("c1")`` a JoinGroup.
``bring`` says in the subscription what the member still owns; ``given`` is what SyncGroup assigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from mock_coordinator.core.groups import GroupSnapshot
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    TopicPartitions,
    read_assignment,
    write_assignment,
    write_subscription,
)
from mock_coordinator.core.settings.broker_config import BrokerConfig
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness

__all__ = ["MixedGroupHarness", "assigns", "brings"]

Owned = Mapping[str, Iterable[int]]


def brings(*topics: str, owned: Owned | None = None, version: int = 3) -> bytes:
    """A subscription of somebody who still owns something."""
    partitions = _topics(owned or {})
    said = ConsumerSubscription(topics=topics or ("foo",), owned_partitions=partitions)
    return write_subscription(said, version)


def assigns(owned: Owned, *, user_data: bytes | None = None) -> bytes:
    """An assignment as leaders write it."""
    partitions = _topics(owned)
    return write_assignment(ConsumerAssignment(assigned_partitions=partitions, user_data=user_data))


def _topics(owned: Owned) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(numbers)) for topic, numbers in owned.items()
    )


class MixedGroupHarness(ClassicGroupHarness):
    """See the module. ``config`` are broker settings with underscores."""

    def __init__(self, profile: str = "4.4", **config: str | int) -> None:
        super().__init__(profile)
        settings = {name.replace("_", "."): str(value) for name, value in config.items()}
        settings.setdefault("group.initial.rebalance.delay.ms", "0")
        if self.consumers.profile.has_assignment_interval:
            settings.setdefault("group.consumer.assignment.interval.ms", "0")
        self.consumers.config = BrokerConfig(self.consumers.profile, settings)
        self.restart()

    @property
    def snapshot(self) -> GroupSnapshot:
        found = self.groups.snapshot("g")
        assert found is not None
        return found

    def bring(self, name: str, owned: Owned | None = None) -> JoinGroupResponse:
        """JoinGroup that is answered at once."""
        answer = self.join(name, metadata=brings(owned=owned))
        assert answer is not None
        return answer

    def ask_for(
        self, name: str, assignments: Mapping[str, bytes] | None = None
    ) -> SyncGroupResponse | None:
        """SyncGroup in the member's generation; leaders say what others get."""
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generations.get(name, 0),
            member_id=self.ids.get(name, name),
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=self.ids[each], assignment=raw)
                for each, raw in (assignments or {}).items()
            ),
        )
        answer = self.send(name, request, 4)
        assert answer is None or isinstance(answer, SyncGroupResponse)
        return answer

    def given(self, name: str) -> dict[str, list[int]]:
        """What SyncGroup brings; it must be answered at once, and not be refused."""
        answer = self.ask_for(name)
        assert answer is not None
        assert answer.error_code == 0
        assigned = read_assignment(answer.assignment)[1].assigned_partitions
        return {each.topic: sorted(each.partitions) for each in assigned}

    def classic_group(self, *names: str, owned: Mapping[str, Owned]) -> None:
        """A Stable classic group, the first name leading, assigned as it says."""
        for name in names:
            self.join(name, version=3)
        for name in names[:-1]:
            self.join(name)
        for name in names[1:]:
            self.ask_for(name)
        self.ask_for(names[0], {name: assigns(owned[name]) for name in owned})
        self.late()
        assert self.now.state == "Stable"
