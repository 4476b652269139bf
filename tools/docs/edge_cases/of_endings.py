"""Leaving, and committed offsets."""

from __future__ import annotations

from typing import Final

from tools.docs.edge_cases.rows import CONSUMER, GROUP, INTEGRATION, MEMBER, Case, named

__all__ = ["LEAVING", "OFFSETS"]

_OFFSETS: Final = "tests/unit/core/offsets"

LEAVING: Final = (
    Case(
        "`max_poll_interval_ms` ends while the member leaves",
        "the leave continues",
        named(MEMBER, "heartbeat_timing::a_member_that_leaves_is_left_alone"),
    ),
    Case(
        "A heartbeat from before the leave is accepted late",
        "its epoch is ignored; the leave is sent",
        named(
            MEMBER,
            "leaving::after_a_leave_the_old_success_resurrects_nothing",
            "heartbeat_timing::a_success_from_before_the_leave_is_ignored",
        ),
    ),
    Case(
        "An assignment arrives while the last commit and the callback run",
        "it is ignored; its epoch is adopted, so that the commit succeeds",
        named(
            MEMBER,
            "reconciliation::"
            "an_assignment_is_ignored_while_preparing_to_leave_but_the_epoch_is_not",
        ),
    ),
    Case(
        "The member is fenced while it leaves",
        "the leave is complete: no request, no rejoin, and waiting calls return",
        named(
            MEMBER,
            "leaving::the_goal_is_reached",
            "leaving::during_the_commit_the_partitions_are_still_taken",
        ),
    ),
    Case(
        "The callback raises",
        "the leave is sent",
        (
            *named(MEMBER, "leaving::a_failing_callback_does_not_hinder_it"),
            *named(
                INTEGRATION,
                "consumer_refusals::stop_says_that_a_listener_failed_and_leaves_all_the_same",
            ),
        ),
    ),
    Case(
        "Closed with a timeout of 0, or cancelled while closing",
        "the leave is sent",
        (
            *named(MEMBER, "leaving::no_time_at_all_still_leaves"),
            *named(CONSUMER, "engine::stop_goes_on_wherever_its_caller_is_cancelled"),
        ),
    ),
    Case(
        "Closed without a coordinator, with a commit open",
        "it ends soon",
        (
            *named(MEMBER, "leaving::after_the_deadline_no_lookup_is_started"),
            *named(
                GROUP,
                "flushes::a_close_does_not_wait_to_its_end_for_a_coordinator_that_is_not_there",
            ),
        ),
    ),
    Case(
        "Access is denied while the member leaves",
        "the leave completes",
        named(MEMBER, "leaving::authorization_errors_do_not_hinder_it"),
    ),
    Case(
        "An assignment is queued when the user unsubscribes",
        "it is not applied",
        named(
            MEMBER,
            "reconciliation::an_assignment_that_is_queued_when_the_user_leaves_is_not_applied",
        ),
    ),
    Case(
        "A static member closes",
        "it sends epoch -2",
        named(MEMBER, "leaving::what_the_coordinator_is_told"),
    ),
    Case(
        "The leave reaches a broker that is no longer the coordinator",
        "it is retried; an unknown member counts as success",
        named(
            MEMBER,
            "leaving::a_moved_coordinator_is_found_and_told",
            "leaving::not_being_a_member_is_success",
        ),
    ),
    Case(
        "The member leaves a group that was never created",
        "an unknown group counts as success",
        named(MEMBER, "leaving::not_being_a_member_is_success"),
    ),
    Case(
        "An application that was idle for too long has left the group",
        "`on_partitions_lost` is called, and it rejoins only at the next call for records",
        (
            *named(MEMBER, "heartbeat_timing::an_idle_application_leaves"),
            *named(
                INTEGRATION,
                "consumer_membership::an_application_that_does_not_poll_leaves_and_returns",
            ),
        ),
    ),
)

