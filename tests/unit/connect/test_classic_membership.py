"""Workers in a group of the classic protocol: rounds, what ends them, and what follows."""

from __future__ import annotations

import pytest

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    HeartbeatTaken,
    ItemsStopped,
    JoinRequested,
    ReadConfiguration,
    RebalanceRequested,
    SendClassicHeartbeat,
    SendJoin,
    SendLeave,
    SendSync,
    StartItems,
    StopItems,
)
from kip848_client.core.connect import ConnectProtocol
from kip848_client.core.member import Fenced, LeaveCompleted, MemberState
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kip848_client.errors import LocalProtocolError
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from tests.unit.connect._classic_workers import ClassicWorkers, connector, task


def test_one_worker_runs_everything() -> None:
    group = ClassicWorkers()
    worker = group.worker("w1")
    group.run(1_000)
    group.expect_all("w1")
    assert worker.runs == {connector("a"), connector("b"), task("a", 0), task("a", 1), task("b", 0)}
    assert worker.core.leader == worker.core.member_id
    assert worker.core.leader_url == "http://w1:8083/"
    assert worker.core.connect_protocol is ConnectProtocol.SESSIONED
    first, second = worker.all(SendJoin)
    assert first.member_id == ""
    assert second.member_id == worker.core.member_id


def test_what_is_revoked_is_stopped_before_others_get_it() -> None:
    group = ClassicWorkers()
    first = group.worker("w1")
    group.run(1_000)
    second = group.worker("w2")
    group.run(10_000)
    group.expect_all("w1", "w2")
    [stop] = first.all(StopItems)
    assert not stop.lost
    assert not stop.last
    assert set(stop.items) == second.runs
    generations = [each.generation for each in first.all(SendSync)]
    assert len(generations) == 3  # alone, revoked, handed out
    assert first.core.member_epoch == second.core.member_epoch == generations[-1]


def test_heartbeats_go_out_while_a_round_waits_and_while_items_stop() -> None:
    group = ClassicWorkers()
    first = group.worker("w1")
    group.run(1_000)
    first.stop_ms = 15_000
    group.worker("w2")
    group.run(14_000)
    assert first.core.state is MemberState.RECONCILING
    assert len(first.all(SendClassicHeartbeat)) >= 4
    group.run(20_000)
    group.expect_all("w1", "w2")
    assert not first.all(Fenced)


def test_a_worker_that_is_killed_is_waited_for() -> None:
    group = ClassicWorkers(max_delay_ms=20_000)
    for name in ("w1", "w2", "w3"):
        group.worker(name)
        group.run(15_000)
    group.expect_all("w1", "w2", "w3")
    lost = set(group.workers["w3"].runs)
    group.kill("w3")
    group.run(15_000)
    assert set(group.running) == group.configured - {(i.connector, i.task) for i in lost}
    group.run(25_000)
    group.expect_all("w1", "w2")


def test_a_worker_that_is_put_out_forgets_the_delay_of_its_old_membership() -> None:
    group = ClassicWorkers(max_delay_ms=60_000)
    for name in ("w1", "w2", "w3"):
        group.worker(name)
        group.run(15_000)
    group.kill("w3")
    group.run(15_000)
    worker = group.workers["w2"]
    assert worker.core.remaining_delay_ms(group.now) > 40_000
    worker.cut_off = True
    group.run(11_000)
    assert worker.all(Fenced)
    assert worker.core.remaining_delay_ms(group.now) == 0
    assert worker.core.deadline_ms is not None
    joins = len(worker.all(SendJoin))
    group.run(50_000)  # the old delay ends meanwhile
    assert len(worker.all(SendJoin)) == joins


def test_a_worker_that_bounces_gets_what_waited() -> None:
    group = ClassicWorkers(max_delay_ms=20_000)
    for name in ("w1", "w2", "w3"):
        group.worker(name)
        group.run(15_000)
    lost = set(group.workers["w3"].runs)
    group.leave("w3")
    group.run(1_000)
    assert group.workers["w3"].core.closed
    assert len(group.left("w3")) == 1
    group.kill("w3")
    back = group.worker("back", host="w3")
    group.run(10_000)
    assert not back.runs
    group.run(20_000)
    assert back.runs == lost
    group.expect_all("w1", "w2", "back")


