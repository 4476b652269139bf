"""What the answers to heartbeats do: epochs, error codes, and the client's own policies."""

from __future__ import annotations

import pytest

from kip848_client.core.member import (
    Announce,
    EpochChanged,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatRefused,
    LossReason,
    MemberState,
    Polled,
    ReleasePartitions,
    Report,
    SendHeartbeat,
    Severity,
    StartPartitions,
)
from kip848_client.core.member._error_rules import Reaction, reaction
from kip848_client.core.member._model import HeartbeatAccepted
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    InvalidRegularExpression,
    Kip848Error,
    ProtocolUnsupported,
    TransportError,
    UnknownBrokerError,
    UnreleasedInstanceId,
)
from tests.unit.core.member._harness import (
    REFUSALS,
    MemberHarness,
    T,
    U,
    assignment,
    in_state,
    part,
)

FATAL_CODES = [24, 30, 35, 42, 81, 82, 112, 128]
FENCES = [25, 110, 113]


class TestSuccess:
    def test_the_epoch_is_adopted_without_an_assignment(self) -> None:
        """Commits must use it at once; committers hear of it before anything is sent."""
        harness = MemberHarness().stable(epoch=1)
        harness.next_heartbeat()
        harness.accept(2)
        assert harness.last == (EpochChanged(2),)
        assert harness.core.commit_epoch == 2

    def test_an_unchanged_epoch_is_no_news(self) -> None:
        harness = MemberHarness().stable(epoch=3)
        harness.next_heartbeat()
        assert harness.accept(3) == ()

    def test_any_positive_jump_is_valid(self) -> None:
        harness = MemberHarness().stable(epoch=3)
        harness.next_heartbeat()
        harness.accept(1_000)
        assert harness.core.commit_epoch == 1_000

    @pytest.mark.parametrize("epoch", [0, -1, -2])
    def test_an_epoch_that_is_not_positive_is_never_stored(self, epoch: int) -> None:
        """franz-go f0d0655d, KAFKA-19335: a stored -1 would turn the next heartbeat into
        a leave."""
        harness = MemberHarness().stable(epoch=3)
        harness.next_heartbeat()
        harness.accept(epoch, assignment(t=[9]))
        assert (harness.state, harness.core.commit_epoch) == (MemberState.STABLE, 3)
        intent = harness.next_heartbeat()
        assert (intent.member_epoch, intent.is_complete) == (3, True)

    def test_an_answer_for_somebody_else_is_none(self) -> None:
        harness = MemberHarness().stable(epoch=3)
        harness.next_heartbeat()
        harness.accept(9, assignment(t=[9]), member_id="stranger")
        assert (harness.state, harness.core.commit_epoch) == (MemberState.STABLE, 3)
        assert harness.next_heartbeat().is_complete

    @pytest.mark.parametrize("member_id", [None, ""])
    def test_an_answer_without_an_id_counts(self, member_id: str | None) -> None:
        harness = MemberHarness().stable(epoch=3)
        harness.next_heartbeat()
        harness.accept(9, member_id=member_id)
        assert harness.core.commit_epoch == 9

    def test_a_wild_assignment_is_cleaned_up(self) -> None:
        """Repeated topics and partitions are merged, negative numbers dropped; a duplicate must
        not look like a change."""
        harness = MemberHarness().stable(t=[0, 1])
        harness.next_heartbeat()
        wild = ((T, (1, 0, 1, -1)), (T, (0,)), (U, ()))
        harness.accept(1, wild)
        harness.expect(MemberState.STABLE)
        assert harness.last == ()

    def test_a_late_duplicate_of_an_answer_is_ignored(self) -> None:
        """The network repeats an answer."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        answer = HeartbeatAnswered(harness.attempt, HeartbeatAccepted(None, 5, 5_000))
        harness.feed(answer)
        harness.feed(answer)
        assert harness.last == ()
        assert harness.core.snapshot().stale_answers == 1

    def test_a_first_empty_assignment_is_no_leave_and_no_error(self) -> None:
        """Brokers from 4.3 on join first and assign a second later."""
        harness = MemberHarness().join()
        harness.accept(2, ())
        assert harness.newest(StartPartitions).partitions == ()
        harness.started()
        harness.accept(2)
        harness.expect(MemberState.STABLE)
        harness.target(3, t=[0, 1])
        harness.started()
        harness.accept(3)
        assert harness.core.assigned == part(T, 0, 1)
        assert harness.errors == []


class TestFence:
    @pytest.mark.parametrize("code", FENCES)
    @pytest.mark.parametrize(
        "state", [MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE]
    )
    def test_drops_everything_as_lost_then_rejoins(self, code: int, state: MemberState) -> None:
        harness = in_state(state)
        if state is not MemberState.ACKNOWLEDGING:
            harness.next_heartbeat()
        held = harness.core.assigned
        harness.refuse(code)
        harness.expect(MemberState.FENCED)
        assert EpochChanged(None) in harness.last
        release = harness.newest(ReleasePartitions)
        assert (release.partitions, release.lost, release.last) == (held, True, True)
        assert harness.core.fetchable == ()
        assert harness.core.assigned == held
        harness.released()
        assert harness.core.assigned == ()
        harness.expect(MemberState.JOINING)
        assert harness.heartbeats[0].member_epoch == 0
        assert harness.errors == []

    def test_a_failing_lost_callback_does_not_stop_the_rejoin(self) -> None:
        harness = in_state(MemberState.FENCED)
        harness.released(failed=True)
        harness.expect(MemberState.JOINING)
        assert harness.core.assigned == ()

    def test_without_partitions_there_is_no_callback(self) -> None:
        harness = MemberHarness().stable(t=[])
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert harness.out(ReleasePartitions) == []
        harness.expect(MemberState.JOINING)

    def test_offsets_are_neither_committed_nor_reset(self) -> None:
        """A fence drops partitions; it says nothing about offsets."""
        harness = in_state(MemberState.FENCED)
        kinds = {type(c).__name__ for c in harness.last}
        assert kinds == {"EpochChanged", "Announce", "Fenced", "ReleasePartitions"}

    def test_repeated_fences_are_paced_and_lost_is_called_once(self) -> None:
        """KAFKA-19233: brokers 4.0 and 4.1 refuse epoch-0 joins of a member that they still
        know until its session has expired."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        harness.released()
        start = harness.now
        pauses: list[int] = []
        while harness.now < start + 45_000:
            before = harness.now
            harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
            if not harness.heartbeats:
                harness.next_heartbeat()
            pauses.append(harness.now - before)
        assert pauses[:7] == [100, 200, 400, 800, 1_600, 3_200, 5_000]
        assert max(pauses) == 5_000
        assert len([r for r in harness.all(ReleasePartitions) if r.lost]) == 1
        harness.accept(9, assignment(t=[0]))
        harness.started()
        harness.accept(9)
        harness.expect(MemberState.STABLE)
        assert harness.core.snapshot().consecutive_fences == 0

    def test_a_success_in_between_starts_the_count_anew(self) -> None:
        harness = MemberHarness().stable(t=[])
        for _ in range(3):
            harness.next_heartbeat()
            harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            assert len(harness.heartbeats) == 1, "the first rejoin after a fence is immediate"
            harness.accept(1, ())
            harness.started()
            harness.accept(1)

    def test_a_duplicated_request_costs_one_fence_at_most(self) -> None:
        """KAFKA-19222, KAFKA-19233, KAFKA-19235."""
        harness = MemberHarness().stable(t=[])
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        harness.accept(4, ())
        harness.started()
        harness.accept(4)
        harness.advance(60_000)
        harness.expect(MemberState.STABLE)

    def test_in_a_transaction_the_epoch_is_gone_before_the_state_changes(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        kinds = [type(c) for c in harness.last]
        assert kinds.index(EpochChanged) < kinds.index(Announce)


class TestFatal:
    @pytest.mark.parametrize("code", FATAL_CODES)
    def test_is_told_before_the_member_reacts(self, code: int) -> None:
        """KAFKA-18017: the user sees the error first; then the partitions are lost."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(code, "the broker's words")
        harness.expect(MemberState.FATAL)
        first = harness.last[0]
        assert isinstance(first, Report)
        assert first.severity is Severity.FATAL
        assert isinstance(first.error, BrokerError)
        assert (first.error.code, first.error.name) == (code, REFUSALS[code])
        assert "the broker's words" in str(first.error)
        assert harness.core.fatal_error is first.error
        release = harness.newest(ReleasePartitions)
        assert (release.lost, len(release.partitions)) == (True, 3)
        harness.released()
        harness.expect(MemberState.FATAL)
        assert harness.core.assigned == ()
        assert harness.core.deadline_ms is None

    @pytest.mark.parametrize("code", FATAL_CODES)
    def test_says_what_to_do(self, code: int) -> None:
        harness = MemberHarness().join()
        harness.refuse(code)
        error = harness.newest(Report).error
        assert isinstance(error, BrokerError)
        assert code == ErrorCode.INVALID_REQUEST or error.hint

    def test_an_assignment_that_the_broker_cannot_write(self) -> None:
        harness = MemberHarness().join()
        harness.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        error = harness.newest(Report).error
        assert isinstance(error, BrokerError)
        assert "the coordinator's log" in error.hint
        assert "max.message.bytes" in error.hint

    def test_a_broker_without_the_protocol(self) -> None:
        harness = MemberHarness().join()
        harness.refuse(ErrorCode.UNSUPPORTED_VERSION)
        error = harness.newest(Report).error
        assert isinstance(error, ProtocolUnsupported)
        assert "4.0" in error.hint
        assert "classic" in error.hint

    def test_a_pattern_that_is_not_re2(self) -> None:
        harness = MemberHarness().join(pattern="(?=x)")
        harness.refuse(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "SubscribedTopicRegex `(?=x)` is not a valid regular expression",
        )
        assert isinstance(harness.newest(Report).error, InvalidRegularExpression)
        harness.expect(MemberState.FATAL)

    def test_an_unknown_code_is_fatal_and_kept_as_a_number(self) -> None:
        harness = MemberHarness().join()
        harness.refuse(4_711)
        error = harness.newest(Report).error
        assert isinstance(error, UnknownBrokerError)
        assert error.code == 4_711

    def test_an_unlisted_code_that_kafka_calls_retriable_is_retried(self) -> None:
        harness = MemberHarness().join()
        refused = HeartbeatRefused(
            ErrorCode.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT", None, retriable=True
        )
        harness.feed(HeartbeatAnswered(harness.attempt, refused))
        harness.expect(MemberState.JOINING)
        assert harness.next_heartbeat().is_complete

    def test_a_failure_of_the_client_itself_is_fatal(self) -> None:
        """KAFKA-18127: e.g. a pattern where the broker has no field for it, or refused
        credentials."""
        harness = MemberHarness().join(pattern="x")
        error = Kip848Error("the broker's ConsumerGroupHeartbeat v0 has no server-side patterns")
        harness.feed(HeartbeatFailed(harness.attempt, error))
        harness.expect(MemberState.FATAL)
        assert harness.core.fatal_error is error

    def test_polling_a_fatal_member_does_nothing(self) -> None:
        harness = in_state(MemberState.FATAL)
        assert harness.feed(Polled()) == ()


class TestSurfaced:
    def test_a_forbidden_topic_is_told_now_and_then_and_retried(self) -> None:
        """KAFKA-18813: the member recovers when the right is granted."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        start = harness.now
        while harness.now < start + 30_000:
            harness.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            harness.expect(MemberState.STABLE)
            harness.next_heartbeat()
        assert 5 <= len(harness.errors) <= 7
        assert set(harness.errors) == {"TopicAuthorizationFailed"}
        assert harness.newest(Report).severity is Severity.RAISE
        harness.accept(1, assignment(t=[0, 1, 2]))
        harness.expect(MemberState.STABLE)

    def test_the_session_ran_out_meanwhile(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        harness.released()
        harness.expect(MemberState.JOINING)


class TestVanishedGroup:
    """GROUP_ID_NOT_FOUND of a member is a fence, of a join it is fatal."""

    def test_a_member_rejoins(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        harness.expect(MemberState.FENCED)
        harness.released()
        harness.accept(1, assignment(t=[0]))
        harness.started()
        harness.expect(MemberState.STABLE)

    def test_a_rejoin_that_gets_it_too_is_the_end(self) -> None:
        """librdkafka 5485, 5488: no silent loop."""
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        harness.released()
        harness.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        harness.expect(MemberState.FATAL)
        assert harness.errors == ["GroupIdNotFound"]

    def test_a_first_join_that_gets_it_is_the_end(self) -> None:
        harness = MemberHarness().join()
        harness.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        harness.expect(MemberState.FATAL)


class TestUnreleasedInstance:
    """Fatal for a first join, a bounded retry for a rejoin."""

    def test_two_processes_with_one_instance_id(self) -> None:
        harness = MemberHarness(instance_id="i1").join()
        harness.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
        harness.expect(MemberState.FATAL)
        assert isinstance(harness.newest(Report).error, UnreleasedInstanceId)

    def test_a_join_that_never_left_the_process_changes_nothing(self) -> None:
        harness = MemberHarness(instance_id="i1").join()
        harness.lose(LossReason.NOT_SENT)
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
        harness.expect(MemberState.FATAL)

    @pytest.mark.parametrize("reason", [LossReason.TIMED_OUT, LossReason.DISCONNECTED])
    def test_a_lost_join_answer_is_waited_out(self, reason: LossReason) -> None:
        """The holder of the instance id is this very member."""
        harness = MemberHarness(instance_id="i1").join()
        harness.lose(reason)
        harness.next_heartbeat()
        start = harness.now
        sent = 0
        while harness.now < start + 45_000:
            harness.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            harness.expect(MemberState.JOINING)
            assert harness.errors == []
            harness.next_heartbeat()
            sent += 1
        assert sent < 20
        harness.accept(7, assignment(t=[0]))
        harness.expect(MemberState.RECONCILING)

    def test_a_fenced_static_member_waits_but_not_for_ever(self) -> None:
        harness = MemberHarness(instance_id="i1", unreleased_instance_limit_ms=60_000).stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        harness.released()
        start = harness.now
        while harness.core.fatal_error is None:
            harness.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            if harness.core.deadline_ms is not None:
                harness.next_heartbeat()
        assert 60_000 <= harness.now - start <= 65_100
        assert harness.errors == ["UnreleasedInstanceId"]

    def test_a_success_in_between_starts_the_time_anew(self) -> None:
        harness = MemberHarness(instance_id="i1", unreleased_instance_limit_ms=1_000).stable(t=[])
        for _ in range(3):
            harness.calm().next_heartbeat()
            harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
            harness.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            harness.next_heartbeat()
            harness.accept(1, ())
            harness.started()
            harness.accept(1)
            harness.expect(MemberState.STABLE)


class TestJudge:
    @pytest.mark.parametrize("code", sorted(REFUSALS))
    def test_retriable_is_not_asked_for_codes_with_a_rule(self, code: int) -> None:
        plain = HeartbeatRefused(code, REFUSALS[code])
        retriable = HeartbeatRefused(code, REFUSALS[code], retriable=True)
        for epoch in (0, 5):
            assert reaction(plain, member_epoch=epoch, may_hold_instance=False) == reaction(
                retriable, member_epoch=epoch, may_hold_instance=False
            )

    def test_the_whole_table(self) -> None:
        def of(code: int) -> Reaction:
            refused = HeartbeatRefused(code, REFUSALS[code])
            return reaction(refused, member_epoch=5, may_hold_instance=True)

        table = {code: of(code) for code in REFUSALS}
        assert {c for c, v in table.items() if v is Reaction.FATAL} == set(FATAL_CODES)
        assert {c for c, v in table.items() if v is Reaction.FENCE} == {*FENCES, 69}
        assert {c for c, v in table.items() if v is Reaction.REDISCOVER} == {15, 16}
        assert table[14] is Reaction.RETRY
        assert table[29] is Reaction.SURFACE
        assert table[111] is Reaction.WAIT_FOR_INSTANCE


def test_a_coordinator_error_is_no_transport_error() -> None:
    harness = MemberHarness().stable()
    harness.next_heartbeat()
    harness.refuse(ErrorCode.NOT_COORDINATOR)
    assert harness.all(Report) == []
    assert harness.out(FindCoordinator) != []
    assert harness.out(SendHeartbeat) != []
    assert not issubclass(BrokerError, TransportError)
