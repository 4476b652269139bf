"""Joining, identity, and heartbeats."""

from __future__ import annotations

from typing import Final

from tools.docs.edge_cases.rows import CONSUMER, GROUP, INTEGRATION, MEMBER, Case, named

__all__ = ["HEARTBEATS", "JOINING"]

JOINING: Final = (
    Case(
        "A consumer stops before its join was answered",
        "it still leaves, because it chose its member id itself",
        named(MEMBER, "leaving::before_the_first_join_answer"),
    ),
    Case(
        "The answer to a join is lost",
        "it joins again with the same id, epoch 0 and all fields: there is one member",
        named(MEMBER, "heartbeat_fields::a_repeated_join_is_complete_again"),
    ),
    Case(
        "The answer to the join of a static member is lost, and its own instance id is then in use",
        "it waits for a limited time instead of failing at once",
        named(MEMBER, "outcomes::a_lost_join_answer_is_waited_out"),
    ),
    Case(
        "Each join after a fence is fenced again",
        "pauses grow, `on_partitions_lost` is called once, and the member recovers",
        named(MEMBER, "outcomes::repeated_fences_are_paced_and_lost_is_called_once"),
    ),
    Case(
        "Fenced while the name of a topic is unknown",
        "the following join owns nothing, even if partitions were left over",
        named(MEMBER, "heartbeat_fields::a_rejoin_owns_nothing"),
    ),
    Case(
        "Unsubscribe and subscribe at once; then the answer to the leave arrives, with epoch -1",
        "the new membership begins after the old one; epochs below 1 are ignored",
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
        "A consumer subscribes and never asks for records",
        "it sends nothing",
        named(MEMBER, "heartbeat_timing::subscribing_alone_sends_nothing"),
    ),
    Case(
        "None of the subscribed topics exists yet",
        "it joins with an empty list, and sends the topics later",
        named(
            MEMBER,
            "heartbeat_fields::joins_with_an_empty_list_when_nothing_matches_yet",
            "heartbeat_fields::a_changed_subscription_is_sent_alone_and_in_full",
        ),
    ),
    Case(
        "A broker-side pattern, and a broker whose heartbeat version lacks the field",
        "one clear error at the start; the client never uses an older version",
        (
            *named(MEMBER, "outcomes::a_broker_without_the_protocol"),
            *named(INTEGRATION, "consumer_refusals::a_broker_without_kip848_is_one_clear_error"),
        ),
    ),
    Case(
        "Two processes, one forked from the other",
        "their members have different ids",
        named(CONSUMER, "factories::processes_that_were_forked_have_members_of_their_own"),
    ),
    Case(
        "A heartbeat fails, and the following join lacks fields",
        "every request after an error or a lost answer has all fields",
        named(
            MEMBER,
            "heartbeat_fields::a_repeated_join_is_complete_again",
            "heartbeat_fields::after_an_error",
        ),
    ),
    Case(
        "The answer to a leave after `max_poll_interval_ms` arrives during the next join",
        "epoch 0 is never sent without all fields",
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
        "An empty assignment is revoked",
        "no callback, no error",
        named(MEMBER, "leaving::with_nothing_assigned_there_is_no_callback"),
    ),
    Case(
        "A client falls back to the classic protocol and reuses the id of the abandoned membership",
        "impossible here",
        why_not="there is no fallback: this client does not support the classic protocol",
    ),
)