def test_the_leader_goes_and_what_it_ran_is_given_out_at_once() -> None:
    group = ClassicWorkers()
    group.worker("w1")
    group.run(5_000)
    group.worker("w2")
    group.run(5_000)
    group.leave("w1")
    group.run(5_000)
    group.expect_all("w2")


def test_the_stop_at_the_end_is_waited_for_before_the_group_is_told() -> None:
    group = ClassicWorkers()
    worker = group.worker("w1")
    group.run(1_000)
    worker.stop_ms = 3_000
    group.leave("w1")
    assert worker.core.state is MemberState.PREPARE_LEAVING
    [stop] = worker.all(StopItems)
    assert stop.last
    assert not stop.lost
    group.run(2_000)
    assert not group.left("w1")
    group.run(2_000)
    assert worker.core.closed
    assert worker.all(LeaveCompleted) == [LeaveCompleted()]
    with pytest.raises(LocalProtocolError, match="cannot join"):
        worker.feed(JoinRequested(group.configuration))


def test_a_leave_that_nobody_answers_ends_in_time() -> None:
    group = ClassicWorkers()
    worker = group.worker("w1")
    group.run(1_000)
    worker.cut_off = True
    group.leave("w1")
    group.run(6_000)
    assert worker.core.closed
    [done] = worker.all(LeaveCompleted)
    assert "time for the leave is over" in str(done.error)


def test_a_worker_that_is_cut_off_stops_before_its_session_ends() -> None:
    group = ClassicWorkers(max_delay_ms=0)
    group.worker("w1")
    group.run(5_000)
    second = group.worker("w2")
    group.run(5_000)
    group.expect_all("w1", "w2")
    second.stop_ms = 4_000
    second.cut_off = True
    group.run(9_900)
    assert not second.runs
    [stop] = second.all(StopItems)[-1:]
    assert stop.lost
    group.run(10_000)
    group.expect_all("w1")
    second.cut_off = False
    group.run(20_000)
    group.expect_all("w1", "w2")


def test_a_member_that_the_coordinator_does_not_know_drops_everything_and_joins_anew() -> None:
    group = ClassicWorkers(max_delay_ms=0)
    group.worker("w1")
    group.run(5_000)
    second = group.worker("w2")
    group.run(5_000)
    before = second.core.member_id
    second.loses_answers = True
    group.run(3_500)
    second.loses_answers = False
    group.leave("w1")
    group.run(20_000)
    group.expect_all("w2")
    assert second.core.member_id == before

    stranger = group.worker("w3")
    group.run(5_000)
    group.checks = False  # an admin does not ask whether it still runs something
    group.send(stranger, SendLeave(1, 1_000, second.core.member_id, "removed by an admin"))
    group.run(20_000)
    assert [each.cause for each in second.all(Fenced)][-1] == "UNKNOWN_MEMBER_ID"
    assert second.core.member_id not in ("", before)
    group.expect_all("w2", "w3")


def test_a_new_coordinator_is_found_and_nothing_stops() -> None:
    group = ClassicWorkers()
    group.worker("w1")
    group.worker("w2")
    group.run(10_000)
    stops = [len(each.all(StopItems)) for each in group.workers.values()]
    group.fail_over()
    group.run(20_000)
    group.expect_all("w1", "w2")
    assert [len(each.all(StopItems)) for each in group.workers.values()] == stops


def test_an_eager_group_stops_everything_before_each_round() -> None:
    group = ClassicWorkers()
    first = group.worker("w1", protocol=ConnectProtocol.EAGER)
    group.run(1_000)
    everything = set(first.runs)
    group.worker("w2")
    group.run(5_000)
    assert first.core.connect_protocol is ConnectProtocol.EAGER
    assert set(first.all(StopItems)[0].items) == everything
    assert set(group.running) == group.configured
    assert all(each.runs for each in group.workers.values())


