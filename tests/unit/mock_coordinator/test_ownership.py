"""The ownership checker: silent for what the protocol allows, loud for what it does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError
from mock_coordinator import MockBroker, OwnershipViolation
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from mock_coordinator.core.inputs import LOCAL_CLIENT, ConnectionLost, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.ownership import OwnershipChecker
from mock_coordinator.driver.clock import VirtualClock


class OwnershipHarness:
    """A broker whose coordinator can be made to say anything."""

    def __init__(self) -> None:
        self.broker = MockBroker({"t": 6}, listen=False, clock=VirtualClock())
        self.topic_id = bytes(self.broker.core.broker.catalog.topics["t"].topic_id)
        self.connection = self.broker.connect()
        self.epochs: dict[str, int] = {}

    def beat(
        self, member_id: str, owned: Iterable[int] | None = None, *, epoch: int | None = None
    ) -> Any:
        """A heartbeat of a well-behaved member; the first one joins."""
        now = self.epochs.get(member_id, 0) if epoch is None else epoch
        mine = (
            None
            if owned is None
            else (
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=self.topic_id, partitions=tuple(owned)
                ),
            )
        )
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=now, topic_partitions=mine
        )
        if not now:
            request = replace(
                request,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=("t",),
                topic_partitions=(),
            )
        response = self.connection.ask(request)
        if not response.error_code:
            self.epochs[member_id] = response.member_epoch
        return response

    def commit(self, member_id: str, partition: int) -> int:
        request = OffsetCommitRequest(
            group_id="g",
            member_id=member_id,
            generation_id_or_member_epoch=self.epochs[member_id],
            topics=(
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=partition, committed_offset=1),
                    ),
                ),
            ),
        )
        code: int = self.connection.ask(request, 9).topics[0].partitions[0].error_code
        return code

    def pass_half_to_b(self) -> None:
        """A has 0-2, B has 3-5, by the book."""
        self.broker.advance(2000)
        self.beat("A")
        self.beat("B")
        self.broker.advance(2000)
        self.beat("B")
        self.beat("A")
        self.beat("A", range(3))
        self.beat("B")

    def violation(self) -> str:
        with pytest.raises(OwnershipViolation) as caught:
            self.broker.check_ownership()
        return str(caught.value)


def pending(checker: OwnershipChecker) -> int:
    """How many requests it waits for the answers of."""
    return sum(map(len, checker._asked.values()))


def in_the_book(checker: OwnershipChecker) -> int:
    """How many members it takes to be using something."""
    return sum(len(group.using) for group in checker._groups.values())


def test_a_hand_over_by_the_book_is_fine() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    assert harness.commit("B", 3) == 0
    harness.beat("B", epoch=-1)
    harness.broker.advance(2000)
    harness.beat("A")
    harness.broker.check_ownership()


def test_reporting_what_was_given_up_is_not() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    assert harness.beat("A", range(6)).error_code == 0, "a broker does not mind"
    said = harness.violation()
    assert "A reports that it owns t-3" in said
    assert "A ConsumerGroupHeartbeat epoch" in said, "the conversation is part of it"


def test_reporting_less_and_then_all_again_is_fine() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    harness.beat("A", [0])
    harness.beat("A", range(6))
    harness.broker.check_ownership()


def test_a_million_made_up_partitions_are_one_mistake_and_cost_next_to_nothing() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    harness.broker.advance(10_000)
    assert harness.beat("A", range(1_000_000)).error_code == 0, "a broker does not mind"
    checker = harness.broker.driver.ownership
    assert checker.using("g") == {"A": {("t", each) for each in range(6)}}
    (said,) = checker.violations
    assert "A reports partitions of t that do not exist" in said
    assert "98, 99] and 999900 more" in said
    assert len(said) < 2000
    kept = [entry for _, entry in checker._timeline if not isinstance(entry, str)]
    assert sum(len(request.topic_partitions or ()) for _, request, _ in kept) < 10


def test_committing_for_another_one_is_not_fine() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    assert harness.commit("A", 3) == 0, "a broker does not mind"
    assert "A commits t-3 while B may be using it" in harness.violation()


def test_committing_what_nobody_has_is_fine() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    assert harness.commit("A", 7) != 0
    harness.broker.check_ownership()


def test_members_that_expired_do_not_count() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    harness.broker.advance(50_000)
    harness.beat("B")
    harness.broker.check_ownership()


def test_a_member_that_is_fenced_uses_nothing() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    assert harness.beat("B", epoch=99).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    checker = harness.broker.driver.ownership
    assert checker.using("g") == {"A": {("t", 0), ("t", 1), ("t", 2)}}


def test_two_owners_by_a_wrong_coordinator() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    harness.beat("B")
    both = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=harness.topic_id, partitions=(0,))
    answer = ConsumerGroupHeartbeatResponse(
        member_id="B",
        member_epoch=3,
        assignment=ConsumerGroupHeartbeatResponseAssignment(topic_partitions=(both,)),
    )
    asked = ConsumerGroupHeartbeatRequest(group_id="g", member_id="B", member_epoch=2)
    event = RequestReceived(9, 1, 1, LOCAL_CLIENT, asked)
    harness.broker.driver.ownership.observe(5, event, (Reply(9, 1, 1, answer, 68),))
    assert "t-0 is assigned to B while A may be using it" in harness.violation()


def test_two_owners_by_a_wrong_assignor_of_a_classic_leader() -> None:
    harness = OwnershipHarness()
    checker = harness.broker.driver.ownership
    harness.beat("A")
    harness.beat("B")
    given = ConsumerAssignment(assigned_partitions=(TopicPartitions(topic="t", partitions=(0,)),))
    for number, member_id in enumerate("AB"):
        asked = SyncGroupRequest(group_id="g", member_id=member_id, protocol_type="consumer")
        event = RequestReceived(8, number, 5, LOCAL_CLIENT, asked)
        answer = SyncGroupResponse(assignment=write_assignment(given))
        checker.observe(5, event, (Reply(8, number, 5, answer, 14),))
    assert "t-0 is assigned to B while A may be using it" in harness.violation()


def test_whoever_joins_again_keeps_only_what_it_says() -> None:
    harness = OwnershipHarness()
    harness.beat("A")
    kept = ConsumerSubscription(
        topics=("t",), owned_partitions=(TopicPartitions(topic="t", partitions=(1, 2)),)
    )
    request = JoinGroupRequest(
        group_id="g",
        member_id="A",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="x", metadata=write_subscription(kept)),),
    )
    event = RequestReceived(8, 1, 9, LOCAL_CLIENT, request)
    checker = harness.broker.driver.ownership
    checker.observe(5, event, ())
    assert checker.using("g") == {"A": {("t", 1), ("t", 2)}}
    checker.observe(6, ConnectionLost(8), ())


def test_a_client_that_goes_on_and_on_is_told_of_a_hundred_times() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    for _ in range(40):  # each time, three partitions that were given up are reported, and lost
        harness.beat("A", range(6))
        harness.beat("A", range(3))
    checker = harness.broker.driver.ownership
    assert len(checker.violations) == 100
    with pytest.raises(OwnershipViolation, match=r"\(119 more\)"):
        checker.check()


def test_a_crash_forgets_what_was_asked_and_not_what_is_used() -> None:
    harness = OwnershipHarness()
    harness.pass_half_to_b()
    checker = harness.broker.driver.ownership
    parked = JoinGroupRequest(
        group_id="classic",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="x", metadata=b""),),
    )
    with pytest.raises(TransportError, match="no response yet"):
        harness.broker.connect().ask(parked, 3)
    assert pending(checker) == 1
    harness.broker.restart()
    assert pending(checker) == 0, "its answer can never come"
    assert checker.using("g").keys() == {"A", "B"}


def test_members_that_die_without_a_word_are_forgotten_in_the_end() -> None:
    harness = OwnershipHarness()
    checker = harness.broker.driver.ownership
    most = 0
    for number in range(2500):
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"g{number % 2 and number}",
            member_id=f"m{number}",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        assert harness.connection.ask(request).error_code == 0
        harness.broker.advance(50_000)
        most = max(most, in_the_book(checker))
    assert 1000 <= most <= 1001
    checker.check()


def test_only_the_dead_are_forgotten() -> None:
    harness = OwnershipHarness()
    checker = harness.broker.driver.ownership
    harness.pass_half_to_b()
    for number in range(1200):
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"g{number}",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        assert harness.connection.ask(request).error_code == 0
    assert in_the_book(checker) == 1202
    assert harness.beat("A", range(6)).error_code == 0
    assert "A reports that it owns t-3" in harness.violation()


@pytest.mark.asyncio
async def test_leaving_the_broker_fails_the_test_unless_it_is_told_not_to() -> None:
    with pytest.raises(OwnershipViolation, match="which it was not given"):
        async with MockBroker({"t": 1}, listen=False) as broker:
            broker.driver.ownership.violations.append("A reports t-0, which it was not given")
    async with MockBroker({"t": 1}, listen=False, check_ownership=False) as broker:
        broker.driver.ownership.violations.append("A reports t-0, which it was not given")
