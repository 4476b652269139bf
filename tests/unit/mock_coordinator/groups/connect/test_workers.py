"""Connect workers at the coordinator, and at whole brokers: what the scenarios S71 and W01 to W08
do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio.to_thread
import pytest

from kip848_client.core.connect import ITSELF, resource_of, write_items
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupHeartbeatResponseAssignment,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import UnsupportedVersion
from mock_coordinator import MockBroker, OwnershipViolation, VirtualClock
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.records.state_records import CurrentAssignment
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.ownership import OwnershipChecker
from tests.support.wire_connection import WireConnection
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, GroupHarness
from tests.unit.mock_coordinator.groups.connect._connect_harness import (
    INC,
    ConnectGroupHarness,
    rows,
)
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness

JOIN = ConnectGroupHeartbeatRequest(
    group_id="c",
    member_id="W1",
    rebalance_timeout_ms=10_000,
    client_assignors=(INC,),
    owned=(),
)


@EVERY_PROFILE
def test_such_groups_begin_at_epoch_one_in_every_version(profile: str) -> None:
    harness = ConnectGroupHarness(profile)
    joined = harness.beat(harness.worker("W1"))
    assert (joined.member_epoch, joined.should_compute_assignment) == (1, True)
    assert (harness.group.epoch, harness.group.assignment_epoch) == (2, 1)
    assert harness.group.type is GroupType.CONNECT


def test_metadata_and_errors_are_each_workers_own() -> None:
    harness = ConnectGroupHarness()
    first = harness.worker("W1")
    harness.beat(first)
    assert harness.install(first, 2, {"W1": {("A", 0, 0)}}, metadata=b"x") == 10480, "not prepared"
    harness.beat(first)
    assert harness.prepare(first).members[0].metadata == b"url"
    assert harness.install(first, 2, {"W1": {("A", 0, 0)}}, metadata=b"x") == 0
    told = harness.beat(first, reports=False).assignment
    assert harness.group.members["W1"].target_partitions == (("A", 0),), "by the connector's name"
    assert told == ConnectGroupHeartbeatResponseAssignment(
        items=(ConnectGroupItems(connector="A", tasks=(0,)),), version=2, metadata=b"x"
    )
    harness.prepare(first)
    assert harness.beat(first).assignment is None


def test_a_target_that_goes_back_to_an_older_generation_shares_no_task() -> None:
    harness = ConnectGroupHarness()
    one, two = harness.worker("W1"), harness.worker("W2")
    harness.beat(one)
    harness.beat(two)
    harness.compute(one, lambda _: {"W1": {("A", 2, 0)}, "W2": {("A", 2, 1)}})
    harness.beat(one)
    harness.beat(two)
    harness.beat(two, reason=2)
    harness.beat(one)
    harness.compute(one, lambda _: {"W1": {("A", 1, 1)}, "W2": {("A", 1, 0)}})
    harness.beat(two, reports=False)
    harness.beat(two)
    assert two.runs == set(), "W1 still has A-0, as a task of generation 2"
    harness.beat(one, reports=False)
    harness.beat(one)
    assert one.runs == {("A", 1, 1)}
    harness.beat(two)
    assert two.runs == {("A", 1, 0)}


def test_generations_that_are_mixed_in_one_target_wait_for_each_other() -> None:
    harness = ConnectGroupHarness()
    one = harness.worker("W1")
    harness.beat(one)
    mixed = {("A", 1, 0), ("A", 2, 1), ("A", ITSELF, ITSELF)}
    harness.compute(one, lambda _: {"W1": mixed})
    harness.beat(one)
    assert one.runs == {("A", 1, 0), ("A", ITSELF, ITSELF)}
    assert harness.group.state == "Reconciling"


@pytest.mark.parametrize("lost", [False, True])
def test_an_older_task_does_not_start_beside_a_newer_one(lost: bool) -> None:
    """Should a worker miss the answer that gave it the newer one, it is given that a second time:
    beside the older one, had that been given meanwhile."""
    harness = ConnectGroupHarness()
    one, two = harness.worker("W1"), harness.worker("W2")
    harness.beat(one)
    harness.beat(two)
    harness.beat(one)
    harness.compute(one, lambda _: {"W1": {("A", 0, 1), ("B", 0, 0)}, "W2": {("A", 1, 2)}})
    harness.beat(two, lost=lost)
    harness.beat(one)
    harness.beat(two)
    assert (one.runs, two.runs) == ({("B", 0, 0)}, {("A", 1, 2)})
    harness.leave(two)
    harness.beat(one)
    assert one.runs == {("A", 0, 1), ("B", 0, 0)}, "nobody has a newer one any more"


def test_a_worker_that_keeps_a_task_is_given_none_of_an_older_generation() -> None:
    harness = ConnectGroupHarness()
    one = harness.worker("W1")
    harness.beat(one)
    harness.compute(one, lambda _: {"W1": {("A", 1, 0), ("A", 1, 2)}})
    harness.beat(one)
    harness.beat(one, reason=2)
    harness.compute(one, lambda _: {"W1": {("A", 1, 0), ("A", 0, 1)}})
    harness.beat(one, reports=False)
    harness.beat(one)
    assert one.runs == {("A", 1, 0)}
    harness.beat(one, reason=2)
    harness.compute(one, lambda _: {"W1": {("A", 0, 0), ("A", 0, 1)}})
    harness.beat(one, reports=False)
    harness.beat(one)
    assert one.runs == {("A", 0, 0), ("A", 0, 1)}, "it has given up what was newer"


def test_the_release_rule() -> None:
    group = ConnectGroup("c")
    held = {resource_of("A", 2): {0: 1}, resource_of("A", ITSELF): {ITSELF: 1}}
    group.apply_current("W1", CurrentAssignment(assigned=held))
    other = group.release_rule("W2", {})
    assert other(resource_of("A", 3), 5), "W1 has a task of an older generation"
    assert not other(resource_of("A", 2), 5)
    assert other(resource_of("A", 1), 5), "W1 has a task of a newer generation"
    assert other(resource_of("A", 1), 0), "W1 has the same task"
    assert not other(resource_of("A", ITSELF), ITSELF), "that is for the holders to say"
    assert not other(resource_of("B", 3), 0)
    assert not group.release_rule("W1", {})(resource_of("A", 3), 0), "to be given up first"
    keeps = group.release_rule("W1", {resource_of("A", 2): (0,)})
    assert keeps(resource_of("A", 3), 1)
    assert keeps(resource_of("A", 1), 1)
    begins = group.release_rule("W2", {resource_of("B", 1): (0,), resource_of("B", 2): (1,)})
    assert begins(resource_of("B", 2), 1), "the older ones of its own target come first"
    assert not begins(resource_of("B", 1), 0)


def test_who_computed_is_known_to_the_coordinator_that_takes_over() -> None:
    harness = ConnectGroupHarness()
    for name in ("W1", "W2", "W3"):
        harness.beat(harness.worker(name))
    assert harness.workers["W1"].computes
    harness.base.pass_ms(10_000)
    harness.beat(harness.workers["W2"])
    assert harness.workers["W2"].computes, "W1 was late"
    harness.compute(harness.workers["W2"], lambda members: {each: set() for each in members})
    assert harness.group.computed_by == "W2"
    harness.base.restart()
    for name in ("W3", "W1", "W2"):
        harness.beat(harness.workers[name], reason=int(name == "W3"))
    assert [name for name, each in harness.workers.items() if each.computes] == ["W2"]


def test_the_group_changes_while_somebody_computes() -> None:
    """Who is gone gets nothing, who came waits, and a static worker's stand-in has its place."""
    harness = ConnectGroupHarness()
    one, gone, static = harness.worker("W1"), harness.worker("W2"), harness.worker("W3", "i3")
    for worker in (one, gone, static):
        harness.beat(worker)
    epoch = harness.prepare(one).group_epoch
    harness.leave(gone)
    harness.leave(static, temporarily=True)
    harness.beat(harness.worker("W4", "i3"))
    harness.beat(harness.worker("W5"))
    to = {"W1": {("A", 0, 0)}, "W2": {("A", 0, 1)}, "W3": {("A", 0, 2)}}
    assert harness.install(one, epoch, to) == 0
    for name in ("W1", "W4", "W5"):
        harness.beat(harness.workers[name])
    running = {name: harness.workers[name].runs for name in ("W1", "W4", "W5")}
    assert running == {"W1": {("A", 0, 0)}, "W4": {("A", 0, 2)}, "W5": set()}
    assert one.computes, "the group has moved on"
    targets = {each.member_id: each.items for each in harness.prepare(one).members}
    assert targets["W4"] == (ConnectGroupItems(connector="A", tasks=(2,)),)


