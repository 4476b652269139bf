"""Classic members in a group that a member computes for: what the scenarios S77 and S78 do not
show."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kip848_client.core.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestClientAssignor,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerSubscription,
    read_assignment,
    write_subscription,
)
from tests.unit.mock_coordinator.groups._group_harness import ALL_PROFILES, EVERY_PROFILE, FOO
from tests.unit.mock_coordinator.groups.migration._mixed_harness import MixedGroupHarness


def says(data: bytes | None) -> bytes:
    return write_subscription(ConsumerSubscription(topics=("foo",), user_data=data))


class Office(MixedGroupHarness):
    """Member A computes with its assignor ``mine``; the others speak the classic protocol."""

    def heartbeat(self, epoch: int, **fields: object) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=epoch)
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.send("A", request, 1)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def opens(self, low: int = -1, name: str = "A") -> ConsumerGroupHeartbeatResponse:
        mine = ConsumerGroupHeartbeatRequestClientAssignor(
            name="mine", minimum_version=low, maximum_version=1
        )
        return self.heartbeat(
            0,
            member_id=name,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=("foo",),
            topic_partitions=(),
            client_assignors=(mine,),
        )

    def prepare(self, epoch: int) -> ConsumerGroupPrepareAssignmentResponse:
        request = ConsumerGroupPrepareAssignmentRequest(
            group_id="g", member_id="A", member_epoch=epoch
        )
        answer = self.send("A", request, 0)
        assert isinstance(answer, ConsumerGroupPrepareAssignmentResponse)
        assert answer.error_code == 0
        return answer

    def install(self, epoch: int, group_epoch: int, said: dict[str, tuple[int, bytes]]) -> int:
        """All partitions for A, and words for whom it says."""
        rows = [
            ConsumerGroupInstallAssignmentRequestMember(
                member_id=name, metadata_version=version, metadata_bytes=data
            )
            for name, (version, data) in said.items()
        ]
        rows[0].partitions = (AssignmentTopicPartitions(topic_id=FOO, partitions=tuple(range(6))),)
        request = ConsumerGroupInstallAssignmentRequest(
            group_id="g",
            member_id="A",
            member_epoch=epoch,
            group_epoch=group_epoch,
            members=tuple(rows),
        )
        code: int = self.send("A", request, 0).error_code
        return code

    def joins_with(self, name: str, *protocols: tuple[str, bytes]) -> int:
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.ids.get(name, name),
            protocol_type="consumer",
            protocols=tuple(
                JoinGroupRequestProtocol(name=each, metadata=raw) for each, raw in protocols
            ),
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
        )
        code: int = self.send(name, request).error_code
        return code

    def told(self, name: str) -> bytes | None:
        """The user data that SyncGroup brings."""
        answer = self.ask_for(name)
        assert answer is not None
        assert answer.error_code == 0
        return read_assignment(answer.assignment)[1].user_data


@EVERY_PROFILE
@pytest.mark.parametrize(
    ("embedded", "metadata"),
    [
        pytest.param(says(b"tasks"), b"tasks", id="user data"),
        pytest.param(says(None), b"", id="none"),
        pytest.param(b"\x00", b"", id="nothing that can be read"),
        pytest.param(b"\xff\xffxx", b"", id="a negative version"),
    ],
)
def test_the_assignor_is_given_the_user_data_of_its_own_protocol(
    profile: str, embedded: bytes, metadata: bytes
) -> None:
    office = Office(profile)
    office.opens()
    assert office.joins_with("c1", ("range", says(b"not this")), ("mine", embedded)) == 0
    member = {each.member_id: each for each in office.prepare(1).members}["c1"]
    assert (member.assignor.metadata_version, member.assignor.metadata_bytes) == (-1, metadata)


@EVERY_PROFILE
def test_a_member_that_was_told_something_by_nobody_gets_no_user_data(profile: str) -> None:
    """Null as from Kafka, not an empty array."""
    office = Office(profile)
    office.opens()
    office.joins_with("c1", ("mine", says(b"x")))
    office.prepare(1)
    assert office.install(1, office.snapshot.epoch, {"A": (1, b""), "c1": (-1, b"")}) == 0
    office.joins_with("c1", ("mine", says(b"x")))
    assert office.told("c1") is None


@EVERY_PROFILE
def test_what_was_said_to_it_as_a_consumer_is_not_for_its_classic_assignor(profile: str) -> None:
    """A speaks the classic protocol from now on; version 1 means nothing there."""
    office = Office(profile)
    office.opens()
    office.joins_with("c1", ("mine", says(None)))
    office.prepare(1)
    assert office.install(1, office.snapshot.epoch, {"A": (1, b"new"), "c1": (-1, b"old")}) == 0
    first = office.heartbeat(1, topic_partitions=()).assignment
    assert first is not None
    assert first.metadata_bytes == b"new"
    office.ids["A"] = "A"
    assert office.joins_with("A", ("mine", says(None))) == 0
    assert office.told("A") is None


@EVERY_PROFILE
def test_whoever_cannot_serve_a_classic_member_is_refused_and_not_fenced(profile: str) -> None:
    office = Office(profile)
    office.opens()
    office.joins_with("c1", ("mine", says(None)))
    refused = office.heartbeat(
        1,
        client_assignors=(
            ConsumerGroupHeartbeatRequestClientAssignor(name="mine", maximum_version=1),
        ),
    )
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "member c1" in (refused.error_message or "")
    assert office.heartbeat(1).error_code == 0


@EVERY_PROFILE
def test_a_classic_member_of_another_protocol_hinders_nobody_and_the_broker_computes(
    profile: str,
) -> None:
    office = Office(profile)
    assert office.opens(low=0).error_code == 0
    assert office.joins_with("c1", ("range", says(None))) == 0
    assert office.heartbeat(1).should_compute_assignment is False
    assert office.snapshot.assignment_epoch == office.snapshot.epoch
    assert office.opens(low=0, name="B").error_code == 0


@pytest.mark.parametrize("profile", ALL_PROFILES)
def test_what_was_said_survives_a_fail_over(profile: str) -> None:
    office = Office(profile)
    office.opens()
    office.joins_with("c1", ("mine", says(None)))
    office.prepare(1)
    assert office.install(1, office.snapshot.epoch, {"A": (1, b"new"), "c1": (-1, b"old")}) == 0
    office.joins_with("c1", ("mine", says(None)))
    office.restart()
    assert office.told("c1") == b"old"
