"""Computed assignments at the coordinator: what the scenarios S72 to S76 do not show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestClientAssignor,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.settings.broker_config import BrokerConfig
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, FOO, GroupHarness

MINE = ConsumerGroupHeartbeatRequestClientAssignor(name="mine", maximum_version=3)
JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="A",
    rebalance_timeout_ms=10_000,
    subscribed_topic_names=("foo",),
    topic_partitions=(),
    client_assignors=(MINE,),
)


def beat(
    harness: GroupHarness, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    response = harness.ask(request, 1)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def join(harness: GroupHarness, member_id: str = "A") -> ConsumerGroupHeartbeatResponse:
    return beat(harness, replace(JOIN, member_id=member_id))


def heartbeat(harness: GroupHarness, member_id: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=()
    )
    return beat(harness, request)


def prepare(
    harness: GroupHarness, member_id: str, epoch: int
) -> ConsumerGroupPrepareAssignmentResponse:
    request = ConsumerGroupPrepareAssignmentRequest(
        group_id="g", member_id=member_id, member_epoch=epoch
    )
    response = harness.ask(request, 0)
    assert isinstance(response, ConsumerGroupPrepareAssignmentResponse)
    return response


def install(
    harness: GroupHarness,
    member_id: str,
    epoch: int,
    group_epoch: int,
    to: dict[str, range],
    *,
    version: int = 3,
) -> int:
    request = ConsumerGroupInstallAssignmentRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        group_epoch=group_epoch,
        members=tuple(
            ConsumerGroupInstallAssignmentRequestMember(
                member_id=each,
                partitions=(AssignmentTopicPartitions(topic_id=FOO, partitions=tuple(partitions)),),
                metadata_version=version,
                metadata_bytes=each.encode() * 2,
            )
            for each, partitions in to.items()
        ),
    )
    response = harness.ask(request, 0)
    assert isinstance(response, ConsumerGroupInstallAssignmentResponse)
    return response.error_code


@EVERY_PROFILE
def test_such_groups_begin_at_epoch_one_in_every_version(profile: str) -> None:
    harness = GroupHarness(profile)
    joined = join(harness)
    assert (joined.member_epoch, joined.should_compute_assignment) == (1, True)
    assert harness.group().epoch == 2
    assert prepare(harness, "A", 1).group_epoch == 2


def test_metadata_comes_with_the_epoch_it_belongs_to() -> None:
    """Not while the member is still giving partitions up."""
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    assert install(harness, "A", 1, 2, {"A": range(6)}, version=2) == 0
    first = heartbeat(harness, "A", 1).assignment
    assert first is not None
    assert (first.metadata_version, first.metadata_bytes) == (2, b"AA")

    waiting = join(harness, "B")
    assert waiting.assignment is not None
    prepare(harness, "A", 2)
    assert install(harness, "A", 2, 3, {"A": range(3), "B": range(3, 6)}) == 0
    told = beat(harness, ConsumerGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=2))
    assert told.assignment is not None
    assert (told.member_epoch, told.assignment.metadata_version) == (2, 2)
    waiting = heartbeat(harness, "B", 2)
    assert waiting.assignment is not None
    assert waiting.assignment.pending_topic_partitions[0].partitions == (3, 4, 5)
    acknowledged = heartbeat(harness, "A", 2)
    assert acknowledged.assignment is not None
    assert (acknowledged.member_epoch, acknowledged.assignment.metadata_version) == (3, 3)


@pytest.mark.parametrize("epoch", [0, 2, 9])
def test_only_the_current_member_epoch_may_compute(epoch: int) -> None:
    harness = GroupHarness()
    join(harness)
    assert prepare(harness, "A", epoch).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert install(harness, "A", epoch, 2, {}) == ErrorCode.STALE_MEMBER_EPOCH


def test_who_may_not_compute_is_told_why() -> None:
    harness = GroupHarness()
    assert prepare(harness, "A", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    join(harness)
    assert prepare(harness, "Z", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert prepare(harness, "", 1).error_code == ErrorCode.INVALID_REQUEST
    assert prepare(harness, "A", -1).error_code == ErrorCode.INVALID_REQUEST
    assert install(harness, "A", 1, 2, {"A": range(6)}) == ErrorCode.INVALID_ASSIGNMENT
    join(harness, "B")
    refused = prepare(harness, "B", 1)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert "still a member" in (refused.error_message or "")


def test_a_result_for_another_epoch_is_refused_and_asked_for_again() -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    assert not heartbeat(harness, "A", 1).should_compute_assignment
    assert install(harness, "A", 1, 7, {"A": range(6)}) == ErrorCode.INVALID_ASSIGNMENT
    assert heartbeat(harness, "A", 1).should_compute_assignment


@pytest.mark.parametrize(
    "to",
    [
        {"A": range(5)},
        {"A": range(7)},
        {"A": range(6), "Z": range(0)},
        {},
    ],
)
def test_a_result_that_does_not_fit_changes_nothing(to: dict[str, range]) -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    assert install(harness, "A", 1, 2, to) == ErrorCode.INVALID_ASSIGNMENT
    assert harness.group().assignment_epoch == 1
    assert heartbeat(harness, "A", 1).should_compute_assignment, "there is nobody else"


def test_a_version_that_the_member_does_not_read_is_refused() -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    assert install(harness, "A", 1, 2, {"A": range(6)}, version=4) == ErrorCode.INVALID_ASSIGNMENT


def test_a_coordinator_that_takes_over_asks_again() -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    harness.groups = GroupCoordinator.replay(
        harness.profile,
        harness.config,
        harness.catalog,
        lambda: "",
        harness.groups.records,
        harness.now,
    )
    assert install(harness, "A", 1, 2, {"A": range(6)}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(harness, "A", 1).should_compute_assignment
    prepare(harness, "A", 1)
    assert install(harness, "A", 1, 2, {"A": range(6)}) == 0
    before = harness.group()
    harness.groups = GroupCoordinator.replay(
        harness.profile,
        harness.config,
        harness.catalog,
        lambda: "",
        harness.groups.records,
        harness.now,
    )
    assert harness.group().without_timers() == before.without_timers()


def test_a_chosen_member_that_never_heartbeats_is_passed_over() -> None:
    harness = GroupHarness()
    join(harness)
    join(harness, "B")
    assert harness.group().computing == "A"
    prepare(harness, "A", 1)
    assert install(harness, "A", 1, 3, {"A": range(3), "B": range(3, 6)}) == 0
    heartbeat(harness, "B", 1)
    changed = replace(MINE, reason=1)
    beat(
        harness,
        ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="B", member_epoch=3, client_assignors=(changed,)
        ),
    )
    assert harness.group().computing == "A"
    harness.now += 10_000
    harness.groups.run_due(harness.now)
    assert harness.group().computing == "B"


def test_repeating_an_offer_asks_for_nothing() -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    install(harness, "A", 1, 2, {"A": range(6)})
    heartbeat(harness, "A", 1)
    for offer, epoch in ((MINE, 2), (replace(MINE, reason=2), 3), (replace(MINE, reason=0), 3)):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="A", member_epoch=2, client_assignors=(offer,)
        )
        beat(harness, request)
        assert harness.group().epoch == epoch


@pytest.mark.parametrize(
    ("offers", "error"),
    [
        ((replace(MINE, name=" "),), ErrorCode.INVALID_REQUEST),
        ((replace(MINE, minimum_version=-2),), ErrorCode.INVALID_REQUEST),
        ((replace(MINE, minimum_version=-1),), ErrorCode.NONE),
        ((replace(MINE, maximum_version=-1),), ErrorCode.INVALID_REQUEST),
        ((replace(MINE, minimum_version=2, maximum_version=1),), ErrorCode.INVALID_REQUEST),
        ((replace(MINE, metadata_version=4),), ErrorCode.INVALID_REQUEST),
        ((MINE, MINE), ErrorCode.INVALID_REQUEST),
    ],
)
def test_offers_that_make_no_sense(
    offers: tuple[ConsumerGroupHeartbeatRequestClientAssignor, ...], error: ErrorCode
) -> None:
    assert beat(GroupHarness(), replace(JOIN, client_assignors=offers)).error_code == error


def test_an_offer_and_a_server_assignor_exclude_each_other() -> None:
    harness = GroupHarness()
    both = replace(JOIN, server_assignor="range")
    assert beat(harness, both).error_code == ErrorCode.INVALID_REQUEST
    join(harness)
    asks = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="A", member_epoch=1, server_assignor="range"
    )
    beat(harness, asks)
    assert harness.member("A").subscription.client_assignors == ()
    assert harness.group().computing is None
    assert harness.group().assignment_epoch == harness.group().epoch, "the broker computed"


def test_a_member_that_joins_again_is_asked_again() -> None:
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    assert join(harness).should_compute_assignment


def described(harness: GroupHarness) -> ConsumerGroupDescribeResponseDescribedGroup:
    """As a client reads it."""
    answer = harness.ask(ConsumerGroupDescribeRequest(group_ids=("g",)), 1)
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    read = decode(ConsumerGroupDescribeResponse, 1, encode(answer, 1))
    return read.groups[0]


def test_a_described_group_tells_what_computed_its_target() -> None:
    harness = GroupHarness()
    join(harness)
    assert described(harness).assignor_name == "uniform"
    assert not described(harness).is_client_assignor
    prepare(harness, "A", 1)
    install(harness, "A", 1, 2, {"A": range(6)})
    after = described(harness)
    assert (after.assignor_name, after.is_client_assignor) == ("mine", True)
    assert after.members[0].assignment.metadata_bytes == b"", "it is not there yet"
    target = after.members[0].target_assignment
    assert (target.metadata_version, target.metadata_bytes, target.error) == (3, b"AA", 0)
    heartbeat(harness, "A", 1)
    assert described(harness).members[0].assignment.metadata_bytes == b"AA"


def test_where_the_drafts_are_switched_off_a_described_group_is_as_in_kafka() -> None:
    """Also when the log has a target from before."""
    harness = GroupHarness()
    join(harness)
    prepare(harness, "A", 1)
    install(harness, "A", 1, 2, {"A": range(6)})
    heartbeat(harness, "A", 1)
    harness.config = BrokerConfig(harness.profile, client_assignors=False)
    harness.restart()
    after = described(harness)
    assert (after.assignor_name, after.is_client_assignor) == ("uniform", False)
    assert after.members[0].assignment.metadata_bytes == b""
    assert after.members[0].target_assignment.metadata_version == 0
