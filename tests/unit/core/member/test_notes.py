"""What a member tells to whoever watches it: fences, phases, applications that do not poll."""

from __future__ import annotations

import pytest

from kip848_client.core.member import (
    Announce,
    CoordinatorSilent,
    Fenced,
    MemberState,
    NotPolled,
    Phase,
    PhaseBegan,
    Polled,
    PollEnded,
    Report,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.member._harness import MemberHarness, in_state


def phases(harness: MemberHarness) -> list[Phase]:
    return [each.phase for each in harness.all(PhaseBegan)]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_a_fence_has_its_cause_and_the_epoch_that_was_refused(code: ErrorCode) -> None:
    harness = MemberHarness().stable(epoch=7)
    harness.next_heartbeat()
    harness.refuse(code)
    assert harness.out(Fenced) == [Fenced(code.name, 7)]


def test_a_refused_join_is_a_fence_of_epoch_zero() -> None:
    harness = in_state(MemberState.JOINING)
    harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    assert harness.out(Fenced) == [Fenced("FENCED_MEMBER_EPOCH", 0)]


def test_the_fence_is_told_before_the_state_changes() -> None:
    harness = MemberHarness().stable()
    harness.next_heartbeat()
    harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    kinds = [type(each) for each in harness.last]
    assert kinds.index(Fenced) < kinds.index(Announce)


class TestPhases:
    def test_a_first_assignment_is_only_assigned(self) -> None:
        harness = in_state(MemberState.RECONCILING)
        assert phases(harness) == [Phase.ASSIGNING]

    def test_what_goes_is_committed_and_revoked_before(self) -> None:
        harness = MemberHarness().stable(t=[0, 1, 2])
        harness.history.clear()
        harness.target(2, t=[0])
        assert phases(harness) == [Phase.COMMITTING]
        harness.flushed()
        assert phases(harness) == [Phase.COMMITTING, Phase.REVOKING]
        harness.released()
        assert phases(harness) == [Phase.COMMITTING, Phase.REVOKING, Phase.ASSIGNING]

    def test_without_auto_commit_nothing_is_committed(self) -> None:
        harness = MemberHarness(auto_commit=False).stable(t=[0, 1])
        harness.history.clear()
        harness.target(2, t=[0])
        assert phases(harness) == [Phase.REVOKING]

    def test_a_leave_is_no_reconciliation(self) -> None:
        harness = MemberHarness().stable(t=[0, 1])
        harness.history.clear()
        harness.leave(flush=True)
        harness.flushed()
        harness.released()
        assert phases(harness) == []


class TestNotPolled:
    def test_it_is_told_at_half_of_the_interval_and_at_the_end(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=4_000).stable()
        harness.feed(Polled())
        harness.advance(1_999)
        assert harness.all(NotPolled) == []
        harness.advance(1)
        assert harness.all(NotPolled) == [NotPolled(2_000, 2_000)]
        harness.advance(2_000)
        assert harness.all(NotPolled) == [NotPolled(2_000, 2_000), NotPolled(4_000, 0)]
        harness.expect(MemberState.STALE)

    def test_the_end_is_told_before_the_member_leaves(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=4_000).stable()
        harness.advance(4_000)
        last = harness.newest(NotPolled)
        stale = next(e for e in harness.all(Announce) if e.new is MemberState.STALE)
        assert harness.history.index(last) < harness.history.index(stale)

    def test_a_poll_begins_the_interval_anew(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=4_000).stable()
        harness.advance(1_900)
        harness.feed(Polled())
        harness.advance(1_900)
        assert harness.all(NotPolled) == []

    def test_it_is_told_again_when_it_stalls_again(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=4_000).stable()
        for _ in range(2):
            harness.feed(Polled())
            harness.advance(2_500)
        assert [each.left_ms for each in harness.all(NotPolled)] == [2_000, 2_000]

    def test_who_waits_in_a_poll_has_not_stalled(self) -> None:
        harness = MemberHarness(max_poll_interval_ms=4_000).stable()
        harness.feed(Polled(waiting=True))
        harness.advance(10_000)
        assert harness.all(NotPolled) == []
        assert harness.core.snapshot().poll_age_ms == 0
        harness.feed(PollEnded())
        harness.advance(1_000)
        assert harness.core.snapshot(harness.now).poll_age_ms == 1_000

    def test_the_age_is_not_known_before_the_first_poll(self) -> None:
        assert MemberHarness().core.snapshot().poll_age_ms is None


def test_a_silent_coordinator_is_told_with_each_report() -> None:
    harness = in_state(MemberState.JOINING)
    harness.advance(60_000)
    silent = [each.silent_ms for each in harness.all(CoordinatorSilent)]
    assert silent == [30_000, 60_000]
    assert len(harness.all(Report)) == 2
