"""Offsets of classic groups: who may commit, what administrators may take away, what expires."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness

_DAY_MS = 24 * 3_600_000


def commit(
    harness: ClassicGroupHarness,
    member: str = "",
    generation: int = -1,
    *,
    instance: str | None = None,
    topic: str = "foo",
    version: int = 8,
) -> int:
    """Commit one offset; the error code."""
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="g",
        member_id=harness.ids.get(member, member),
        generation_id_or_member_epoch=generation,
        group_instance_id=instance,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(part,)),),
    )
    answer = harness.send("committer", request, version)
    assert isinstance(answer, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def delete(harness: ClassicGroupHarness, topic: str) -> int:
    """Delete one offset; the error code of the request or the partition."""
    part = OffsetDeleteRequestPartition(partition_index=0)
    request = OffsetDeleteRequest(
        group_id="g", topics=(OffsetDeleteRequestTopic(name=topic, partitions=(part,)),)
    )
    answer = harness.send("admin", request, 0)
    assert isinstance(answer, OffsetDeleteResponse)
    return answer.error_code or answer.topics[0].partitions[0].error_code


def stored(harness: ClassicGroupHarness) -> list[str]:
    """The topics that have an offset; nothing when the group is gone."""
    snapshot = harness.groups.snapshot("g")
    return sorted(snapshot.offsets) if snapshot is not None else ["no group"]


@pytest.mark.parametrize("version", [2, 8, 9])
def test_members_commit_in_their_generation(version: int) -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    assert commit(harness, "A", 1, version=version) == 0
    assert commit(harness, "A", 0, version=version) == 22
    assert commit(harness, "A", 2, version=version) == 22
    assert commit(harness, "A", -1, version=version) == 22
    assert commit(harness, "Z", 1, version=version) == 25
    assert commit(harness, version=version) == 25
    assert commit(harness, "", 1, version=version) == 25


def test_between_the_phases_a_commit_has_to_wait() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.join("A")
    assert harness.now.state == "CompletingRebalance"
    assert commit(harness, "A", 2) == 27
    assert commit(harness, "A", 1) == 22


def test_static_members_are_who_they_say() -> None:
    harness = ClassicGroupHarness()
    harness.join("S", instance="i1")
    harness.sync("S", {"S": b"x"})
    assert commit(harness, "S", 1, instance="i1") == 0
    assert commit(harness, "S", 1, instance="i2") == 25
    assert commit(harness, "other", 1, instance="i1") == 82


def test_nobody_commits_to_an_empty_group_only() -> None:
    harness = ClassicGroupHarness()
    assert commit(harness) == 0
    harness.stable("A")
    assert commit(harness) == 25
    harness.leave("A")
    assert commit(harness) == 0
    assert commit(harness, "A", 2) == 25


def test_a_commit_in_the_join_phase_keeps_the_session() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A", "B")
    harness.join("C", version=3)
    harness.pass_ms(9_000)
    assert commit(harness, "A", harness.generations["A"]) == 0
    harness.pass_ms(2_000)
    assert (harness.beat("A"), harness.beat("B")) == (27, 25)


def test_offsets_of_topics_that_members_want_stay() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    for topic in ("foo", "bar"):
        assert commit(harness, "A", 1, topic=topic) == 0
    assert delete(harness, "foo") == 86
    assert delete(harness, "bar") == 0
    assert stored(harness) == ["foo"]
    harness.leave("A")
    assert delete(harness, "foo") == 0


def test_of_other_types_nothing_is_deleted_while_they_work() -> None:
    harness = ClassicGroupHarness()
    harness.join("W", kind="connect", metadata=b"\x01")
    harness.sync("W", {"W": b"x"})
    assert commit(harness, "W", 1) == 0
    assert delete(harness, "foo") == 68
    harness.leave("W")
    assert delete(harness, "foo") == 0


def test_a_group_that_was_left_expires_as_a_whole() -> None:
    """Seven days after it was left, not after the commit (KIP-211)."""
    harness = ClassicGroupHarness()
    harness.stable("A")
    assert commit(harness, "A", 1) == 0
    for _ in range(3):
        harness.pass_ms(9_000)
        assert harness.beat("A") == 0
    harness.leave("A")
    harness.pass_ms(7 * _DAY_MS - 700_000)
    assert stored(harness) == ["foo"]
    harness.pass_ms(1_300_000)
    assert stored(harness) == ["no group"]


def test_what_members_do_not_want_expires_while_they_work() -> None:
    harness = ClassicGroupHarness()
    harness.join("A", version=3, session_ms=1_800_000)
    harness.sync("A", {"A": b"a"})
    for topic in ("foo", "bar"):
        assert commit(harness, "A", 1, topic=topic) == 0
    for _ in range(7 * 48 + 3):
        harness.pass_ms(1_790_000)
        assert harness.beat("A") == 0
    harness.pass_ms(1_200_000)
    assert stored(harness) == ["foo"]


def test_nothing_expires_in_a_rebalance_or_of_another_type() -> None:
    harness = ClassicGroupHarness()
    harness.join("W", kind="connect", metadata=b"\x01", session_ms=1_800_000)
    harness.sync("W", {"W": b"x"})
    assert commit(harness, "W", 1) == 0
    for _ in range(8 * 48):
        harness.pass_ms(1_790_000)
        assert harness.beat("W") == 0
    assert stored(harness) == ["foo"]


def test_an_empty_group_without_offsets_is_gone_at_the_next_cleanup() -> None:
    harness = ClassicGroupHarness()
    harness.stable("A")
    harness.leave("A")
    assert harness.now.state == "Empty"
    harness.pass_ms(600_000)
    assert harness.now.state == "Dead"
