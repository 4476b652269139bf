"""What is on its way between members, read off descriptions of a group."""

from __future__ import annotations

from collections.abc import Sequence

from kip848_client import TopicPartition
from kip848_client.admin import (
    GroupDescription,
    MemberDescription,
    Movement,
    MovementState,
    Node,
    WorkerDescription,
    WorkerItem,
    movements,
)

T = [TopicPartition("t", number) for number in range(3)]
ONE, TWO = WorkerItem("a"), WorkerItem("a", 0, 1)


def member(
    name: str,
    epoch: int | None,
    has: Sequence[TopicPartition],
    wants: Sequence[TopicPartition] | None,
) -> MemberDescription:
    return MemberDescription(
        member_id=name,
        instance_id=None,
        client_id="c",
        host="/h",
        assignment=tuple(has),
        target_assignment=None if wants is None else tuple(wants),
        epoch=epoch,
    )


def group(*members: MemberDescription, kind: str = "Consumer") -> GroupDescription:
    return GroupDescription(
        group_id="g",
        type=kind,
        state="Reconciling",
        assignor="uniform",
        coordinator=Node(1, "h", 1),
        members=members,
        group_epoch=6,
        target_assignment_epoch=6,
    )


def worker(
    name: str,
    has: Sequence[WorkerItem],
    wants: Sequence[WorkerItem],
    revoking: Sequence[WorkerItem] = (),
) -> MemberDescription:
    described = WorkerDescription(
        url=None,
        config_offset=None,
        assignment=tuple(has),
        revoking=tuple(revoking),
        target_assignment=tuple(wants),
    )
    return MemberDescription(
        member_id=name,
        instance_id=None,
        client_id="c",
        host="/h",
        assignment=(),
        target_assignment=(),
        epoch=5,
        worker=described,
    )


SETTLED = group(member("A", 5, T, T))
ASKED = group(member("A", 5, T, T[:2]), member("B", 6, [], T[2:]))
HIDDEN = group(member("A", 5, T[:2], T[:2]), member("B", 6, [], T[2:]))
"""As Kafka before 4.3 shows it while A gives a partition up."""
GIVEN_UP = group(member("A", 6, T[:2], T[:2]), member("B", 6, [], T[2:]))
ARRIVED = group(member("A", 6, T[:2], T[:2]), member("B", 6, T[2:], T[2:]))


def test_a_partition_goes_from_one_member_to_another() -> None:
    """Step by step, each beside the description before."""
    steps = [SETTLED, ASKED, HIDDEN, GIVEN_UP, ARRIVED, ARRIVED]
    states = [
        [each.state for each in movements(now, before)]
        for before, now in zip([None, *steps], steps, strict=False)
    ]
    assert states == [
        [],
        [MovementState.PENDING_REVOCATION],
        [MovementState.PENDING_REVOCATION],
        [MovementState.REVOKED],
        [MovementState.ASSIGNED],
        [],
    ]
    assert movements(ASKED) == (Movement(T[2], "A", "B", MovementState.PENDING_REVOCATION),)
    assert movements(GIVEN_UP, ASKED) == (Movement(T[2], "A", "B", MovementState.REVOKED),)
    assert movements(ARRIVED, ASKED) == (Movement(T[2], "A", "B", MovementState.ASSIGNED),)


def test_without_an_earlier_description_nobody_knows_who_had_it() -> None:
    assert movements(GIVEN_UP) == (Movement(T[2], None, "B", MovementState.REVOKED),)
    assert movements(HIDDEN) == movements(GIVEN_UP)
    assert movements(ARRIVED) == ()


def test_a_partition_that_no_member_is_to_have() -> None:
    gone = group(member("A", 5, T, T[1:]))
    assert movements(gone) == (Movement(T[0], "A", None, MovementState.PENDING_REVOCATION),)


def test_a_member_that_left_gave_up_what_it_had() -> None:
    left = group(member("B", 6, [], T))
    assert {each.state for each in movements(left, SETTLED)} == {MovementState.REVOKED}
    assert {each.from_member for each in movements(left, SETTLED)} == {"A"}


def test_a_classic_group_has_no_targets() -> None:
    assert movements(group(member("A", None, T, None), kind="Classic")) == ()


def test_items_of_workers_move_likewise() -> None:
    moving = group(worker("A", [ONE], [ONE], revoking=[TWO]), worker("B", [], [TWO]))
    assert movements(moving) == (Movement(TWO, "A", "B", MovementState.PENDING_REVOCATION),)
    arrived = group(worker("A", [ONE], [ONE]), worker("B", [TWO], [TWO]))
    assert movements(arrived, moving) == (Movement(TWO, "A", "B", MovementState.ASSIGNED),)
    assert str(movements(moving)[0].what) == "a-0"


def test_what_comes_back_to_the_member_that_gave_it_up_is_not_given_up_by_it() -> None:
    """Its target had lost the partition, and has it again before anybody else got it."""
    before = group(member("a", 5, [T[0]], [T[0]]))
    now = group(member("a", 5, [], [T[0]]))
    assert movements(now, before) == (Movement(T[0], "a", "a", MovementState.REVOKED),)
