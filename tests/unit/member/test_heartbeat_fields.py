"""Which fields a heartbeat carries (KIP-848, ConsumerGroupHeartbeat request; null = unchanged)."""

from __future__ import annotations

import pytest

from kip848_client._types import MemberId
from kip848_client.error_codes import ErrorCode
from kip848_client.member import (
    HeartbeatIntent,
    LossReason,
    MemberSettings,
    MemberState,
    Polled,
)
from kip848_client.member._heartbeat import IntentBuilder, Subscription
from kip848_client.member._reconcile import Held
from tests.unit.member._harness import MEMBER, Rig, Settings, T, U, assignment, in_state

ALL_SETTINGS: Settings = {
    "instance_id": "i1",
    "rack_id": "r1",
    "server_assignor": "uniform",
    "max_poll_interval_ms": 300_000,
}


class TestJoin:
    """Epoch 0: the broker answers INVALID_REQUEST unless everything is there and nothing owned."""

    def test_a_join_is_complete_and_owns_nothing(self) -> None:
        rig = Rig(**ALL_SETTINGS).join("b", "a")
        assert rig.intent == HeartbeatIntent(
            member_id=MEMBER,
            member_epoch=0,
            instance_id="i1",
            rack_id="r1",
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=("a", "b"),
            subscribed_topic_regex="",
            server_assignor="uniform",
            owned=(),
        )
        assert rig.intent.is_complete

    def test_a_static_member_does_not_inherit_a_pattern(self) -> None:
        """Null would keep that of the process before it (seen on brokers 4.0.2 and 4.4.0)."""
        assert Rig(instance_id="i1").join("a").intent.subscribed_topic_regex == ""
        assert Rig().join("a").intent.subscribed_topic_regex is None

    def test_an_empty_rack_counts_as_unset(self) -> None:
        assert Rig(rack_id="").join().intent.rack_id is None

    def test_joins_with_an_empty_list_when_nothing_matches_yet(self) -> None:
        """KAFKA-18095, KAFKA-18096: a local filter that matches nothing joins with [], and the
        topics that come later are sent as an update."""
        rig = Rig()
        rig.subscribe()
        rig.feed(Polled())
        assert rig.intent.subscribed_topic_names == ()
        rig.accept(1, ())
        rig.started()
        rig.accept(1)
        rig.subscribe("t")
        assert rig.heartbeats[0].subscribed_topic_names == ("t",)

    def test_a_pattern_joins_with_an_empty_name_list(self) -> None:
        rig = Rig()
        rig.subscribe(pattern="t.*")
        rig.feed(Polled())
        assert rig.intent.subscribed_topic_names == ()
        assert rig.intent.subscribed_topic_regex == "t.*"

    def test_names_and_pattern_may_be_given_together(self) -> None:
        rig = Rig().join("t", pattern="u.*")
        assert rig.intent.subscribed_topic_names == ("t",)
        assert rig.intent.subscribed_topic_regex == "u.*"

    @pytest.mark.parametrize("reason", LossReason)
    def test_a_repeated_join_is_complete_again(self, reason: LossReason) -> None:
        """A lost join answer is repeated with the same id and epoch 0. KAFKA-16215,
        KAFKA-16178: the repetition misses no field."""
        rig = Rig(**ALL_SETTINGS).join()
        first = rig.intent
        rig.lose(reason)
        assert rig.next_heartbeat() == first

    def test_a_rejoin_owns_nothing(self) -> None:
        """franz-go 8e7cfc60: fenced while a topic is unresolved; the join must send []."""
        rig = Rig()
        del rig.names[U]
        rig.join().accept(1, assignment(t=[0], u=[0]))
        rig.started()
        rig.accept(1)
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        rig.released()
        assert rig.intent.member_epoch == 0
        assert rig.intent.owned == ()
        assert rig.intent.is_complete

    def test_no_request_of_a_join_is_partial_after_a_stale_leave(self) -> None:
        """librdkafka 5541: the leave of the poll timeout races with the rejoin."""
        rig = in_state(MemberState.STALE)
        leave = rig.attempt
        rig.released()
        rig.feed(Polled())
        assert rig.intent.is_complete
        join = rig.intent
        rig.lose(LossReason.DISCONNECTED)
        assert rig.next_heartbeat() == join
        assert leave < rig.attempt

    def test_a_join_answered_without_assignment_goes_on_asking_completely(self) -> None:
        rig = Rig().join()
        rig.accept(3)
        rig.expect(MemberState.JOINING)
        assert rig.heartbeats == []
        again = rig.next_heartbeat()
        assert again.member_epoch == 3
        assert again.is_complete
        assert again.owned == ()


