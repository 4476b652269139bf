"""One member's step towards its target, case by case of the transition table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import MemberState
from mock_coordinator.core.groups.assignment.current_assignment import (
    Reconciliation,
    away,
    handed_over,
    reconcile,
)
from mock_coordinator.core.groups.records.state_records import CurrentAssignment, OwnedPartitions
from mock_coordinator.core.groups.state.member import Member, partition_count, same_owned
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.refused import Refused
from tests.unit.mock_coordinator.groups._group_harness import BAR, FOO

STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def _owned(numbers: Iterable[int], epoch: int = 1, topic: TopicId = FOO) -> OwnedPartitions:
    held = dict.fromkeys(numbers, epoch)
    return {topic: held} if held else {}


def _member(
    assigned: Iterable[int],
    *,
    epoch: int = 1,
    state: MemberState = STABLE,
    pending: Iterable[int] = (),
) -> Member:
    return Member(
        "A",
        current=CurrentAssignment(
            member_epoch=epoch,
            state=state,
            assigned=_owned(assigned, epoch),
            pending_revocation=_owned(pending, epoch),
        ),
    )


def _step(
    member: Member,
    target: Iterable[int],
    *,
    epoch: int = 2,
    owned: Iterable[int] | None = None,
    others: Iterable[int] = (),
    profile: str = "4.3",
    changed: bool = False,
    subscribed: Iterable[TopicId] = (FOO, BAR),
) -> CurrentAssignment:
    report = None
    if owned is not None:
        numbers = tuple(owned)
        report = (
            (ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=FOO, partitions=numbers),)
            if numbers
            else ()
        )
    held: Mapping[int, str] = {
        **dict.fromkeys(others, "B"),
        **dict.fromkeys(member.assigned.get(FOO, {}), "A"),
        **dict.fromkeys(member.pending_revocation.get(FOO, {}), "A"),
    }
    topics = tuple(subscribed)
    return reconcile(
        member,
        Reconciliation(
            profile=profile_named(profile),
            target_epoch=epoch,
            target={FOO: tuple(target)},
            holders={FOO: held},
            owned=report,
            subscription_changed=changed,
            is_subscribed=topics.__contains__,
        ),
    )


def _numbers(owned: OwnedPartitions) -> list[int]:
    return sorted(owned.get(FOO, {}))


def _shown(current: CurrentAssignment) -> tuple[MemberState, int, list[int], list[int]]:
    return (
        current.state,
        current.member_epoch,
        _numbers(current.assigned),
        _numbers(current.pending_revocation),
    )


def test_a_reconciled_member_stays_the_same_object() -> None:
    member = _member([0, 1], epoch=2)
    assert _step(member, [0, 1]) is member.current


def test_stable_gives_up_before_it_receives() -> None:
    current = _step(_member([0, 1, 2]), [0, 1, 5])
    assert _shown(current) == (UNREVOKED, 1, [0, 1], [2])
    assert current.previous_member_epoch == 1


def test_stable_that_has_given_up_already_moves_on() -> None:
    assert _shown(_step(_member([0, 1, 2]), [0, 1, 5], owned=[0, 1])) == (STABLE, 2, [0, 1, 5], [])


def test_stable_receives_what_is_free_and_waits_for_the_rest() -> None:
    current = _step(_member([0]), [0, 1, 2], others=[2])
    assert _shown(current) == (UNRELEASED, 2, [0, 1], [])
    assert current.assigned == {FOO: {0: 1, 1: 2}}


def test_stable_waits_when_nothing_is_free() -> None:
    assert _shown(_step(_member([0]), [0, 2], others=[2])) == (UNRELEASED, 2, [0], [])


def test_unrevoked_waits_until_it_is_told_otherwise() -> None:
    member = _member([0], state=UNREVOKED, pending=[1, 2])
    assert _step(member, [0]) is member.current
    assert _step(member, [0], owned=[0, 2]) is member.current
    assert _shown(_step(member, [0], owned=[0])) == (STABLE, 2, [0], [])
    assert _shown(_step(member, [0], owned=[])) == (STABLE, 2, [0], [])


def test_unrevoked_gets_its_own_pending_partitions_back() -> None:
    member = _member([0], state=UNREVOKED, pending=[1, 2])
    assert _step(member, [0, 1, 2]) is member.current
    assert _shown(_step(member, [0, 1, 2], owned=[0])) == (STABLE, 2, [0, 1, 2], [])


@pytest.mark.parametrize(("profile", "epoch"), [("4.0", 2), ("4.1", 2), ("4.2", 1), ("4.4", 1)])
def test_unrevoked_that_has_to_give_up_more(profile: str, epoch: int) -> None:
    member = _member([0, 1], state=UNREVOKED, pending=[2])
    current = _step(member, [0], epoch=3, owned=[0, 1], profile=profile)
    assert _shown(current) == (UNREVOKED, epoch, [0], [1])
    assert current.previous_member_epoch == 1


def test_unreleased_receives_when_the_others_have_let_go() -> None:
    member = _member([0], epoch=2, state=UNRELEASED)
    assert _shown(_step(member, [0, 1], others=[1])) == (UNRELEASED, 2, [0], [])
    assert _shown(_step(member, [0, 1])) == (STABLE, 2, [0, 1], [])


def test_unreleased_may_have_to_give_up_again() -> None:
    member = _member([0, 1], epoch=2, state=UNRELEASED)
    assert _shown(_step(member, [0], epoch=3)) == (UNREVOKED, 2, [0], [1])


def test_an_unknown_state_has_to_begin_anew() -> None:
    member = _member([0], state=MemberState.UNKNOWN)
    for owned in (None, [0]):
        with pytest.raises(Refused, match="in a unknown state") as caught:
            _step(member, [0], owned=owned)
        assert caught.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert _shown(_step(member, [0, 1], owned=[])) == (STABLE, 2, [0, 1], [])


@pytest.mark.parametrize(("profile", "kept"), [("4.1", [0, 1]), ("4.2", [])])
def test_a_target_of_topics_no_longer_subscribed(profile: str, kept: list[int]) -> None:
    current = _step(_member([0, 1]), [0, 1], owned=[], profile=profile, subscribed=[BAR])
    assert _numbers(current.assigned) == kept
    assert current.member_epoch == 2


def test_unsubscribed_topics_are_taken_before_there_is_a_new_target() -> None:
    member = _member([0, 1], epoch=2)
    current = _step(member, [0, 1], changed=True, subscribed=[BAR])
    assert _shown(current) == (UNREVOKED, 2, [], [0, 1])
    current = _step(member, [0, 1], changed=True, subscribed=[BAR], owned=[])
    assert _shown(current) == (STABLE, 2, [], [])
    assert _step(member, [0, 1], changed=True) is member.current
    assert _step(member, [0, 1], changed=True, subscribed=[], profile="4.1") is member.current


@pytest.mark.parametrize(("profile", "previous"), [("4.2", 0), ("4.3", 2)])
def test_what_taking_them_does_to_the_previous_epoch(profile: str, previous: int) -> None:
    current = _step(_member([0], epoch=2), [0], changed=True, subscribed=[BAR], profile=profile)
    assert current.previous_member_epoch == previous


def test_unsubscribed_topics_join_what_is_pending_already() -> None:
    member = _member([0], state=UNREVOKED, pending=[2])
    current = _step(member, [0], changed=True, subscribed=[BAR], owned=[0, 2])
    assert _shown(current) == (UNREVOKED, 1, [], [0, 2])


def test_only_brokers_from_4_3_on_remember_when_a_partition_was_assigned() -> None:
    for profile, epochs in (("4.2", {0: 2, 1: 2}), ("4.3", {0: 1, 1: 2})):
        assert _step(_member([0]), [0, 1], profile=profile).assigned == {FOO: epochs}


def test_a_static_member_that_is_away() -> None:
    member = _member([0], epoch=3, state=UNREVOKED, pending=[1])
    for profile in ("4.2", "4.3"):
        current = away(profile_named(profile), member.current)
        assert _shown(current) == (UNREVOKED, -2, [0], [])
        assert current.assigned == {FOO: {0: 0}}
        current = handed_over(profile_named(profile), current)
        assert _shown(current) == (UNREVOKED, 0, [0], [])
        assert current.previous_member_epoch == 0


def test_comparing_and_counting_what_is_owned() -> None:
    assert same_owned({FOO: {0: 1}}, {FOO: {0: 9}})
    assert not same_owned({FOO: {0: 1}}, {FOO: {1: 1}})
    assert not same_owned({FOO: {0: 1}}, {BAR: {0: 1}})
    assert partition_count({FOO: {0: 1, 4: 1}, BAR: {0: 2}}) == 3
