"""Workers and the coordinator, each the code that production runs."""

from __future__ import annotations

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    ReadConfiguration,
    RebalanceRequested,
    StopItems,
)
from kip848_client.connect.core._rebalance_delay import ScheduledRebalance
from kip848_client.core.connect import RebalanceReason
from kip848_client.core.member import Fenced, MemberState
from kip848_client.core.types import MemberId
from tests.unit.connect._workers import LATENCY_MS, STOP_MS, WorkerGroup, connector, task

A, A0, A1, B, B0 = connector("a"), task("a", 0), task("a", 1), connector("b"), task("b", 0)


def two_workers() -> WorkerGroup:
    """``w1`` runs the connector ``a`` and its tasks, ``w2`` the connector ``b`` and its task."""
    group = WorkerGroup()
    group.worker("w1")
    group.run(1_000)
    group.assign({"w1": {A, A0, A1, B, B0}})
    group.run(6_000)
    group.worker("w2")
    group.run(6_000)
    group.assign({"w1": {A, A0, A1}, "w2": {B, B0}})
    group.run(12_000)
    group.expect(w1={A, A0, A1}, w2={B, B0})
    return group


def test_a_worker_that_is_alone_is_given_everything() -> None:
    group = WorkerGroup()
    group.worker("w1")
    group.run(1_000)
    assert group.runners == ["w1"]

    group.assign({"w1": {A, A0, A1, B, B0}})
    group.run(6_000)

    group.expect(w1={A, A0, A1, B, B0})
    assert group.workers["w1"].core.leader == "w1"
    assert group.workers["w1"].core.leader_url == "http://w1:8083/"


def test_an_item_is_stopped_before_another_worker_starts_it() -> None:
    group = two_workers()
    group.workers["w1"].stop_ms = 4_000
    group.worker("w3")
    group.run(6_000)

    group.assign({"w1": {A, A0}, "w2": {B, B0}, "w3": {A1}})
    group.run(4_000)
    assert not group.workers["w3"].runs

    group.run(12_000)
    group.expect(w1={A, A0}, w2={B, B0}, w3={A1})
    stopped = group.workers["w1"].all(StopItems)[-1]
    assert stopped == StopItems(stopped.plan, (A1,), lost=False, last=False)


def test_tasks_of_another_generation_begin_when_the_old_ones_have_ended() -> None:
    group = two_workers()
    connectors = {"a": ConnectorTasks(2, 2), "b": ConnectorTasks(1, 1)}
    group.configuration = Configuration(2, connectors)
    group.workers["w1"].feed(ConfigurationRead(group.configuration))
    group.workers["w1"].feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
    group.run(6_000)

    group.assign({"w1": {A, A0}, "w2": {B, B0, A1}})
    group.run(20_000)

    group.expect(w1={A, task("a", 0, 2)}, w2={B, B0, task("a", 1, 2)})


def test_a_worker_that_leaves_stops_everything_first() -> None:
    group = two_workers()
    group.leave("w2")
    group.run(STOP_MS - 1)
    assert group.workers["w2"].core.state is MemberState.PREPARE_LEAVING
    group.run(1 + 2 * LATENCY_MS)
    assert group.workers["w2"].core.closed
    assert not group.workers["w2"].runs
    group.kill("w2")

    group.run(6_000)
    group.assign({"w1": {A, A0, A1}}, deferred={B, B0}, delay_ms=30_000)
    group.run(10_000)
    group.expect(w1={A, A0, A1})


def test_the_end_of_a_delay_is_told_once() -> None:
    group = two_workers()
    group.kill("w2")
    group.run(60_000)
    group.assign({"w1": {A, A0, A1}}, deferred={B, B0}, delay_ms=20_000)
    group.run(19_000)
    assert group.runners == []

    group.run(7_000)

    assert group.runners == ["w1"]
    group.assign({"w1": {A, A0, A1, B, B0}})
    group.run(60_000)
    assert group.runners == []
    group.expect(w1={A, A0, A1, B, B0})


def test_another_worker_tells_it_when_the_one_that_computed_is_gone() -> None:
    group = two_workers()
    group.worker("w3")
    group.run(6_000)
    group.assign({"w1": {A, A0, A1}, "w2": {B}, "w3": set()}, deferred={B0}, delay_ms=20_000)
    group.run(12_000)
    computed = group.workers["w1"].core.leader
    group.workers[computed].cut_off = True  # the coordinator does not know it yet

    group.run(30_000)  # it is asked first, and passed over after the rebalance timeout

    assert len(group.runners) == 1
    assert group.runners != [computed]


def test_a_worker_that_cannot_reach_the_coordinator_stops_before_others_start() -> None:
    group = two_workers()
    group.workers["w2"].cut_off = True
    group.run(34_000)
    assert group.workers["w2"].runs == {B, B0}
    group.run(6_000 + STOP_MS)
    assert not group.workers["w2"].runs
    [stopped] = group.workers["w2"].all(StopItems)
    assert stopped == StopItems(stopped.plan, (B, B0), lost=True, last=True)

    assert group.runners == []

    group.run(16_000)
    group.assign({"w1": {A, A0, A1, B, B0}})
    group.run(12_000)
    assert group.workers["w1"].runs == {A, A0, A1, B, B0}