def test_a_full_group_takes_no_more_workers() -> None:
    harness = ConnectGroupHarness()
    harness.base = GroupHarness(group_consumer_max_size=1)
    harness.beat(harness.worker("W1"))
    refused = harness.beat(harness.worker("W2"))
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == (
        "The connect group has reached its maximum capacity of 1 members."
    )


def test_an_assignment_is_not_repeated_to_a_worker_whose_items_stay() -> None:
    harness = ConnectGroupHarness()
    one = harness.worker("W1")
    harness.beat(one)
    harness.compute(one, lambda _: {"W1": {("A", 0, 0)}})
    assert harness.beat(one, reports=False).assignment is not None
    assert harness.beat(one, reports=False).assignment is not None
    assert harness.beat(one).assignment is None
    harness.beat(one, reason=1)
    given = harness.prepare(one)
    harness.install(one, given.group_epoch, {"W1": {("A", 0, 0)}}, metadata=b"new")
    assert harness.beat(one, reports=False).assignment is not None, "its metadata is another one"
    assert harness.beat(one, reports=False).assignment is None


def test_an_empty_group_is_forgotten_in_the_end() -> None:
    harness = ConnectGroupHarness()
    one = harness.worker("W1")
    harness.beat(one)
    harness.leave(one)
    assert harness.group.state == "Empty"
    harness.base.pass_ms(600_000)
    assert harness.base.groups.snapshot("c") is None
    assert harness.replayed(harness.base.groups.records).group_ids == ()


