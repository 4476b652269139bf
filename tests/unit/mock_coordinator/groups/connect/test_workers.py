"""Connect workers at the coordinator, and at whole brokers: what the scenarios S71 and W01 to W08
do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio.to_thread
import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import UnsupportedVersion
from kip848_client.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupHeartbeatResponseAssignment,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
)
from mock_coordinator import MockBroker, OwnershipViolation, VirtualClock
from mock_coordinator.core.groups import GroupType
from mock_coordinator.core.groups.connect.group import ConnectGroup
from mock_coordinator.core.groups.connect.items import ITSELF, resource_of, write_items
from mock_coordinator.core.groups.records import CurrentAssignment
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.ownership import OwnershipChecker
from tests.support.wire_connection import WireConnection
from tests.unit.mock_coordinator.groups._world import EVERY_PROFILE, World
from tests.unit.mock_coordinator.groups.connect._crew import INC, Crew, rows
from tests.unit.mock_coordinator.nodes.cluster_at_hand import ClusterAtHand

JOIN = ConnectGroupHeartbeatRequest(
    group_id="c",
    member_id="W1",
    rebalance_timeout_ms=10_000,
    client_assignors=(INC,),
    owned=(),
)


@EVERY_PROFILE
def test_such_groups_begin_at_epoch_one_in_every_version(profile: str) -> None:
    crew = Crew(profile)
    joined = crew.beat(crew.worker("W1"))
    assert (joined.member_epoch, joined.should_compute_assignment) == (1, True)
    assert (crew.group.epoch, crew.group.assignment_epoch) == (2, 1)
    assert crew.group.type is GroupType.CONNECT


def test_metadata_and_errors_are_each_workers_own() -> None:
    crew = Crew()
    first = crew.worker("W1")
    crew.beat(first)
    assert crew.install(first, 2, {"W1": {("A", 0, 0)}}, metadata=b"x") == 10480, "not prepared"
    crew.beat(first)
    assert crew.prepare(first).members[0].metadata == b"url"
    assert crew.install(first, 2, {"W1": {("A", 0, 0)}}, metadata=b"x") == 0
    told = crew.beat(first, reports=False).assignment
    assert crew.group.members["W1"].target_partitions == (("A", 0),), "by the connector's name"
    assert told == ConnectGroupHeartbeatResponseAssignment(
        items=(ConnectGroupItems(connector="A", tasks=(0,)),), version=2, metadata=b"x"
    )
    crew.prepare(first)
    assert crew.beat(first).assignment is None


def test_a_target_that_goes_back_to_an_older_generation_shares_no_task() -> None:
    crew = Crew()
    one, two = crew.worker("W1"), crew.worker("W2")
    crew.beat(one)
    crew.beat(two)
    crew.compute(one, lambda _: {"W1": {("A", 2, 0)}, "W2": {("A", 2, 1)}})
    crew.beat(one)
    crew.beat(two)
    crew.beat(two, reason=2)
    crew.beat(one)
    crew.compute(one, lambda _: {"W1": {("A", 1, 1)}, "W2": {("A", 1, 0)}})
    crew.beat(two, reports=False)
    crew.beat(two)
    assert two.runs == set(), "W1 still has A-0, as a task of generation 2"
    crew.beat(one, reports=False)
    crew.beat(one)
    assert one.runs == {("A", 1, 1)}
    crew.beat(two)
    assert two.runs == {("A", 1, 0)}


def test_generations_that_are_mixed_in_one_target_wait_for_each_other() -> None:
    crew = Crew()
    one = crew.worker("W1")
    crew.beat(one)
    mixed = {("A", 1, 0), ("A", 2, 1), ("A", ITSELF, ITSELF)}
    crew.compute(one, lambda _: {"W1": mixed})
    crew.beat(one)
    assert one.runs == {("A", 1, 0), ("A", ITSELF, ITSELF)}
    assert crew.group.state == "Reconciling"


@pytest.mark.parametrize("lost", [False, True])
def test_an_older_task_does_not_start_beside_a_newer_one(lost: bool) -> None:
    """Should a worker miss the answer that gave it the newer one, it is given that a second time:
    beside the older one, had that been given meanwhile."""
    crew = Crew()
    one, two = crew.worker("W1"), crew.worker("W2")
    crew.beat(one)
    crew.beat(two)
    crew.beat(one)
    crew.compute(one, lambda _: {"W1": {("A", 0, 1), ("B", 0, 0)}, "W2": {("A", 1, 2)}})
    crew.beat(two, lost=lost)
    crew.beat(one)
    crew.beat(two)
    assert (one.runs, two.runs) == ({("B", 0, 0)}, {("A", 1, 2)})
    crew.leave(two)
    crew.beat(one)
    assert one.runs == {("A", 0, 1), ("B", 0, 0)}, "nobody has a newer one any more"


def test_a_worker_that_keeps_a_task_is_given_none_of_an_older_generation() -> None:
    crew = Crew()
    one = crew.worker("W1")
    crew.beat(one)
    crew.compute(one, lambda _: {"W1": {("A", 1, 0), ("A", 1, 2)}})
    crew.beat(one)
    crew.beat(one, reason=2)
    crew.compute(one, lambda _: {"W1": {("A", 1, 0), ("A", 0, 1)}})
    crew.beat(one, reports=False)
    crew.beat(one)
    assert one.runs == {("A", 1, 0)}
    crew.beat(one, reason=2)
    crew.compute(one, lambda _: {"W1": {("A", 0, 0), ("A", 0, 1)}})
    crew.beat(one, reports=False)
    crew.beat(one)
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
    crew = Crew()
    for name in ("W1", "W2", "W3"):
        crew.beat(crew.worker(name))
    assert crew.workers["W1"].computes
    crew.world.pass_ms(10_000)
    crew.beat(crew.workers["W2"])
    assert crew.workers["W2"].computes, "W1 was late"
    crew.compute(crew.workers["W2"], lambda members: {each: set() for each in members})
    assert crew.group.computed_by == "W2"
    crew.world.restart()
    for name in ("W3", "W1", "W2"):
        crew.beat(crew.workers[name], reason=int(name == "W3"))
    assert [name for name, each in crew.workers.items() if each.computes] == ["W2"]


def test_the_group_changes_while_somebody_computes() -> None:
    """Who is gone gets nothing, who came waits, and a static worker's stand-in has its place."""
    crew = Crew()
    one, gone, static = crew.worker("W1"), crew.worker("W2"), crew.worker("W3", "i3")
    for worker in (one, gone, static):
        crew.beat(worker)
    epoch = crew.prepare(one).group_epoch
    crew.leave(gone)
    crew.leave(static, temporarily=True)
    crew.beat(crew.worker("W4", "i3"))
    crew.beat(crew.worker("W5"))
    to = {"W1": {("A", 0, 0)}, "W2": {("A", 0, 1)}, "W3": {("A", 0, 2)}}
    assert crew.install(one, epoch, to) == 0
    for name in ("W1", "W4", "W5"):
        crew.beat(crew.workers[name])
    running = {name: crew.workers[name].runs for name in ("W1", "W4", "W5")}
    assert running == {"W1": {("A", 0, 0)}, "W4": {("A", 0, 2)}, "W5": set()}
    assert one.computes, "the group has moved on"
    targets = {each.member_id: each.items for each in crew.prepare(one).members}
    assert targets["W4"] == (ConnectGroupItems(connector="A", tasks=(2,)),)


