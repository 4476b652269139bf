"""Joining, identity, and heartbeats."""

from __future__ import annotations

from typing import Final

from tools.docs.edge_cases.rows import CONSUMER, GROUP, INTEGRATION, MEMBER, Case, named

__all__ = ["HEARTBEATS", "JOINING"]

JOINING: Final = (
    Case(
        "A consumer ends before its join was answered",
        "it leaves all the same: its id is its own, not the coordinator's",
        named(MEMBER, "leaving::before_the_first_join_answer"),
    ),
    Case(
        "The answer to a join is lost",
        "the same id joins again with epoch 0 and everything it has to say: one member",
        named(MEMBER, "heartbeat_fields::a_repeated_join_is_complete_again"),
    ),
    Case(
        "The same of a static member, whose instance id is then taken by itself",
        "it waits for a bounded time, and does not end at once",
        named(MEMBER, "outcomes::a_lost_join_answer_is_waited_out"),
    ),
    Case(
        "Each join after a fence is fenced again",
        "pauses grow, the listener hears of the loss once, and it recovers",
        named(MEMBER, "outcomes::repeated_fences_are_paced_and_lost_is_called_once"),
    ),
    Case(
        "Fenced while the name of a topic is not known yet",
        "the join that follows owns nothing, whatever was left over",
        named(MEMBER, "heartbeat_fields::a_rejoin_owns_nothing"),
    ),
    Case(
        "Unsubscribe, subscribe at once; then the echo of the leave arrives, with epoch -1",
        "the new membership begins when the old one is over; no epoch below 1 is taken",
        named(
            MEMBER,
            "leaving::is_kept_until_the_old_membership_is_gone",
            "outcomes::an_epoch_that_is_not_positive_is_never_stored",
        ),
    ),
    Case(
        "An answer with a negative epoch, an interval of 0, a partition twice",
        "the epoch is ignored, the interval stays, the partition counts once",
        named(
            MEMBER,
            "outcomes::an_epoch_that_is_not_positive_is_never_stored",
            "heartbeat_timing::an_interval_that_is_not_positive_is_not_adopted",
            "outcomes::a_wild_assignment_is_cleaned_up",
        ),
    ),
    Case(
        "Subscribed, and never asked for records",
        "nothing is sent",
        named(MEMBER, "heartbeat_timing::subscribing_alone_sends_nothing"),
    ),
    Case(
        "No topic is there yet that the member wants",
        "it joins with an empty list, and tells of more later",
        named(
            MEMBER,
            "heartbeat_fields::joins_with_an_empty_list_when_nothing_matches_yet",
            "heartbeat_fields::a_changed_subscription_is_sent_alone_and_in_full",
        ),
    ),
    Case(
        "A pattern for the broker, and a broker whose heartbeats have no field for it",
        "one clear error at the start; no older version is ever spoken",
        (
            *named(MEMBER, "outcomes::a_broker_without_the_protocol"),
            *named(INTEGRATION, "consumer_refusals::a_broker_without_kip848_is_one_clear_error"),
        ),
    ),
    Case(
        "Two processes, one forked from the other",
        "their members have ids of their own",
        named(CONSUMER, "parts::processes_that_were_forked_have_members_of_their_own"),
    ),
    Case(
        "A heartbeat fails, and the join that follows lacks fields",
        "whatever follows an error or a loss says everything",
        named(
            MEMBER,
            "heartbeat_fields::a_repeated_join_is_complete_again",
            "heartbeat_fields::after_an_error",
        ),
    ),
    Case(
        "The answer to a leave for idleness meets the next join",
        "epoch 0 never goes out without all fields",
        named(MEMBER, "heartbeat_fields::no_request_of_a_join_is_partial_after_a_stale_leave"),
    ),
    Case(
        "Subscribe, unsubscribe, subscribe, quickly",
        "the last subscription reaches the coordinator",
        (
            *named(MEMBER, "leaving::is_kept_until_the_old_membership_is_gone"),
            *named(
                INTEGRATION,
                "consumer_membership::unsubscribe_leaves_and_subscribing_again_returns",
            ),
        ),
    ),
    Case(
        "An assignment that is empty is given up",
        "no callback, no error",
        named(MEMBER, "leaving::with_nothing_assigned_there_is_no_callback"),
    ),
    Case(
        "A client falls back to the classic protocol, and the id of the abandoned membership is "
        "used again",
        "it cannot come to that",
        why_not="there is no fallback: this client speaks no classic protocol",
    ),
)