class TestSteady:
    def test_an_unchanged_member_sends_ids_and_epoch(self) -> None:
        """KAFKA-15890: an owned list in every heartbeat would draw the assignment back every
        time."""
        rig = Rig(**ALL_SETTINGS).stable(epoch=4)
        assert rig.next_heartbeat() == HeartbeatIntent(MEMBER, 4, instance_id="i1")

    def test_an_acknowledgement_adds_the_owned_list(self) -> None:
        rig = Rig().join()
        rig.accept(1, assignment(t=[2, 0, 1]))
        rig.started()
        assert rig.heartbeats == [HeartbeatIntent(MEMBER, 1, owned=((T, (0, 1, 2)),))]

    def test_an_empty_acknowledgement_is_not_null(self) -> None:
        rig = Rig().join()
        rig.accept(1, ())
        rig.started()
        assert rig.heartbeats == [HeartbeatIntent(MEMBER, 1, owned=())]

    def test_a_changed_subscription_is_sent_alone_and_in_full(self) -> None:
        rig = Rig().stable()
        rig.subscribe("u", "t")
        assert rig.heartbeats == [HeartbeatIntent(MEMBER, 1, subscribed_topic_names=("t", "u"))]

    def test_switching_from_names_to_pattern_sends_both_changes(self) -> None:
        rig = Rig().stable()
        rig.subscribe(pattern="t.*")
        assert rig.heartbeats == [
            HeartbeatIntent(MEMBER, 1, subscribed_topic_names=(), subscribed_topic_regex="t.*")
        ]

    def test_dropping_a_pattern_sends_an_empty_string(self) -> None:
        rig = Rig().join(pattern="t.*")
        rig.accept(1, ())
        rig.started()
        rig.accept(1)
        rig.subscribe("t")
        assert rig.heartbeats[0].subscribed_topic_regex == ""

    def test_a_dropped_pattern_stays_dropped_when_that_heartbeat_is_lost(self) -> None:
        """Null would mean "unchanged": the broker would keep the pattern for ever."""
        rig = Rig().join(pattern="t.*")
        rig.accept(1, ())
        rig.started()
        rig.accept(1)
        rig.subscribe("t")
        rig.lose()
        assert rig.next_heartbeat().subscribed_topic_regex == ""
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert rig.intent.member_epoch == 0
        assert rig.intent.subscribed_topic_regex == ""

    def test_the_order_of_topics_is_no_change(self) -> None:
        """franz-go 38d17db7, 2ff493a1: unordered names looked like changes."""
        rig = Rig().join("b", "a", "c")
        assert rig.intent.subscribed_topic_names == ("a", "b", "c")
        rig.accept(1, assignment(t=[1, 0]))
        rig.started()
        assert rig.intent.owned == ((T, (0, 1)),)
        rig.accept(1)
        rig.subscribe("c", "b", "a")
        assert rig.heartbeats == []
        assert rig.next_heartbeat() == HeartbeatIntent(MEMBER, 1)

    def test_only_what_was_sent_counts_as_sent(self) -> None:
        """franz-go d5ceeb73: a keep-alive must not overwrite what was sent before."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.accept(1)
        assert rig.next_heartbeat().owned is None
        rig.accept(2, assignment(t=[0]))
        rig.flushed()
        rig.released()
        rig.started()
        assert rig.heartbeats[0].owned == ((T, (0,)),)


class TestAfterTrouble:
    """The first request after anything but a success is complete: it alone recovers a lost
    assignment, and the broker accepts the previous epoch in it alone."""

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ],
    )
    def test_after_an_error(self, code: int) -> None:
        rig = Rig(server_assignor="range").stable()
        rig.next_heartbeat()
        rig.refuse(code)
        intent = rig.intent if rig.heartbeats else rig.next_heartbeat()
        assert intent == HeartbeatIntent(
            MEMBER,
            1,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=("t",),
            server_assignor="range",
            owned=((T, (0, 1, 2)),),
        )

    @pytest.mark.parametrize("reason", LossReason)
    def test_after_a_lost_answer(self, reason: LossReason) -> None:
        """franz-go eca3a457: the lost answer carried an assignment. It bumped the epoch;
        a partial retry with the previous epoch would be fenced. It answered an ack."""
        rig = Rig().stable(epoch=7)
        rig.next_heartbeat()
        rig.lose(reason)
        intent = rig.next_heartbeat()
        assert intent.is_complete
        assert (intent.member_epoch, intent.owned) == (7, ((T, (0, 1, 2)),))
        rig.accept(8, assignment(t=[0, 1, 2]))
        rig.expect(MemberState.STABLE)
        assert rig.next_heartbeat() == HeartbeatIntent(MEMBER, 8)

    def test_a_lost_acknowledgement_is_repeated(self) -> None:
        """With the owned list, although the member is STABLE already."""
        rig = Rig().join()
        rig.accept(1, assignment(t=[0]))
        rig.started()
        rig.expect(MemberState.STABLE)
        rig.lose()
        assert rig.next_heartbeat().owned == ((T, (0,)),)

    def test_the_rack_is_not_repeated(self) -> None:
        rig = Rig(rack_id="r1").stable()
        rig.next_heartbeat()
        rig.lose()
        assert rig.next_heartbeat().rack_id is None

    def test_the_target_is_claimed_before_it_is_applied(self) -> None:
        """What a report leaves out is free for others, and the application may get it before the
        answer to the report is here."""
        rig = Rig().stable(t=[0])
        rig.target(2, t=[0, 1])
        rig.flushed()
        rig.next_heartbeat()
        rig.lose()
        assert rig.next_heartbeat().owned == ((T, (0, 1)),)

    def test_a_first_target_is_claimed_too(self) -> None:
        """The first callback runs, nothing was acknowledged yet, and an answer is lost."""
        rig = Rig().join()
        rig.accept(1, assignment(t=[0, 1]))
        rig.next_heartbeat()
        rig.lose()
        assert rig.next_heartbeat().owned == ((T, (0, 1)),)

    def test_a_target_that_was_taken_back_is_not_claimed(self) -> None:
        """Named and not applied, then no longer named: nothing is kept from the others."""
        rig = Rig().stable(t=[0])
        rig.auto_names = False
        rig.target(2, t=[0], u=[0])
        rig.next_heartbeat()
        rig.accept(2, assignment(t=[0]))
        assert rig.heartbeats[0].owned == ((T, (0,)),)

    def test_what_a_running_plan_leads_to_is_claimed(self) -> None:
        """The target shrinks while the plan for the larger one still waits for a callback; the plan
        goes on, and takes for a while what is wanted back."""
        rig = Rig(auto_commit=False).stable(t=[0, 1])
        rig.target(2, t=[0, 2])
        rig.next_heartbeat()
        rig.accept(2, assignment(t=[0]))
        rig.next_heartbeat()
        rig.lose()
        assert rig.next_heartbeat().owned == ((T, (0, 1, 2)),)
        rig.accept(2)
        rig.released()
        rig.started()
        assert rig.heartbeats[0].owned == ((T, (0, 2)),)

    def test_an_acknowledgement_under_way_does_not_free_the_next_target(self) -> None:
        """The report of the first set leaves while the second is being taken: it names both."""
        rig = Rig(auto_commit=False).stable(t=[0])
        rig.target(2, t=[0, 1])
        rig.next_heartbeat()
        rig.started()
        rig.accept(2, assignment(t=[0, 1, 2]))
        assert rig.next_heartbeat().owned == ((T, (0, 1, 2)),)

    def test_the_owned_list_keeps_what_is_being_revoked(self) -> None:
        """franz-go 466a4512: it shrinks only when the callbacks are done."""
        rig = Rig().stable()
        rig.target(1, t=[0])
        for _ in range(2):
            rig.next_heartbeat()
            rig.lose()
            assert rig.next_heartbeat().owned == ((T, (0, 1, 2)),)
            rig.accept(1)
            if rig.core.snapshot().stale_answers == 0:
                rig.flushed()
        rig.released()
        rig.next_heartbeat()
        rig.lose()
        assert rig.next_heartbeat().owned == ((T, (0, 1, 2)),)
        rig.accept(1)
        rig.started()
        assert rig.heartbeats[0].owned == ((T, (0,)),)


class TestLeave:
    @pytest.mark.parametrize("instance", [None, "i1"])
    def test_a_leave_carries_the_minimum(self, instance: str | None) -> None:
        rig = Rig(instance_id=instance, rack_id="r", server_assignor="range").stable()
        rig.subscribe("u")
        rig.leave()
        rig.released()
        epoch = -1 if instance is None else -2
        assert rig.heartbeats == [HeartbeatIntent(MEMBER, epoch, instance_id=instance)]


class TestBuilder:
    def test_news_is_judged_against_what_was_sent(self) -> None:
        builder = IntentBuilder(MemberSettings(), MemberId("m"))
        first, second = Subscription(("a",), None), Subscription(("b",), None)
        assert builder.is_news(first)
        builder.build(1, first, tuple, None)
        assert not builder.is_news(first)
        assert builder.is_news(second)
        builder.forget()
        assert builder.is_news(first)

    def test_a_new_revision_of_an_equal_set_is_sent(self) -> None:
        """KAFKA-16185: A, B, A are three assignments to acknowledge."""
        builder = IntentBuilder(MemberSettings(), MemberId("m"))
        subscription, owned = Subscription(("a",), None), ((T, (0,)),)
        held = frozenset({(T, 0)})
        builder.build(1, subscription, lambda: owned, Held(held, 0))
        assert builder.build(1, subscription, lambda: owned, Held(held, 0)).owned is None
        assert builder.build(1, subscription, lambda: owned, Held(held, 2)).owned == owned
