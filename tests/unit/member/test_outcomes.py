"""What the answers to heartbeats do: epochs, error codes, and the client's own policies."""

from __future__ import annotations

import pytest

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
from kip848_client.member import (
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
from kip848_client.member._model import HeartbeatAccepted
from kip848_client.member._policy import Verdict, judge
from tests.unit.member._harness import REFUSALS, Rig, T, U, assignment, in_state, part

FATAL_CODES = [24, 30, 35, 42, 81, 82, 112, 128]
FENCES = [25, 110, 113]


class TestSuccess:
    def test_the_epoch_is_adopted_without_an_assignment(self) -> None:
        """Commits must use it at once; committers hear of it before anything is sent."""
        rig = Rig().stable(epoch=1)
        rig.next_heartbeat()
        rig.accept(2)
        assert rig.last == (EpochChanged(2),)
        assert rig.core.commit_epoch == 2

    def test_an_unchanged_epoch_is_no_news(self) -> None:
        rig = Rig().stable(epoch=3)
        rig.next_heartbeat()
        assert rig.accept(3) == ()

    def test_any_positive_jump_is_valid(self) -> None:
        rig = Rig().stable(epoch=3)
        rig.next_heartbeat()
        rig.accept(1_000)
        assert rig.core.commit_epoch == 1_000

    @pytest.mark.parametrize("epoch", [0, -1, -2])
    def test_an_epoch_that_is_not_positive_is_never_stored(self, epoch: int) -> None:
        """franz-go f0d0655d, KAFKA-19335: a stored -1 would turn the next heartbeat into
        a leave."""
        rig = Rig().stable(epoch=3)
        rig.next_heartbeat()
        rig.accept(epoch, assignment(t=[9]))
        assert (rig.state, rig.core.commit_epoch) == (MemberState.STABLE, 3)
        intent = rig.next_heartbeat()
        assert (intent.member_epoch, intent.is_complete) == (3, True)

    def test_an_answer_for_somebody_else_is_none(self) -> None:
        rig = Rig().stable(epoch=3)
        rig.next_heartbeat()
        rig.accept(9, assignment(t=[9]), member_id="stranger")
        assert (rig.state, rig.core.commit_epoch) == (MemberState.STABLE, 3)
        assert rig.next_heartbeat().is_complete

    @pytest.mark.parametrize("member_id", [None, ""])
    def test_an_answer_without_an_id_counts(self, member_id: str | None) -> None:
        rig = Rig().stable(epoch=3)
        rig.next_heartbeat()
        rig.accept(9, member_id=member_id)
        assert rig.core.commit_epoch == 9

    def test_a_wild_assignment_is_cleaned_up(self) -> None:
        """Repeated topics and partitions are merged, negative numbers dropped; a duplicate must
        not look like a change."""
        rig = Rig().stable(t=[0, 1])
        rig.next_heartbeat()
        wild = ((T, (1, 0, 1, -1)), (T, (0,)), (U, ()))
        rig.accept(1, wild)
        rig.expect(MemberState.STABLE)
        assert rig.last == ()

    def test_a_late_duplicate_of_an_answer_is_ignored(self) -> None:
        """The network repeats an answer."""
        rig = Rig().stable()
        rig.next_heartbeat()
        answer = HeartbeatAnswered(rig.attempt, HeartbeatAccepted(None, 5, 5_000))
        rig.feed(answer)
        rig.feed(answer)
        assert rig.last == ()
        assert rig.core.snapshot().stale_answers == 1

    def test_a_first_empty_assignment_is_no_leave_and_no_error(self) -> None:
        """Brokers from 4.3 on join first and assign a second later."""
        rig = Rig().join()
        rig.accept(2, ())
        assert rig.newest(StartPartitions).partitions == ()
        rig.started()
        rig.accept(2)
        rig.expect(MemberState.STABLE)
        rig.target(3, t=[0, 1])
        rig.started()
        rig.accept(3)
        assert rig.core.assigned == part(T, 0, 1)
        assert rig.errors == []


class TestFence:
    @pytest.mark.parametrize("code", FENCES)
    @pytest.mark.parametrize(
        "state", [MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE]
    )
    def test_drops_everything_as_lost_then_rejoins(self, code: int, state: MemberState) -> None:
        rig = in_state(state)
        if state is not MemberState.ACKNOWLEDGING:
            rig.next_heartbeat()
        held = rig.core.assigned
        rig.refuse(code)
        rig.expect(MemberState.FENCED)
        assert EpochChanged(None) in rig.last
        release = rig.newest(ReleasePartitions)
        assert (release.partitions, release.lost, release.last) == (held, True, True)
        assert rig.core.fetchable == ()
        assert rig.core.assigned == held
        rig.released()
        assert rig.core.assigned == ()
        rig.expect(MemberState.JOINING)
        assert rig.heartbeats[0].member_epoch == 0
        assert rig.errors == []

    def test_a_failing_lost_callback_does_not_stop_the_rejoin(self) -> None:
        rig = in_state(MemberState.FENCED)
        rig.released(failed=True)
        rig.expect(MemberState.JOINING)
        assert rig.core.assigned == ()

    def test_without_partitions_there_is_no_callback(self) -> None:
        rig = Rig().stable(t=[])
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        assert rig.out(ReleasePartitions) == []
        rig.expect(MemberState.JOINING)

    def test_offsets_are_neither_committed_nor_reset(self) -> None:
        """A fence drops partitions; it says nothing about offsets."""
        rig = in_state(MemberState.FENCED)
        kinds = {type(c).__name__ for c in rig.last}
        assert kinds == {"EpochChanged", "Announce", "ReleasePartitions"}

    def test_repeated_fences_are_paced_and_lost_is_called_once(self) -> None:
        """KAFKA-19233: brokers 4.0 and 4.1 refuse epoch-0 joins of a member that they still
        know until its session has expired."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        rig.released()
        start = rig.now
        pauses: list[int] = []
        while rig.now < start + 45_000:
            before = rig.now
            rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
            if not rig.heartbeats:
                rig.next_heartbeat()
            pauses.append(rig.now - before)
        assert pauses[:7] == [100, 200, 400, 800, 1_600, 3_200, 5_000]
        assert max(pauses) == 5_000
        assert len([r for r in rig.all(ReleasePartitions) if r.lost]) == 1
        rig.accept(9, assignment(t=[0]))
        rig.started()
        rig.accept(9)
        rig.expect(MemberState.STABLE)
        assert rig.core.snapshot().consecutive_fences == 0

    def test_a_success_in_between_starts_the_count_anew(self) -> None:
        rig = Rig().stable(t=[])
        for _ in range(3):
            rig.next_heartbeat()
            rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            assert len(rig.heartbeats) == 1, "the first rejoin after a fence is immediate"
            rig.accept(1, ())
            rig.started()
            rig.accept(1)

    def test_a_duplicated_request_costs_one_fence_at_most(self) -> None:
        """KAFKA-19222, KAFKA-19233, KAFKA-19235."""
        rig = Rig().stable(t=[])
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        rig.accept(4, ())
        rig.started()
        rig.accept(4)
        rig.advance(60_000)
        rig.expect(MemberState.STABLE)

    def test_in_a_transaction_the_epoch_is_gone_before_the_state_changes(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        kinds = [type(c) for c in rig.last]
        assert kinds.index(EpochChanged) < kinds.index(Announce)


class TestFatal:
    @pytest.mark.parametrize("code", FATAL_CODES)
    def test_is_told_before_the_member_reacts(self, code: int) -> None:
        """KAFKA-18017: the user sees the error first; then the partitions are lost."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(code, "the broker's words")
        rig.expect(MemberState.FATAL)
        first = rig.last[0]
        assert isinstance(first, Report)
        assert first.severity is Severity.FATAL
        assert isinstance(first.error, BrokerError)
        assert (first.error.code, first.error.name) == (code, REFUSALS[code])
        assert "the broker's words" in str(first.error)
        assert rig.core.fatal_error is first.error
        release = rig.newest(ReleasePartitions)
        assert (release.lost, len(release.partitions)) == (True, 3)
        rig.released()
        rig.expect(MemberState.FATAL)
        assert rig.core.assigned == ()
        assert rig.core.deadline_ms is None

    @pytest.mark.parametrize("code", FATAL_CODES)
    def test_says_what_to_do(self, code: int) -> None:
        rig = Rig().join()
        rig.refuse(code)
        error = rig.newest(Report).error
        assert isinstance(error, BrokerError)
        assert code == ErrorCode.INVALID_REQUEST or error.hint

    def test_a_broker_without_the_protocol(self) -> None:
        rig = Rig().join()
        rig.refuse(ErrorCode.UNSUPPORTED_VERSION)
        error = rig.newest(Report).error
        assert isinstance(error, ProtocolUnsupported)
        assert "4.0" in error.hint
        assert "classic" in error.hint

    def test_a_pattern_that_is_not_re2(self) -> None:
        rig = Rig().join(pattern="(?=x)")
        rig.refuse(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "SubscribedTopicRegex `(?=x)` is not a valid regular expression",
        )
        assert isinstance(rig.newest(Report).error, InvalidRegularExpression)
        rig.expect(MemberState.FATAL)

    def test_an_unknown_code_is_fatal_and_kept_as_a_number(self) -> None:
        rig = Rig().join()
        rig.refuse(4_711)
        error = rig.newest(Report).error
        assert isinstance(error, UnknownBrokerError)
        assert error.code == 4_711

    def test_an_unlisted_code_that_kafka_calls_retriable_is_retried(self) -> None:
        rig = Rig().join()
        refused = HeartbeatRefused(
            ErrorCode.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT", None, retriable=True
        )
        rig.feed(HeartbeatAnswered(rig.attempt, refused))
        rig.expect(MemberState.JOINING)
        assert rig.next_heartbeat().is_complete

    def test_a_failure_of_the_client_itself_is_fatal(self) -> None:
        """KAFKA-18127: e.g. a pattern where the broker has no field for it, or refused
        credentials."""
        rig = Rig().join(pattern="x")
        error = Kip848Error("the broker's ConsumerGroupHeartbeat v0 has no server-side patterns")
        rig.feed(HeartbeatFailed(rig.attempt, error))
        rig.expect(MemberState.FATAL)
        assert rig.core.fatal_error is error

    def test_polling_a_fatal_member_does_nothing(self) -> None:
        rig = in_state(MemberState.FATAL)
        assert rig.feed(Polled()) == ()


class TestSurfaced:
    def test_a_forbidden_topic_is_told_now_and_then_and_retried(self) -> None:
        """KAFKA-18813: the member recovers when the right is granted."""
        rig = Rig().stable()
        rig.next_heartbeat()
        start = rig.now
        while rig.now < start + 30_000:
            rig.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            rig.expect(MemberState.STABLE)
            rig.next_heartbeat()
        assert 5 <= len(rig.errors) <= 7
        assert set(rig.errors) == {"TopicAuthorizationFailed"}
        assert rig.newest(Report).severity is Severity.RAISE
        rig.accept(1, assignment(t=[0, 1, 2]))
        rig.expect(MemberState.STABLE)

    def test_the_session_ran_out_meanwhile(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        rig.released()
        rig.expect(MemberState.JOINING)


class TestVanishedGroup:
    """GROUP_ID_NOT_FOUND of a member is a fence, of a join it is fatal."""

    def test_a_member_rejoins(self) -> None:
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        rig.expect(MemberState.FENCED)
        rig.released()
        rig.accept(1, assignment(t=[0]))
        rig.started()
        rig.expect(MemberState.STABLE)

    def test_a_rejoin_that_gets_it_too_is_the_end(self) -> None:
        """librdkafka 5485, 5488: no silent loop."""
        rig = Rig().stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        rig.released()
        rig.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        rig.expect(MemberState.FATAL)
        assert rig.errors == ["GroupIdNotFound"]

    def test_a_first_join_that_gets_it_is_the_end(self) -> None:
        rig = Rig().join()
        rig.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
        rig.expect(MemberState.FATAL)


class TestUnreleasedInstance:
    """Fatal for a first join, a bounded retry for a rejoin."""

    def test_two_processes_with_one_instance_id(self) -> None:
        rig = Rig(instance_id="i1").join()
        rig.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
        rig.expect(MemberState.FATAL)
        assert isinstance(rig.newest(Report).error, UnreleasedInstanceId)

    def test_a_join_that_never_left_the_process_changes_nothing(self) -> None:
        rig = Rig(instance_id="i1").join()
        rig.lose(LossReason.NOT_SENT)
        rig.next_heartbeat()
        rig.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
        rig.expect(MemberState.FATAL)

    @pytest.mark.parametrize("reason", [LossReason.TIMED_OUT, LossReason.DISCONNECTED])
    def test_a_lost_join_answer_is_waited_out(self, reason: LossReason) -> None:
        """The holder of the instance id is this very member."""
        rig = Rig(instance_id="i1").join()
        rig.lose(reason)
        rig.next_heartbeat()
        start = rig.now
        sent = 0
        while rig.now < start + 45_000:
            rig.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            rig.expect(MemberState.JOINING)
            assert rig.errors == []
            rig.next_heartbeat()
            sent += 1
        assert sent < 20
        rig.accept(7, assignment(t=[0]))
        rig.expect(MemberState.RECONCILING)

    def test_a_fenced_static_member_waits_but_not_for_ever(self) -> None:
        rig = Rig(instance_id="i1", unreleased_instance_limit_ms=60_000).stable()
        rig.next_heartbeat()
        rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        rig.released()
        start = rig.now
        while rig.core.fatal_error is None:
            rig.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            if rig.core.deadline_ms is not None:
                rig.next_heartbeat()
        assert 60_000 <= rig.now - start <= 65_100
        assert rig.errors == ["UnreleasedInstanceId"]

    def test_a_success_in_between_starts_the_time_anew(self) -> None:
        rig = Rig(instance_id="i1", unreleased_instance_limit_ms=1_000).stable(t=[])
        for _ in range(3):
            rig.calm().next_heartbeat()
            rig.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
            rig.refuse(ErrorCode.UNRELEASED_INSTANCE_ID)
            rig.next_heartbeat()
            rig.accept(1, ())
            rig.started()
            rig.accept(1)
            rig.expect(MemberState.STABLE)


class TestJudge:
    @pytest.mark.parametrize("code", sorted(REFUSALS))
    def test_retriable_is_not_asked_for_codes_with_a_rule(self, code: int) -> None:
        plain = HeartbeatRefused(code, REFUSALS[code])
        retriable = HeartbeatRefused(code, REFUSALS[code], retriable=True)
        for epoch in (0, 5):
            assert judge(plain, member_epoch=epoch, may_hold_instance=False) == judge(
                retriable, member_epoch=epoch, may_hold_instance=False
            )

    def test_the_whole_table(self) -> None:
        def of(code: int) -> Verdict:
            refused = HeartbeatRefused(code, REFUSALS[code])
            return judge(refused, member_epoch=5, may_hold_instance=True)

        table = {code: of(code) for code in REFUSALS}
        assert {c for c, v in table.items() if v is Verdict.FATAL} == set(FATAL_CODES)
        assert {c for c, v in table.items() if v is Verdict.FENCE} == {*FENCES, 69}
        assert {c for c, v in table.items() if v is Verdict.REDISCOVER} == {15, 16}
        assert table[14] is Verdict.RETRY
        assert table[29] is Verdict.SURFACE
        assert table[111] is Verdict.WAIT_FOR_INSTANCE


def test_a_coordinator_error_is_no_transport_error() -> None:
    rig = Rig().stable()
    rig.next_heartbeat()
    rig.refuse(ErrorCode.NOT_COORDINATOR)
    assert rig.all(Report) == []
    assert rig.out(FindCoordinator) != []
    assert rig.out(SendHeartbeat) != []
    assert not issubclass(BrokerError, TransportError)