HEARTBEATS: Final = (
    Case(
        "Fenced, and the listener is still being told of the loss",
        "no heartbeat before it has returned",
        named(MEMBER, "states::states_outside_send_nothing"),
    ),
    Case(
        "What is owned is said in each heartbeat, so that each answer brings the assignment",
        "it is said when it changes",
        named(MEMBER, "heartbeat_fields::an_unchanged_member_sends_ids_and_epoch"),
    ),
    Case(
        "A heartbeat that says nothing is taken for what was said last",
        "only what was sent counts as said",
        named(
            MEMBER,
            "heartbeat_fields::only_what_was_sent_counts_as_sent",
            "heartbeat_fields::news_is_judged_against_what_was_sent",
        ),
    ),
    Case(
        "Topics or partitions come in another order",
        "that is no change",
        named(MEMBER, "heartbeat_fields::the_order_of_topics_is_no_change"),
    ),
    Case(
        "The answer that had the assignment is lost",
        "the next heartbeat says everything, so that it is answered with the assignment again",
        named(MEMBER, "heartbeat_fields::after_a_lost_answer"),
    ),
    Case(
        "The answer that had the next epoch is lost",
        "the next heartbeat says everything under the epoch before, which is accepted",
        (
            *named(MEMBER, "heartbeat_fields::after_a_lost_answer"),
            *named(
                "tests/simulation", "seeds::every_invariant_holds_and_every_group_comes_to_rest"
            ),
        ),
    ),
    Case(
        "An acknowledgement is lost",
        "it is repeated, with what is owned",
        named(MEMBER, "heartbeat_fields::a_lost_acknowledgement_is_repeated"),
    ),
    Case(
        "The connection to the coordinator dies",
        "it is looked up again",
        named(MEMBER, "heartbeat_timing::a_dead_connection_means_looking_up_again"),
    ),
    Case(
        "On dead connections a whole interval lies between attempts",
        "the backoff does",
        named(MEMBER, "heartbeat_timing::retries_follow_the_backoff_and_not_the_interval"),
    ),
    Case(
        "A connection is refused while a broker restarts",
        "that passes; it is never fatal",
        (
            *named(MEMBER, "heartbeat_timing::a_dead_connection_means_looking_up_again"),
            *named(INTEGRATION, "several_brokers::our_consumer_outlives_a_broker_that_dies"),
        ),
    ),
    Case(
        "Pauses that are varied by far too much",
        "a fifth at most, whatever varies them",
        (
            *named(MEMBER, "heartbeat_timing::a_wild_jitter_is_tamed"),
            *named("tests/unit/offsets", "committer_order::a_wild_jitter_is_tamed"),
        ),
    ),
    Case(
        "No coordinator, partitions by hand beside a group, refused logins: the client spins",
        "wake-ups are bounded",
        (
            *named(MEMBER, "heartbeat_timing::an_unknown_coordinator_never_makes_a_busy_loop"),
            *named(
                GROUP,
                "group_core::positions_by_hand_whose_coordinator_is_away_make_no_busy_loop",
            ),
        ),
    ),
    Case(
        "A request is answered in the millisecond in which it was sent",
        "it is not under way any more",
        named(MEMBER, "heartbeat_timing::an_answer_in_the_same_millisecond_ends_the_flight"),
    ),
    Case(
        "The timer of automatic commits is shorter than the interval",
        "it causes no heartbeat",
        named(MEMBER, "heartbeat_timing::events_of_other_timers_cause_no_heartbeat"),
    ),
    Case(
        "The coordinator is loading while the member joins",
        "the backoff counts",
        named(
            MEMBER, "heartbeat_timing::a_loading_coordinator_is_asked_with_backoff_while_joining"
        ),
    ),
    Case(
        "A state changes before its error is told",
        "the user hears of the error first",
        named(MEMBER, "outcomes::is_told_before_the_member_reacts"),
    ),
    Case(
        "The right to a topic is missing",
        "it is raised, the member stays, and recovers when the right is given",
        (
            *named(MEMBER, "outcomes::a_forbidden_topic_is_told_now_and_then_and_retried"),
            *named(
                INTEGRATION,
                "consumer_refusals::without_permission_for_the_topic_it_says_so_and_recovers",
            ),
        ),
    ),
    Case(
        "The group is gone in the middle of a membership",
        "the member joins again; if that is refused alike, it ends with the error",
        named(
            MEMBER,
            "outcomes::a_member_rejoins",
            "outcomes::a_rejoin_that_gets_it_too_is_the_end",
        ),
    ),
    Case(
        "The coordinator cannot be reached, for ever",
        "it is told, again and again; no number of attempts divides by zero",
        named(
            MEMBER,
            "heartbeat_timing::an_unanswered_lookup_surfaces",
            "heartbeat_timing::unanswered_heartbeats_surface",
            "heartbeat_timing::doubles_is_capped_and_varies_by_a_fifth",
        ),
    ),
    Case(
        "What a former membership has sent fails late",
        "it does nothing to the present one",
        named(
            MEMBER,
            "heartbeat_timing::a_late_failure_does_not_lose_the_new_coordinator",
            "heartbeat_timing::a_success_from_before_the_leave_is_ignored",
        ),
    ),
    Case(
        "The network delivers a heartbeat twice, the copy late",
        "one fence at most, no loop",
        named(MEMBER, "outcomes::a_duplicated_request_costs_one_fence_at_most"),
    ),
    Case(
        "An application that asks for records does not reach the timer for idleness",
        "each call counts, and a call that waits is not idle",
        named(
            MEMBER,
            "heartbeat_timing::every_poll_restarts_the_timer",
            "heartbeat_timing::waiting_inside_a_poll_is_not_idling",
        ),
    ),
)