def test_a_group_that_becomes_eager_stops_what_it_ran() -> None:
    group = ClassicWorkers()
    first = group.worker("w1")
    second = group.worker("w2")
    group.run(10_000)
    third = group.worker("w3", protocol=ConnectProtocol.EAGER)
    group.run(15_000)
    assert {each.core.connect_protocol for each in (first, second, third)} == {
        ConnectProtocol.EAGER
    }
    assert set(group.running) == group.configured
    assert all(each.runs for each in group.workers.values())
    group.leave("w3")
    group.run(10_000)
    group.kill("w3")
    assert first.core.connect_protocol is ConnectProtocol.SESSIONED
    group.expect_all("w1", "w2")


def test_a_worker_joins_again_with_the_reason_that_its_program_gives() -> None:
    group = ClassicWorkers()
    first, second = group.worker("w1"), group.worker("w2")
    group.run(20_000)
    group.expect_all("w1", "w2")
    generation = first.core.member_epoch
    second.feed(RebalanceRequested(70))
    group.run(10_000)
    assert second.all(SendJoin)[-1].reason == "reason 70"
    assert first.core.member_epoch != generation
    group.expect_all("w1", "w2")


def test_new_connectors_are_shared() -> None:
    group = ClassicWorkers()
    group.worker("w1")
    group.worker("w2")
    group.run(10_000)
    more = {**group.configuration.connectors, "c": ConnectorTasks(4, 1)}
    group.reconfigure(Configuration(2, more))
    group.workers["w2"].feed(RebalanceRequested(2))
    group.run(10_000)
    group.expect_all("w1", "w2")
    del more["a"]
    group.reconfigure(Configuration(3, more))
    group.workers["w1"].feed(RebalanceRequested(2))
    group.run(10_000)
    group.expect_all("w1", "w2")


def test_tasks_that_are_configured_anew_stop_everywhere_before_they_start_again() -> None:
    group = ClassicWorkers()
    group.worker("w1")
    group.worker("w2")
    group.run(10_000)
    group.workers["w1"].stop_ms = 4_000
    before = {name: set(each.runs) for name, each in group.workers.items()}
    group.reconfigure(Configuration(2, {"a": ConnectorTasks(2, 2), "b": ConnectorTasks(1, 1)}))
    for each in group.workers.values():
        stopped = {item for stop in each.all(StopItems)[-1:] for item in stop.items}
        assert {item for item in before[each.name] if item.connector == "a" and item.task >= 0} <= (
            stopped
        )
    group.run(3_000)
    running = {item for each in group.workers.values() for item in each.runs}
    assert not {item for item in running if item.generation == 2}
    group.run(10_000)
    group.expect_all("w1", "w2")
    running = {item for each in group.workers.values() for item in each.runs}
    assert {task("a", 0, 2), task("a", 1, 2), task("b", 0, 1)} <= running


def test_nothing_starts_before_the_configuration_is_known() -> None:
    group = ClassicWorkers()
    group.worker("w1")
    group.run(5_000)
    second = group.worker("w2", configuration=Configuration(0))
    second.can_read = False
    group.run(10_000)
    assert second.core.state is MemberState.STABLE
    assert second.all(ReadConfiguration) == [ReadConfiguration(1)]
    assert not second.all(StartItems)
    second.feed(ConfigurationRead(group.configuration))
    group.run(100)
    group.expect_all("w1", "w2")


def test_a_leader_waits_for_the_configuration_that_others_know() -> None:
    group = ClassicWorkers(group_initial_rebalance_delay_ms=1_000)
    first = group.worker("w1", configuration=Configuration(0))
    first.can_read = False
    group.worker("w2")
    group.run(3_000)
    assert not group.running
    assert first.all(ReadConfiguration) == [ReadConfiguration(1)]
    first.feed(ConfigurationRead(group.configuration))
    group.run(2_000)
    group.expect_all("w1", "w2")


