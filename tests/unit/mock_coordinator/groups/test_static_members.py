"""Static members: what the scenarios S38 to S44 do not show."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.groups._world import World, parts


def _two_members(world: World) -> int:
    """A (static, i1) with foo 0-2 and B with 3-5; their epoch."""
    world.join("A", inst="i1")
    world.join("B")
    world.settle("A", "B")
    assert (world.owned("A"), world.owned("B")) == (parts(foo=range(3)), parts(foo=[3, 4, 5]))
    return world.first + 1


def test_a_static_member_may_leave_its_instance_id_out() -> None:
    world = World("4.4")
    world.join("A", inst="i1")
    assert world.beat("A", 2).error == 0
    assert world.member("A").subscription.instance_id == "i1"


def test_a_dynamic_member_becomes_static_by_joining_again() -> None:
    world = World("4.0")
    world.join("A")
    world.join("B")
    world.settle("A", "B")
    before = len(world.groups.records)
    answer = world.join("A", inst="i1")  # no epoch check on this path, even in 4.0
    assert (answer.error, answer.epoch) == (0, 2)
    assert world.written(before)[0] == "MemberMetadata"
    assert world.join("A", inst="i1").error == ErrorCode.UNRELEASED_INSTANCE_ID


def test_the_session_timer_of_a_replaced_member_hits_nobody() -> None:
    world = World("4.4")
    e = _two_members(world)
    world.beat("A", -2, inst="i1")
    world.pass_ms(10_000)
    world.join("A2", inst="i1")
    world.beat("B", e)
    world.pass_ms(35_000)
    assert set(world.group().members) == {"A2", "B"}
