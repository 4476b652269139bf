"""What a coordinator knows of a classic group that has only the records."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.groups import ListGroupsRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicProtocol,
    GroupMetadata,
)
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness, wants


def test_a_complete_generation_goes_on() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    harness.restart()
    assert harness.now.state == "Stable"
    assert (harness.beat("A"), harness.beat("B")) == (0, 0)
    again = harness.sync("B")
    assert again is not None
    assert again.assignment == b"B"


def test_sessions_begin_anew() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.pass_ms(9_000)
    harness.restart()
    harness.pass_ms(9_999)
    assert harness.now.state == "Stable"
    harness.pass_ms(1)
    assert harness.now.state == "Empty"


def test_an_unfinished_rebalance_is_forgotten() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.join("B", version=3)
    before = harness.groups.records[-1]
    harness.restart()
    assert harness.now.state == "Stable"
    assert list(harness.now.group.members) == [harness.ids["A"]]
    assert harness.groups.records[-1] == before


def test_only_the_elected_protocol_is_remembered() -> None:
    """So a follower that offers what it always did has changed, and everybody joins again."""
    harness = ClassicGroupHarness()
    harness.join("A", "range", "sticky", version=3)
    harness.sync("A", {"A": b"a"})
    harness.restart()
    (member,) = harness.now.group.members.values()
    assert member.protocols == (ClassicProtocol("range", wants("foo")),)


def test_a_group_that_became_too_large_shrinks() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B", "C")
    harness.consumers.config.replace_overrides(cluster={"group.max.size": "2"})
    harness.restart()
    assert harness.now.state == "PreparingRebalance"
    harness.join("B")
    harness.join("C")
    assert harness.waiting == ["B", "C"]
    refused = harness.join("A")
    assert refused is not None
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.member_id == ""


def test_what_is_stored_is_what_was_agreed() -> None:
    harness = ClassicGroupHarness()
    harness.join("A", "range", version=3, session_ms=11_000, rebalance_ms=22_000)
    started_ms = harness.consumers.now
    harness.pass_ms(1_000)
    harness.sync("A", {"A": b"a"})
    (record,) = [each for each in harness.groups.records if isinstance(each, GroupMetadata)][-1:]
    assert record.value == ClassicGeneration(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=harness.ids["A"],
        state_timestamp_ms=started_ms,
        members=(
            ClassicGroupMember(
                member_id=harness.ids["A"],
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
    harness = ClassicGroupHarness()
    member = ClassicGroupMember(
        member_id="m", session_timeout_ms=6_000, subscription=b"\x00", assignment=b"x"
    )
    value = ClassicGeneration(
        protocol_type="consumer", generation=4, protocol="range", leader=leader, members=(member,)
    )
    harness.groups._append(harness.consumers.now, [GroupMetadata("g", value)])
    harness.restart()
    harness.ids["m"] = "m"
    assert harness.now.group.members["m"].rebalance_timeout_ms == 6_000
    answer = harness.join("m", "range", topics=("foo",))
    assert answer is not None
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 5, "m")


def test_a_consumer_group_that_is_forgotten_lives_again_from_the_start() -> None:
    """Somebody joins an empty consumer group with a member id: Kafka loses it, and writes nothing.
    Who describes groups sees it until something is written."""
    harness = ClassicGroupHarness()
    harness.consumers.groups = harness.groups
    first = harness.consumers.join("N")
    harness.consumers.beat("N", -1)
    refused = harness.ask_to_join("A", id_="zz")
    assert refused is not None
    assert (refused.error_code, refused.member_id) == (25, "zz")
    assert harness.groups.snapshot("g") is None
    listed = harness.send("admin", ListGroupsRequest(), 5).groups
    assert [(each.group_id, each.group_state) for each in listed] == [("g", "Empty")]
    assert harness.consumers.join("N").epoch == first.epoch
    harness.restart()
    assert harness.groups.snapshot("g") is not None