def test_a_leader_that_cannot_know_the_configuration_lets_another_lead() -> None:
    group = ClassicWorkers()
    first = group.worker("w1", configuration=Configuration(0))
    first.can_read = False
    group.run(1_000)
    second = group.worker("w2")
    group.run(20_000)
    assert first.core.state is MemberState.STALE
    assert second.core.leader == second.core.member_id
    group.expect_all("w2")
    first.feed(ConfigurationRead(group.configuration))
    group.run(20_000)
    group.expect_all("w1", "w2")

    third = group.worker("w3", configuration=Configuration(0))
    third.can_read = False
    group.run(20_000)
    assert third.core.state is MemberState.STABLE  # it does not lead: what it is given waits
    assert not third.runs


def test_it_tries_to_lead_again_when_it_has_waited_long_enough() -> None:
    group = ClassicWorkers()
    first = group.worker("w1", configuration=Configuration(0))
    first.can_read = False
    group.run(1_000)
    group.worker("w2")
    group.run(20_000)
    group.kill("w2")
    group.run(320_000)
    assert first.core.state is MemberState.STABLE


def test_a_configuration_that_nobody_leads_with_leaves_after_a_stop() -> None:
    group = ClassicWorkers()
    first = group.worker("w1")
    group.run(1_000)
    first.can_read = False
    group.configuration = Configuration(2, group.configuration.connectors)
    group.worker("w2")
    group.run(20_000)
    assert first.all(StopItems)[-1].last
    group.expect_all("w2")


def test_a_group_of_another_type_is_named() -> None:
    group = ClassicWorkers()
    consumer = JoinGroupRequest(
        group_id="c",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    given = group.base.ask(consumer, 9)
    consumer.member_id = given.member_id  # type: ignore[attr-defined]  # a JoinGroupResponse
    received = RequestReceived(99, 99, 9, ClientInfo("x"), consumer)
    group.base.groups.handle(group.now, received)
    worker = group.worker("w1")
    group.run(1_000)
    assert worker.core.state is MemberState.FATAL
    assert "INCONSISTENT_GROUP_PROTOCOL" in worker.errors[0]
    assert "use another group id" in worker.errors[0]
    group.leave("w1")
    assert worker.core.closed


def test_a_member_whose_metadata_cannot_be_read_is_named_once_and_gets_nothing() -> None:
    group = ClassicWorkers()
    worker = group.worker("w1")
    group.run(1_000)
    alien = JoinGroupRequest(
        group_id="c",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=500,
        member_id="",
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="sessioned", metadata=b""),),
    )
    given = group.base.ask(alien, 9)
    alien.member_id = given.member_id  # type: ignore[attr-defined]  # a JoinGroupResponse
    for connection, said in ((98, b"\0\2rubbish"), (99, b"\0\2other rubbish")):
        alien.protocols = (JoinGroupRequestProtocol(name="sessioned", metadata=said),)
        received = RequestReceived(connection, connection, 9, ClientInfo("x"), alien)
        group.base.groups.handle(group.now, received)
        group.run(5_000)
    group.expect_all("w1")
    assert not worker.all(StopItems)
    assert len({each.generation for each in worker.all(SendSync)}) == 3
    [error] = worker.errors
    assert f"member {alien.member_id} of the group" in error
    assert "cannot be read" in error
    assert "stop that worker" in error


def test_a_session_that_the_broker_does_not_allow_is_named() -> None:
    group = ClassicWorkers(group_min_session_timeout_ms=30_000)
    worker = group.worker("w1")
    group.run(1_000)
    assert "group.min.session.timeout.ms" in worker.errors[0]


def test_what_was_never_asked_is_refused_and_changes_nothing() -> None:
    group = ClassicWorkers()
    worker = group.worker("w1")
    group.run(1_000)
    for event in (HeartbeatTaken(999), ItemsStopped(999), JoinRequested(group.configuration)):
        with pytest.raises(LocalProtocolError):
            worker.feed(event)
    group.run(10_000)
    group.expect_all("w1")
