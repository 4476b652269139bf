"""Join and sync phases of classic groups: who waits for whom, and how it ends."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.classic_group import JoinGroupResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.state_records import ClassicProtocol
from mock_coordinator.core.groups.state.classic_live import LiveGroup, LiveMember
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness, wants


def ok(answer: JoinGroupResponse | None) -> JoinGroupResponse:
    assert answer is not None
    assert answer.error_code == 0
    return answer


def test_a_member_is_sent_away_once_and_leads() -> None:
    harness = ClassicGroupHarness()
    first = harness.ask_to_join("A")
    assert first is not None
    assert (first.error_code, first.generation_id, first.leader) == (79, -1, "")
    assert first.member_id.startswith("A-")
    assert harness.now.state == "Empty"
    second = ok(harness.ask_to_join("A"))
    assert (second.generation_id, second.protocol_type, second.protocol_name) == (
        1,
        "consumer",
        "range",
    )
    assert second.leader == second.member_id == first.member_id
    assert [(each.member_id, each.metadata) for each in second.members] == [
        (first.member_id, wants("foo"))
    ]
    assert harness.now.state == "CompletingRebalance"


def test_followers_wait_for_the_leader_and_get_what_it_gives() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B", "C")
    members = harness.now.group.members
    assert {name: members[id_].assignment for name, id_ in harness.ids.items()} == {
        "A": b"A",
        "B": b"B",
        "C": b"C",
    }
    assert not harness.waiting
    again = harness.sync("B")
    assert again is not None
    assert again.assignment == b"B"


def test_whom_the_leader_forgets_gets_nothing_and_strangers_are_ignored() -> None:
    harness = ClassicGroupHarness()
    harness.join("A", version=3)
    harness.join("B", version=3)
    harness.join("A")
    harness.ids["Z"] = "nobody"
    assert harness.sync("B") is None
    mine = harness.sync("A", {"A": b"mine", "Z": b"for nobody"})
    assert mine is not None
    assert mine.assignment == b"mine"
    assert harness.late()["B"].assignment == b""
    assert harness.now.state == "Stable"


def test_a_new_member_makes_everybody_join_again() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    assert harness.join("C") is None
    assert (harness.beat("A"), harness.beat("B")) == (27, 27)
    assert harness.join("B") is None
    leader = ok(harness.join("A"))
    assert leader.generation_id == harness.generations["B"] == harness.generations["C"]
    assert sorted(each.member_id for each in leader.members) == sorted(harness.ids.values())
    late = harness.late()
    assert sorted(late) == ["B", "C"]
    assert all(not answer.members for answer in late.values())


def test_a_rebalance_tells_waiting_followers_and_forgets_assignments() -> None:
    harness = ClassicGroupHarness()
    harness.join("A", version=3)
    harness.join("B", version=3)
    harness.join("A")
    harness.late()
    assert harness.sync("B") is None
    harness.join("C", version=3)
    refused = harness.late()["B"]
    assert (refused.error_code, refused.assignment, refused.protocol_name) == (27, b"", None)
    assert harness.now.state == "PreparingRebalance"


def test_whoever_does_not_join_in_time_is_out_and_another_leads() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    harness.join("B", topics=("bar",), rebalance_ms=5_000)
    for _ in range(4):
        harness.pass_ms(7_499)
        assert harness.beat("A") == 27
    assert harness.waiting == ["B"]
    harness.pass_ms(4)  # the longest rebalance timeout is 30 s, and A's
    leader = harness.late()["B"]
    assert leader.leader == leader.member_id == harness.ids["B"]
    assert len(leader.members) == 1
    assert harness.beat("A") == 25


def test_static_members_keep_their_place_when_they_do_not_join() -> None:
    harness = ClassicGroupHarness()
    harness.join("S", instance="i1", session_ms=60_000, rebalance_ms=5_000)
    harness.join("A", version=3, rebalance_ms=5_000, session_ms=60_000)
    harness.join("S", instance="i1", session_ms=60_000, rebalance_ms=5_000)
    harness.late()
    harness.join("A", topics=("bar",), rebalance_ms=5_000, session_ms=60_000)
    harness.pass_ms(5_000)
    leader = harness.late()["A"]
    assert leader.leader == harness.ids["A"]
    assert sorted(each.group_instance_id or "" for each in leader.members) == ["", "i1"]


def test_only_static_members_none_of_which_joins_are_waited_for() -> None:
    harness = ClassicGroupHarness()
    harness.join("S", instance="i1", session_ms=20_000, rebalance_ms=5_000)
    harness.sync("S", {"S": b"x"})
    harness.join("A", version=3, rebalance_ms=5_000)
    harness.leave("A")
    generation = harness.now.group.generation
    harness.pass_ms(12_000)
    assert harness.now.state == "PreparingRebalance"
    assert harness.now.group.generation == generation
    harness.pass_ms(8_000)  # its session ends
    assert harness.now.state == "Empty"
    assert harness.now.group.generation == generation + 1


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_before_version_4_a_member_is_let_in_at_once(version: int) -> None:
    harness = ClassicGroupHarness()
    answer = ok(harness.ask_to_join("A", version=version, session_ms=7_000, rebalance_ms=33_000))
    member = harness.now.group.members[answer.member_id]
    assert member.rebalance_timeout_ms == (7_000 if version == 0 else 33_000)


def test_a_member_may_change_its_type_only_in_an_empty_group() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    refused = harness.ask_to_join("B", kind="connect")
    assert refused is not None
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    harness.leave("A")
    assert ok(harness.join("B", kind="connect")).protocol_type == "connect"


def test_the_same_protocol_twice_is_nobodys_protocol() -> None:
    """Kafka counts it twice, so it is never one that all members offer: the member waits for the
    five minutes that a new member may."""
    harness = ClassicGroupHarness()
    assert harness.join("A", "range", "range") is None
    harness.pass_ms(299_999)
    assert harness.now.state == "PreparingRebalance"
    harness.pass_ms(1)
    assert harness.late()["A"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.now.state == "Empty"


def test_who_gives_up_and_asks_again_is_answered_once() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    harness.join("C", version=3)
    assert harness.waiting == ["C"]
    harness.join("B")
    harness.join("B")  # its first request is never answered: nobody reads the answer
    ok(harness.join("A"))
    assert sorted(harness.late()) == ["B", "C"]
    assert harness.waiting == ["B"]


@pytest.mark.parametrize(
    ("profile", "stalls"),
    [("4.0", True), ("4.1", True), ("4.2", False), ("4.3", True), ("4.4", False)],
)
def test_nonsense_stalls_the_join_phase_of_some_lines(profile: str, stalls: bool) -> None:
    harness = ClassicGroupHarness(profile)
    answer = harness.join("A", metadata=b"\0\0\xff\xff\xff\xff\0\0\0\0")
    assert (answer is None) is stalls
    assert harness.now.state == ("PreparingRebalance" if stalls else "CompletingRebalance")
    other = harness.join("B", kind="consumer", metadata=b"\0\0\0\0")  # only cut: topics unknown
    assert other is None or other.error_code == 0
    harness.pass_ms(301_000)
    assert not harness.waiting


def test_who_follows_a_leader_is_decided_by_a_hash_map() -> None:
    """As a broker chose among these very ids."""
    live = LiveGroup()
    for member_id in (
        "differential-9fdba852-89a3-48d6-b0b1-4ff3824ea7fa",
        "i3-a607ac70-2cb1-43a1-aa59-647f37726c53",
        "differential-304ae5d9-c622-4c11-a1fd-2014a8f11c79",
    ):
        live.put(
            LiveMember(
                member_id=member_id,
                rebalance_timeout_ms=1,
                session_timeout_ms=1,
                protocols=(ClassicProtocol("p", b""),),
            )
        )
    live.remove("differential-9fdba852-89a3-48d6-b0b1-4ff3824ea7fa")
    assert live.leader == "differential-304ae5d9-c622-4c11-a1fd-2014a8f11c79"