def test_a_full_group_takes_no_more_workers() -> None:
    crew = Crew()
    crew.world = World(group_consumer_max_size=1)
    crew.beat(crew.worker("W1"))
    refused = crew.beat(crew.worker("W2"))
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == (
        "The connect group has reached its maximum capacity of 1 members."
    )


def test_an_assignment_is_not_repeated_to_a_worker_whose_items_stay() -> None:
    crew = Crew()
    one = crew.worker("W1")
    crew.beat(one)
    crew.compute(one, lambda _: {"W1": {("A", 0, 0)}})
    assert crew.beat(one, reports=False).assignment is not None
    assert crew.beat(one, reports=False).assignment is not None
    assert crew.beat(one).assignment is None
    crew.beat(one, reason=1)
    given = crew.prepare(one)
    crew.install(one, given.group_epoch, {"W1": {("A", 0, 0)}}, metadata=b"new")
    assert crew.beat(one, reports=False).assignment is not None, "its metadata is another one"
    assert crew.beat(one, reports=False).assignment is None


def test_an_empty_group_is_forgotten_in_the_end() -> None:
    crew = Crew()
    one = crew.worker("W1")
    crew.beat(one)
    crew.leave(one)
    assert crew.group.state == "Empty"
    crew.world.pass_ms(600_000)
    assert crew.world.groups.snapshot("c") is None
    assert crew.replayed(crew.world.groups.records).group_ids == ()


# --- Whole brokers --------------------------------------------------------------------------------


def test_it_is_switched_off_with_client_side_assignors() -> None:
    broker = MockBroker(listen=False, clock=VirtualClock(), client_assignors=False)
    with pytest.raises(UnsupportedVersion):
        broker.connect().ask(JOIN)


def test_only_the_coordinator_of_the_group_serves_it() -> None:
    hand = ClusterAtHand()
    node = hand.find("c")[0].node_id
    prepare = ConnectGroupPrepareAssignmentRequest(group_id="c", member_id="W1", member_epoch=1)
    install = ConnectGroupInstallAssignmentRequest(
        group_id="c", member_id="W1", member_epoch=1, group_epoch=2
    )
    for other in {1, 2, 3} - {node}:
        for request in (JOIN, replace(JOIN, member_epoch=4), prepare, install):
            assert hand.at(other, request, 0).error_code == ErrorCode.NOT_COORDINATOR
        assert (
            hand.at(other, replace(JOIN, member_id=""), 0).error_code == ErrorCode.INVALID_REQUEST
        )
    assert hand.at(node, JOIN, 0).error_code == 0
    assert hand.at(node, prepare, 0).group_epoch == 2
    assert hand.at(node, install, 0).error_code == 0


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

    async with MockBroker() as broker:
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
    with pytest.raises(OwnershipViolation, match="A is given to W2 while W1 may be using it"):
        watched.checker.check()
    assert "W1 ConnectGroupHeartbeat epoch 3" in watched.checker.violations[0]


def test_a_task_beside_one_of_an_older_generation_is_found() -> None:
    watched = Watched()
    watched.told("W1", ("A", 1, 0))
    watched.told("W2", ("A", 2, 1))
    with pytest.raises(
        OwnershipViolation,
        match="A-1 of generation 2 is given to W2 while W1 may be using A-0 of generation 1",
    ):
        watched.checker.check()


def test_reporting_an_item_that_was_never_given_is_found() -> None:
    watched = Watched()
    watched.told("W1", owned=write_items({resource_of("A", 1): (4,)}))
    with pytest.raises(OwnershipViolation, match="W1 reports A-4 of generation 1 as its own"):
        watched.checker.check()
