"""Computed assignments at the coordinator: what the scenarios S72 to S76 do not show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.wire import decode, encode
from kip848_client.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from kip848_client.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestClientAssignor,
    ConsumerGroupHeartbeatResponse,
)
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.settings.config import BrokerConfig
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, FOO, World

MINE = ConsumerGroupHeartbeatRequestClientAssignor(name="mine", maximum_version=3)
JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="A",
    rebalance_timeout_ms=10_000,
    subscribed_topic_names=("foo",),
    topic_partitions=(),
    client_assignors=(MINE,),
)


def beat(world: World, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    response = world.ask(request, 1)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def join(world: World, member_id: str = "A") -> ConsumerGroupHeartbeatResponse:
    return beat(world, replace(JOIN, member_id=member_id))


def heartbeat(world: World, member_id: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=()
    )
    return beat(world, request)


def prepare(world: World, member_id: str, epoch: int) -> ConsumerGroupPrepareAssignmentResponse:
    request = ConsumerGroupPrepareAssignmentRequest(
        group_id="g", member_id=member_id, member_epoch=epoch
    )
    response = world.ask(request, 0)
    assert isinstance(response, ConsumerGroupPrepareAssignmentResponse)
    return response


def install(
    world: World,
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
    response = world.ask(request, 0)
    assert isinstance(response, ConsumerGroupInstallAssignmentResponse)
    return response.error_code


@EVERY_PROFILE
def test_such_groups_begin_at_epoch_one_in_every_version(profile: str) -> None:
    world = World(profile)
    joined = join(world)
    assert (joined.member_epoch, joined.should_compute_assignment) == (1, True)
    assert world.group().epoch == 2
    assert prepare(world, "A", 1).group_epoch == 2


def test_metadata_comes_with_the_epoch_it_belongs_to() -> None:
    """Not while the member is still giving partitions up."""
    world = World()
    join(world)
    prepare(world, "A", 1)
    assert install(world, "A", 1, 2, {"A": range(6)}, version=2) == 0
    first = heartbeat(world, "A", 1).assignment
    assert first is not None
    assert (first.metadata_version, first.metadata_bytes) == (2, b"AA")

    waiting = join(world, "B")
    assert waiting.assignment is not None
    prepare(world, "A", 2)
    assert install(world, "A", 2, 3, {"A": range(3), "B": range(3, 6)}) == 0
    told = beat(world, ConsumerGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=2))
    assert told.assignment is not None
    assert (told.member_epoch, told.assignment.metadata_version) == (2, 2)
    waiting = heartbeat(world, "B", 2)
    assert waiting.assignment is not None
    assert waiting.assignment.pending_topic_partitions[0].partitions == (3, 4, 5)
    acknowledged = heartbeat(world, "A", 2)
    assert acknowledged.assignment is not None
    assert (acknowledged.member_epoch, acknowledged.assignment.metadata_version) == (3, 3)


@pytest.mark.parametrize("epoch", [0, 2, 9])
def test_only_the_current_member_epoch_may_compute(epoch: int) -> None:
    world = World()
    join(world)
    assert prepare(world, "A", epoch).error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert install(world, "A", epoch, 2, {}) == ErrorCode.STALE_MEMBER_EPOCH


def test_who_may_not_compute_is_told_why() -> None:
    world = World()
    assert prepare(world, "A", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    join(world)
    assert prepare(world, "Z", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert prepare(world, "", 1).error_code == ErrorCode.INVALID_REQUEST
    assert prepare(world, "A", -1).error_code == ErrorCode.INVALID_REQUEST
    assert install(world, "A", 1, 2, {"A": range(6)}) == ErrorCode.INVALID_ASSIGNMENT
    join(world, "B")
    refused = prepare(world, "B", 1)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert "still a member" in (refused.error_message or "")


def test_a_result_for_another_epoch_is_refused_and_asked_for_again() -> None:
    world = World()
    join(world)
    prepare(world, "A", 1)
    assert not heartbeat(world, "A", 1).should_compute_assignment
    assert install(world, "A", 1, 7, {"A": range(6)}) == ErrorCode.INVALID_ASSIGNMENT
    assert heartbeat(world, "A", 1).should_compute_assignment


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
    world = World()
    join(world)
    prepare(world, "A", 1)
    assert install(world, "A", 1, 2, to) == ErrorCode.INVALID_ASSIGNMENT
    assert world.group().assignment_epoch == 1
    assert heartbeat(world, "A", 1).should_compute_assignment, "there is nobody else"


def test_a_version_that_the_member_does_not_read_is_refused() -> None:
    world = World()
    join(world)
    prepare(world, "A", 1)
    assert install(world, "A", 1, 2, {"A": range(6)}, version=4) == ErrorCode.INVALID_ASSIGNMENT


def test_a_coordinator_that_takes_over_asks_again() -> None:
    world = World()
    join(world)
    prepare(world, "A", 1)
    world.groups = GroupCoordinator.replay(
        world.profile, world.config, world.catalog, lambda: "", world.groups.records, world.now
    )
    assert install(world, "A", 1, 2, {"A": range(6)}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(world, "A", 1).should_compute_assignment
    prepare(world, "A", 1)
    assert install(world, "A", 1, 2, {"A": range(6)}) == 0
    before = world.group()
    world.groups = GroupCoordinator.replay(
        world.profile, world.config, world.catalog, lambda: "", world.groups.records, world.now
    )
    assert world.group().without_timers() == before.without_timers()


def test_a_chosen_member_that_never_heartbeats_is_passed_over() -> None:
    world = World()
    join(world)
    join(world, "B")
    assert world.group().computing == "A"
    prepare(world, "A", 1)
    assert install(world, "A", 1, 3, {"A": range(3), "B": range(3, 6)}) == 0
    heartbeat(world, "B", 1)
    changed = replace(MINE, reason=1)
    beat(
        world,
        ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="B", member_epoch=3, client_assignors=(changed,)
        ),
    )
    assert world.group().computing == "A"
    world.now += 10_000
    world.groups.run_due(world.now)
    assert world.group().computing == "B"


def test_repeating_an_offer_asks_for_nothing() -> None:
    world = World()
    join(world)
    prepare(world, "A", 1)
    install(world, "A", 1, 2, {"A": range(6)})
    heartbeat(world, "A", 1)
    for offer, epoch in ((MINE, 2), (replace(MINE, reason=2), 3), (replace(MINE, reason=0), 3)):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="A", member_epoch=2, client_assignors=(offer,)
        )
        beat(world, request)
        assert world.group().epoch == epoch


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
    assert beat(World(), replace(JOIN, client_assignors=offers)).error_code == error


def test_an_offer_and_a_server_assignor_exclude_each_other() -> None:
    world = World()
    both = replace(JOIN, server_assignor="range")
    assert beat(world, both).error_code == ErrorCode.INVALID_REQUEST
    join(world)
    asks = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="A", member_epoch=1, server_assignor="range"
    )
    beat(world, asks)
    assert world.member("A").subscription.client_assignors == ()
    assert world.group().computing is None
    assert world.group().assignment_epoch == world.group().epoch, "the broker computed"


def test_a_member_that_joins_again_is_asked_again() -> None:
    world = World()
    join(world)
    prepare(world, "A", 1)
    assert join(world).should_compute_assignment


def described(world: World) -> ConsumerGroupDescribeResponseDescribedGroup:
    """As a client reads it."""
    answer = world.ask(ConsumerGroupDescribeRequest(group_ids=("g",)), 1)
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    read = decode(ConsumerGroupDescribeResponse, 1, encode(answer, 1))
    return read.groups[0]


def test_a_described_group_tells_what_computed_its_target() -> None:
    world = World()
    join(world)
    assert described(world).assignor_name == "uniform"
    assert not described(world).is_client_assignor
    prepare(world, "A", 1)
    install(world, "A", 1, 2, {"A": range(6)})
    after = described(world)
    assert (after.assignor_name, after.is_client_assignor) == ("mine", True)
    assert after.members[0].assignment.metadata_bytes == b"", "it is not there yet"
    target = after.members[0].target_assignment
    assert (target.metadata_version, target.metadata_bytes, target.error) == (3, b"AA", 0)
    heartbeat(world, "A", 1)
    assert described(world).members[0].assignment.metadata_bytes == b"AA"


def test_where_the_drafts_are_switched_off_a_described_group_is_as_in_kafka() -> None:
    """Also when the log has a target from before."""
    world = World()
    join(world)
    prepare(world, "A", 1)
    install(world, "A", 1, 2, {"A": range(6)})
    heartbeat(world, "A", 1)
    world.config = BrokerConfig(world.profile, client_assignors=False)
    world.restart()
    after = described(world)
    assert (after.assignor_name, after.is_client_assignor) == ("uniform", False)
    assert after.members[0].assignment.metadata_bytes == b""
    assert after.members[0].target_assignment.metadata_version == 0