HEARTBEATS: Final = (
    Case(
        "Fenced, and `on_partitions_lost` is still running",
        "no heartbeat before it returns",
        named(MEMBER, "states::states_outside_send_nothing"),
    ),
    Case(
        "Each heartbeat has the owned partitions, so each answer has the assignment",
        "owned partitions are sent only when they change",
        named(MEMBER, "heartbeat_fields::an_unchanged_member_sends_ids_and_epoch"),
    ),
    Case(
        "The client assumes that fields omitted from a heartbeat were sent",
        "only fields that were sent count as known to the coordinator",
        named(
            MEMBER,
            "heartbeat_fields::only_what_was_sent_counts_as_sent",
            "heartbeat_fields::news_is_judged_against_what_was_sent",
        ),
    ),
    Case(
        "Topics or partitions arrive in another order",
        "this does not count as a change",
        named(MEMBER, "heartbeat_fields::the_order_of_topics_is_no_change"),
    ),
    Case(
        "The answer that had the assignment is lost",
        "the next heartbeat has all fields, so that its answer has the assignment again",
        named(MEMBER, "heartbeat_fields::after_a_lost_answer"),
    ),
    Case(
        "The answer that had the next epoch is lost",
        "the next heartbeat has all fields and the previous epoch, which is accepted",
        (
            *named(MEMBER, "heartbeat_fields::after_a_lost_answer"),
            *named(
                "tests/simulation", "seeds::every_invariant_holds_and_every_group_comes_to_rest"
            ),
        ),
    ),
    Case(
        "An acknowledgement is lost",
        "it is repeated, with the owned partitions",
        named(MEMBER, "heartbeat_fields::a_lost_acknowledgement_is_repeated"),
    ),
    Case(
        "The connection to the coordinator dies",
        "it is looked up again",
        named(MEMBER, "heartbeat_timing::a_dead_connection_means_looking_up_again"),
    ),
    Case(
        "On dead connections the client waits a whole interval between attempts",
        "it waits for the backoff",
        named(MEMBER, "heartbeat_timing::retries_follow_the_backoff_and_not_the_interval"),
    ),
    Case(
        "A connection is refused while a broker restarts",
        "this is temporary, never fatal",
        (
            *named(MEMBER, "heartbeat_timing::a_dead_connection_means_looking_up_again"),
            *named(INTEGRATION, "several_brokers::our_consumer_outlives_a_broker_that_dies"),
        ),
    ),
    Case(
        "The jitter of pauses is far too large",
        "it is limited to a fifth",
        (
            *named(MEMBER, "heartbeat_timing::a_wild_jitter_is_tamed"),
            *named("tests/unit/core/offsets", "committer_order::a_wild_jitter_is_tamed"),
        ),
    ),
    Case(
        "The client busy-loops without a coordinator, with manual partitions and a group, or after "
        "refused logins",
        "the number of wake-ups is bounded",
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
        "it no longer counts as in flight",
        named(MEMBER, "heartbeat_timing::an_answer_in_the_same_millisecond_ends_the_flight"),
    ),
    Case(
        "The auto-commit interval is shorter than the heartbeat interval",
        "it does not cause heartbeats",
        named(MEMBER, "heartbeat_timing::events_of_other_timers_cause_no_heartbeat"),
    ),
    Case(
        "The coordinator is loading while the member joins",
        "the backoff applies",
        named(
            MEMBER, "heartbeat_timing::a_loading_coordinator_is_asked_with_backoff_while_joining"
        ),
    ),
    Case(
        "A state changes before its error is reported",
        "the error is reported first",
        named(MEMBER, "outcomes::is_told_before_the_member_reacts"),
    ),
    Case(
        "Access to a topic is denied",
        "the error is raised, the member stays, and recovers when access is granted",
        (
            *named(MEMBER, "outcomes::a_forbidden_topic_is_told_now_and_then_and_retried"),
            *named(
                INTEGRATION,
                "consumer_refusals::without_permission_for_the_topic_it_says_so_and_recovers",
            ),
        ),
    ),
    Case(
        "The group disappears during a membership",
        "the member joins again; if it gets the same error, it ends with that error",
        named(
            MEMBER,
            "outcomes::a_member_rejoins",
            "outcomes::a_rejoin_that_gets_it_too_is_the_end",
        ),
    ),
    Case(
        "The coordinator is permanently unreachable",
        "this is reported repeatedly; the backoff works for any number of attempts",
        named(
            MEMBER,
            "heartbeat_timing::an_unanswered_lookup_surfaces",
            "heartbeat_timing::unanswered_heartbeats_surface",
            "heartbeat_timing::doubles_is_capped_and_varies_by_a_fifth",
        ),
    ),
    Case(
        "A request of an earlier membership fails late",
        "it does not affect the current one",
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
        "Calls for records do not restart the timer of `max_poll_interval_ms`",
        "each call restarts it, and a waiting call does not count as idle",
        named(
            MEMBER,
            "heartbeat_timing::every_poll_restarts_the_timer",
            "heartbeat_timing::waiting_inside_a_poll_is_not_idling",
        ),
    ),
)
