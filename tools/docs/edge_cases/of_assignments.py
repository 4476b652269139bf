"""Reconciliation: from one assignment to the next."""

from __future__ import annotations

from typing import Final

from tools.docs.edge_cases.rows import CONSUMER, GROUP, INTEGRATION, MEMBER, Case, named

__all__ = ["RECONCILING"]

RECONCILING: Final = (
    Case(
        "The name of one of two topics is known, that of the other becomes known later",
        "finally the member owns both, and never gave up the first",
        named(MEMBER, "reconciliation::a_part_is_taken_and_acknowledged"),
    ),
    Case(
        "Another target, or a topic name, arrives during a reconciliation",
        "it is applied afterwards, without another message from the coordinator",
        named(
            MEMBER,
            "reconciliation::the_running_plan_ends_then_the_newest_target_counts",
            "reconciliation::a_part_is_taken_and_acknowledged",
        ),
    ),
    Case(
        "Fenced and joined again while a commit or a callback runs",
        "its completion is ignored, at each of these points",
        named(MEMBER, "reconciliation::an_old_end_is_ignored_at_each_point"),
    ),
    Case(
        "The target goes from A to B and back to A",
        "the last A is acknowledged",
        named(MEMBER, "reconciliation::there_and_back_again_is_acknowledged"),
    ),
    Case(
        "The first assignment is empty",
        "the listener is called with an empty set, and the member is stable",
        named(MEMBER, "reconciliation::a_first_empty_assignment_calls_back_too"),
    ),
    Case(
        "An empty assignment follows a non-empty one",
        "all partitions are given up, and that is acknowledged",
        named(MEMBER, "reconciliation::an_explicit_empty_assignment_takes_everything"),
    ),
    Case(
        "The next answer arrives before the previous change is applied",
        "no revocation is missed",
        named(
            MEMBER,
            "reconciliation::the_running_plan_ends_then_the_newest_target_counts",
            "heartbeat_fields::an_acknowledgement_under_way_does_not_free_the_next_target",
        ),
    ),
    Case(
        "A topic that the broker has matched is assigned before the client knows its name",
        "the assignment is kept, and consumed once the name is known",
        named(
            MEMBER,
            "reconciliation::an_unresolved_newcomer_is_acknowledged_without_callback",
            "reconciliation::a_part_is_taken_and_acknowledged",
        ),
    ),
    Case(
        "The listener takes long over new partitions, and seeks",
        "they are not fetched before it returns; then the seek applies",
        (
            *named(MEMBER, "reconciliation::the_new_ones_wait_for_the_callback"),
            *named(
                GROUP,
                "listener_calls::what_is_new_is_assigned_then_named_then_fetched",
            ),
            *named(
                INTEGRATION,
                "consumer_races::"
                "nothing_is_handed_out_before_the_listener_that_asked_for_a_position_is_done",
                "consumer_pairs::a_seek_in_the_listener_and_a_loss",
            ),
        ),
    ),
    Case(
        "The listener raises in `on_partitions_assigned`",
        "it is called again with the same partitions; then they are fetched",
        (
            *named(MEMBER, "reconciliation::assigned_is_called_again_with_the_same_partitions"),
            *named(
                INTEGRATION,
                "consumer_refusals::an_assigned_callback_that_raises_is_repeated",
            ),
        ),
    ),
    Case(
        "A callback lets a cancellation out",
        "it is an error of the callback, and nothing hangs",
        (
            *named(MEMBER, "reconciliation::a_callback_that_always_fails_runs_once_a_poll"),
            *named(
                CONSUMER,
                "listener::"
                "a_cancelled_error_that_it_lets_out_is_a_failure_and_not_our_cancellation",
            ),
            *named(
                INTEGRATION,
                "consumer_endings::a_cancelled_error_of_a_listener_is_its_failure",
            ),
        ),
    ),
    Case(
        "The assignment changes between two calls for records",
        "this is allowed; the listener reports it. No partition is revoked while the application "
        "processes its records, and no record of a revoked partition is returned",
        (
            *named(
                GROUP,
                "listener_calls::nothing_is_taken_while_the_application_works_on_it",
            ),
            *named(
                INTEGRATION,
                "consumer_group::an_application_in_the_middle_of_records_keeps_them",
            ),
        ),
    ),
    Case(
        "Records of a partition that is being revoked are buffered",
        "none of them is returned once the revocation has begun",
        (
            *named(MEMBER, "reconciliation::nothing_is_handed_out_of_what_goes"),
            *named(CONSUMER, "record_path::what_comes_after_a_release_is_dropped"),
        ),
    ),
    Case(
        "Records of a partition that was lost are buffered",
        "none of them is returned any more",
        named(MEMBER, "reconciliation::lost_partitions_are_held_back_at_once"),
    ),
    Case(
        "An automatic commit runs ahead of the application",
        "it contains only records that the application has finished",
        (
            *named("tests/unit/core/offsets", "tracker::delivered_is_not_confirmed"),
            *named(
                "tests/simulation",
                "planted_bugs::a_tracker_that_commits_what_was_not_handed_out",
            ),
        ),
    ),
    Case(
        "Offsets of a deleted topic cannot be committed before its partitions are revoked",
        "they are revoked anyway",
        named("tests/unit/core/offsets", "committer_order::a_deleted_topic_does_not_block"),
    ),
    Case(
        "That commit has a wrong time limit",
        "its limit is the rebalance timeout",
        named(MEMBER, "reconciliation::is_bounded_by_the_rebalance_timeout"),
    ),
    Case(
        "The name of a topic stays unknown",
        "the rest is acknowledged once, not repeatedly",
        named(MEMBER, "reconciliation::one_acknowledgement_for_one_part"),
    ),
    Case(
        "A partition is assigned and revoked before its start position is known",
        "no error",
        named(
            "tests/unit/core/fetch",
            "positions::what_was_taken_away_before_its_offset_is_known_is_no_trouble",
        ),
    ),
    Case(
        "A topic is dropped from the subscription",
        "no record of it is returned, even before the coordinator revokes it",
        named(
            INTEGRATION,
            "consumer_membership::a_dropped_topic_is_not_handed_out_any_more",
        ),
    ),
    Case(
        "The broker matches a pattern, and metadata is requested only by name",
        "topics are requested by id, and their leaders are kept",
        (
            *named("tests/unit/runtime", "topics::the_core_is_answered_by_id_and_by_name"),
            *named(INTEGRATION, "consumer_membership::a_pattern_is_matched_by_the_broker"),
        ),
    ),
    Case(
        "The owned partitions shrink before the offsets of revoked ones are committed",
        "they shrink only after the callback",
        named(MEMBER, "heartbeat_fields::the_owned_list_keeps_what_is_being_revoked"),
    ),
    Case(
        "A callback takes longer than the rebalance timeout",
        "the member is fenced, its partitions are lost, it joins again; the late end is ignored",
        named(MEMBER, "reconciliation::a_revocation_that_took_too_long"),
    ),
    Case(
        "A topic is created again with the same name",
        "it is another topic, and its positions are looked up again",
        (
            *named(MEMBER, "reconciliation::a_recreated_topic_is_another_topic"),
            *named(INTEGRATION, "consumer_membership::a_topic_created_again_is_another_topic"),
        ),
    ),
    Case(
        "The answer to a join has no partitions, and the assignment arrives a second later",
        "neither a leave nor an error",
        named(MEMBER, "outcomes::a_first_empty_assignment_is_no_leave_and_no_error"),
    ),
    Case(
        "A call for records began before partitions were assigned",
        "it returns records after the assignment",
        named(
            INTEGRATION,
            "consumer_records::a_fresh_group_reads_everything_in_order",
            "consumer_records::partitions_can_be_assigned_by_a_timer",
        ),
    ),
)
