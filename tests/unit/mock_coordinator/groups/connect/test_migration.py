"""A classic group of workers that becomes a Connect group, request by request. What whole workers
make of it: ``tests/unit/connect/test_mixed_groups.py``."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.connect import (
    ConnectorTaskId,
    ConnectProtocol,
    Items,
    WorkerAssignment,
    WorkerMetadata,
)
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
)
from kip848_client.core.wire.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.groups.record_format import decode_record, encode_record
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.state.reconciled_group import GroupType
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
RUNS = Items(("a",), (ConnectorTaskId("a", 0), ConnectorTaskId("a", 1)))
GIVEN_UP = Items((), (ConnectorTaskId("a", 1),))


class Migration(GroupHarness):
    """The group ``c`` with the classic worker ``x``, which runs ``RUNS``."""

    def __init__(self, *, policy: str = "bidirectional", max_size: int = 100) -> None:
        self.drawn = 0
        super().__init__(
            group_initial_rebalance_delay_ms=0,
            group_consumer_migration_policy=policy,
            group_consumer_max_size=max_size,
        )

    def _new_member_id(self) -> str:
        self.drawn += 1
        return f"id{self.drawn}"

    def asked(self, request: Message, version: int) -> Any:
        """Its answer, after what waits for the time to pass."""
        self.groups.run_due(self.now)
        received = RequestReceived(1, 1, version, ClientInfo("client"), request)
        response = self.groups.handle(self.now, received)
        if response is None:
            self.pass_ms(0)
            [(_, response)] = self.groups.take_replies()
        return response

    def classic_join(
        self,
        member_id: str = "",
        *,
        runs: Items | None = None,
        offset: int = 1,
        kind: str = "connect",
        instance_id: str | None = None,
        offers: tuple[ConnectProtocol, ...] = (ConnectProtocol.SESSIONED,),
        raw: bytes | None = None,
    ) -> Any:
        said = None if runs is None else WorkerAssignment(assigned=runs)
        request = JoinGroupRequest(
            group_id="c",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=kind,
            protocols=tuple(
                JoinGroupRequestProtocol(
                    name=each.group_protocol,
                    metadata=raw or WorkerMetadata("http://x/", offset, said, each).encode(),
                )
                for each in offers
            ),
        )
        return self.asked(request, 9)

    def classic_group(self, told: WorkerAssignment | bytes | None = None, **join: Any) -> str:
        """Make the group; the id of ``x``."""
        first = self.classic_join(**join)
        member_id = first.member_id
        if first.error_code:
            first = self.classic_join(member_id, **join)
        assert first.error_code == 0
        if told is None:
            told = WorkerAssignment("x", "http://x/", 1, RUNS)
        raw = told if isinstance(told, bytes) else told.encode()
        answer = self.sync(member_id, first.generation_id, raw, kind=join.get("kind", "connect"))
        assert answer.error_code == 0
        return str(member_id)

    def sync(self, member_id: str, generation: int, assigns: bytes = b"", **names: str) -> Any:
        assignments = (SyncGroupRequestAssignment(member_id=member_id, assignment=assigns),)
        request = SyncGroupRequest(
            group_id="c",
            generation_id=generation,
            member_id=member_id,
            protocol_type=names.get("kind", "connect"),
            protocol_name=names.get("name", "sessioned"),
            assignments=assignments if assigns else (),
        )
        return self.asked(request, 5)

    def beat_classic(self, member_id: str, generation: int) -> int:
        request = HeartbeatRequest(group_id="c", generation_id=generation, member_id=member_id)
        return int(self.asked(request, 4).error_code)

    def connect_join(self, versions: tuple[int, int] = (1, 2), member_id: str = "w") -> Any:
        offer = ConnectGroupHeartbeatRequestAssignor(
            name="inc",
            minimum_version=versions[0],
            maximum_version=versions[1],
            version=versions[1],
            metadata=WorkerMetadata("http://w/", 1).encode(),
        )
        request = ConnectGroupHeartbeatRequest(
            group_id="c",
            member_id=member_id,
            rebalance_timeout_ms=10_000,
            client_assignors=(offer,),
            owned=(),
        )
        return self.asked(request, 0)

    @property
    def c(self) -> Any:
        return self.group("c")


def test_the_generation_becomes_the_epoch_and_what_runs_the_target() -> None:
    harness = Migration()
    x = harness.classic_group()
    joined = harness.connect_join()
    assert joined.error_code == 0
    group = harness.c
    assert (group.type, group.epoch, group.assignment_epoch) == (GroupType.CONNECT, 2, 1)
    assert group.computing == "w"
    member = group.members[x]
    assert (member.epoch, member.state) == (1, MemberState.STABLE)
    assert sum(map(len, member.owned.values())) == 3
    assert harness.beat_classic(x, 1) == 0  # nothing to join for before there is a target
    listed = harness.asked(ListGroupsRequest(), 5).groups
    assert [(each.group_type, each.protocol_type) for each in listed] == [("connect", "connect")]
    described = harness.asked(DescribeGroupsRequest(groups=("c",)), 6).groups
    assert described[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_what_is_to_stop_belongs_to_the_worker_until_it_joins_without_it() -> None:
    harness = Migration()
    told = WorkerAssignment("x", "http://x/", 1, Items(), GIVEN_UP)
    x = harness.classic_group(told, runs=RUNS)
    harness.connect_join()
    member = harness.c.members[x]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert sum(map(len, member.pending_revocation.values())) == 1
    assert harness.beat_classic(x, 1) == REBALANCE
    still = harness.classic_join(x, runs=RUNS)
    assert WorkerAssignment.decode(harness.sync(x, still.generation_id).assignment).revoked == (
        GIVEN_UP
    )
    left = Items(RUNS.connectors, RUNS.tasks[:1])
    harness.classic_join(x, runs=left)
    member = harness.c.members[x]
    assert (member.state, dict(member.pending_revocation)) == (MemberState.STABLE, {})


def test_it_is_told_to_stop_what_nobody_gave_it() -> None:
    harness = Migration()
    harness.connect_join()
    x = harness.classic_join().member_id
    joined = harness.classic_join(x, runs=RUNS)
    assert (joined.leader, joined.protocol_name) == ("", "sessioned")
    told = WorkerAssignment.decode(harness.sync(x, joined.generation_id).assignment)
    assert (told.assigned, told.revoked, told.config_offset) == (Items(), RUNS, 1)


def test_only_news_for_an_assignor_are_a_reason_to_compute() -> None:
    harness = Migration()
    x = harness.classic_group()
    harness.connect_join()
    harness.classic_join(x, runs=RUNS)
    assert harness.c.epoch == 2
    harness.classic_join(x, runs=RUNS, offset=2)
    assert harness.c.epoch == 3


def test_the_records_of_a_mixed_group_are_read_again() -> None:
    harness = Migration()
    told = WorkerAssignment("x", "http://x/", 1, Items(), GIVEN_UP)
    x = harness.classic_group(told, runs=RUNS)
    harness.connect_join()
    stored = [encode_record(harness.profile, each) for each in harness.groups.records]
    read = [decode_record(key, value) for key, value in stored]
    other = GroupCoordinator.replay(
        harness.profile,
        harness.config,
        harness.catalog,
        lambda: "unused",
        [each for each in read if each is not None],
        harness.now,
    )
    again = other.snapshot("c")
    assert again is not None
    assert again.without_timers() == harness.c.without_timers()
    assert again.members[x].subscription.classic is not None
    assert again.members["w"].subscription.classic is None


def test_members_that_wait_are_told_to_join_again() -> None:
    harness = Migration()
    x = harness.classic_group()
    y = harness.classic_join().member_id
    joins = JoinGroupRequest(
        group_id="c",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=y,
        protocol_type="connect",
        protocols=(
            JoinGroupRequestProtocol(
                name="sessioned", metadata=WorkerMetadata("http://y/", 1).encode()
            ),
        ),
    )
    waiting = RequestReceived(7, 7, 9, ClientInfo("y"), joins)
    assert harness.groups.handle(harness.now, waiting) is None
    harness.connect_join()
    [(received, answer)] = harness.groups.take_replies()
    assert (received, getattr(answer, "error_code", None)) == (waiting, REBALANCE)
    assert set(harness.c.members) == {x, y, "w"}


def test_what_cannot_be_converted_stays_as_it_is() -> None:
    static = Migration()
    static.classic_group(instance_id="i")
    assert "static members" in static.connect_join().error_message
    nonsense = Migration()
    nonsense.classic_group(b"\0")
    assert "cannot be read" in nonsense.connect_join().error_message
    others = Migration()
    others.classic_group(kind="own")
    assert others.connect_join().error_message == "Group c is not a connect group."
    full = Migration(max_size=1)
    full.classic_group()
    assert "group.consumer.max.size" in full.connect_join().error_message
    narrow = Migration()
    narrow.classic_group()
    assert narrow.connect_join((1, 1)).error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    for harness in (static, nonsense, others, full, narrow):
        assert harness.c.type is GroupType.CLASSIC
        assert harness.c.state == "Stable"


@pytest.mark.parametrize(
    "join",
    [
        {"kind": "consumer"},
        {"instance_id": "i"},
        {"raw": b"\0\2"},
        {"offers": (ConnectProtocol.EAGER,)},  # which nobody could read
    ],
)
def test_a_worker_that_does_not_fit_in(join: dict[str, Any]) -> None:
    harness = Migration()
    harness.connect_join()
    before = harness.c
    answer = harness.classic_join("", **join)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = harness.classic_join(answer.member_id, **join)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.c == before


def test_a_policy_that_keeps_the_protocols_apart() -> None:
    harness = Migration(policy="disabled")
    harness.connect_join()
    assert harness.classic_join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_workers_that_share_no_protocol_could_not_go_on_alone() -> None:
    harness = Migration()
    harness.classic_group()
    harness.connect_join()
    other = harness.classic_join(offers=(ConnectProtocol.COMPATIBLE,))
    assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_protocol_that_the_classic_group_had_agreed_on_is_not_held_against_a_worker() -> None:
    harness = Migration()
    x = harness.classic_group()
    harness.connect_join()
    assert harness.sync(x, 1, name="compatible").error_code == REBALANCE
    assert harness.sync(x, 1).error_code == 0


def test_an_empty_connect_group_gives_way_to_classic_workers() -> None:
    harness = Migration()
    harness.connect_join()
    leave = ConnectGroupHeartbeatRequest(group_id="c", member_id="w", member_epoch=-1)
    assert harness.asked(leave, 0).error_code == 0
    consumers = harness.classic_join(kind="consumer")
    assert consumers.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.classic_join("old").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    harness.classic_group()
    assert (harness.c.type, harness.c.state) == (GroupType.CLASSIC, "Stable")


def test_leaving() -> None:
    harness = Migration()
    x = harness.classic_group()
    harness.connect_join()
    leaves = tuple(LeaveGroupRequestMemberIdentity(member_id=each) for each in (x, "w", "nobody"))
    answer = harness.asked(LeaveGroupRequest(group_id="c", members=leaves), 5)
    assert [each.error_code for each in answer.members] == [0, 25, 25]
    assert set(harness.c.members) == {"w"}