def test_a_worker_that_was_put_out_stops_everything_and_joins_again() -> None:
    group = two_workers()
    worker = group.workers["w2"]
    worker.cut_off = True
    group.run(60_000)
    worker.cut_off = False
    group.run(60_000)

    [fenced] = worker.all(Fenced)
    assert fenced.cause == "the end of the session"
    assert worker.core.state is MemberState.STABLE
    assert not worker.runs


def test_a_reason_that_was_not_heard_is_told_again() -> None:
    group = two_workers()
    worker = group.workers["w2"]
    worker.cut_off = True
    worker.feed(RebalanceRequested(64))
    group.run(1_000)
    assert group.runners == []
    worker.cut_off = False

    group.run(9_000)

    assert len(group.runners) == 1
    assert worker.core.state is MemberState.STABLE


def test_nothing_is_started_before_its_configuration_is_known() -> None:
    group = two_workers()
    worker = group.workers["w2"]
    worker.can_read = False
    connectors = {**group.configuration.connectors, "c": ConnectorTasks(0, 1)}
    group.configuration = Configuration(9, connectors)
    group.workers["w1"].feed(ConfigurationRead(group.configuration))
    group.workers["w1"].feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
    group.run(6_000)
    group.assign({"w1": {A, A0, A1}, "w2": {B, B0, connector("c")}})
    group.run(10_000)
    assert worker.runs == {B, B0}
    assert worker.all(ReadConfiguration) == [ReadConfiguration(9)]

    worker.feed(ConfigurationRead(Configuration(8)))
    assert worker.runs == {B, B0}
    worker.feed(ConfigurationRead(group.configuration))

    group.run(6_000)
    group.expect(w1={A, A0, A1}, w2={B, B0, connector("c")})


def test_a_static_worker_that_is_away_for_a_moment_costs_no_assignment() -> None:
    group = WorkerGroup()
    group.worker("w1")
    group.run(6_000)
    group.assign({"w1": {A, A0, A1, B, B0}})
    group.worker("w2", instance_id="second")
    group.run(6_000)
    group.assign({"w1": {A, A0, A1}, "w2": {B, B0}})
    group.run(12_000)

    group.leave("w2")
    group.run(1_000)
    group.kill("w2")
    assert group.runners == []
    back = group.worker("w2b", instance_id="second", host="w2")
    group.run(12_000)

    assert group.runners == []
    assert back.runs == {B, B0}


def test_the_next_delay_may_be_told_in_the_words_of_the_last_one() -> None:
    """More workers are lost just when it ends: the same leader waits for as long again."""
    scheduled = ScheduledRebalance(MemberId("w1"))

    def hear(now_ms: int) -> None:
        scheduled.announced(now_ms, b"5 s", 5_000, computed_here=True, interval_ms=1_000)

    hear(0)
    hear(3_000)
    assert not scheduled.take_due(4_999)
    assert scheduled.take_due(5_000)
    hear(6_000)
    assert not scheduled.take_due(10_999)
    assert scheduled.take_due(11_000)


def test_a_delay_that_is_told_again_does_not_begin_anew() -> None:
    group = two_workers()
    group.kill("w2")
    group.run(60_000)
    group.assign({"w1": {A, A0, A1}}, deferred={B, B0}, delay_ms=20_000)
    group.run(8_000)
    group.workers["w1"].cut_off = True
    group.run(6_000)
    group.workers["w1"].cut_off = False  # its next heartbeat is answered with all it is assigned
    group.run(5_000)
    assert group.runners == []

    group.run(6_500)  # it was heard with a heartbeat, at most 5 s after it was computed

    assert group.runners == ["w1"]


def test_a_worker_that_is_put_out_forgets_the_delay_of_its_old_membership() -> None:
    group = two_workers()
    group.workers["w2"].feed(RebalanceRequested(64))
    group.run(6_000)
    group.assign({"w1": {A, A0, A1}, "w2": {B}}, deferred={B0}, delay_ms=120_000)
    group.run(12_000)
    worker = group.workers["w2"]
    assert 100_000 < worker.core.remaining_delay_ms(group.now) <= 120_000
    worker.cut_off = True
    group.run(46_000)
    assert worker.all(Fenced)
    assert worker.core.remaining_delay_ms(group.now) == 0
    worker.cut_off = False
    group.run(20_000)
    while group.runners:  # for the one that went, and for the one that came
        group.assign({"w1": {A, A0, A1, B, B0}})
        group.run(12_000)

    group.run(120_000)  # the old delay ends meanwhile

    assert group.runners == []
    group.expect(w1={A, A0, A1, B, B0}, w2=set())


def test_a_delay_in_the_same_words_is_a_new_one_for_a_worker_that_was_put_out() -> None:
    scheduled = ScheduledRebalance(MemberId("w1"))

    def hear(now_ms: int) -> None:
        scheduled.announced(now_ms, b"5 s", 5_000, computed_here=True, interval_ms=1_000)

    hear(0)
    scheduled.forget()
    assert scheduled.due_ms is None
    hear(3_000)
    assert scheduled.remaining_ms(3_000) == 5_000
    assert scheduled.due_ms == 8_000