OFFSETS: Final = (
    Case(
        "The commit before a revocation gets a stale epoch error",
        "it is repeated with the newest epoch and positions",
        named(
            _OFFSETS,
            "committer_order::a_stale_epoch_is_repeated_with_newest_positions_and_epoch",
        ),
    ),
    Case(
        "Two requests for committed offsets get stale epoch errors",
        "one heartbeat, one more request each, and both succeed",
        named(
            GROUP,
            "committed::two_that_wait_for_an_epoch_cost_one_heartbeat_and_one_request_each",
        ),
    ),
    Case(
        "The first request for committed offsets fails with a stale epoch or any other error",
        "the first or last offset is never used instead",
        (
            *named(GROUP, "committed::no_error_ever_looks_like_nothing_committed"),
            *named(
                INTEGRATION,
                "consumer_refusals::a_refused_offset_fetch_never_falls_back_to_the_reset_policy",
            ),
        ),
    ),
    Case(
        "A topic is no longer known when the answer arrives",
        "the other partitions are returned",
        (
            *named(
                GROUP,
                "committed::partitions_that_stay_unknown_are_left_out_at_the_deadline",
            ),
            *named(CONSUMER, "offsets_wire::what_is_committed"),
        ),
    ),
    Case(
        "An automatic commit has nothing to commit",
        "the following ones still run",
        named(_OFFSETS, "committer_order::an_empty_interval_marks_nothing"),
    ),
    Case(
        "The user changes a dict of offsets after the call",
        "the offsets at the time of the call are committed",
        named(_OFFSETS, "committer::offsets_are_copied"),
    ),
    Case(
        "Offsets are committed right after a new assignment",
        "they carry the new epoch, in transactions as well",
        (
            *named(GROUP, "group_core::a_commit_carries_the_newest_epoch"),
            *named(MEMBER, "states::committers_see_an_epoch_only_in_the_group"),
        ),
    ),
    Case(
        "Access to FindCoordinator is denied, and commits wait for it",
        "they fail with that error",
        named(_OFFSETS, "committer::what_cannot_succeed_fails_with_its_error"),
    ),
    Case(
        "Commits overlap",
        "the latest one is stored finally",
        named(
            _OFFSETS,
            "committer::an_attempt_that_outlives_its_ticket_is_not_overtaken",
            "committer_order::a_retry_does_not_undo_a_newer_commit",
        ),
    ),
    Case(
        "Some topics have known ids, others do not; answers by id",
        "ids are used if all are known, and answers are matched with the request",
        named(
            CONSUMER,
            "offsets_wire::version_10_only_when_every_id_is_known",
            "offsets_wire::results_of_a_commit",
        ),
    ),
    Case(
        "A stale epoch makes the client take another member id",
        "never, because the old member would keep its partitions until its session ends",
        (
            *named(_OFFSETS, "committer::the_member_is_not_told_to_rejoin"),
            *named(MEMBER, "states::the_id_never_changes"),
        ),
    ),
    Case(
        "An answer omits requested partitions",
        "this is an error, neither success nor ignored",
        (
            *named(_OFFSETS, "committer::an_answer_that_leaves_a_partition_out_is_no_success"),
            *named(GROUP, "committed::silence_about_a_partition_is_not_nothing_committed"),
        ),
    ),
    Case(
        "A commit is queued when the member leaves",
        "the commit is sent first",
        (
            *named(_OFFSETS, "committer_order::what_was_queued_before_the_flush_goes_before_it"),
            *named(CONSUMER, "engine::a_commit_under_way_is_answered_before_stop_leaves"),
        ),
    ),
    Case(
        "A transaction commits offsets of a group without a member id",
        "it is accepted, and the client warns",
        named(INTEGRATION, "producer_transactions::who_may_not_give_offsets"),
    ),
    Case(
        "Brokers change versions under a transactional producer",
        "versions are negotiated again, and transactions continue",
        (
            *named(
                "tests/unit/producer",
                "requests::each_new_connection_to_a_coordinator_tells_them",
            ),
            *named(INTEGRATION, "producer_upgrades::transactions_go_on"),
        ),
    ),
)
