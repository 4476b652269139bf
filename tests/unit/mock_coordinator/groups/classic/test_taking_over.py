"""What a coordinator knows of a classic group that has only the records."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.groups import ListGroupsRequest
from mock_coordinator.core.groups.records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicProtocol,
    GroupMetadata,
)
from tests.unit.mock_coordinator.groups.classic._circle import Circle, wants


def test_a_complete_generation_goes_on() -> None:
    circle = Circle()
    circle.stable("A", "B")
    circle.restart()
    assert circle.now.state == "Stable"
    assert (circle.beat("A"), circle.beat("B")) == (0, 0)
    again = circle.sync("B")
    assert again is not None
    assert again.assignment == b"B"


def test_sessions_begin_anew() -> None:
    circle = Circle()
    circle.stable("A")
    circle.pass_ms(9_000)
    circle.restart()
    circle.pass_ms(9_999)
    assert circle.now.state == "Stable"
    circle.pass_ms(1)
    assert circle.now.state == "Empty"


def test_an_unfinished_rebalance_is_forgotten() -> None:
    circle = Circle()
    circle.stable("A")
    circle.join("B", version=3)
    before = circle.groups.records[-1]
    circle.restart()
    assert circle.now.state == "Stable"
    assert list(circle.now.group.members) == [circle.ids["A"]]
    assert circle.groups.records[-1] == before


def test_only_the_elected_protocol_is_remembered() -> None:
    """So a follower that offers what it always did has changed, and everybody joins again."""
    circle = Circle()
    circle.join("A", "range", "sticky", version=3)
    circle.sync("A", {"A": b"a"})
    circle.restart()
    (member,) = circle.now.group.members.values()
    assert member.protocols == (ClassicProtocol("range", wants("foo")),)


def test_a_group_that_became_too_large_shrinks() -> None:
    circle = Circle()
    circle.stable("A", "B", "C")
    circle.world.config.replace_overrides(cluster={"group.max.size": "2"})
    circle.restart()
    assert circle.now.state == "PreparingRebalance"
    circle.join("B")
    circle.join("C")
    assert circle.waiting == ["B", "C"]
    refused = circle.join("A")
    assert refused is not None
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.member_id == ""


def test_what_is_stored_is_what_was_agreed() -> None:
    circle = Circle()
    circle.join("A", "range", version=3, session_ms=11_000, rebalance_ms=22_000)
    started_ms = circle.world.now
    circle.pass_ms(1_000)
    circle.sync("A", {"A": b"a"})
    (record,) = [each for each in circle.groups.records if isinstance(each, GroupMetadata)][-1:]
    assert record.value == ClassicGeneration(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=circle.ids["A"],
        state_timestamp_ms=started_ms,
        members=(
            ClassicGroupMember(
                member_id=circle.ids["A"],
                client_id="A",
                client_host="/127.0.0.1",
                rebalance_timeout_ms=22_000,
                session_timeout_ms=11_000,
                subscription=wants("foo"),
                assignment=b"a",
            ),
        ),
    )


@pytest.mark.parametrize("leader", [None, "gone"])
def test_a_record_that_names_no_member_as_leader_is_no_trouble(leader: str | None) -> None:
    """An older broker, or another one, may have written it."""
    circle = Circle()
    member = ClassicGroupMember(
        member_id="m", session_timeout_ms=6_000, subscription=b"\x00", assignment=b"x"
    )
    value = ClassicGeneration(
        protocol_type="consumer", generation=4, protocol="range", leader=leader, members=(member,)
    )
    circle.groups._append(circle.world.now, [GroupMetadata("g", value)])
    circle.restart()
    circle.ids["m"] = "m"
    assert circle.now.group.members["m"].rebalance_timeout_ms == 6_000
    answer = circle.join("m", "range", topics=("foo",))
    assert answer is not None
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 5, "m")


def test_a_consumer_group_that_is_forgotten_lives_again_from_the_start() -> None:
    """Somebody joins an empty consumer group with a member id: Kafka loses it, and writes nothing.
    Who describes groups sees it until something is written."""
    circle = Circle()
    circle.world.groups = circle.groups
    first = circle.world.join("N")
    circle.world.beat("N", -1)
    refused = circle.ask_to_join("A", id_="zz")
    assert refused is not None
    assert (refused.error_code, refused.member_id) == (25, "zz")
    assert circle.groups.snapshot("g") is None
    listed = circle.send("admin", ListGroupsRequest(), 5).groups
    assert [(each.group_id, each.group_state) for each in listed] == [("g", "Empty")]
    assert circle.world.join("N").epoch == first.epoch
    circle.restart()
    assert circle.groups.snapshot("g") is not None
