"""The declarative form: whole histories of small groups, and what differs from Java on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.connect import (
    ConnectorTaskId,
    GroupWorker,
    IncrementalCooperativeAssignor,
    IncrementalMemory,
    Items,
    ReturningWorker,
)
from tests.support.connect.group import PlayedGroup

D = 300_000


def _group(
    *workers: str,
    returning: ReturningWorker = ReturningWorker.WAIT,
    max_delay_ms: int = D,
    **tasks: int,
) -> PlayedGroup:
    assignor = IncrementalCooperativeAssignor(
        scheduled_rebalance_max_delay_ms=max_delay_ms, returning_worker=returning
    )
    group = PlayedGroup(assignor, dict(tasks))
    group.join(*workers)
    return group


def test_a_second_worker_joins() -> None:
    group = _group("w1", c1=4, c2=4)
    group.compute()
    assert group.all == ["w1: c1 c2 / c1[0,1,2,3] c2[0,1,2,3]"]
    group.join("w2")
    for _ in range(2):
        group.compute()
        assert group.all == ["w1: c2 / c2[0,1,2,3]", "w2: c1 / c1[0,1,2,3]"]
        assert group.last.delay_ms == 0


def test_workers_join_one_at_a_time() -> None:
    group = _group("w1", c1=4, c2=4, c3=4)
    group.compute()
    for number in range(2, 7):
        group.join(f"w{number}")
        group.compute()
        assert group.last.delay_ms == 0
        if number == 3:
            assert group.all == [
                "w1: c3 / c3[0,1,2,3]",
                "w2: c1 / c1[2,3] c2[0,1]",
                "w3: c2 / c1[0,1] c2[2,3]",
            ]
    assert group.all == [
        "w1: c3 / c3[2,3]",
        "w2: c1 / c2[0,1]",
        "w3: c2 / c2[2,3]",
        "w4: - / c1[2] c3[0]",
        "w5: - / c1[0,1]",
        "w6: - / c1[3] c3[1]",
    ]


@pytest.mark.parametrize("returning", ReturningWorker)
def test_a_worker_leaves_for_good(returning: ReturningWorker) -> None:
    group = _group("w1", "w2", returning=returning, c1=4, c2=4)
    group.compute()
    group.leave("w2")
    waiting = ["w1: c1 / c1[0,2] c2[0,2]", "deferred: c2 / c1[1,3] c2[1,3]"]
    for passed, left in ((0, D), (150_000, 150_000), (149_999, 1)):
        group.now_ms += passed
        group.compute()
        assert (group.all, group.last.delay_ms) == (waiting, left)
    group.now_ms += 1
    group.compute()
    assert (group.all, group.last.delay_ms) == (["w1: c1 c2 / c1[0,1,2,3] c2[0,1,2,3]"], 0)


def test_a_worker_returns_and_waits_as_in_java() -> None:
    group = _group("w1", "w2", c1=4, c2=4)
    group.compute()
    group.leave("w2")
    group.compute()
    group.now_ms += 150_000
    group.join("w2")
    group.compute()
    assert group.has("w2") == "- / -"
    assert group.last.delay_ms == 150_000
    group.now_ms += 150_000
    group.compute()
    assert group.all == ["w1: c1 / c1[0,2] c2[0,2]", "w2: c2 / c1[1,3] c2[1,3]"]


@pytest.mark.parametrize("kind", ["url", "instance"])
def test_a_worker_returns_and_gets_its_own_at_once(kind: str) -> None:
    group = _group("w1", "w2", returning=ReturningWorker.IMMEDIATE, c1=4, c2=4)
    known = {"url": "http://w2"} if kind == "url" else {"instance_id": "two"}
    group.join("w2", **known)
    group.compute()
    before = group.has("w2")
    group.leave("w2")
    group.compute()
    group.now_ms += 150_000
    group.join("another")
    group.compute()
    assert group.has("another") == "- / -"  # somebody else: a candidate, as in Java
    assert group.last.delay_ms == 150_000
    group.leave("another")
    group.join("w2-again", **known)
    group.compute()
    assert (group.has("w2-again"), group.last.delay_ms) == (before, 0)
    assert not group.last.deferred


def test_what_others_left_waits_on() -> None:
    group = _group("w1", "w2", "w3", returning=ReturningWorker.IMMEDIATE, c1=4, c2=4, c3=4)
    group.compute()
    two, three = group.last.workers["w2"], group.last.workers["w3"]
    group.leave("w2", "w3")
    group.compute()
    group.now_ms += 100_000
    group.join("w3")
    group.compute()
    assert group.last.workers["w3"] == three
    assert (group.last.deferred, group.last.delay_ms) == (two, 200_000)


def test_a_worker_that_left_and_came_back_unnoticed() -> None:
    group = _group("w1", "w2", returning=ReturningWorker.IMMEDIATE, c1=4, c2=4)
    group.compute()
    before = group.last
    group.leave("w2")
    group.join("w2")  # fenced, and joined again with the same member id
    assert group.compute() == before


def test_the_worker_that_computes_departs() -> None:
    group = _group("w1", "w2", "w3", c1=4, c2=4)
    group.compute()
    group.leave("w1")
    group.memory = None
    group.compute()
    assert group.all == ["w2: c2 / c1[1] c2[0,2,3]", "w3: c1 / c1[0,2,3] c2[1]"]
    group.join("w1")
    group.compute()
    assert group.all == ["w1: - / c1[0,1]", "w2: c2 / c2[0,2,3]", "w3: c1 / c1[2,3] c2[1]"]


@pytest.mark.parametrize("remaining_ms", [0, 60_000])
def test_a_successor_goes_on_waiting_if_it_knows_for_how_long(remaining_ms: int) -> None:
    group = _group("w1", "w2", "w3", c1=4, c2=4)
    group.compute()
    group.leave("w3")
    group.compute()
    deferred = group.last.deferred
    group.now_ms += 240_000
    group.memory = None
    group.compute(remaining_delay_ms=remaining_ms)
    assert group.last.delay_ms == remaining_ms
    assert group.last.deferred == (deferred if remaining_ms else Items())


def test_connectors_and_tasks_come_and_go() -> None:
    group = _group("w1", "w2", c1=4, c2=4, c3=4)
    group.compute()
    del group.connectors["c3"]
    group.compute()
    assert group.all == ["w1: c1 / c1[0,2] c2[0,2]", "w2: c2 / c1[1,3] c2[1,3]"]
    group.connectors["c1"] = 7
    group.compute()
    assert group.all == ["w1: c1 / c1[0,2,4,6] c2[0,2]", "w2: c2 / c1[1,3,5] c2[1,3]"]
    group.connectors["c1"] = 1
    group.compute()
    assert group.all == ["w1: c1 / c1[0] c2[0,2]", "w2: c2 / c2[1,3]"]


def test_without_a_delay_all_is_given_out_at_once() -> None:
    group = _group("w1", "w2", max_delay_ms=0, c1=4, c2=4)
    group.compute()
    group.leave("w2")
    group.compute()
    assert (group.all, group.last.delay_ms) == (["w1: c1 c2 / c1[0,1,2,3] c2[0,1,2,3]"], 0)


def test_what_is_new_is_given_out_while_others_wait() -> None:
    group = _group("w1", "w2", c1=4, c2=4)
    group.compute()
    group.leave("w2")
    group.compute()
    group.now_ms += 1_000
    group.connectors["c3"] = 2
    group.compute()
    assert group.all == [
        "w1: c1 c3 / c1[0,2] c2[0,2] c3[0,1]",
        "deferred: c2 / c1[1,3] c2[1,3]",
    ]
    assert group.last.delay_ms == 299_000


def test_a_new_connector_and_a_new_worker_at_once() -> None:
    group = _group("W1", A=4, B=4)
    group.compute()
    group.join("W2")
    group.connectors["C"] = 2
    group.compute()
    assert group.all == ["W1: A B / A[3] B[0,1,2,3]", "W2: C / A[0,1,2] C[0,1]"]


def test_candidates_and_newcomers_when_the_delay_is_over() -> None:
    group = _group("W1", "W2", A=4, B=2)
    group.compute()
    group.leave("W2")
    group.compute()
    group.now_ms += 1_000
    group.join("W2")
    group.compute()
    group.now_ms += 299_000
    group.join("W3", "W4")
    group.compute()
    assert group.all == ["W1: A / A[2] B[0]", "W2: B / A[3] B[1]", "W3: - / A[0]", "W4: - / A[1]"]


def test_five_connectors_of_ten_tasks_and_two_workers_more() -> None:
    group = _group("w1", "w2", "w3", c0=10, c1=10, c2=10, c3=10, c4=10)
    group.compute()
    group.join("w4", "w5")
    group.compute()
    assert group.all[3:] == [
        "w4: c0 / c0[0,2,4,6,8] c1[0,2,4,6,8]",
        "w5: c1 / c0[1,3,5,7,9] c1[1,3,5,7,9]",
    ]


def test_nothing_is_moved_again_before_it_has_arrived() -> None:
    group = _group("w1", c1=4, c2=4, c3=4)
    group.compute()
    group.join("w2")
    group.held_back = {"w1"}  # has not given up what the next target takes from it
    first = group.compute()
    group.join("w3")
    second = group.compute()
    assert (second.workers["w1"], second.workers["w2"]) == (
        first.workers["w1"],
        first.workers["w2"],
    )
    assert (group.has("w3"), second.delay_ms) == ("- / -", 40)
    group.now_ms += 10
    assert group.compute().delay_ms == 30  # asked meanwhile: the rest is not forgotten, nor longer
    group.now_ms += 30
    assert group.compute().delay_ms == 1_600
    for _ in range(2):
        group.now_ms += group.last.delay_ms
        assert group.compute().delay_ms == 5_000  # a heartbeat's interval, and no more
    group.held_back = set()
    group.workers["w1"] = GroupWorker(group.epoch, group.last.workers["w1"])
    third = group.compute()  # no need to wait for the end of the rest
    assert third.delay_ms == 0
    assert group.all == [
        "w1: c3 / c3[0,1,2,3]",
        "w2: c1 / c1[2,3] c2[0,1]",
        "w3: c2 / c1[0,1] c2[2,3]",
    ]
    assert isinstance(group.memory, IncrementalMemory)
    assert group.memory.rests == 0


def test_without_a_delay_nothing_rests() -> None:
    group = _group("w1", max_delay_ms=0, c1=4, c2=4, c3=4)
    group.compute()
    group.held_back = {"w1"}
    for each in ("w2", "w3"):
        group.join(each)
        assert group.compute().delay_ms == 0
    assert group.has("w3") == "c2 / c1[0,1] c2[2,3]"


def test_an_empty_worker_that_leaves_begins_no_delay() -> None:
    group = _group("w1", c1=4, c2=4)
    group.compute()
    group.join("w2", "w3")
    group.compute()
    group.connectors.clear()
    group.compute()
    group.leave("w3")
    assert group.compute().delay_ms == 0


def test_what_nobody_has_configured_stops_whoever_computes() -> None:
    group = _group("w1", "w2", A=2)
    stray = Items(("A", "X"), (ConnectorTaskId("A", 0), ConnectorTaskId("X", 0)))
    group.workers["w1"] = GroupWorker(1, stray)
    group.compute()
    assert group.all == ["w1: A / A[0]", "w2: - / A[1]"]


def test_the_same_arguments_give_the_same_result() -> None:
    group = _group("w1", "w2", "w3", c1=9, c2=5)
    group.compute()
    group.leave("w2")
    given, memory = group.group(), group.memory
    first = group.assignor.assign(given, memory)
    assert group.assignor.assign(given, memory) == first
    assert (
        IncrementalCooperativeAssignor(returning_worker=ReturningWorker.WAIT).assign(given, memory)
        == first
    )  # nothing is kept in the assignor


def test_a_memory_of_another_assignor_is_none() -> None:
    group = _group("w1", "w2", c1=4)
    group.memory = "what is this"
    group.compute()
    assert group.all == ["w1: c1 / c1[0,2]", "w2: - / c1[1,3]"]


def test_a_policy_that_there_is_not() -> None:
    no_policy: Any = "later"
    with pytest.raises(ValueError, match="later"):
        IncrementalCooperativeAssignor(returning_worker=no_policy)


def test_two_that_claim_to_be_the_same_worker() -> None:
    group = _group("w1", "w2", returning=ReturningWorker.IMMEDIATE, c1=4, c2=4)
    group.compute()
    before = group.last.workers["w2"]
    group.leave("w2")
    group.compute()
    group.join("x", "y", url="http://w2")
    group.compute()
    assert before.connectors[0] in group.last.workers["x"].connectors
    assert not group.last.deferred


def test_what_was_kept_is_gone_when_the_delay_is_over() -> None:
    group = _group("w1", "w2", returning=ReturningWorker.IMMEDIATE, c1=4, c2=4)
    group.compute()
    group.leave("w2")
    group.compute()
    group.now_ms += D
    group.compute()
    group.join("w2")
    group.compute()
    assert group.all == ["w1: c2 / c2[0,1,2,3]", "w2: c1 / c1[0,1,2,3]"]  # as any newcomer
