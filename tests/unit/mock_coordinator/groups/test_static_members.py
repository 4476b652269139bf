"""Static members: what the scenarios S38 to S44 do not show."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness, parts


def _two_members(harness: GroupHarness) -> int:
    """A (static, i1) with foo 0-2 and B with 3-5; their epoch."""
    harness.join("A", inst="i1")
    harness.join("B")
    harness.settle("A", "B")
    assert (harness.owned("A"), harness.owned("B")) == (parts(foo=range(3)), parts(foo=[3, 4, 5]))
    return harness.first + 1


def test_a_static_member_may_leave_its_instance_id_out() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", inst="i1")
    assert harness.beat("A", 2).error == 0
    assert harness.member("A").subscription.instance_id == "i1"


def test_a_dynamic_member_becomes_static_by_joining_again() -> None:
    harness = GroupHarness("4.0")
    harness.join("A")
    harness.join("B")
    harness.settle("A", "B")
    before = len(harness.groups.records)
    answer = harness.join("A", inst="i1")  # no epoch check on this path, even in 4.0
    assert (answer.error, answer.epoch) == (0, 2)
    assert harness.written(before)[0] == "MemberMetadata"
    assert harness.join("A", inst="i1").error == ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_session_timer_of_a_replaced_member_hits_nobody() -> None:
    harness = GroupHarness("4.4")
    e = _two_members(harness)
    harness.beat("A", -2, inst="i1")
    harness.pass_ms(10_000)
    harness.join("A2", inst="i1")
    harness.beat("B", e)
    harness.pass_ms(35_000)
    assert set(harness.group().members) == {"A2", "B"}