# --- Whole brokers --------------------------------------------------------------------------------


def test_it_is_switched_off_with_client_side_assignors() -> None:
    broker = MockBroker(listen=False, clock=VirtualClock(), draft_protocols=False)
    with pytest.raises(UnsupportedVersion):
        broker.connect().ask(JOIN)


def test_only_the_coordinator_of_the_group_serves_it() -> None:
    harness = ClusterHarness()
    node = harness.find("c")[0].node_id
    prepare = ConnectGroupPrepareAssignmentRequest(group_id="c", member_id="W1", member_epoch=1)
    install = ConnectGroupInstallAssignmentRequest(
        group_id="c", member_id="W1", member_epoch=1, group_epoch=2
    )
    for other in {1, 2, 3} - {node}:
        for request in (JOIN, replace(JOIN, member_epoch=4), prepare, install):
            assert harness.at(other, request, 0).error_code == ErrorCode.NOT_COORDINATOR
        assert (
            harness.at(other, replace(JOIN, member_id=""), 0).error_code
            == ErrorCode.INVALID_REQUEST
        )
    assert harness.at(node, JOIN, 0).error_code == 0
    assert harness.at(node, prepare, 0).group_epoch == 2
    assert harness.at(node, install, 0).error_code == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_over_tcp(anyio_backend: str) -> None:
    del anyio_backend

    def story(host: str, port: int) -> list[Any]:
        connection = WireConnection(host, port)
        prepare = ConnectGroupPrepareAssignmentRequest(group_id="c", member_id="W1", member_epoch=1)
        answers = [connection.request(JOIN, 0), connection.request(prepare, 0)]
        connection.close()
        return answers

    async with MockBroker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        joined, prepared = await anyio.to_thread.run_sync(story, *broker.address)
        assert isinstance(joined, ConnectGroupHeartbeatResponse)
        assert (joined.error_code, joined.member_epoch) == (0, 1)
        assert joined.assignment == ConnectGroupHeartbeatResponseAssignment()
        assert [each.metadata for each in prepared.members] == [b"url"]
        group = broker.snapshot("c")
        assert group is not None
        assert group.members["W1"].subscription.client_assignors[0].name == "inc"


# --- The ownership checker ------------------------------------------------------------------------


class Watched:
    """A checker that is told what a wrong coordinator might say."""

    def __init__(self) -> None:
        self.broker = MockBroker(listen=False, clock=VirtualClock())
        self.checker = OwnershipChecker(
            lambda: self.broker.core.broker.catalog, self.broker.snapshot
        )
        for name in ("W1", "W2"):
            self.broker.connect().ask(replace(JOIN, member_id=name))

    def told(
        self, name: str, *items: tuple[str, int, int], owned: tuple[ConnectGroupItems, ...] = ()
    ) -> None:
        """A worker is told to run these."""
        request = replace(JOIN, member_id=name, member_epoch=3, owned=owned)
        assignment = ConnectGroupHeartbeatResponseAssignment(items=rows(items))
        response = ConnectGroupHeartbeatResponse(
            member_id=name, member_epoch=3, assignment=assignment
        )
        event = RequestReceived(1, 1, 0, LOCAL_CLIENT, request)
        self.checker.observe(5, event, [Reply(1, 1, 0, response, request.API_KEY)])


def test_an_item_with_two_workers_is_found() -> None:
    watched = Watched()
    watched.told("W1", ("A", 1, 0), ("A", ITSELF, ITSELF))
    watched.checker.check()
    assert watched.checker.using("c") == {"W1": {("A", 0), ("A", ITSELF)}}
    watched.told("W2", ("A", ITSELF, ITSELF), ("B", 0, 0))
    with pytest.raises(OwnershipViolation, match="A is assigned to W2 while W1 may be using it"):
        watched.checker.check()
    assert "W1 ConnectGroupHeartbeat epoch 3" in watched.checker.violations[0]


def test_a_task_beside_one_of_an_older_generation_is_found() -> None:
    watched = Watched()
    watched.told("W1", ("A", 1, 0))
    watched.told("W2", ("A", 2, 1))
    with pytest.raises(
        OwnershipViolation,
        match="A-1 of generation 2 is assigned to W2 while W1 may be using A-0 of generation 1",
    ):
        watched.checker.check()


def test_reporting_an_item_that_was_never_given_is_found() -> None:
    watched = Watched()
    watched.told("W1", owned=write_items({resource_of("A", 1): (4,)}))
    with pytest.raises(OwnershipViolation, match="W1 reports that it owns A-4 of generation 1"):
        watched.checker.check()
