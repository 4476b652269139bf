"""Which fields a heartbeat carries (KIP-848, ConsumerGroupHeartbeat request; null = unchanged)."""

from __future__ import annotations

import pytest

from kip848_client.core.member import (
    AssignorsOffered,
    HeartbeatIntent,
    LossReason,
    MemberSettings,
    MemberState,
    OfferedAssignor,
    Polled,
)
from kip848_client.core.member._heartbeat import IntentBuilder, Subscription
from kip848_client.core.member._reconcile import Held
from kip848_client.core.types import MemberId
from kip848_client.error_codes import ErrorCode
from tests.unit.core.member._harness import (
    MEMBER,
    MemberHarness,
    Settings,
    T,
    U,
    assignment,
    in_state,
)

ALL_SETTINGS: Settings = {
    "instance_id": "i1",
    "rack_id": "r1",
    "server_assignor": "uniform",
    "max_poll_interval_ms": 300_000,
}


class TestJoin:
    """Epoch 0: the broker answers INVALID_REQUEST unless everything is there and nothing owned."""

    def test_a_join_is_complete_and_owns_nothing(self) -> None:
        harness = MemberHarness(**ALL_SETTINGS).join("b", "a")
        assert harness.intent == HeartbeatIntent(
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
        assert harness.intent.is_complete

    def test_a_static_member_does_not_inherit_a_pattern(self) -> None:
        """Null would keep that of the process before it (seen on brokers 4.0.2 and 4.4.0)."""
        assert MemberHarness(instance_id="i1").join("a").intent.subscribed_topic_regex == ""
        assert MemberHarness().join("a").intent.subscribed_topic_regex is None

    def test_an_empty_rack_counts_as_unset(self) -> None:
        assert MemberHarness(rack_id="").join().intent.rack_id is None

    def test_joins_with_an_empty_list_when_nothing_matches_yet(self) -> None:
        """KAFKA-18095, KAFKA-18096: a local filter that matches nothing joins with [], and the
        topics that come later are sent as an update."""
        harness = MemberHarness()
        harness.subscribe()
        harness.feed(Polled())
        assert harness.intent.subscribed_topic_names == ()
        harness.accept(1, ())
        harness.started()
        harness.accept(1)
        harness.subscribe("t")
        assert harness.heartbeats[0].subscribed_topic_names == ("t",)

    def test_a_pattern_joins_with_an_empty_name_list(self) -> None:
        harness = MemberHarness()
        harness.subscribe(pattern="t.*")
        harness.feed(Polled())
        assert harness.intent.subscribed_topic_names == ()
        assert harness.intent.subscribed_topic_regex == "t.*"

    def test_names_and_pattern_may_be_given_together(self) -> None:
        harness = MemberHarness().join("t", pattern="u.*")
        assert harness.intent.subscribed_topic_names == ("t",)
        assert harness.intent.subscribed_topic_regex == "u.*"

    @pytest.mark.parametrize("reason", LossReason)
    def test_a_repeated_join_is_complete_again(self, reason: LossReason) -> None:
        """A lost join answer is repeated with the same id and epoch 0. KAFKA-16215,
        KAFKA-16178: the repetition misses no field."""
        harness = MemberHarness(**ALL_SETTINGS).join()
        first = harness.intent
        harness.lose(reason)
        assert harness.next_heartbeat() == first

    def test_a_rejoin_owns_nothing(self) -> None:
        """franz-go 8e7cfc60: fenced while a topic is unresolved; the join must send []."""
        harness = MemberHarness()
        del harness.names[U]
        harness.join().accept(1, assignment(t=[0], u=[0]))
        harness.started()
        harness.accept(1)
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        harness.released()
        assert harness.intent.member_epoch == 0
        assert harness.intent.owned == ()
        assert harness.intent.is_complete

    def test_no_request_of_a_join_is_partial_after_a_stale_leave(self) -> None:
        """librdkafka 5541: the leave of the poll timeout races with the rejoin."""
        harness = in_state(MemberState.STALE)
        leave = harness.attempt
        harness.released()
        harness.feed(Polled())
        assert harness.intent.is_complete
        join = harness.intent
        harness.lose(LossReason.DISCONNECTED)
        assert harness.next_heartbeat() == join
        assert leave < harness.attempt

    def test_a_join_answered_without_assignment_goes_on_asking_completely(self) -> None:
        harness = MemberHarness().join()
        harness.accept(3)
        harness.expect(MemberState.JOINING)
        assert harness.heartbeats == []
        again = harness.next_heartbeat()
        assert again.member_epoch == 3
        assert again.is_complete
        assert again.owned == ()


class TestSteady:
    def test_an_unchanged_member_sends_ids_and_epoch(self) -> None:
        """KAFKA-15890: an owned list in every heartbeat would draw the assignment back every
        time."""
        harness = MemberHarness(**ALL_SETTINGS).stable(epoch=4)
        assert harness.next_heartbeat() == HeartbeatIntent(MEMBER, 4, instance_id="i1")

    def test_an_acknowledgement_adds_the_owned_list(self) -> None:
        harness = MemberHarness().join()
        harness.accept(1, assignment(t=[2, 0, 1]))
        harness.started()
        assert harness.heartbeats == [HeartbeatIntent(MEMBER, 1, owned=((T, (0, 1, 2)),))]

    def test_an_empty_acknowledgement_is_not_null(self) -> None:
        harness = MemberHarness().join()
        harness.accept(1, ())
        harness.started()
        assert harness.heartbeats == [HeartbeatIntent(MEMBER, 1, owned=())]

    def test_a_changed_subscription_is_sent_alone_and_in_full(self) -> None:
        harness = MemberHarness().stable()
        harness.subscribe("u", "t")
        assert harness.heartbeats == [HeartbeatIntent(MEMBER, 1, subscribed_topic_names=("t", "u"))]

    def test_switching_from_names_to_pattern_sends_both_changes(self) -> None:
        harness = MemberHarness().stable()
        harness.subscribe(pattern="t.*")
        assert harness.heartbeats == [
            HeartbeatIntent(MEMBER, 1, subscribed_topic_names=(), subscribed_topic_regex="t.*")
        ]

    def test_dropping_a_pattern_sends_an_empty_string(self) -> None:
        harness = MemberHarness().join(pattern="t.*")
        harness.accept(1, ())
        harness.started()
        harness.accept(1)
        harness.subscribe("t")
        assert harness.heartbeats[0].subscribed_topic_regex == ""

    def test_a_dropped_pattern_stays_dropped_when_that_heartbeat_is_lost(self) -> None:
        """Null would mean "unchanged": the broker would keep the pattern for ever."""
        harness = MemberHarness().join(pattern="t.*")
        harness.accept(1, ())
        harness.started()
        harness.accept(1)
        harness.subscribe("t")
        harness.lose()
        assert harness.next_heartbeat().subscribed_topic_regex == ""
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert harness.intent.member_epoch == 0
        assert harness.intent.subscribed_topic_regex == ""

    def test_the_order_of_topics_is_no_change(self) -> None:
        """franz-go 38d17db7, 2ff493a1: unordered names looked like changes."""
        harness = MemberHarness().join("b", "a", "c")
        assert harness.intent.subscribed_topic_names == ("a", "b", "c")
        harness.accept(1, assignment(t=[1, 0]))
        harness.started()
        assert harness.intent.owned == ((T, (0, 1)),)
        harness.accept(1)
        harness.subscribe("c", "b", "a")
        assert harness.heartbeats == []
        assert harness.next_heartbeat() == HeartbeatIntent(MEMBER, 1)

    def test_only_what_was_sent_counts_as_sent(self) -> None:
        """franz-go d5ceeb73: a keep-alive must not overwrite what was sent before."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.accept(1)
        assert harness.next_heartbeat().owned is None
        harness.accept(2, assignment(t=[0]))
        harness.flushed()
        harness.released()
        harness.started()
        assert harness.heartbeats[0].owned == ((T, (0,)),)


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
        harness = MemberHarness(server_assignor="range").stable()
        harness.next_heartbeat()
        harness.refuse(code)
        intent = harness.intent if harness.heartbeats else harness.next_heartbeat()
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
        harness = MemberHarness().stable(epoch=7)
        harness.next_heartbeat()
        harness.lose(reason)
        intent = harness.next_heartbeat()
        assert intent.is_complete
        assert (intent.member_epoch, intent.owned) == (7, ((T, (0, 1, 2)),))
        harness.accept(8, assignment(t=[0, 1, 2]))
        harness.expect(MemberState.STABLE)
        assert harness.next_heartbeat() == HeartbeatIntent(MEMBER, 8)

    def test_a_lost_acknowledgement_is_repeated(self) -> None:
        """With the owned list, although the member is STABLE already."""
        harness = MemberHarness().join()
        harness.accept(1, assignment(t=[0]))
        harness.started()
        harness.expect(MemberState.STABLE)
        harness.lose()
        assert harness.next_heartbeat().owned == ((T, (0,)),)

    def test_the_rack_is_not_repeated(self) -> None:
        harness = MemberHarness(rack_id="r1").stable()
        harness.next_heartbeat()
        harness.lose()
        assert harness.next_heartbeat().rack_id is None

    def test_the_target_is_claimed_before_it_is_applied(self) -> None:
        """What a report leaves out is free for others, and the application may get it before the
        answer to the report is here."""
        harness = MemberHarness().stable(t=[0])
        harness.target(2, t=[0, 1])
        harness.flushed()
        harness.next_heartbeat()
        harness.lose()
        assert harness.next_heartbeat().owned == ((T, (0, 1)),)

    def test_a_first_target_is_claimed_too(self) -> None:
        """The first callback runs, nothing was acknowledged yet, and an answer is lost."""
        harness = MemberHarness().join()
        harness.accept(1, assignment(t=[0, 1]))
        harness.next_heartbeat()
        harness.lose()
        assert harness.next_heartbeat().owned == ((T, (0, 1)),)

    def test_a_target_that_was_taken_back_is_not_claimed(self) -> None:
        """Named and not applied, then no longer named: nothing is kept from the others."""
        harness = MemberHarness().stable(t=[0])
        harness.auto_names = False
        harness.target(2, t=[0], u=[0])
        harness.next_heartbeat()
        harness.accept(2, assignment(t=[0]))
        assert harness.heartbeats[0].owned == ((T, (0,)),)

    def test_what_a_running_plan_leads_to_is_claimed(self) -> None:
        """The target shrinks while the plan for the larger one still waits for a callback; the plan
        goes on, and takes for a while what is wanted back."""
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.target(2, t=[0, 2])
        harness.next_heartbeat()
        harness.accept(2, assignment(t=[0]))
        harness.next_heartbeat()
        harness.lose()
        assert harness.next_heartbeat().owned == ((T, (0, 1, 2)),)
        harness.accept(2)
        harness.released()
        harness.started()
        assert harness.heartbeats[0].owned == ((T, (0, 2)),)

    def test_an_acknowledgement_under_way_does_not_free_the_next_target(self) -> None:
        """The report of the first set leaves while the second is being taken: it names both."""
        harness = MemberHarness(auto_commit=False).stable(t=[0])
        harness.target(2, t=[0, 1])
        harness.next_heartbeat()
        harness.started()
        harness.accept(2, assignment(t=[0, 1, 2]))
        assert harness.next_heartbeat().owned == ((T, (0, 1, 2)),)

    def test_the_owned_list_keeps_what_is_being_revoked(self) -> None:
        """franz-go 466a4512: it shrinks only when the callbacks are done."""
        harness = MemberHarness().stable()
        harness.target(1, t=[0])
        for _ in range(2):
            harness.next_heartbeat()
            harness.lose()
            assert harness.next_heartbeat().owned == ((T, (0, 1, 2)),)
            harness.accept(1)
            if harness.core.snapshot().stale_answers == 0:
                harness.flushed()
        harness.released()
        harness.next_heartbeat()
        harness.lose()
        assert harness.next_heartbeat().owned == ((T, (0, 1, 2)),)
        harness.accept(1)
        harness.started()
        assert harness.heartbeats[0].owned == ((T, (0,)),)


class TestLeave:
    @pytest.mark.parametrize("instance", [None, "i1"])
    def test_a_leave_carries_the_minimum(self, instance: str | None) -> None:
        harness = MemberHarness(instance_id=instance, rack_id="r", server_assignor="range").stable()
        harness.subscribe("u")
        harness.leave()
        harness.released()
        epoch = -1 if instance is None else -2
        assert harness.heartbeats == [HeartbeatIntent(MEMBER, epoch, instance_id=instance)]


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


class TestAssignors:
    """What client-side assignors say goes along in complete heartbeats, and when it changes."""

    OLD = OfferedAssignor("a", 0, 1, metadata_version=1, metadata=b"x")
    NEW = OfferedAssignor("a", 0, 1, metadata_version=1, metadata=b"y")

    def harness(self) -> MemberHarness:
        harness = MemberHarness(client_assignors=(self.OLD,)).join("t")
        assert harness.intent.client_assignors == (self.OLD,)
        harness.accept(1, assignment(t=[0]))
        harness.started()
        assert harness.intent.owned is not None
        assert harness.intent.client_assignors is None
        harness.accept(1)
        return harness

    def test_a_change_is_sent_at_once_and_once(self) -> None:
        harness = self.harness()
        attempt = harness.attempt
        harness.feed(AssignorsOffered((self.OLD,)))
        assert harness.attempt == attempt
        harness.feed(AssignorsOffered((self.NEW,)))
        assert harness.attempt == attempt + 1
        assert harness.intent.client_assignors == (self.NEW,)
        harness.accept(1)
        harness.feed(AssignorsOffered((self.NEW,)), after=20_000)
        assert harness.intent.client_assignors is None

    def test_to_offer_nothing_any_more_is_said(self) -> None:
        harness = self.harness()
        harness.feed(AssignorsOffered(()))
        assert harness.intent.client_assignors == ()

    def test_after_a_loss_all_is_said_again(self) -> None:
        harness = self.harness()
        harness.advance(10_000)
        harness.lose()
        harness.advance(1_000)
        assert harness.intent.is_complete
        assert harness.intent.client_assignors == (self.OLD,)

    def test_without_assignors_nothing_is_said(self) -> None:
        harness = MemberHarness().join("t")
        assert harness.intent.client_assignors is None
        harness.feed(AssignorsOffered(()))
        assert harness.intent.client_assignors is None

    def test_what_the_next_complete_heartbeat_says_anyway_hastens_none(self) -> None:
        harness = self.harness()
        harness.advance(10_000)
        harness.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        attempt, due_ms = harness.attempt, harness.core.deadline_ms
        harness.feed(AssignorsOffered((self.NEW,)))
        assert (harness.attempt, harness.core.deadline_ms) == (attempt, due_ms)
        assert not harness.core._membership.expedite
        harness.advance(1_000)
        assert harness.intent.client_assignors == (self.NEW,)
